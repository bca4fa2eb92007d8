#!/bin/bash
# SPDX-License-Identifier: MIT
# Programs are run and jobs are looked after on a cluster of this machine. Speaks TAP.
# The environment variable STORM is the path of the storm command. With --user everything is done as an
# ordinary user: needs root to become one.
set -u
: "${STORM:?set STORM to the path of the storm command}"
ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 # many short processes: see tests/meson.build
export ASAN_OPTIONS
unset STORM_CLUSTER STORM_JOB_ID STORM_INSIDE

scratch=$(mktemp -d)
count=0
failed=0
as=
if [ "${1:-}" = --user ]; then
    if [ "$(id -u)" -ne 0 ]; then
        echo '1..0 # SKIP only root can become another user'
        exit 0
    fi
    as='setpriv --reuid 65534 --regid 65534 --clear-groups'
    mkdir "$scratch/bin"
    cp "$(dirname "$STORM")"/storm "$(dirname "$STORM")"/storm-mm "$(dirname "$STORM")"/storm-pl \
        "$scratch/bin"
    STORM=$scratch/bin/storm
    chmod 755 "$scratch"
    chown -R 65534:65534 "$scratch"
fi
export STORM STORM_HOME=$scratch/home
cd "$scratch" || exit 1

storm() { $as "$STORM" "$@"; }
trap 'storm down >/dev/null 2>&1; cd /; rm -rf "$scratch"' EXIT

report() { # NAME GOOD
    count=$((count + 1))
    if [ "$2" = 0 ]; then
        echo "ok $count - $1"
    else
        failed=$((failed + 1))
        echo "not ok $count - $1"
        sed 's/^/# /' out err
    fi
}

# expect NAME STATUS PATTERN COMMAND...: status, and a pattern that output and complaints together hold.
expect() {
    local name=$1 want=$2 pattern=$3
    shift 3
    "$@" >out 2>err
    local status=$?
    echo "status $status, $want expected" >>err
    [ "$status" = "$want" ] && cat out err | grep -q -e "$pattern"
    report "$name" $?
}

same() { # NAME A B
    [ "$2" = "$3" ]
    local good=$?
    printf '%s\n%s\n' "$2" "$3" >out
    : >err
    report "$1" $good
}

# ---- without a cluster ----

expect 'nobody is there' 125 'type: storm up --local 4' storm run true
storm up --local 4 >out 2>&1
report 'it comes up' $?

# ---- statuses ----

expect 'a program ends well' 0 '^hi$' storm run echo hi
expect 'the highest status counts' 3 '' storm run -n 4 sh -c 'exit $STORM_RANK'
expect 'a signal is told' 139 'killed by signal 11 (Segmentation fault)' storm run sh -c 'kill -SEGV $$'
expect 'the time limit' 124 'time limit of 500 ms reached' storm run -t 0.5 sleep 10
expect 'no such program' 127 'not found' storm run no-such-program
expect 'no such file' 127 'No such file' storm run ./none
expect 'not executable' 126 'chmod' storm run /etc/passwd
expect 'a folder' 126 'directory' storm run ./home
printf '#!/nowhere/sh\n' >bad && chmod 755 bad
expect 'bad interpreter' 126 '/nowhere/sh' storm run ./bad
expect 'no such folder' 125 '/nowhere' storm run -D /nowhere true
expect 'too many processes' 125 'the cluster has 4' storm run -n 99 true
expect 'a size that contradicts itself' 125 'not 7' storm run --size 2:2:7 true
expect 'no such node' 125 'n9: there is no such node' storm run -w n9 true
expect 'a wrong option' 2 'did you mean --procs' storm run --proc 3 true

# ---- output and input ----

expect 'labels' 0 '^2: r2$' storm run -l -n 4 sh -c 'printf r$STORM_RANK'
same 'environment' "$(storm run --export none --env A=1 -N 2 -n 2 sh -c 'echo $A$HOME $STORM_SIZE' | uniq)" '1 2'
head -c 20000000 /dev/urandom >data && chmod 644 data
sum=$(md5sum <data)
same 'input from a file' "$(storm run md5sum <data)" "$sum"
same 'input from a pipe' "$(cat data | storm run --stdin 1 -n 2 sh -c '[ $STORM_RANK = 0 ] || md5sum')" "$sum"
same 'input for all' "$(storm run -n 4 --stdin all md5sum <data | sort -u)" "$sum"
same 'output, binary' "$(storm run cat "$scratch/data" | md5sum)" "$sum"
same 'output that is read late' "$(storm run -n 4 cat "$scratch/data" | (sleep 1; wc -c))" 80000000
storm run yes | head -1 >out 2>err
same 'nobody reads' "${PIPESTATUS[0]}" 141
expect 'files' 0 '' storm run -n 2 -o 'f-%j-%r-%n' echo x
same 'a file for each rank' "$(ls f-* | sed 's/-[0-9]*-/-J-/' | tr '\n' ' ')" 'f-J-0-n0 f-J-1-n1 '
expect 'closed input' 0 '' bash -c "$as \"\$STORM\" run cat <&-"

