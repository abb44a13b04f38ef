#!/usr/bin/env bash
# Builds the program: build/release/sextant.
set -euo pipefail
cd "$(dirname "$0")/.."
cmake --preset release
cmake --build --preset release
