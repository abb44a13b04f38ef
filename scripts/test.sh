#!/usr/bin/env bash
# Everything that must hold before a change goes in: setup, release build and tests, the plan of the house, format,
# the tests again under the address and undefined-behaviour sanitizers, and a short run of the fuzz programs.
#
# A build takes about 10 minutes on two idle cores, the tests of one build about 3. The time limits leave room for busy
# machines. All steps run even if one fails, except after a failed build. The last line is ctest's
# summary.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

fuzz_formats="yaml json log events safetensors gguf tokenizer text template"
failures=()
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT

# step NAME SECONDS COMMAND...: runs the command with a time limit and notes a failure.
step() {
  local name=$1 limit=$2 begin=$SECONDS status=0
  shift 2
  echo "== $name"
  timeout --kill-after=10 "$limit" "$@" || status=$?
  if [ "$status" -eq 124 ] || [ "$status" -eq 137 ]; then
    failures+=("$name (over $limit s)")
  elif [ "$status" -ne 0 ]; then
    failures+=("$name")
  fi
  echo "== $name: $((SECONDS - begin)) s, status $status"
  return "$status"
}

build() {
  cmake --preset "$1" >"$logs/configure" || { cat "$logs/configure"; return 1; }
  cmake --build --preset "$@" -- --quiet
}

# run_ctest PRESET LOG [CTEST ARGUMENT...]: the tests of one build; the output of failing ones is shown.
run_ctest() {
  local preset=$1 log=$2
  shift 2
  ctest --preset "$preset" --output-on-failure --timeout 600 -j "$(nproc)" "$@" 2>&1 | tee "$log"
}

format_check() {
  find src tests benchmarks -name '*.cpp' -o -name '*.h' | xargs clang-format-16 --dry-run -Werror
}

# New inputs go to a scratch folder; the seeds stay as they are. The seed is fixed, so a failure repeats.
fuzz_smoke() {
  local format
  for format in $fuzz_formats; do
    mkdir -p "$logs/corpus/$format" build/fuzz/failures
    build/fuzz/tests/fuzz/${format}_fuzz -runs=20000 -seed=1 -max_len=1024 -max_total_time=15 \
      -artifact_prefix=build/fuzz/failures/ "$logs/corpus/$format" "tests/fuzz/corpus/$format" \
      >"$logs/fuzz" 2>&1 || { tail -n 40 "$logs/fuzz"; return 1; }
    echo "$format: $(grep '^Done' "$logs/fuzz")"
  done
}

summary() { grep -E '[0-9]+% tests passed' "$1" 2>/dev/null || echo "no tests were run"; }

finish() {
  echo
  for failure in "${failures[@]}"; do echo "FAILED: $failure"; done
  echo "sanitizers: $(summary "$logs/debug")"
  summary "$logs/release"
  [ ${#failures[@]} -eq 0 ]
  exit
}

export logs fuzz_formats
export -f build run_ctest format_check fuzz_smoke

step "setup" 600 scripts/setup.sh || finish
step "release build" 1800 bash -c 'build release' || finish
step "release tests" 1200 bash -o pipefail -c 'run_ctest release "$logs/release"'
step "includes" 30 python3 scripts/check_includes.py
step "format" 60 bash -o pipefail -c format_check
step "sanitizer build" 2400 bash -c 'build debug' &&
  step "sanitizer tests" 1500 bash -o pipefail -c 'run_ctest debug "$logs/debug" --label-exclude search'
if command -v clang++-16 >/dev/null; then
  step "fuzz build" 900 bash -c 'build fuzz --target ${fuzz_formats// /_fuzz }_fuzz' && step "fuzz" 240 bash -c fuzz_smoke
fi
finish