# ---- signals ----

signal_run() { # SIGNALS... -- ARGS: sends them half a second apart once the program says it is there
    local signals=()
    while [ "$1" != -- ]; do signals+=("$1"); shift; done
    shift
    rm -f there
    $as "$STORM" run -n 2 "$@" >out 2>err </dev/null &
    local pid=$!
    until [ "$(grep -c there out)" -ge 2 ]; do sleep 0.05; done
    for s in "${signals[@]}"; do
        kill -"$s" $pid
        sleep 0.5
    done
    wait $pid
}

set -m # who is in the background has SIGINT ignored otherwise
signal_run INT -- sh -c 'echo there; exec sleep 30'
same 'Ctrl-C' $? 130
signal_run INT -- sh -c 'trap "exit 3" INT; echo there; sleep 30 & wait'
same 'Ctrl-C that is caught' $? 3
signal_run INT INT -- sh -c 'trap "" INT; echo there; sleep 30; sleep 30'
status=$?
grep -q 'again within 2 s to kill it' err
report 'what a second Ctrl-C would do is told' $?
same 'Ctrl-C twice' $status 130
signal_run TERM -- sh -c 'echo there; exec sleep 30'
same 'a request to end' $? 143
set +m

# ---- jobs ----

job=$(storm submit sh -c 'echo batch; exit 4')
expect 'a submitted job has its status' 4 '' storm wait "$job"
expect 'it is shown' 0 'failed' storm show "$job"
printf '#!/bin/sh\n#STORM -n 2\necho once\n"$STORM" run -n 2 echo step\n' >job.sh && chmod 755 job.sh
job=$(storm submit --wait job.sh)
same 'a script ends well' $? 0
for _ in $(seq 1200); do [ "$(wc -l <"storm-$job.out")" = 3 ] && break; sleep 0.05; done 2>/dev/null
same 'it runs once, its steps on all nodes' "$(tr '\n' ' ' <"storm-$job.out")" 'once step step '
expect 'an array' 0 '' storm submit --array 1-50 --wait true
expect 'an allocation' 9 '^in$' storm alloc -N 2 sh -c '"$STORM" run -n 2 echo in; exit 9'
expect 'no such job' 125 'no such job\|no job' storm kill 999999
expect 'no such job to wait for' 125 'no such job' storm wait 999999

storm run --detach sh -c 'echo one; sleep 1; echo two; exit 5' >out 2>err </dev/null &
pid=$!
until grep -q one out; do sleep 0.05; done
kill $pid
wait $pid
job=$(storm ps --json | sed 's/.*"id":\([0-9]*\).*/\1/')
expect 'a job that goes on alone, attached to' 5 '^two$' storm attach "$job"

storm run sleep 30 >out 2>err &
pid=$!
until storm ps | grep -q running; do sleep 0.05; done
job=$(storm ps --json | sed 's/.*"id":\([0-9]*\).*/\1/')
expect 'suspended' 0 '' storm suspend "$job"
expect 'as ps says' 0 'suspended' storm ps
expect 'resumed' 0 '' storm resume "$job"
expect 'killed' 0 '' storm kill "$job"
wait $pid
same 'and its command knows' $? 143

# ---- who writes the files of submitted jobs may die ----

watcher=$(awk '$1 == "watcher" { print $2 }' "$STORM_HOME/local/cluster")
job=$(storm submit -n 4 sh -c 'for i in $(seq 300); do echo $STORM_RANK $i; sleep 0.004; done')
for lines in 100 400 800; do
    until [ "$(cat "storm-$job.out" 2>/dev/null | wc -l)" -ge $lines ]; do sleep 0.02; done
    pkill -KILL -x storm-scribe -P "$watcher"
done
storm wait "$job"
until [ "$(cat "storm-$job.out" | wc -l)" -ge 1200 ]; do sleep 0.05; done
for rank in 0 1 2 3; do
    same "every line of rank $rank once, in order" \
        "$(grep "^$rank " "storm-$job.out" | cut -d' ' -f2 | md5sum)" "$(seq 300 | md5sum)"
done

# ---- what a client has is not kept ----

# A launcher has room for 256 runs. One that kept output until its client is given up would be full here.
storm up --cluster kept --local 1 --orphan 1h >out 2>err
for i in $(seq 270); do
    timeout 60 $as "$STORM" run --cluster kept echo "$i" || break
done >out 2>err
same 'output that has arrived is let go' "$(md5sum <out)" "$(seq 270 | md5sum)"
storm down --cluster kept >/dev/null

# ---- nodes ----

expect 'drained' 0 '' storm drain n1 --reason 'bad fan'
expect 'and shown so' 0 'n1 *1 *drained.*bad fan' storm nodes
expect 'undrained' 0 '' storm undrain n1
expect 'and used again' 0 '^n1$' storm run -w n1 sh -c 'echo $STORM_NODE'

echo "1..$count"
[ $failed = 0 ]
