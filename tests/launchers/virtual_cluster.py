#!/usr/bin/env python3
"""Stands in for a cluster: a launcher whose layouts run as the projection says, with effects that the projection does not know.

It reads the launch file that a search wrote, asks `sextant project` for time and memory of that layout, distorts both
by a hidden truth, and prints what Megatron-LM or Primus would: steps, or the end that the truth has in store. The truth
is a function of the layout, noise one of seed, layout and repeat, so that a search can be repeated exactly.
"""
import argparse
import json
import math
import os
import pathlib
import random
import subprocess
import sys
import time

import fake_launcher

MEMORY_FACTOR = 1.08  # the projection forgets so much
NOISE = 0.02
MIB = 1024 ** 2


def projection(options):
    command = [options.program, "project", "--workload", options.config, "--cluster", options.cluster, "--json"]
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode not in (0, 1):
        sys.exit(f"AssertionError: {done.stderr.decode()}")
    return json.loads(done.stdout)


def effects(layout):
    """How much faster than projected a layout is, before noise."""
    factor = 0.93  # the projection is too hopeful about this machine
    if layout["mbs"] >= 2 and layout["tp"] >= 2:
        factor *= 1.15  # together they do better than the projection knows
    if layout["recompute"]["granularity"] == "full":
        factor *= 0.9
    if layout["pp"] >= 4:
        factor *= 0.95
    return factor


def end_of(layout):
    """A value that never works, and one that hangs."""
    if layout["cp"] == 4:
        return "assert"
    if layout["cp"] == 8:
        return "hang"
    return "none"


def noise(options, layout):
    generator = random.Random(f"{options.seed} {json.dumps(layout, sort_keys=True)} {os.environ.get('SEXTANT_REPEAT', 0)}")
    return math.exp(generator.gauss(0, NOISE))


def step_line(options, printed, step, milliseconds, peak_bytes):
    line = fake_launcher.FORMATS[options.format](printed, step, milliseconds, "1.750000E+00")
    used = peak_bytes / 1024 ** 3
    return line.replace("94.71GB/193.27GB", f"{used:.2f}GB/{287.98 - used:.2f}GB")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", required=True, help="launch file of the candidate")
    parser.add_argument("--cluster", required=True)
    parser.add_argument("--program", default=os.environ.get("SEXTANT_PROGRAM", "sextant"))
    parser.add_argument("--format", choices=("megatron", "primus"), default="megatron")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--step-s", type=float, default=0.0, help="as taken, not as printed")
    parser.add_argument("--pids", help="append this process's id there")
    parser.add_argument("--trial-end", action="append", default=[], metavar="TRIAL=END",
                        help="how that trial ends, whatever its layout: oom or silence")
    parser.add_argument("--trial-waits", action="append", default=[], metavar="TRIAL=FILE",
                        help="that trial begins once FILE is there")
    options = parser.parse_args()
    if options.pids:
        with pathlib.Path(options.pids).open("a", encoding="utf-8") as file:
            file.write(f"{os.getpid()}\n")
    trial = os.environ.get("SEXTANT_TRIAL", "")
    scripted = dict(word.split("=") for word in options.trial_end).get(trial)
    if scripted == "silence":
        fake_launcher.wait_for_ever()
    gate = dict(word.split("=") for word in options.trial_waits).get(trial)
    while gate and not pathlib.Path(gate).exists():
        time.sleep(0.05)
    projected = projection(options)
    layout = projected["layout"]
    if not projected["legal"]:
        fake_launcher.say(f"AssertionError: {projected['violations'][0]['message']}")
        return 1
    peak_bytes = projected["memory"]["peak_bytes"] * MEMORY_FACTOR
    if scripted == "oom" or peak_bytes > projected["memory"]["card_bytes"]:
        fake_launcher.say(f"[rank3]: {fake_launcher.OOM}")
        return 1
    end = end_of(layout)
    if end == "assert":
        fake_launcher.say("[rank0]: AssertionError: context parallelism of 4 is not wired up on this machine")
        return 1
    step_ms = projected["time"]["step_s"] * 1000 / effects(layout) / noise(options, layout)
    printed = argparse.Namespace(steps=options.steps, batch=layout["gbs"], sequence=layout["sequence_tokens"],
                                 gpus=layout["tp"] * layout["pp"] * layout["cp"] * layout["dp"])
    for step in range(1, options.steps + 1):
        time.sleep(options.step_s)
        slow = 3 if step == 1 else 1
        fake_launcher.say(step_line(options, printed, step, step_ms * slow, peak_bytes))
        if step == 2 and options.format == "megatron":
            fake_launcher.say(f"[Rank 0] (after 2 iterations) memory (MB) | allocated: {peak_bytes / MIB * 0.8:.1f} | max allocated: "
                              f"{peak_bytes / MIB * 0.95:.1f} | reserved: {peak_bytes / MIB:.1f} | max reserved: "
                              f"{peak_bytes / MIB:.1f}")
        if end == "hang" and step == 2:
            fake_launcher.wait_for_ever()
    fake_launcher.say("[after training is done] datetime: 2025-01-15 08:30:00 ")
    return 0


if __name__ == "__main__":
    sys.exit(main())
