#!/usr/bin/env bash
# Tunes Mixtral 8x22B on four MI355X nodes, from nothing but a workload file and the built-in catalogue.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh
# The program alone; scripts/build.sh builds the tests as well.
cmake --preset release >/dev/null
cmake --build --preset release --target sextant_program
exec build/release/sextant tune --workload data/examples/mixtral_8x22b_mi355x.yaml --cluster mi355x:4x8 "$@"
