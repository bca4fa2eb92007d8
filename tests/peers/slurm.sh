#!/bin/bash
# SPDX-License-Identifier: MIT
# SLURM with many nodes on this machine for as long as a command runs: a slurmd for each node, all on the
# loopback interface, as lean as its settings allow. Keys and logs are in a folder of its own below /tmp, its
# state in memory; the way to them is SLURM_CONF, and no file of the system is touched. All of it is taken
# away at the end.
#
# usage: tests/peers/slurm.sh [-n NODES] [COMMAND [ARGUMENTS]]     (64; a launch of ours beside theirs)
#
# The exit status is the command's; 77 if SLURM is not installed, 1 if it does not come up.
# PEERS_PORT is the first of NODES + 1 ports (21800).
set -u
nodes=64
if [ "${1:-}" = -n ]; then
    nodes=$2
    shift 2
fi
[ $# -gt 0 ] || set -- "$(dirname "$0")/../../build/storm" bench launch --nodes "$nodes" --peers
port=${PEERS_PORT:-21800}
PATH=$PATH:/usr/sbin:/sbin

for program in munged mungekey slurmctld slurmd srun sinfo; do
    if ! command -v $program >/dev/null; then
        echo "slurm.sh: $program is not installed; to get it: tools/setup peers" >&2
        exit 77
    fi
done

folder=$(mktemp -d /tmp/peers-slurm.XXXXXX)
memory=$(mktemp -d /dev/shm/peers-slurm.XXXXXX 2>/dev/null) || memory=$folder
chmod 755 "$folder" "$memory" # munge trusts no path that others may write to, and is asked by all
pids=

# Ends processes of ours, by their ids: first asked, then made to.
end() {
    local pid try
    [ $# -gt 0 ] || return 0
    kill "$@" 2>/dev/null
    for try in $(seq 100); do
        kill -0 "$@" 2>/dev/null || break # fails only if none is left
        sleep 0.1
        [ "$try" -lt 99 ] || kill -KILL "$@" 2>/dev/null
    done
    for pid; do wait "$pid" 2>/dev/null; done
}

command=
away() {
    trap '' INT TERM HUP
    end $command
    end $pids
    rm -rf "$folder" "$memory"
}
trap away EXIT
trap 'exit 130' INT TERM HUP

# In the background signals of the terminal pass them by.
start() {
    "$@" >>"$folder/log/daemons" 2>&1 </dev/null &
    pids="$! $pids"
}

settings() {
    local me number
    me=$(id -un)
    cat <<END
ClusterName=peers
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmctldPort=$port
SlurmUser=$me
SlurmdUser=$me
AuthType=auth/munge
AuthInfo=socket=$folder/munge/socket
CredType=cred/munge
StateSaveLocation=$memory/state
SlurmctldPidFile=$folder/run/slurmctld.pid
SlurmctldLogFile=$folder/log/slurmctld
SlurmdSpoolDir=$memory/spool/%n
SlurmdPidFile=$folder/run/%n.pid
SlurmdLogFile=$folder/log/%n
SlurmctldDebug=error
SlurmdDebug=error
SlurmdParameters=config_overrides
# What a bare launch does not need is left out.
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
PropagateResourceLimits=NONE
# A job never waits for a turn of the scheduler.
SchedulerType=sched/builtin
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
SlurmctldTimeout=300
SlurmdTimeout=300
KillWait=5
END
    for number in $(seq 1 "$nodes"); do
        echo "NodeName=p$number NodeHostname=p$number NodeAddr=127.0.0.1 Port=$((port + number)) CPUs=2"
    done
    echo "PartitionName=all Nodes=p[1-$nodes] Default=YES MaxTime=INFINITE State=UP"
}

idle() {
    sinfo -h -t idle -o %D 2>/dev/null | awk '{ n += $1 } END { print n + 0 }'
}

mkdir "$folder/munge" "$folder/run" "$folder/log" "$memory/state" "$memory/spool"
export SLURM_CONF=$folder/slurm.conf
settings >"$SLURM_CONF"
mungekey --create --keyfile="$folder/munge/key" || exit 1
start munged --foreground --num-threads=4 --socket="$folder/munge/socket" --key-file="$folder/munge/key" \
    --pid-file="$folder/munge/pid" --log-file="$folder/log/munge" --seed-file="$folder/munge/seed"
for try in $(seq 100); do
    munge -n -S "$folder/munge/socket" >/dev/null 2>&1 && break
    sleep 0.1
done
start slurmctld -D -c -f "$SLURM_CONF"
for number in $(seq 1 "$nodes"); do
    start slurmd -D -f "$SLURM_CONF" -N "p$number"
done
for try in $(seq 300); do
    [ "$(idle)" != "$nodes" ] || break
    sleep 0.3
done
if [ "$(idle)" != "$nodes" ]; then
    echo "slurm.sh: only $(idle) of $nodes nodes came up; it says:" >&2
    tail -qn 3 "$folder"/log/* 2>/dev/null | sort -u | head -20 >&2
    exit 1
fi

"$@" </dev/null &
command=$!
wait $command
status=$?
command=
exit $status
