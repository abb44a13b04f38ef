#!/usr/bin/env python3
"""Tests of scripts/check_includes.py on small houses made for the purpose."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parent.parent / "scripts/check_includes.py"
TABLE = "| floor | room |\n|---|---|\n| 0 | `ground` | a |\n| 1 | `left` | b |\n| 1 | `right` | c |\n| 2 | `top` | d |\n"


def check(files):
    """Exit status and output for a house whose rooms hold `files`: {path: text}."""
    with tempfile.TemporaryDirectory() as root:
        for path, text in ({"docs/design/architecture.md": TABLE, "src/ground/a.h": ""} | files).items():
            target = pathlib.Path(root, path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
        result = subprocess.run([sys.executable, SCRIPT, root], capture_output=True, text=True)
        return result.returncode, result.stdout


class CheckIncludes(unittest.TestCase):
    def test_accepts_a_listed_lower_room(self):
        self.assertEqual(check({"src/left/CMakeLists.txt": "sextant_room(left\n  ROOMS ground # why\n  SOURCES a.cpp)",
                                "src/left/a.cpp": '#include "left/a.h"\n#include "ground/a.h"\n'})[0], 0)

    def test_refuses_a_lower_room_that_is_not_listed(self):
        status, output = check({"src/left/CMakeLists.txt": "sextant_room(left SOURCES a.cpp)",
                                "src/left/a.cpp": '\n#include "ground/a.h"\n'})
        self.assertEqual(status, 1)
        self.assertIn("src/left/a.cpp:2: includes ground", output)

    def test_refuses_the_same_floor_and_higher_ones(self):
        for other in ("right", "top"):
            status, output = check({"src/left/CMakeLists.txt": f"sextant_room(left ROOMS {other} SOURCES a.cpp)",
                                    "src/left/a.cpp": f'#include "{other}/a.h"\n'})
            self.assertEqual(status, 1)
            self.assertIn(f"may not include {other}", output)
            self.assertIn("src/left/a.cpp:1", output)

    def test_refuses_rooms_without_a_row(self):
        self.assertIn("src/attic: has no row", check({"src/attic/a.h": ""})[1])

    def test_refuses_includes_of_no_room(self):
        for name in ("a.h", "fmt/core.h"):
            self.assertIn("is not of the form", check({"src/left/a.cpp": f'#include "{name}"\n'})[1])

    def test_reads_the_link_lines_of_a_program(self):
        files = {"src/top/CMakeLists.txt": "target_link_libraries(program PRIVATE sextant_left)",
                 "src/top/main.cpp": '#include "left/a.h"\n'}
        self.assertEqual(check(files)[0], 0)


if __name__ == "__main__":
    unittest.main()
