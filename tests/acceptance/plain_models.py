"""Small decoders in plain Python and double precision, and the files that hold them.

Written from the papers and file formats, not from the program: Llama (arXiv 2302.13971), rotary positions (2104.09864),
grouped queries (2305.13245), Qwen2's biases (2407.10671), Qwen3's norms of queries and keys (2505.09388), Mistral's window
(2310.06825); https://github.com/huggingface/safetensors#format; https://github.com/ggml-org/ggml/blob/master/docs/gguf.md.
"""
import copy
import json
import math
import random
import struct

HIDDEN, FFN, VOCABULARY, LAYERS, HEADS, KV_HEADS = 32, 64, 96, 2, 4, 2
WIDTH = HIDDEN // HEADS
EPSILON, THETA = 1e-5, 10000.0

GGUF_TYPES = {"F32": 0, "F16": 1, "Q4_1": 3, "Q8_0": 8, "BF16": 30}


def shapes(biases=False, norms=False, tied=False):
    """Tensors by their names in checkpoints: (rows, columns), or (size,) for vectors."""
    every = {"model.embed_tokens.weight": (VOCABULARY, HIDDEN), "model.norm.weight": (HIDDEN,)}
    if not tied:
        every["lm_head.weight"] = (VOCABULARY, HIDDEN)
    for layer in range(LAYERS):
        at = f"model.layers.{layer}."
        every |= {at + "input_layernorm.weight": (HIDDEN,), at + "post_attention_layernorm.weight": (HIDDEN,),
                  at + "self_attn.q_proj.weight": (HIDDEN, HIDDEN),
                  at + "self_attn.k_proj.weight": (KV_HEADS * WIDTH, HIDDEN),
                  at + "self_attn.v_proj.weight": (KV_HEADS * WIDTH, HIDDEN),
                  at + "self_attn.o_proj.weight": (HIDDEN, HIDDEN), at + "mlp.gate_proj.weight": (FFN, HIDDEN),
                  at + "mlp.up_proj.weight": (FFN, HIDDEN), at + "mlp.down_proj.weight": (HIDDEN, FFN)}
        if biases:
            every |= {at + "self_attn.q_proj.bias": (HIDDEN,), at + "self_attn.k_proj.bias": (KV_HEADS * WIDTH,),
                      at + "self_attn.v_proj.bias": (KV_HEADS * WIDTH,)}
        if norms:
            every |= {at + "self_attn.q_norm.weight": (WIDTH,), at + "self_attn.k_norm.weight": (WIDTH,)}
    return every


def block_of(values, kind):
    """32 numbers as a block of Q8_0 or Q4_1: the scale rounded to half precision, then the nearest steps."""
    if kind == "Q8_0":
        scale = struct.unpack("<e", struct.pack("<e", max(map(abs, values)) / 127))[0]
        steps = [max(-127, min(127, round(v / scale))) for v in values]
        return struct.pack("<e32b", scale, *steps), [scale * s for s in steps]
    scale, least = struct.unpack("<ee", struct.pack("<ee", (max(values) - min(values)) / 15, min(values)))
    steps = [max(0, min(15, round((v - least) / scale))) for v in values]
    packed = bytes(steps[i] | steps[i + 16] << 4 for i in range(16))
    return struct.pack("<ee", scale, least) + packed, [scale * s + least for s in steps]


def stored(values, kind):
    """Bytes, and the numbers that they stand for."""
    if kind == "F32":
        raw = struct.pack(f"<{len(values)}f", *values)
        return raw, list(struct.unpack(f"<{len(values)}f", raw))
    if kind == "F16":
        raw = struct.pack(f"<{len(values)}e", *values)
        return raw, list(struct.unpack(f"<{len(values)}e", raw))
    if kind == "BF16":  # the upper half of a float, cut off
        raw = b"".join(struct.pack("<f", v)[2:] for v in values)
        return raw, [struct.unpack("<f", b"\0\0" + raw[i:i + 2])[0] for i in range(0, len(raw), 2)]
    blocks = [block_of(values[i:i + 32], kind) for i in range(0, len(values), 32)]
    return b"".join(raw for raw, _ in blocks), [v for _, numbers in blocks for v in numbers]


