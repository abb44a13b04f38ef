#!/usr/bin/env python3
"""Writes docs/schedules.md and docs/schedules/*.svg: every pipeline schedule for one and the same case.

    gallery.py [PROGRAM] [OUT]      PROGRAM: build/release/sextant by default; OUT: docs by default
"""
import json
import pathlib
import subprocess
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent
STAGES, MICROBATCHES = 4, 8

# Name, further flags, and what there is to see.
SCHEDULES = (
    ("gpipe", (), "All forwards, then all backwards. Every micro-batch is alive at once."),
    ("1f1b", (), "A backward as soon as there is one: the bubble of GPipe, with at most as many micro-batches alive as "
                 "there are stages. PipeDream-Flush; Megatron-LM without virtual stages."),
    ("interleaved", ("--chunks", "2"), "Each stage holds several chunks of layers, and the way through the pipeline is "
                                       "walked in shorter steps: the bubble shrinks by the number of chunks, more is "
                                       "alive, and more is sent. Megatron-LM with virtual stages."),
    ("zb-h1", (), "The backward is split. The previous stage waits for the input gradient only; weight gradients fill "
                  "the end. A third of 1F1B's bubble at its memory. Zero Bubble, ZB-H1."),
    ("zb-h2", (), "More forwards ahead: no stage waits between its first and its last step, so the *span* is ideal, for "
                  "nearly twice the memory. The makespan is that of zb-h1. Zero Bubble, ZB-H2."),
    ("zb-v", (), "Two chunks a stage, the second running back, so that the first stage also ends the model. No bubble "
                 "inside at the memory of 1F1B. Zero Bubble, ZB-V."),
    ("v-half", (), "The V at a slower pace: about half the memory of 1F1B for a bubble larger than that of zb-v. "
                   "Pipeline Parallelism with Controllable Memory, V-Half."),
    ("v-min", (), "The V at the slowest pace: about a third of the memory of 1F1B. The same paper, V-Min."),
    ("dualpipe-v", (), "DeepSeek's DualPipe folded into a V. In its middle a forward and a backward run side by side to "
                       "hide their exchanges of experts; here they are drawn and counted one after the other."),
)

INTRODUCTION = f"""# Pipeline schedules

All schedules that Sextant knows, for {STAGES} stages and {MICROBATCHES} micro-batches: forward, input gradient and weight \
gradient
take 1 s a stage each (with two chunks a chunk takes half of it), sends take nothing. All pictures have the same time
scale.

| schedule | chunks a stage | makespan | span | bubble, of ideal | peak live micro-batches | pending weight gradients |
|---|---|---|---|---|---|---|
"""

AFTER_TABLE = """
*Makespan*: from the first start to the last end. *Span*: the longest time from start to end on one stage, which is the
length of a step where the optimizer does not wait for all stages. *Ideal*: {ideal:g} s, the work of a stage. *Live*: from
the start of a micro-batch's forward to the end of its last backward step; the largest of all stages. *Pending*: chunk
passes whose input gradient is there and whose weight gradient is not. [How to look at one of your own](tasks/look_at_a_schedule.md).

In the pictures numbers are micro-batches, a darker shade is the second chunk, the grey area counts live micro-batches.
"""


def run(program, name, flags, *more):
    arguments = [program, "schedule", "--algorithm", name, "--stages", str(STAGES), "--microbatches", str(MICROBATCHES),
                 *flags, *more]
    return subprocess.run(arguments, stdout=subprocess.PIPE, check=True).stdout


def row(name, document):
    stages = document["stages"]
    return (f"| [{name}](#{name}) | {document['shape']['chunks']} | {document['makespan_s']:g} s | "
            f"{document['span_s']:g} s | {100 * document['bubble_fraction']:.4g} % | "
            f"{max(stage['peak_live_microbatches'] for stage in stages):g} | "
            f"{max(stage['peak_pending_weight_gradients'] for stage in stages)} |\n")


def section(name, flags, words):
    command = " ".join(["sextant schedule --algorithm", name, f"--stages {STAGES} --microbatches {MICROBATCHES}", *flags])
    return f"\n## {name}\n\n{textwrap.fill(words, 116)}\n\n![{name}](schedules/{name}.svg)\n\n```bash\n{command}\n```\n"


def main():
    program = sys.argv[1] if len(sys.argv) > 1 else str(ROOT / "build" / "release" / "sextant")
    out = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else ROOT / "docs"
    pictures = out / "schedules"
    pictures.mkdir(parents=True, exist_ok=True)
    documents = {name: json.loads(run(program, name, flags, "--json")) for name, flags, _ in SCHEDULES}
    axis_s = max(document["makespan_s"] for document in documents.values())
    page = INTRODUCTION + "".join(row(name, documents[name]) for name, _, _ in SCHEDULES)
    page += AFTER_TABLE.format(ideal=documents["1f1b"]["ideal_s"])
    for name, flags, words in SCHEDULES:
        run(program, name, flags, "--svg", str(pictures / f"{name}.svg"), "--time-axis", f"{axis_s:g}")
        page += section(name, flags, words)
    (out / "schedules.md").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
