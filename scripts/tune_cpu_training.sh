#!/usr/bin/env bash
# Tunes the PyTorch example of data/examples/cpu_training for real on this machine, then measures what was found and the
# workload's own layout afresh, in turns. Needs scripts/setup.sh --with-torch and a built program.
#
#   scripts/tune_cpu_training.sh [FOLDER] [TRIALS]     a folder with a run in it is gone on with
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${1:-runs/cpu_training}
trials=${2:-10}
example=data/examples/cpu_training
sextant=${SEXTANT_PROGRAM:-build/release/sextant}

/usr/bin/python3 -c 'import torch' 2>/dev/null || {
  echo "PyTorch is missing: scripts/setup.sh --with-torch installs Debian's" >&2
  exit 1
}
if [ -e "$folder/run.sqlite" ]; then
  "$sextant" tune --resume "$folder" --trials "$trials"
else
  "$sextant" tune --workload $example/workload.yaml --cluster $example/cluster.yaml --space $example/space.yaml \
    --evaluator command --command "/usr/bin/python3 $example/train.py {config}" --trials "$trials" --trial-minutes 10 \
    --out "$folder"
fi

echo
echo "Fresh measurement, three runs each in turns (mean step time of the steps after the first):"
/usr/bin/python3 - "$folder" $example/train.py <<'PYTHON'
import json, statistics, subprocess, sys

folder, script = sys.argv[1:]
document = json.load(open(f"{folder}/result.json", encoding="utf-8"))
history = document["history"]
best = document["best"][0]
places = {"own layout": history[0]["folder"],
          "found": next(row["folder"] for row in history if row["point"] == best["point"])}
times = {name: [] for name in places}
for _ in range(3):
    for name, place in places.items():
        done = subprocess.run(["/usr/bin/python3", script, f"{folder}/{place}/config/arguments.txt", "--cores", "2"],
                              capture_output=True, check=True)
        steps = [json.loads(line) for line in done.stdout.decode().splitlines() if line.startswith("{")]
        times[name].append(statistics.mean(step["step_time_s"] for step in steps[1:]))
for name, means in times.items():
    print(f"  {name:10} {statistics.mean(means):7.3f} s a step  (single runs: {', '.join(f'{t:.3f}' for t in means)})")
gain = statistics.mean(times["own layout"]) / statistics.mean(times["found"]) - 1
print(f"  the found layout, {best['point']}, is {gain:+.1%} faster")
sys.exit(0 if gain > 0 or best["point"] == history[0]["point"] else 1)
PYTHON
