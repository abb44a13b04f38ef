"""`sextant tune --out`: what a run leaves behind, and that reading it back gives the same answer."""
import functools
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from program import (CASE_STUDY, LLAMA, MIXTRAL, MIXTRAL_WORKLOAD, PROGRAM, ROOT, ProgramTest, reference_data,
                     run_program, run_test_file)

FOLDERS = tempfile.TemporaryDirectory()
unittest.addModuleCleanup(FOLDERS.cleanup)

# Trainer presets as Primus ships them, as far as a workload with every key written out needs them.
PRESETS = {"modules/megatron/pre_trainer.yaml": "trainable: false\n", "models/megatron/language_model.yaml": "{}\n"}


@functools.lru_cache(maxsize=None)
def run_folder(*arguments):
    """The document of a run and the folder that it wrote."""
    folder = pathlib.Path(FOLDERS.name) / str(abs(hash(arguments)))
    answer = run_program("tune", *arguments, "--top", "3", "--out", str(folder), "--json")
    assert answer.status == 0, answer.errors
    return json.loads(answer.output), folder


def primus_root():
    """A folder with the few presets that a complete overlay names."""
    root = pathlib.Path(FOLDERS.name) / "primus-root"
    for name, text in PRESETS.items():
        path = root / "primus" / "configs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


class Contents(ProgramTest):
    def test_result_json_is_the_printed_document(self):
        document, folder = run_folder(*MIXTRAL)
        self.assertEqual(json.loads((folder / "result.json").read_text(encoding="utf-8")), document)
        self.assertEqual(document["run"], str(folder))

    def test_inputs_are_kept_verbatim(self):
        _, folder = run_folder(*MIXTRAL)
        kept = folder / "inputs" / pathlib.Path(MIXTRAL_WORKLOAD).name
        self.assertEqual(kept.read_bytes(), (ROOT / MIXTRAL_WORKLOAD).read_bytes())
        cluster = json.loads((folder / "inputs" / "cluster.json").read_text(encoding="utf-8"))
        self.assertEqual((cluster["name"], cluster["gpus"]), ("mi355x:4x8", 32))

    def test_the_three_best_have_files_and_the_document_says_where(self):
        document, folder = run_folder(*MIXTRAL)
        for entry in document["best"]:
            self.assertEqual(set(entry["exports"]), {"sextant.yaml", "overlay.yaml", "exports.sh"})
            for name, path in entry["exports"].items():
                self.assertEqual(pathlib.Path(path), folder / f"best-{entry['rank']}" / name)
                self.assertTrue(os.path.getsize(path))

    def test_without_out_nothing_is_written(self):
        self.assertEqual(self.json_of("tune", *MIXTRAL, "--top", "1")["best"][0]["exports"], {})

    def test_the_export_script_sets_what_it_says(self):
        document, _ = run_folder(*MIXTRAL)
        best = document["best"][0]
        script = "source '%s' && echo $NNODES $GPUS_PER_NODE $PRIMUS_TP $PRIMUS_PP $PRIMUS_EP $PRIMUS_GBS $EXP"
        done = subprocess.run(["bash", "-euc", script % best["exports"]["exports.sh"]], capture_output=True, check=True)
        layout = best["layout"]
        self.assertEqual(done.stdout.decode().split(),
                         ["4", "8", *(str(layout[name]) for name in ("tp", "pp", "ep", "gbs")),
                          best["exports"]["overlay.yaml"]])


class SecondRun(ProgramTest):
    """Into the folder of an earlier run."""

    def run_into(self, folder, *arguments):
        answer = run_program("tune", *MIXTRAL, *arguments, "--out", str(folder), "--json")
        self.assertEqual(answer.status, 0, answer.errors)
        return json.loads(answer.output)

    def test_leaves_no_launch_files_of_the_earlier_one(self):
        folder = pathlib.Path(FOLDERS.name) / "second"
        self.run_into(folder, "--top", "3")
        for name in ("best-3/train.log", "notes.txt"):
            (folder / name).write_text("mine", encoding="utf-8")
        document = self.run_into(folder, "--top", "1")
        self.assertEqual(len(document["best"]), 1)
        self.assertTrue((folder / "best-1" / "overlay.yaml").is_file())
        self.assertFalse((folder / "best-2").exists())
        self.assertEqual([path.name for path in (folder / "best-3").iterdir()], ["train.log"])
        self.assertEqual((folder / "notes.txt").read_text(encoding="utf-8"), "mine")

    def test_with_wrong_input_leaves_the_earlier_one_alone(self):
        folder = pathlib.Path(FOLDERS.name) / "kept"
        document = self.run_into(folder, "--top", "2")
        answer = run_program("tune", *MIXTRAL, "--set", "no_such_key=1", "--out", str(folder))
        self.assertEqual(answer.status, 2)
        self.assertEqual(json.loads((folder / "result.json").read_text(encoding="utf-8")), document)
        self.assertTrue((folder / "best-2" / "overlay.yaml").is_file())

    def test_does_not_touch_measurements(self):
        folder = pathlib.Path(FOLDERS.name) / "measured"
        folder.mkdir()
        (folder / "run.sqlite").write_bytes(b"precious")
        answer = run_program("tune", *MIXTRAL, "--out", str(folder))
        self.assertEqual(answer.status, 2)
        self.assertIn("run.sqlite: is the journal of a measured run", answer.errors)
        self.assertEqual([path.name for path in folder.iterdir()], ["run.sqlite"])


