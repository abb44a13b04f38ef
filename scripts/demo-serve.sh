#!/usr/bin/env bash
# Runs a small real model on this machine's processors: SmolLM2-135M-Instruct, fetched once (93 MB).
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh
cmake --preset release >/dev/null
cmake --build --preset release --target sextant_program
sextant=build/release/sextant
model=$(scripts/fetch_smollm2.sh)

# --- one answer, without a server -------------------------------------------------------------------------------------
echo "\$ sextant generate --model $model --chat 'What is gravity?'"
"$sextant" generate --model "$model" --chat "What is gravity?" --max-tokens 64
