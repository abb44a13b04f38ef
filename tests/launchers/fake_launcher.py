#!/usr/bin/env python3
"""Stands in for a training launcher: starts ranks, prints what real frameworks print, fails in the ways in which real jobs do.

Tests of trials run it as their command. Ranks are processes of their own with RANK in their environment, as torchrun's are;
rank 0 (Megatron-LM and Primus: the last rank) prints the steps, all print errors. With --out each rank writes a log of its own.
"""
import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

OOM = ("torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 287.98 GiB of "
       "which 1.00 GiB is free. Of the allocated memory 285.00 GiB is allocated by PyTorch, and 512.00 MiB is reserved by "
       "PyTorch but unallocated. If reserved but unallocated memory is large try setting "
       "PYTORCH_HIP_ALLOC_CONF=expandable_segments:True to avoid fragmentation.")
FRAGMENTED = ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.20 GiB. GPU 0 has a total capacity of 79.10 GiB "
              "of which 0.50 GiB is free. Of the allocated memory 60.40 GiB is allocated by PyTorch, and 17.50 GiB is reserved "
              "by PyTorch but unallocated.")
WATCHDOG = ("[rank0]:[E1218 20:27:21.426415540 ProcessGroupNCCL.cpp:629] [Rank 0] Watchdog caught collective operation timeout: "
            "WorkNCCL(SeqNum=1, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600081 milliseconds before timing out.")


def megatron(o, step, ms, loss):
    return (f" [2025-01-15 08:30:00] iteration {step:8d}/{o.steps:8d} | consumed samples: {step * o.batch:12d} | "
            f"elapsed time per iteration (ms): {ms:.1f} | throughput per GPU (TFLOP/s/GPU): 240.5 | learning rate: "
            f"1.000000E-05 | global batch size: {o.batch:5d} | lm loss: {loss} | loss scale: 1.0 | grad norm: 1.000 | "
            "number of skipped iterations:   0 | number of nan iterations:   0 |")


def primus(o, step, ms, loss):
    rate = o.batch * o.sequence / (ms / 1000) / o.gpus
    return (f"[20260508 02:19:38][rank-7/8][DEBUG]    [---------------utils.py:425] : [2026-05-08 02:19:38.065926] iteration "
            f"{step:8d}/{o.steps:8d} | consumed samples: {step * o.batch:12d} | elapsed time per iteration (ms): "
            f"{ms:.1f}/{ms:.1f} | throughput per GPU (TFLOP/s/GPU): 240.5/240.5  | tokens per GPU (tokens/s/GPU): "
            f"{rate:.1f}/{rate:.1f} | global batch size: {o.batch:5d} | lm loss: {loss} | hip mem "
            "usage/free/total/usage_ratio: 94.71GB/193.27GB/287.98GB/32.89%")


def torchtitan(o, step, ms, loss):
    rate = round(o.batch * o.sequence / (ms / 1000) / o.gpus)
    return (f"[rank0]:[titan] 2025-01-15 08:30:00,123 - root - INFO - \x1b[31mstep: {step:2d}  \x1b[32mloss: {loss}  "
            f"\x1b[36mmemory: 70.00GiB(88.50%)  \x1b[34mtps: {rate:,}  \x1b[36mtflops: 200.00  \x1b[35mmfu: 20.22%\x1b[39m")


def nemo(o, step, ms, loss):
    return (f"Training epoch 0, iteration {step - 1}/{o.steps - 1} | lr: 3e-05 | global_batch_size: {o.batch} | global_step: "
            f"{step - 1} | reduced_train_loss: {loss} | train_step_timing in s: {ms / 1000:.4g}")


def deepspeed(o, step, ms, loss):
    return (f"[2023-11-07 01:55:23,714] [INFO] [timer.py:260:stop] epoch=0/micro_step={step * 4}/global_step={step}, "
            f"RunningAvgSamplesPerSec={o.batch / (ms / 1000)}, CurrSamplesPerSec={o.batch / (ms / 1000)}, MemAllocated=4.32GB, "
            "MaxMemAllocated=38.49GB")


def json_line(o, step, ms, loss):
    return json.dumps({"step": step, "total_steps": o.steps, "step_time_s": ms / 1000, "loss": float(loss),
                       "memory_allocated_bytes": 7e10})


FORMATS = {"megatron": megatron, "primus": primus, "torchtitan": torchtitan, "nemo": nemo, "deepspeed": deepspeed,
           "json": json_line}


def say(text):
    print(text, flush=True)


def wait_for_ever():
    while True:
        time.sleep(1000)


