#!/usr/bin/env bash
# A Slurm cluster of N nodes on this machine: munge, one controller, N daemons that each play a node with 8 GPUs. All its
# state lies in one folder, nothing of the system's configuration is touched. Needs root (daemons of several nodes on one
# host) and the packages slurm-wlm and munge (scripts/setup.sh --with-slurm).
#
#   toy_cluster.sh start FOLDER NODES    prints the path of slurm.conf; export SLURM_CONF with it
#   toy_cluster.sh stop FOLDER           ends every process of it
#   toy_cluster.sh controller-stop FOLDER | controller-start FOLDER | node-stop FOLDER NODE | node-start FOLDER NODE
#   toy_cluster.sh available             status 0 when all that is needed is there, else says what is missing
set -euo pipefail

fail() {
  echo "toy_cluster: $1" >&2
  exit 1
}

available() {
  [ "$(id -u)" -eq 0 ] || fail "needs root"
  local program
  for program in munged slurmctld slurmd sbatch squeue scancel scontrol; do
    command -v "$program" >/dev/null || fail "$program is missing: scripts/setup.sh --with-slurm"
  done
}

# A port that is free now, and the next NODES + 1 after it likely are: derived from this process, so that two test runs
# at a time seldom meet.
first_port() { echo $((20000 + ($$ * 17) % 20000)); }

write_configuration() {
  local folder=$1 nodes=$2 port
  port=$(first_port)
  cat >"$folder/slurm.conf" <<CONF
ClusterName=toy
SlurmctldHost=$(hostname)(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge/sock
CredType=cred/munge
SlurmctldPort=$port
SlurmctldPidFile=$folder/run/slurmctld.pid
SlurmdPidFile=$folder/run/slurmd.%n.pid
SlurmctldLogFile=$folder/log/slurmctld.log
SlurmdLogFile=$folder/log/slurmd.%n.log
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool/%n
TmpFS=$folder/tmp/%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
MailProg=/bin/true
ReturnToService=2
KillWait=2
MinJobAge=3600
SlurmdTimeout=10
SlurmdParameters=config_overrides
GresTypes=gpu
NodeName=node[1-$nodes] NodeHostname=$(hostname) NodeAddr=127.0.0.1 Port=[$((port + 1))-$((port + nodes))] CPUs=64 Sockets=2 CoresPerSocket=32 ThreadsPerCore=1 RealMemory=500000 Gres=gpu:h100:8 State=UNKNOWN
PartitionName=gpu Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
  echo "NodeName=node[1-$nodes] Name=gpu Type=h100 File=$folder/dev/gpu[0-7]" >"$folder/gres.conf"
}

start() {
  local folder=$1 nodes=$2 i
  available
  mkdir -p "$folder"/{state,spool,log,run,munge,dev}
  for i in $(seq "$nodes"); do mkdir -p "$folder/spool/node$i" "$folder/tmp/node$i"; done
  for i in 0 1 2 3 4 5 6 7; do mknod "$folder/dev/gpu$i" c 1 3; done  # null devices stand in for GPUs
  dd if=/dev/urandom bs=1 count=1024 of="$folder/munge/key" status=none
  chmod 400 "$folder/munge/key"
  # munged insists that nobody else may write to a folder above its socket.
  chmod 755 "$folder" "$folder/munge"
  write_configuration "$folder" "$nodes"
  munged --key-file="$folder/munge/key" --socket="$folder/munge/sock" --pid-file="$folder/munge/pid" \
    --log-file="$folder/munge/log" --seed-file="$folder/munge/seed" --force
  controller_start "$folder"
  for i in $(seq "$nodes"); do node_start "$folder" "node$i"; done
  wait_for_nodes "$folder" "$nodes"
  echo "$folder/slurm.conf"
}

wait_for_nodes() {
  local folder=$1 nodes=$2 idle
  for _ in $(seq 600); do
    idle=$(SLURM_CONF=$folder/slurm.conf sinfo --noheader --Node --format='%T' 2>/dev/null | grep -c '^idle$' || true)
    [ "$idle" -eq "$nodes" ] && return
    sleep 0.2
  done
  tail -n 20 "$folder"/log/*.log >&2
  fail "$idle of $nodes nodes came up within two minutes"
}

controller_start() { SLURM_CONF=$1/slurm.conf slurmctld; }
controller_stop() { end_process "$1/run/slurmctld.pid" TERM; }  # it saves its state
node_start() { SLURM_CONF=$1/slurm.conf slurmd -N "$2"; }

# The daemon, and the shepherds of its jobs with everything below them: a node that loses power.
node_stop() {
  local folder=$1 node=$2 pid
  end_process "$folder/run/slurmd.$node.pid" KILL
  for pid in $(processes_with "$folder/spool/$node" | sort -u); do kill -KILL "$pid" 2>/dev/null || true; done
}

# Processes whose environment or command line names this text, a folder that nothing but this cluster knows.
processes_with() {
  local text=$1 folder
  for folder in /proc/[0-9]*; do
    { grep -qzF "$text" "$folder/environ" || grep -qzF "$text" "$folder/cmdline"; } 2>/dev/null || continue
    [ "${folder#/proc/}" = $$ ] || echo "${folder#/proc/}"
  done
}

end_process() {
  local file=$1 signal=$2 pid
  pid=$(cat "$file" 2>/dev/null) || return 0
  kill "-$signal" "$pid" 2>/dev/null || true
  for _ in $(seq 100); do
    kill -0 "$pid" 2>/dev/null || break
    sleep 0.1
  done
  rm -f "$file"
}

stop() {
  local folder=$1 file pid
  for file in "$folder"/run/slurmd.*.pid; do end_process "$file" KILL; done
  end_process "$folder/run/slurmctld.pid" KILL
  # Shepherds of jobs outlive their daemon, and the jobs have SLURM_CONF in their environment.
  for pid in $(processes_with "$folder/" | sort -u); do
    [ "$pid" = "$PPID" ] || [ "$pid" = "$(cat "$folder/munge/pid" 2>/dev/null)" ] || is_ancestor "$pid" ||
      kill -KILL "$pid" 2>/dev/null || true
  done
  end_process "$folder/munge/pid" TERM
}

# This script's own parents may name the folder too: the test that called it.
is_ancestor() {
  local wanted=$1 pid=$$
  while [ "$pid" -gt 1 ]; do
    [ "$pid" = "$wanted" ] && return 0
    pid=$(awk '{ sub(/.*\) . /, ""); print $1 }' "/proc/$pid/stat" 2>/dev/null) || return 1
    [ -n "$pid" ] || return 1
  done
  return 1
}

case "${1:-}" in
  available) available ;;
  start) start "$2" "$3" ;;
  stop) stop "$2" ;;
  controller-start) controller_start "$2" ;;
  controller-stop) controller_stop "$2" ;;
  node-start) node_start "$2" "$3" ;;
  node-stop) node_stop "$2" "$3" ;;
  *) fail "start FOLDER NODES | stop FOLDER | controller-start|-stop FOLDER | node-start|-stop FOLDER NODE | available" ;;
esac
