"""The program as a whole: help, version, wrong words, and how it writes to pipes and terminals."""
import os
import pty
import subprocess

from program import LLAMA, MIXTRAL, MIXTRAL_WORKLOAD, PROGRAM, ROOT, ProgramTest, environment, run_test_file

COMMANDS = ("tune", "project", "compare", "inspect", "list", "schedule", "validate", "calibrate", "llm")


def run_on_terminal(*arguments, **variables):
    """Standard output of the program when it is a terminal."""
    reader, writer = pty.openpty()
    process = subprocess.Popen([PROGRAM, *arguments], cwd=ROOT, env={**environment(), "TERM": "xterm", **variables},
                               stdin=subprocess.DEVNULL, stdout=writer, stderr=subprocess.DEVNULL)
    os.close(writer)
    pieces = []
    while True:
        try:
            piece = os.read(reader, 65536)
        except OSError:  # Linux reports the closed end of a terminal so
            break
        if not piece:
            break
        pieces.append(piece)
    os.close(reader)
    process.wait()
    return b"".join(pieces).decode("utf-8")


class Help(ProgramTest):
    def test_every_command_explains_itself_with_an_example(self):
        overview = self.text_of("--help")
        for command in COMMANDS:
            with self.subTest(command):
                self.assertIn(f"  {command} ", overview)
                self.assertRegex(self.text_of(command, "--help"), rf"Example: sextant {command} ")

    def test_the_version_is_a_number(self):
        self.assertRegex(self.text_of("--version"), r"^\d+\.\d+\.\d+\n$")


class WrongWords(ProgramTest):
    def test_no_command_is_a_fault(self):
        self.assertIn("A subcommand is required", self.fault_of())

    def test_an_unknown_command_is_a_fault_that_names_the_nearest(self):
        self.assertIn("did you mean tune", self.fault_of("tuen"))

    def test_an_unknown_flag_is_a_fault_of_every_command(self):
        table = ("--table", "data/calibration/measured/memory_measured.csv")
        for arguments in (("tune", *LLAMA), ("project", *LLAMA), ("compare", *LLAMA), ("inspect", "llama-3.1-8b"),
                          ("list", "models"), ("validate", *table), ("calibrate", *table, "--out", "nowhere.yaml")):
            with self.subTest(arguments[0]):
                self.assertIn("not expected: --nonsense", self.fault_of(*arguments, "--nonsense"))

    def test_a_misspelt_flag_names_the_nearest(self):
        self.assertIn("did you mean --workload", self.fault_of("project", "--worklod", MIXTRAL_WORKLOAD))

    def test_what_a_message_quotes_cannot_steer_the_terminal(self):
        for arguments in (("project", "--workload", "\x1b[2Jx.yaml", "--cluster", "h100-80:1x8"),
                          ("project", *LLAMA, "--set", "\x1b[2J=1")):
            errors = self.fault_of(*arguments)
            self.assertNotIn("\x1b", errors)
            self.assertIn("\\x1b[2J", errors)

    def test_a_flag_without_its_value_is_a_fault(self):
        self.assertIn("--cluster", self.fault_of("project", "--workload", MIXTRAL_WORKLOAD, "--cluster"))


class Streams(ProgramTest):
    def test_a_full_disk_behind_standard_output_is_said_and_not_passed_off_as_done(self):
        for arguments in (("list", "schedules"),
                          ("schedule", "--algorithm", "zb-h1", "--stages", "4", "--microbatches", "64", "--json")):
            with self.subTest(arguments[0]), open("/dev/full", "wb") as full:
                done = subprocess.run([PROGRAM, *arguments], cwd=ROOT, env=environment(), stdout=full,
                                      stderr=subprocess.PIPE, check=False)
                self.assertEqual(done.returncode, 3)
                self.assertEqual(done.stderr.decode(),
                                 "error: standard output: cannot be written: No space left on device\n")

    def test_a_pipe_gets_a_table_without_escape_codes(self):
        for arguments in (("project", *LLAMA), ("tune", *LLAMA), ("compare", *LLAMA, "--set-b", "tp=4"),
                          ("inspect", "llama-3.1-8b"), ("list", "clusters")):
            with self.subTest(arguments):
                text = self.text_of(*arguments)
                self.assertNotIn("\x1b", text)
                self.assertGreater(len(text.splitlines()), 5)
                self.assertFalse(text.startswith(("{", "[")))

    def test_a_terminal_gets_colour_unless_it_is_declined(self):
        arguments = ("project", *LLAMA)
        self.assertIn("\x1b[1m", run_on_terminal(*arguments))
        self.assertNotIn("\x1b", run_on_terminal(*arguments, NO_COLOR="1"))
        self.assertNotIn("\x1b", run_on_terminal(*arguments, TERM="dumb"))

    def test_json_on_a_terminal_is_the_same_document_as_in_a_pipe(self):
        arguments = ("project", *MIXTRAL, "--json")
        piped = subprocess.run([PROGRAM, *arguments], cwd=ROOT, env=environment(), capture_output=True, check=False)
        self.assertEqual(run_on_terminal(*arguments).replace("\r\n", "\n"), piped.stdout.decode("utf-8"))


if __name__ == "__main__":
    run_test_file()
