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

# --- the same model over HTTP ------------------------------------------------------------------------------------------
port=${PORT:-18080}
url=http://127.0.0.1:$port/v1
echo
echo "\$ sextant serve --model $model --served-model-name smollm2 --port $port &"
"$sextant" serve --model "$model" --served-model-name smollm2 --port "$port" &
server=$!
trap 'kill "$server" 2>/dev/null || true' EXIT
until curl -fs "http://127.0.0.1:$port/health" >/dev/null; do  # weights are being read
  kill -0 "$server" 2>/dev/null || { echo "demo: the server ended before it served" >&2; exit 1; }
  sleep 0.2
done

question='{"role": "user", "content": "Name three colours of the sky."}'
echo
echo "\$ curl $url/chat/completions -d '{\"messages\": [$question], \"max_tokens\": 48, \"temperature\": 0}'"
curl -fsS "$url/chat/completions" -d "{\"messages\": [$question], \"max_tokens\": 48, \"temperature\": 0}"
echo
echo
echo "\$ curl -N $url/chat/completions -d '{…, \"stream\": true}'     (the first events)"
curl -fsSN "$url/chat/completions" \
  -d "{\"messages\": [$question], \"max_tokens\": 8, \"temperature\": 0, \"stream\": true, \"stream_options\": {\"include_usage\": true}}"
echo "\$ kill %1     # running requests would end first"
kill "$server"
wait "$server"
trap - EXIT
