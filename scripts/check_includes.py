#!/usr/bin/env python3
"""Holds every #include between rooms against the plan of the house.

Three things must agree: the table of floors in docs/design/architecture.md, the ROOMS list of each
src/<room>/CMakeLists.txt, and the #include "room/file.h" lines of the room's sources.

    check_includes.py [ROOT]      prints one line a fault; exit status 1 when there is any
"""

import pathlib
import re
import sys

KEYWORDS = {"SOURCES", "LIBRARIES", "TESTS", "ROOMS"}


def read_floors(root):
    """{room: floor} of the rows `| 3 | `cost` | ... |`."""
    text = (root / "docs/design/architecture.md").read_text()
    return {room: int(floor) for floor, room in re.findall(r"^\|\s*(\d+)\s*\|\s*`(\w+)/?`\s*\|", text, re.M)}


def read_allowed(folder):
    """The rooms that src/<room>/CMakeLists.txt links: ROOMS of sextant_room, or sextant_<room> link lines."""
    path = folder / "CMakeLists.txt"
    if not path.exists():
        return None
    text = re.sub(r"#.*", "", path.read_text())
    allowed = set()
    for arguments in re.findall(r"\bsextant_room\s*\(([^)]*)\)", text):
        keyword = ""
        for word in arguments.split():
            if word in KEYWORDS:
                keyword = word
            elif keyword == "ROOMS":
                allowed.add(word)
    for arguments in re.findall(r"\btarget_link_libraries\s*\(([^)]*)\)", text):
        allowed.update(re.findall(r"\bsextant_(\w+)", " ".join(arguments.split()[1:])))
    allowed.discard("flags")
    allowed.discard(folder.name)
    return allowed


def check_room(folder, floors):
    room = folder.name
    sources = sorted(path for path in folder.rglob("*") if path.suffix in (".h", ".cpp"))
    if not sources:
        return
    if room not in floors:
        yield f"src/{room}: has no row in the table of docs/design/architecture.md"
        return
    allowed = read_allowed(folder)
    for other in sorted(allowed or ()):
        if other not in floors:
            yield f"src/{room}/CMakeLists.txt: ROOMS names {other}, which has no row in the table of floors"
        elif floors[other] >= floors[room]:
            yield (f"src/{room}/CMakeLists.txt: {room} (floor {floors[room]}) may not include {other} "
                   f"(floor {floors[other]}): only lower floors")
    for path in sources:
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            match = re.match(r'\s*#\s*include\s+"([^"]*)"', line)
            if not match:
                continue
            where = f"src/{path.relative_to(folder.parent)}:{number}"
            other = match[1].partition("/")[0] if "/" in match[1] else ""
            if other == room:
                continue
            if other not in floors:
                yield f'{where}: "{match[1]}" is not of the form "room/file.h" with a room of the table'
            elif floors[other] >= floors[room]:
                yield (f"{where}: {room} (floor {floors[room]}) includes {other} (floor {floors[other]}): "
                       "only lower floors")
            elif allowed is not None and other not in allowed:
                yield f"{where}: includes {other}, which is not in ROOMS of src/{room}/CMakeLists.txt"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else __file__).resolve()
    if len(sys.argv) <= 1:
        root = root.parent.parent
    floors = read_floors(root)
    if not floors:
        sys.exit("docs/design/architecture.md: no table of rooms and floors found")
    rooms = sorted(path for path in (root / "src").iterdir() if path.is_dir())
    faults = [fault for room in rooms for fault in check_room(room, floors)]
    for fault in faults:
        print(fault)
    if not faults:
        print(f"{len(rooms)} rooms include only rooms on lower floors")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