class Repeat(ProgramTest):
    """The run again, from its folder alone."""

    def assert_repeats(self, arguments, hide=(), environment=None):
        """`arguments` run once; then, with the files in `hide` gone, the recorded words in a copy of the folder."""
        document, folder = run_folder(*arguments)
        run = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        self.assertEqual(run["arguments"], [*arguments, "--top", "3", "--out", str(folder), "--json"])
        copy = pathlib.Path(tempfile.mkdtemp(dir=FOLDERS.name)) / "copy"
        shutil.copytree(folder, copy)
        self.assertEqual(run["repeat"][0], "sextant")
        for path in hide:
            path.rename(str(path) + ".hidden")
        try:
            done = subprocess.run([PROGRAM, *run["repeat"][1:]], cwd=copy, capture_output=True, check=False,
                                  env={**os.environ, **run["environment"]})
        finally:
            for path in hide:
                pathlib.Path(str(path) + ".hidden").rename(path)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        again = json.loads(done.stdout)
        for key in ("space", "rejected", "baseline", "effects", "sensitivity", "pareto"):
            self.assertEqual(again[key], document[key], key)
        for entry in (*again["best"], *document["best"]):
            entry["exports"] = None
        self.assertEqual(again["best"], document["best"])

    def test_with_flags_of_every_kind(self):
        self.assert_repeats((*MIXTRAL, "--set", "gbs=256", "--pin", "tp=1", "--open", "loss", "--memory-margin=0.05"))

    def test_when_workload_and_cluster_files_are_gone(self):
        home = pathlib.Path(FOLDERS.name) / "home"
        (home / "clusters").mkdir(parents=True)
        workload = home / "job.yaml"
        workload.write_bytes((ROOT / MIXTRAL_WORKLOAD).read_bytes())
        cluster = home / "clusters" / "mine.yaml"
        cluster.write_text("accelerator: mi355x\nnodes: 4\n", encoding="utf-8")
        self.assert_repeats(("--workload", str(workload), "--cluster", str(cluster)), hide=(workload, cluster))

    def test_when_a_primus_checkout_is_gone(self):
        root = reference_data() / "primus"
        home = pathlib.Path(FOLDERS.name) / "checkout"
        shutil.copytree(root, home)
        path = home / "examples/megatron/configs/MI355X/mixtral_8x22B_v0.1-BF16-pretrain.yaml"
        self.assert_repeats(("--workload", str(path), "--cluster", "mi355x:4x8", "--set", "global_batch_size=512"),
                            hide=(home,))


class ReadBack(ProgramTest):
    def assert_reads_back(self, entry, path, *arguments):
        """The file projects to the same layout and the same figures, to the last bit."""
        projection = self.json_of("project", "--workload", path, *arguments)
        self.assertEqual(projection["layout"], entry["layout"])
        self.assertEqual(projection["throughput"], entry["throughput"])
        self.assertEqual(projection["memory"]["peak_bytes"], entry["memory"]["peak_bytes"])

    def test_sextant_yaml_reads_back(self):
        for arguments in (MIXTRAL, LLAMA, CASE_STUDY):
            document, _ = run_folder(*arguments)
            for entry in document["best"]:
                with self.subTest(arguments=arguments, rank=entry["rank"]):
                    self.assert_reads_back(entry, entry["exports"]["sextant.yaml"], "--cluster", arguments[3])

    def test_the_overlay_reads_back(self):
        document, _ = run_folder(*MIXTRAL)
        for entry in document["best"]:
            with self.subTest(rank=entry["rank"]):
                self.assert_reads_back(entry, entry["exports"]["overlay.yaml"], "--cluster", "mi355x:4x8",
                                       "--primus-root", str(primus_root()))

    def test_the_argument_list_reads_back(self):
        document, _ = run_folder(*LLAMA)
        for entry in document["best"]:
            with self.subTest(rank=entry["rank"]):
                self.assert_reads_back(entry, entry["exports"]["arguments.txt"], "--cluster", "h100-80:1x8")

    def test_the_argument_list_says_the_degrees_as_flags(self):
        document, _ = run_folder(*LLAMA)
        best = document["best"][0]
        text = pathlib.Path(best["exports"]["arguments.txt"]).read_text(encoding="utf-8")
        for flag, name in (("tensor-model-parallel-size", "tp"), ("micro-batch-size", "mbs"),
                           ("global-batch-size", "gbs")):
            self.assertEqual(re.findall(rf"^--{flag} (\d+)$", text, re.MULTILINE), [str(best["layout"][name])])

    def test_an_fp8_deepep_answer_reads_back_from_every_file(self):
        arguments = (*MIXTRAL, "--set", "precision=fp8", "--set", "gbs=512", "--pin", "dispatch=deepep")
        document, _ = run_folder(*arguments)
        entry = document["best"][0]
        self.assertEqual((entry["layout"]["precision"], entry["layout"]["moe_dispatch"]), ("fp8", "deepep"))
        self.assert_reads_back(entry, entry["exports"]["sextant.yaml"], "--cluster", "mi355x:4x8")
        self.assert_reads_back(entry, entry["exports"]["overlay.yaml"], "--cluster", "mi355x:4x8", "--primus-root",
                               str(primus_root()))

    def test_the_overlay_of_a_primus_workload_reads_back_beside_its_presets(self):
        root = reference_data() / "primus"
        for name in ("mixtral_8x22B_v0.1-BF16", "llama3.1_8B-FP8"):
            path = root / f"examples/megatron/configs/MI355X/{name}-pretrain.yaml"
            document, _ = run_folder("--workload", str(path), "--cluster", "mi355x:4x8", "--set",
                                     "global_batch_size=512")
            for entry in document["best"]:
                with self.subTest(name, rank=entry["rank"]):
                    self.assert_reads_back(entry, entry["exports"]["overlay.yaml"], "--cluster", "mi355x:4x8",
                                           "--primus-root", str(root))


if __name__ == "__main__":
    run_test_file()
