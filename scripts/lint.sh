#!/usr/bin/env bash
# clang-tidy with the checks of .clang-tidy, all of them errors: lint.sh [FILE.cpp ...], by default every source.
# Takes about seven seconds of processor time a file, too long for all of them in test.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
cmake --preset release >/dev/null
# The flags come from the release build and were written for g++.
files=("$@")
[ ${#files[@]} -gt 0 ] || mapfile -t files < <(find src -name '*.cpp' | sort)
printf '%s\n' "${files[@]}" | xargs -P "$(nproc)" -n 1 clang-tidy-16 -p build/release --quiet \
  --extra-arg=-std=c++2b --extra-arg=-Wno-unknown-warning-option
echo "lint: ${#files[@]} files"
