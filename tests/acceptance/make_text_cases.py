#!/usr/bin/env python3
"""Writes the folder text/: small tokenizers, what the library `tokenizers` makes of texts with them, and what Jinja2 makes
of templates. test_tokenize.py holds the program against these. Run once; the tests need neither package.

    pip install --target FOLDER tokenizers==0.23.3 jinja2==3.1.6 markupsafe
    PYTHONPATH=FOLDER tests/acceptance/make_text_cases.py
"""
import datetime
import json
import pathlib

import jinja2
import jinja2.ext
import jinja2.sandbox
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

HERE = pathlib.Path(__file__).resolve().parent / "text"
TRAINING = ["The quick brown fox jumps over the lazy dog. It doesn't mind, they've all seen it before.",
            "for (int i = 0; i < 10; ++i) { sum += values[i]; }  // a loop", "Schöne Grüße aus Köln, naïve café",
            "日本語のテキストと中文文本", "1234567890 1 22 333 4444", "hello hello world world\n\n\ttabs and  spaces"] * 3
TEXTS = ["", " ", "hello world", "  two  spaces  ", "don't DON'T we'LL", "x\n\n\ny \n z", "日本語 text 中文!?", "naïve cafe\u0301 ﬁ",
         "<|user|>hi<|end|>", "a <mask> b", "\u0000\u0085\u200b end", "1234567 12 ٣٤", "😀👍🏽 ok", "𐵐 new letter 𐵰", "word words word",
         "a\u0301\u0323 Å 가각", "tab\tand\r\nline", "é" * 40, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "<|USER|> ſ'ſ"]
CL100K = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")


def byte_level():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(CL100K), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(TRAINING, trainers.BpeTrainer(
        vocab_size=360, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    tokenizer.add_special_tokens(["<|begin|>", "<|user|>", "<|end|>", AddedToken("<mask>", lstrip=True, special=True)])
    tokenizer.add_tokens([AddedToken("word", single_word=True, normalized=True)])
    tokenizer.post_processor = processors.TemplateProcessing(single="<|begin|> $A", special_tokens=[("<|begin|>", tokenizer.token_to_id("<|begin|>"))])
    return tokenizer


def sentencepiece():
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    tokenizer.train_from_iterator(TRAINING, trainers.BpeTrainer(
        vocab_size=480, special_tokens=["<unk>", "<s>", "</s>"] + [f"<0x{i:02X}>" for i in range(256)], max_token_length=8,
        show_progress=False))
    data = json.loads(tokenizer.to_str())
    data["added_tokens"] = [token for token in data["added_tokens"] if token["id"] < 3]  # bytes are no added tokens
    data["post_processor"] = None
    return Tokenizer.from_str(json.dumps(data))


def encodings(name, tokenizer):
    for text in TEXTS:
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        case = {"tokenizer": name, "text": text, "ids": ids, "ids_special": tokenizer.encode(text).ids,
                "decoded": tokenizer.decode(ids, skip_special_tokens=False), "decoded_skip": tokenizer.decode(ids)}
        yield case


TEMPLATES = [
    "{% for m in messages %}<|{{ m.role }}|>\n{{ m['content'] | trim }}<|end|>\n{% endfor %}{% if add_generation_prompt %}<|a|>{% endif %}",
    "{%- set ns = namespace(n=0) -%}\n{% for m in messages if m.role != 'system' %}\n  {%- set ns.n = ns.n + 1 %}\n"
    "{{ loop.index }}/{{ loop.length }} {{ m.content[:3] }}\n{% else %}none{% endfor %}{{ ns.n }}",
    "{% macro f(a, b='x') %}[{{ a }}{{ b }}]{% endmacro %}{{ f(1) }}{{ f('q', b=none) }}{% macro g(n) %}({{ caller() * n }}){% endmacro %}{% call g(2) %}in{% endcall %}",
    "{{ tools | tojson(indent=2) }}|{{ messages | map(attribute='role') | unique | join(',') }}|{{ missing is defined }}",
    "{{ 7 // 2 }} {{ -7 % 3 }} {{ 1e16 }} {{ 0.1 + 0.2 }} {{ (1,) }} {{ {'a': [true, none, 2.0]} }} {{ 'it\\'s' | list }}",
    "{{ messages[-1].content.split('</think>')[-1].lstrip('\\n') }}{{ messages[0]['content'][::-1] }}",
    "{% if not messages %}{{ raise_exception('No messages: ' ~ tools) }}{% endif %}{{ messages[0].a.b }}",
    "a  {%- if true %}\n b\n {%- endif %}\n{# gone #}\n   {% if true %}\n c\n   {% endif %}\nd {%+ if true %} e{% endif %}",
    "{% set x %}  {{ messages | length }} messages {% endset %}{{ x | trim | upper | replace('S', 's') }}{{ strftime_now('%d %b %Y') }}",
    "{{ 'a' + 1 }}",
    "{% macro h(a) %}{{ a }}{% endmacro %}{{ h(1) }}{{ h(1, b=2) }}",
    "{{ messages | selectattr('role', 'equalto', 'user') | list | length }}{{ 'x' if messages and messages[0].role is string else 'y' }}",
    "{{ '%s-%.1f' | format('é', 2.55) }} {{ 'ßtraße' | title }} {{ 'ab\ncd' | indent(3) }} {{ [3,1,2] | sort(reverse=true) }} {{ '<&>' | e }}",
]
CONVERSATIONS = [
    {"messages": [{"role": "system", "content": " Be kind. "}, {"role": "user", "content": "Grüße\n<|end|>"}, {"role": "assistant", "content": "<think>\nhm\n</think>\n\nHi"}]},
    {"messages": [{"role": "user", "content": "one"}], "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {"é": {"enum": [1, "x"]}}}}}],
     "variables": {"add_generation_prompt": True}},
    {"messages": []},
]
NOW = datetime.datetime(2024, 7, 26, 9, 5, 3)


class Raised(Exception):
    pass



def environment():
    made = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
    made.filters["tojson"] = lambda value, **style: json.dumps(value, ensure_ascii=False, **style)

    def raise_exception(message):
        raise Raised(message)

    made.globals.update(raise_exception=raise_exception, strftime_now=NOW.strftime)
    return made


def renderings():
    for template in TEMPLATES:
        for conversation in CONVERSATIONS:
            case = {"template": template, "request": {**conversation, "now": NOW.isoformat()}}
            try:
                case["rendered"] = environment().from_string(template).render(
                    messages=conversation["messages"], tools=conversation.get("tools"), documents=None, **conversation.get("variables", {}))
            except Raised as error:
                case.update(error=str(error), error_kind="raise_exception")
            except Exception as error:  # Python's own words are not compared
                case.update(error_kind="runtime")
            yield case


def main():
    HERE.mkdir(exist_ok=True)
    lines = []
    for name, tokenizer in (("byte_level", byte_level()), ("sentencepiece", sentencepiece())):
        (HERE / f"{name}.json").write_text(json.dumps(json.loads(tokenizer.to_str()), ensure_ascii=True, separators=(",", ":")) + "\n")
        lines += encodings(name, tokenizer)
    (HERE / "encodings.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (HERE / "renderings.jsonl").write_text("".join(json.dumps(line) + "\n" for line in renderings()))


if __name__ == "__main__":
    main()