def fail(o, rank, step):
    """What goes wrong on this rank after `step` steps, if anything."""
    if rank != o.bad_rank or step != o.bad_step or o.fault == "none":
        return
    if o.fault == "oom":
        say(f"[rank{rank}]: {OOM}")
        sys.exit(1)
    if o.fault == "oom_on_repeat_1" and os.environ.get("SEXTANT_REPEAT") == "1":
        say(f"[rank{rank}]: {OOM}")
        sys.exit(1)
    if o.fault == "oom_and_stay":
        say(f"[rank{rank}]: {OOM}")
        wait_for_ever()
    if o.fault == "fragmented":
        say(FRAGMENTED)
        sys.exit(1)
    if o.fault == "assert":
        say(f"[rank{rank}]: AssertionError: 7 attention heads are not divisible by 2")
        sys.exit(1)
    if o.fault == "segfault":
        os.kill(os.getpid(), signal.SIGSEGV)
    if o.fault == "sigkill":
        os.kill(os.getpid(), signal.SIGKILL)
    if o.fault == "vanish":
        os._exit(1)
    if o.fault == "hang":
        wait_for_ever()
    if o.fault == "watchdog":
        say(WATCHDOG)
        wait_for_ever()


def work(o, rank, printer):
    if o.ignore_sigterm:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if o.daemon and rank == 0:
        subprocess.Popen(["setsid", "sh", "-c", f"echo $$ > {o.daemon}; sleep 1000"])
    if printer and o.forced_balance:
        say("  moe_router_force_load_balancing ................. True")
    for _ in range(o.chatter):
        say(f"[rank{rank}]: {'chatter ' * 100}")
    fail(o, rank, 0)
    for step in range(1, o.steps + 1):
        time.sleep(o.step_s)
        if printer and not o.silent:
            loss = "NAN" if step == o.nan_step else "1.750000E+00"
            say(FORMATS[o.format](o, step, o.step_ms * (10 if step == 1 else 1), loss))
        fail(o, rank, step)
    if printer and o.format in ("megatron", "primus"):
        say("[after training is done] datetime: 2025-01-15 08:30:00 ")


def launch(o):
    """Starts the ranks and waits; like torchrun ends the others when one fails, unless --stubborn."""
    ranks = []
    for rank in range(o.ranks):
        output = None
        if o.out:
            folder = pathlib.Path(o.out)
            folder.mkdir(parents=True, exist_ok=True)
            output = (folder / f"rank_{rank}.log").open("w", encoding="utf-8")
        command = [sys.executable, __file__, *sys.argv[1:]]
        environment = {**os.environ, "RANK": str(rank), "FAKE_RANK": str(rank)}
        ranks.append(subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.STDOUT if output else None))
    if o.pids:
        pathlib.Path(o.pids).write_text(" ".join(str(rank.pid) for rank in ranks), encoding="utf-8")
    while any(rank.poll() is None for rank in ranks):
        time.sleep(0.02)
        failed = [rank for rank in ranks if rank.poll() not in (None, 0)]
        if failed and not o.stubborn:
            for rank in ranks:
                rank.kill()
                rank.wait()
    failed = [rank.returncode for rank in ranks if rank.returncode != 0]
    if failed:
        say("torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ")
        return 1
    return o.exit_status


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--format", choices=FORMATS, default="megatron")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--step-ms", type=float, default=1000, help="as printed")
    parser.add_argument("--step-s", type=float, default=0.01, help="as taken")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--sequence", type=int, default=4096)
    parser.add_argument("--gpus", type=int, default=8)
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--out", help="folder for a log of each rank")
    parser.add_argument("--fault", default="none")
    parser.add_argument("--bad-rank", type=int, default=0)
    parser.add_argument("--bad-step", type=int, default=3)
    parser.add_argument("--nan-step", type=int, default=0)
    parser.add_argument("--silent", action="store_true", help="print no steps")
    parser.add_argument("--stubborn", action="store_true", help="go on waiting when a rank has died")
    parser.add_argument("--ignore-sigterm", action="store_true")
    parser.add_argument("--daemon", help="start a process in a session of its own, and write its id there")
    parser.add_argument("--pids", help="write the ranks' process ids there")
    parser.add_argument("--chatter", type=int, default=0, help="lines of 800 bytes before training")
    parser.add_argument("--forced-balance", action="store_true")
    parser.add_argument("--exit-status", type=int, default=0)
    parser.add_argument("--config", help="must be a file that exists")
    o = parser.parse_args()
    if o.config and not pathlib.Path(o.config).is_file():
        sys.exit(f"{o.config} does not exist")
    rank = os.environ.get("FAKE_RANK")
    if rank is None:
        sys.exit(launch(o))
    printer = int(rank) == (o.ranks - 1 if o.format in ("megatron", "primus") else 0)
    work(o, int(rank), printer)


if __name__ == "__main__":
    main()
