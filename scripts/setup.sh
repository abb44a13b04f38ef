#!/usr/bin/env bash
# Installs what building and testing needs, all from Debian packages (bookworm). Does nothing when all is there.
# Works as root, or as a user who may use sudo. With --with-slurm also the scheduler that tests/slurm runs on this
# machine; without it those tests are skipped. With --with-torch also PyTorch, for data/examples/cpu_training.
set -euo pipefail

packages=(
  build-essential g++ cmake ninja-build ccache mold
  libyaml-cpp-dev nlohmann-json3-dev libcli11-dev libfmt-dev
  libgtest-dev libgmock-dev librapidcheck-dev libbenchmark-dev libeigen3-dev libceres-dev
  libsqlite3-dev libssl-dev libcurl4-openssl-dev libboost-dev openssl ca-certificates curl
  clang-16 clang-format-16 clang-tidy-16 libclang-rt-16-dev llvm-16
  python3 python3-numpy python3-pip
)
for option in "$@"; do
  case "$option" in
    --with-slurm) packages+=(slurm-wlm munge) ;;
    --with-torch) packages+=(python3-torch) ;;
    *) echo "setup: unknown option $option; there are --with-slurm and --with-torch" >&2; exit 2 ;;
  esac
done

fail() {
  echo "setup: $1" >&2
  exit 1
}

command -v dpkg-query >/dev/null && command -v apt-get >/dev/null ||
  fail "this is no Debian system (no apt-get); install these by hand: ${packages[*]}"

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$status" = installed ] || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then
  echo "setup: all ${#packages[@]} packages are installed"
  exit 0
fi

echo "setup: installing ${missing[*]}"
if [ "$(id -u)" -eq 0 ]; then
  as_root=()
elif command -v sudo >/dev/null; then
  as_root=(sudo)
else
  fail "not root and no sudo; as root run: apt-get install -y ${missing[*]}"
fi
"${as_root[@]}" apt-get update -qq || fail "apt-get update failed; is the network there?"
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" ||
  fail "apt-get could not install: ${missing[*]} (they are packages of Debian 12)"
echo "setup: done"
