#!/usr/bin/python3
"""A small language model trained on this machine's processors, with the knobs that Sextant turns. Needs python3-torch.

Reads the Megatron-LM argument list that `sextant tune` writes for each candidate. What the flags mean here:

  --tensor-model-parallel-size T   T cores work together on each product: threads of one process
  (cores / T)                      data-parallel processes, gradients averaged over gloo
  --micro-batch-size B             sequences of one forward and backward pass
  --recompute-granularity full     activations of a layer are computed again in the backward pass
  --global-batch-size G            sequences of one optimizer step, over all processes

Rank 0 prints each step as a JSON line. With --profile FILE nothing is trained: the parts of the model are timed one by one
under the layout that the arguments say, and written as a profile (docs/reference/profile.md).
"""
import argparse
import contextlib
import json
import os
import resource
import shlex
import socket
import statistics
import subprocess
import sys
import time


def read_arguments(path):
    with open(path, encoding="utf-8") as file:
        words = shlex.split(file.read(), comments=True)
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for flag, usual in (("tensor-model-parallel-size", 1), ("micro-batch-size", 1), ("global-batch-size", 8),
                        ("num-layers", 4), ("hidden-size", 256), ("ffn-hidden-size", 1024), ("num-attention-heads", 4),
                        ("seq-length", 128), ("vocab-size", 1024)):
        parser.add_argument(f"--{flag}", type=int, default=usual)
    parser.add_argument("--recompute-granularity")
    return parser.parse_known_args(words)[0]


def launch(options, arguments):
    """One process for each data-parallel rank; all end when one fails."""
    ranks = options.cores // arguments.tensor_model_parallel_size
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    running = []
    for rank in range(ranks):
        environment = {**os.environ, "RANK": str(rank), "WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1",
                       "MASTER_PORT": str(port), "OMP_NUM_THREADS": str(arguments.tensor_model_parallel_size)}
        running.append(subprocess.Popen([sys.executable, *sys.argv], env=environment))
    while any(process.poll() is None for process in running):
        if any(process.poll() not in (None, 0) for process in running):
            for process in running:
                process.kill()
        time.sleep(0.05)
    return max(process.returncode != 0 for process in running)


def build(arguments):
    import torch
    from torch.utils.checkpoint import checkpoint

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = torch.nn.Embedding(arguments.vocab_size, arguments.hidden_size)
            self.layers = torch.nn.ModuleList(
                torch.nn.TransformerEncoderLayer(arguments.hidden_size, arguments.num_attention_heads,
                                                 arguments.ffn_hidden_size, dropout=0.0, batch_first=True)
                for _ in range(arguments.num_layers))
            self.head = torch.nn.Linear(arguments.hidden_size, arguments.vocab_size, bias=False)
            mask = torch.full((arguments.seq_length, arguments.seq_length), float("-inf"))
            self.register_buffer("mask", torch.triu(mask, diagonal=1))

        def forward(self, tokens):
            hidden = self.embedding(tokens)
            for layer in self.layers:
                if arguments.recompute_granularity == "full":
                    hidden = checkpoint(layer, hidden, self.mask, use_reentrant=False)
                else:
                    hidden = layer(hidden, self.mask)
            return self.head(hidden)

    return Model()


def train(options, arguments):
    import torch
    import torch.distributed
    rank = int(os.environ["RANK"])
    ranks = int(os.environ["WORLD_SIZE"])
    torch.manual_seed(0)
    torch.set_num_threads(arguments.tensor_model_parallel_size)
    torch.distributed.init_process_group("gloo")
    model = torch.nn.parallel.DistributedDataParallel(build(arguments))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    generator = torch.Generator().manual_seed(rank)
    passes = arguments.global_batch_size // (arguments.micro_batch_size * ranks)
    for step in range(1, options.steps + 1):
        begin = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        total = 0.0
        for number in range(passes):
            tokens = torch.randint(arguments.vocab_size, (arguments.micro_batch_size, arguments.seq_length + 1),
                                   generator=generator)
            last = number == passes - 1
            with contextlib.nullcontext() if last else model.no_sync():  # gradients travel once a step
                logits = model(tokens[:, :-1])
                loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten()) / passes
                loss.backward()
            total += loss.item()
        optimizer.step()
        torch.distributed.barrier()
        if rank == 0:
            print(json.dumps({"step": step, "total_steps": options.steps, "step_time_s": time.perf_counter() - begin,
                              "loss": total, "global_batch": arguments.global_batch_size,
                              "memory_allocated_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}),
                  flush=True)
    torch.distributed.destroy_process_group()


def timed(part, inputs, repeats=20):
    """Median seconds of forward and of backward, and bytes kept in between that are no parameters. Seconds are those of
    the processor, divided by the threads: what the part takes while nobody else works here."""
    import torch

    def clock():
        return time.process_time() / torch.get_num_threads()

    forward, backward, saved = [], [], {}
    own = {parameter.data_ptr() for parameter in part.parameters()}

    def note(tensor):
        if tensor.data_ptr() not in own:
            saved[tensor.data_ptr()] = tensor.untyped_storage().nbytes() if hasattr(tensor, "untyped_storage") else (
                tensor.storage().nbytes())
        return tensor

    for repeat in range(repeats):
        begin = clock()
        if repeat == 0:
            with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
                output = part(*inputs)
        else:
            output = part(*inputs)
        middle = clock()
        output.sum().backward()
        end = clock()
        forward.append(middle - begin)
        backward.append(end - middle)
    return {"forward_s": statistics.median(forward), "backward_s": statistics.median(backward)}, sum(saved.values())


def profile(options, arguments):
    import torch
    torch.manual_seed(0)
    torch.set_num_threads(arguments.tensor_model_parallel_size)
    model = build(arguments)
    shape = (arguments.micro_batch_size, arguments.seq_length)
    tokens = torch.randint(arguments.vocab_size, shape)
    hidden = torch.randn(*shape, arguments.hidden_size, requires_grad=True)
    layer, saved_bytes = timed(model.layers[0], (hidden, model.mask))
    head = torch.nn.Sequential(model.head, torch.nn.Flatten(0, 1))
    document = {
        "sextant_profile": 1, "name": "CPU seconds of this machine, median of 20",
        "gpus": arguments.tensor_model_parallel_size,
        "layout": {"tp": arguments.tensor_model_parallel_size, "mbs": shape[0], "seq": shape[1]},
        "layers": [{"kind": "dense", **layer, "saved_bytes": saved_bytes}],
        "embedding": timed(model.embedding, (tokens,))[0],
        "head": timed(lossy(head, tokens), (hidden,))[0]}
    with open(options.profile, "w", encoding="utf-8") as file:
        file.write(json.dumps(document, indent=2) + "\n")


def lossy(head, tokens):
    import torch

    class Loss(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.head = head

        def forward(self, hidden):
            return torch.nn.functional.cross_entropy(self.head(hidden), tokens.flatten())

    return Loss()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("arguments", help="Megatron-LM argument list")
    parser.add_argument("--cores", type=int, default=int(os.environ.get("SEXTANT_GPUS", os.cpu_count())))
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--profile", metavar="FILE", help="time single layers and write a profile")
    options = parser.parse_args()
    arguments = read_arguments(options.arguments)
    if options.profile:
        return profile(options, arguments)
    if "RANK" not in os.environ:
        return launch(options, arguments)
    return train(options, arguments)


if __name__ == "__main__":
    sys.exit(main())