def to_bfloat16(value):
    """The nearest float of 8 significant bits, even where two are as near."""
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    return struct.unpack("<f", struct.pack("<I", (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000))[0]


class Model:
    """Random weights, as bytes and as numbers. Vectors are F32 in every file."""

    rounds = False  # inputs of products to bfloat16

    def __init__(self, kind="F32", seed=1, **parts):
        source = random.Random(seed)
        self.kind, self.shapes, self.raw, self.numbers = kind, shapes(**parts), {}, {}
        for name, shape in self.shapes.items():
            count = math.prod(shape)
            middle, spread = (1.0, 0.1) if "norm" in name else (0.0, 0.3)
            values = [source.gauss(middle, spread) for _ in range(count)]
            self.raw[name], self.numbers[name] = stored(values, kind if len(shape) == 2 else "F32")

    def rounded(self):
        """The same model as computed in bfloat16: what enters a product is rounded, all else is not."""
        other = copy.copy(self)
        other.rounds = True
        other.numbers = {name: list(map(to_bfloat16, numbers)) if len(self.shapes[name]) == 2 else numbers
                         for name, numbers in self.numbers.items()}
        other.numbers["embedding"] = self.numbers["model.embed_tokens.weight"]  # enters no product
        return other

    def input(self, x):
        return list(map(to_bfloat16, x)) if self.rounds else x

    def vector(self, name):
        return self.numbers.get(name)

    def times(self, name, x):
        """The matrix times x, plus the bias where there is one."""
        rows, columns = self.shapes[name + ".weight"]
        x = self.input(x)
        matrix, bias = self.numbers[name + ".weight"], self.vector(name + ".bias") or [0.0] * rows
        return [math.fsum(matrix[r * columns + c] * x[c] for c in range(columns)) + bias[r] for r in range(rows)]


def normed(x, weight):
    scale = 1 / math.sqrt(sum(v * v for v in x) / len(x) + EPSILON)
    return [v * scale * w for v, w in zip(x, weight)]


def rotated(x, position, neighbours, divisors):
    """Pairs are a head's halves, or neighbours as llama.cpp has it."""
    half, out = WIDTH // 2, list(x)
    for i in range(half):
        angle = position * THETA ** (-2 * i / WIDTH) / (divisors[i] if divisors else 1)
        a, b = (2 * i, 2 * i + 1) if neighbours else (i, i + half)
        out[a] = x[a] * math.cos(angle) - x[b] * math.sin(angle)
        out[b] = x[b] * math.cos(angle) + x[a] * math.sin(angle)
    return out


def attended(model, query, keys, values, first):
    query = model.input(query)
    scores = [sum(q * k for q, k in zip(query, key)) / math.sqrt(WIDTH) for key in keys[first:]]
    largest = max(scores)
    weights = [math.exp(s - largest) for s in scores]
    inputs = model.input(weights)
    return [sum(w * v[d] for w, v in zip(inputs, values[first:])) / sum(weights) for d in range(WIDTH)]


def logits_of(model, ids, neighbours=False, divisors=None, window=0):
    """Logits of every position."""
    keys, values, every = {}, {}, []
    table = model.numbers.get("embedding") or model.numbers["model.embed_tokens.weight"]
    for position, token in enumerate(ids):
        residual = table[token * HIDDEN:(token + 1) * HIDDEN]
        for layer in range(LAYERS):
            at = f"model.layers.{layer}."
            x = normed(residual, model.vector(at + "input_layernorm.weight"))

            def heads(name, count, turned, x=x, at=at):
                out = model.times(f"{at}self_attn.{name}_proj", x)
                out = [out[h * WIDTH:(h + 1) * WIDTH] for h in range(count)]
                norm = model.vector(f"{at}self_attn.{name}_norm.weight")
                out = [normed(head, norm) for head in out] if norm else out
                return [rotated(head, position, neighbours, divisors) for head in out] if turned else out

            queries = heads("q", HEADS, True)
            for head, (key, value) in enumerate(zip(heads("k", KV_HEADS, True), heads("v", KV_HEADS, False))):
                keys.setdefault((layer, head), []).append(model.input(key))
                values.setdefault((layer, head), []).append(model.input(value))
            first = max(0, position - window + 1) if window else 0
            mixed = []
            for head, query in enumerate(queries):
                shared = (layer, head // (HEADS // KV_HEADS))
                mixed += attended(model, query, keys[shared], values[shared], first)
            residual = [r + o for r, o in zip(residual, model.times(at + "self_attn.o_proj", mixed))]
            x = normed(residual, model.vector(at + "post_attention_layernorm.weight"))
            gate, up = model.times(at + "mlp.gate_proj", x), model.times(at + "mlp.up_proj", x)
            inner = [g / (1 + math.exp(-g)) * u for g, u in zip(gate, up)]
            residual = [r + d for r, d in zip(residual, model.times(at + "mlp.down_proj", inner))]
        head = "lm_head" if "lm_head.weight" in model.numbers else "model.embed_tokens"
        every.append(model.times(head, normed(residual, model.vector("model.norm.weight"))))
    return every


def write_checkpoint(folder, model, family, **more):
    """config.json and model.safetensors."""
    config = {"model_type": family, "hidden_size": HIDDEN, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
              "num_key_value_heads": KV_HEADS, "head_dim": WIDTH, "intermediate_size": FFN, "vocab_size": VOCABULARY,
              "max_position_embeddings": 512, "rms_norm_eps": EPSILON, "rope_theta": THETA, "eos_token_id": 3,
              "tie_word_embeddings": "lm_head.weight" not in model.shapes, "torch_dtype": "float32"} | more
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    header, data = {}, b""
    for name, raw in model.raw.items():
        kind = model.kind if len(model.shapes[name]) == 2 else "F32"
        header[name] = {"dtype": kind, "shape": model.shapes[name], "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)


GGUF_NAMES = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output",
              "input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
              "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm",
              "self_attn.k_norm": "attn_k_norm", "post_attention_layernorm": "ffn_norm", "mlp.gate_proj": "ffn_gate",
              "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}


def gguf_name(name):
    stem, kind = name.rsplit(".", 1)
    if not stem.startswith("model.layers."):
        return f"{GGUF_NAMES[stem]}.{kind}"
    layer, part = stem.removeprefix("model.layers.").split(".", 1)
    return f"blk.{layer}.{GGUF_NAMES[part]}.{kind}"


def gguf_text(text):
    raw = text.encode()
    return struct.pack("<Q", len(raw)) + raw


def gguf_value(value):
    if isinstance(value, bool):
        return 7, struct.pack("<?", value)
    if isinstance(value, int):
        return 4, struct.pack("<I", value)
    if isinstance(value, float):
        return 6, struct.pack("<f", value)
    if isinstance(value, str):
        return 8, gguf_text(value)
    kind = gguf_value(value[0])[0]
    return 9, struct.pack("<IQ", kind, len(value)) + b"".join(gguf_value(v)[1] for v in value)


def gguf_metadata(architecture, **more):
    own = {"block_count": LAYERS, "embedding_length": HIDDEN, "feed_forward_length": FFN, "context_length": 512,
           "attention.head_count": HEADS, "attention.head_count_kv": KV_HEADS,
           "attention.layer_norm_rms_epsilon": EPSILON, "rope.freq_base": THETA, "rope.dimension_count": WIDTH}
    keys = {"general.architecture": architecture} | {f"{architecture}.{k}": v for k, v in own.items()}
    return keys | {"tokenizer.ggml.eos_token_id": 3} | more


def gguf_bytes(metadata, tensors):
    """`tensors`: name to (shape outermost first, kind, bytes)."""
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata))
    for key, value in metadata.items():
        kind, raw = gguf_value(value)
        head += gguf_text(key) + struct.pack("<I", kind) + raw
    data = b""
    for name, (shape, kind, raw) in tensors.items():
        data += b"\0" * (-len(data) % 32)
        head += gguf_text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *reversed(shape), GGUF_TYPES[kind],
                                              len(data))
        data += raw
    return head + b"\0" * (-len(head) % 32) + data


def gguf_tensors(model):
    return {gguf_name(name): (shape, model.kind if len(shape) == 2 else "F32", model.raw[name])
            for name, shape in model.shapes.items()}
