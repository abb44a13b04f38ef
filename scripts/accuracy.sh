#!/bin/sh
# Writes docs/accuracy.md and docs/memory_accuracy.md with the program at $1 (default: build/release/sextant). Errors of
# rows left out come from the record in data/calibration/record, which `sextant calibrate --record` writes (minutes).
set -eu
cd "$(dirname "$0")/.."
sextant="${1:-build/release/sextant}"
tables=data/calibration/measured
"$sextant" validate --table "$tables/training_measured.csv" --markdown docs/accuracy.md \
  --record data/calibration/record --pairs "$tables/published_pairs.csv"
"$sextant" validate --table "$tables/memory_measured.csv" --table "$tables/training_measured.csv" \
  --memory-markdown docs/memory_accuracy.md >/dev/null
