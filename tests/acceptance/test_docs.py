"""The documentation does what it says: its commands run, its links lead somewhere, its flags and figures are the program's.

Commands are the lines of ```bash blocks that start with `sextant `; a comment `# exit N` says which status to expect,
0 without one. A ```yaml block whose first line is `# NAME.yaml` is that file. The commands of a page run in order, in a
folder of their own that holds `data` and those files.
"""
import os
import pathlib
import re
import subprocess
import tempfile

from program import MIXTRAL, PROGRAM, ROOT, ProgramTest, environment, run_test_file

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def text_of(page):
    return page.read_text(encoding="utf-8")


def blocks(page, language):
    return [body for name, body in BLOCK.findall(text_of(page)) if name == language]


def commands(page):
    """(command, expected exit status), in order."""
    found = []
    for body in blocks(page, "bash"):
        for line in body.replace("\\\n", " ").splitlines():
            command, _, comment = line.partition("  # ")
            status = re.fullmatch(r"exit (\d+)", comment.strip())
            found.append((command.strip(), int(status[1]) if status else 0))
    return [(command, status) for command, status in found if command.startswith("sextant ")]


def anchors(page):
    """Headings as GitHub turns them into fragments."""
    headings = re.findall(r"^#+ (.+)$", BLOCK.sub("", text_of(page)), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


class Commands(ProgramTest):
    def run_page(self, page, folder):
        (folder / "data").symlink_to(ROOT / "data")
        (folder / "bin").mkdir()
        (folder / "bin" / "sextant").symlink_to(PROGRAM)
        for body in blocks(page, "yaml"):
            if name := re.match(r"# ([\w.]+\.yaml)\n", body):
                (folder / name[1]).write_text(body, encoding="utf-8")
        variables = {**environment(), "PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}
        for command, status in commands(page):
            with self.subTest(page=page.name, command=command):
                done = subprocess.run(["bash", "-c", command], cwd=folder, env=variables, stdin=subprocess.DEVNULL,
                                      capture_output=True, check=False)
                self.assertEqual(done.returncode, status, done.stderr.decode("utf-8"))

    def test_every_command_of_the_documentation_runs(self):
        count = 0
        for page in PAGES:
            with tempfile.TemporaryDirectory() as folder:
                self.run_page(page, pathlib.Path(folder))
            count += len(commands(page))
        self.assertGreater(count, 25)

    def test_every_task_shows_a_command(self):
        for page in (ROOT / "docs" / "tasks").glob("*.md"):
            with self.subTest(page.name):
                self.assertTrue(commands(page))


class Pages(ProgramTest):
    def test_links_lead_to_files_and_headings_that_exist(self):
        for page in PAGES:
            for target in LINK.findall(BLOCK.sub("", text_of(page))):
                if "://" in target:
                    continue
                path, _, fragment = target.partition("#")
                with self.subTest(page=page.name, link=target):
                    linked = (page.parent / path).resolve() if path else page
                    self.assertTrue(linked.exists(), f"{linked} does not exist")
                    if fragment:
                        self.assertIn(fragment, anchors(linked))

    def test_every_page_is_in_the_index(self):
        index = ROOT / "docs" / "README.md"
        linked = {(index.parent / link).resolve() for link in LINK.findall(text_of(index))}
        for page in PAGES:
            if page not in (ROOT / "README.md", index):
                self.assertIn(page, linked)

    def test_the_command_line_reference_names_exactly_the_flags_that_exist(self):
        described = set(re.findall(r"--[a-z][a-z-]+", text_of(ROOT / "docs" / "reference" / "command_line.md")))
        existing = {"--help"}
        for command in ("tune", "report", "project", "compare", "inspect", "list", "schedule", "validate", "calibrate",
                        "llm check", "tokenize", "chat-template", "generate", "serve", "bench"):
            usage = self.text_of(*command.split(), "--help")
            existing |= set(re.findall(r"^  (?:-\w,)?(--[a-z][a-z-]+)", usage, re.MULTILINE))
        self.assertEqual(described, existing)

    def test_the_glossary_is_sorted(self):
        words = re.findall(r"^\| ([^|]+) \|", text_of(ROOT / "docs" / "reference" / "glossary.md"), re.MULTILINE)
        words = [word.lower() for word in words if word not in ("word", "---")]
        self.assertEqual(words, sorted(words))


class FirstAnswer(ProgramTest):
    """The answer in the README, as the program gives it today but for figures that move with calibration."""

    def shown(self):
        return blocks(ROOT / "README.md", "text")[0]

    def test_its_headings_and_words_are_those_of_the_program(self):
        answer = self.text_of("tune", *MIXTRAL)
        headings = re.findall(r"^\w[\w ,]+", answer, re.MULTILINE)
        self.assertEqual([line for line in re.findall(r"^\w[\w ,]+", self.shown(), re.MULTILINE)
                          if not line.startswith("mixtral")],
                         [line for line in headings if not line.startswith("mixtral")])
        self.assertEqual(set(re.findall(r"[a-z]{4,}", self.shown())) - set(re.findall(r"[a-z]{4,}", answer)), set())

    def test_its_rate_and_counts_still_hold(self):
        document = self.json_of("tune", *MIXTRAL)
        rate = float(re.search(r"(\d+) tokens/s/GPU projected", self.shown())[1])
        self.assertAlmostEqual(rate / document["best"][0]["throughput"]["tokens_per_s_per_gpu"], 1, delta=0.05,
                               msg="copy the output of the command into README.md anew")
        self.assertIn(f"{document['space']['legal']:,} legal", self.shown())

    def test_its_accuracy_is_that_of_validate(self):
        overall = next(row for row in self.json_of("validate", "--table",
                                                   "data/calibration/measured/training_measured.csv")["summary"]
                       if row["slice"] == "all")
        claim = re.search(r"On these ([\d,]+) runs the projected step time is\s+wrong by ([\d.]+) % on average and by "
                          r"([\d.]+) % in the median", text_of(ROOT / "README.md"))
        self.assertIsNotNone(claim)
        self.assertEqual(int(claim[1].replace(",", "")), overall["rows"])
        self.assertAlmostEqual(float(claim[2]), overall["mape"] * 100, delta=0.5)
        self.assertAlmostEqual(float(claim[3]), overall["median_ape"] * 100, delta=0.5)


if __name__ == "__main__":
    run_test_file()
