#!/bin/sh
# SPDX-License-Identifier: MIT
# Clusters come up, are looked after, and go without a trace. Speaks TAP.
# The environment variable STORM is the path of the storm command. With --user everything is done as an
# ordinary user: needs root to become one.
set -u
: "${STORM:?set STORM to the path of the storm command}"
ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 # many short processes: see tests/meson.build
NO_COLOR=
export ASAN_OPTIONS NO_COLOR
unset STORM_CLUSTER

scratch=$(mktemp -d)
out=$scratch/out
err=$scratch/err
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
    chown -R 65534:65534 "$scratch"
fi
STORM_HOME=$scratch/home
export STORM_HOME
folder=$STORM_HOME/local

end() {
    for home in "$scratch"/home*; do
        STORM_HOME=$home
        for name in "$home"/*; do
            storm down --cluster "${name##*/}"
        done
    done
    rm -rf "$scratch"
}
trap end EXIT

# Runs storm; its output, complaints and status are kept for the checks that follow.
storm() {
    $as "$STORM" "$@" >"$out" 2>"$err" </dev/null
    status=$?
}

# check NAME CONDITION...: one test.
check() {
    name=$1
    shift
    count=$((count + 1))
    if "$@" >"$scratch/why" 2>&1; then
        echo "ok $count - $name"
    else
        failed=$((failed + 1))
        echo "not ok $count - $name"
        echo "# status $status"
        head -n 5 "$out" "$err" "$scratch/why" | sed 's/^/# /'
    fi
}

# Status, the stream that has a line, and the line.
says() {
    test "$status" -eq "$1" && grep -q -e "$3" "$2"
}

is_mistake() {
    says 2 "$err" "$1" && test "$(wc -l <"$err")" -eq 1 && test ! -s "$out"
}

# Tries until it holds; not for ever.
until_holds() {
    tries=0
    until "$@" 2>/dev/null; do
        tries=$((tries + 1))
        test $tries -lt 400 || return 1
        sleep 0.05
    done
}

watcher() {
    sed -n 's/^watcher //p' "$folder/cluster"
}

sweeper() {
    cut -d' ' -f1 "$folder/lock"
}

# The process of that name below the watcher. A name is a pattern.
daemon() {
    ps -o pid=,comm= --ppid "$1" | sed -n "s/^ *\([0-9]*\) $2\$/\1/p"
}

# Everything that belongs to the cluster.
processes() {
    sweeper
    watcher
    daemon "$(watcher)" '.*'
}

# Neither there nor waiting for anything but its parent.
gone() {
    for pid in "$@"; do
        state=$(sed -n 's/^State:[^A-Z]*\(.\).*/\1/p' "/proc/$pid/status" 2>/dev/null)
        test -z "$state" || test "$state" = Z || test "$state" = X || return 1
    done
}

# Others may have left some whose number is that of a process now.
find /sys/fs/cgroup -maxdepth 6 -type d -name 'storm-*' 2>/dev/null >"$scratch/groups"

groups() {
    find /sys/fs/cgroup -maxdepth 6 -type d -name "storm-*-$1" 2>/dev/null | grep -v -x -F -f "$scratch/groups"
}

# No process, no socket, no group, nothing that says there is a cluster.
nothing_left() {
    left_sweeper=$1
    shift
    until_holds gone "$left_sweeper" "$@" || { echo "processes are left"; return 1; }
    test -z "$(find "$folder" -name '*.sock')" || { echo "sockets are left"; return 1; }
    test ! -e "$folder/cluster" && test ! -e "$folder/lock" && test ! -e "$folder/cgroup" ||
        { echo "files are left"; return 1; }
    test -z "$(groups "$left_sweeper")" || { echo "groups are left"; return 1; }
    test -s "$folder/log"
}

has_another() {
    new=$(daemon "$(watcher)" "$1")
    test -n "$new" && test "$new" != "$2"
}

# Kills a daemon: another one takes its place, and all nodes are there again.
is_replaced() {
    old=$(daemon "$(watcher)" "$1")
    test -n "$old" && kill -9 $old && until_holds has_another "$1" "$old" && storm up &&
        says 0 "$out" 'runs already: 6 nodes'
}

# ---- mistakes ----

storm up --tree star
check 'an unknown tree' is_mistake 'k-ary'
storm up --confine rope
check 'an unknown way to hold jobs together' is_mistake 'auto, cgroup, namespace or none'
storm up --links pigeon
check 'an unknown kind of links' is_mistake 'unix, tcp or tls'
storm up --policy gnag
check 'an unknown policy' is_mistake 'did you mean gang'
storm up --cluster ../local
check 'what cannot be a name' is_mistake 'name'
storm up --pes 0x
check 'what is no number' is_mistake 'for example --pes'
storm up please
check 'an argument too many' is_mistake 'leave it out'
storm down please
check 'an argument too many for down' is_mistake 'leave it out'
check 'none of them has left anything' test ! -e "$STORM_HOME"
storm down
check 'down without a cluster' says 0 "$out" 'no cluster local runs'

# ---- up, twice, down ----

echo inherited >"$scratch/inherited"
storm up --local 6 --verbose 9<"$scratch/inherited"
check 'up' says 0 "$out" '^storm: cluster local is up: 6 nodes, 6 processors ([0-9.]* s)$'
check 'and says what holds jobs together' grep -q 'processes of a job are held together' "$out"
check 'it has a watcher, a manager, and two daemons a node' \
    test "$(daemon "$(watcher)" 'storm-\(mm\|n[0-5]\|pl n[0-5]\)' | wc -l)" -eq 13
check 'only its owner can read the key' test "$(stat -c %a "$folder/cluster")" = 600
check 'daemons have nothing of what the command had open' \
    sh -c "! ls -l $(processes | sed 's|.*|/proc/&/fd|' | tr '\n' ' ') | grep -q inherited"
check 'nor does anybody see the key among arguments' \
    sh -c "! ps -ww -eo args= | grep -v grep | grep -q -e $(sed -n 's/^key //p' "$folder/cluster")"
check 'nor its session' sh -c "! ps -o sid= -p $(processes | tr '\n' ',')1 | grep -qw $$"
storm up
check 'a second up says so' says 0 "$out" '^storm: cluster local runs already: 6 nodes'
storm up --local 6
check 'with the same size too' says 0 "$out" 'runs already'
storm up --local 7
check 'with another size it says what to do' says 125 "$err" 'storm down'
storm up --pes 3
check 'with other nodes too' says 125 "$err" 'storm down'
storm doctor
check 'doctor' says 0 "$out" '^ok .* cluster local .* 6 of 6 nodes up'
storm doctor --json
check 'doctor --json' python3 -c "import json, sys
d = json.load(open(sys.argv[1]))
assert d['ok'] is True and {c['state'] for c in d['checks']} <= {'ok', 'warn'}, d" "$out"
storm down --keep-jobs
check 'down --keep-jobs, without jobs' says 0 "$out" 'is down'

# ---- what dies is started again ----

storm up --local 6
check 'up again' says 0 "$out" 'is up: 6 nodes'
check 'the machine manager is killed' is_replaced storm-mm
check 'a node manager is killed' is_replaced storm-n0
check 'a launcher is killed' is_replaced 'storm-pl n3'
for victim in 1 2 3 4 5; do
    kill -9 "$(daemon "$(watcher)" "storm-n$victim")"
done
check 'the rest of the node managers at once' is_replaced storm-n0
check 'all that is in the log' test "$(grep -c 'ended (signal 9)' "$folder/log")" -ge 9
all=$(processes)
storm down
check 'down' says 0 "$out" 'is down'
check 'leaves nothing' nothing_left $all
storm down
check 'a second down' says 0 "$out" 'no cluster local runs'

# ---- the watcher dies ----

storm up --local 6
all=$(processes)
kill -9 "$(watcher)"
check 'the watcher is killed: nothing is left' nothing_left $all
storm up --local 4
check 'the next up starts over, with any size' says 0 "$out" 'is up: 4 nodes'
all=$(processes)
kill -9 "$(sweeper)"
check 'the sweeper is killed: no process is left' until_holds gone $all
storm doctor
check 'doctor tells of what was left behind' grep -q 'warn .* cluster local .*crash' "$out"
storm up --local 6
check 'up sweeps and begins' says 0 "$out" 'is up: 6 nodes'
check 'the groups as well' test -z "$(groups "$(echo $all | cut -d' ' -f1)")"
all=$(processes)
kill -TERM "$(watcher)"
check 'the watcher is asked to end: nothing is left' nothing_left $all

# ---- nobody answers ----

storm up --local 6
all=$(processes)
kill -STOP "$(daemon "$(watcher)" storm-mm)"
storm down --keep-jobs
check 'a manager that stands still: --keep-jobs cannot be promised' says 125 "$err" 'keep-jobs'
storm down
check 'down does without it' says 0 "$out" 'is down'
check 'and says so' grep -q 'does not answer' "$err"
check 'nothing is left of it' nothing_left $all

# ---- what jobs have started ----

# A program whose children leave its session and its parent; all tell their numbers, as they are outside.
cat >"$scratch/escape" <<END
#!/bin/sh
tell='read number rest </proc/self/stat; echo \$number >>"$scratch/escaped"'
setsid sh -c "\$tell; (\$tell; exec sleep 7777) & exec sleep 7777" >/dev/null 2>&1 </dev/null &
eval "\$tell"
sleep 7777
END
chmod 755 "$scratch/escape"

# Runs it on three nodes, in the background.
start_escape() {
    : >"$scratch/escaped"
    chmod 666 "$scratch/escaped"
    $as "$STORM" run -N 3 "$scratch/escape" >"$scratch/run" 2>&1 </dev/null &
    client=$!
    until_holds sh -c "test \$(wc -l <'$scratch/escaped') -eq 9"
}

storm up --local 3
check 'a job whose processes go their own ways' start_escape
kill -9 $(daemon "$(watcher)" 'storm-pl n[0-2]')
check 'the launchers are killed: none of them is left' until_holds gone $(cat "$scratch/escaped")
wait $client
status=$?
check 'the command says that a node was lost' says 125 "$scratch/run" 'n[0-2]'
start_escape
all=$(processes)
kill -9 "$(watcher)"
check 'the watcher is killed: none of them is left' until_holds gone $(cat "$scratch/escaped")
check 'nor anything else' nothing_left $all
kill -9 $client 2>/dev/null
rm -f "$folder"/state.db* # what becomes of that job is not asked here
storm up --local 3
start_escape
storm down --keep-jobs
check 'a job runs: --keep-jobs refuses' says 125 "$err" '1 jobs\? run'
storm down
check 'without it the job is ended' says 0 "$out" 'is down'
check 'with all that it has started' until_holds gone $(cat "$scratch/escaped")
kill -9 $client 2>/dev/null

# ---- other places and links ----

storm up --local 3 --links tcp --tree binomial --pes 2
check 'up with tcp' says 0 "$out" 'is up: 3 nodes, 6 processors'
check 'the manager listens at a loopback address' grep -q '^manager tcp:127\.' "$folder/cluster"
all=$(processes)
storm up --cluster other --local 2
check 'a second cluster beside it' says 0 "$out" 'cluster other is up: 2 nodes'
storm down
check 'the first goes' says 0 "$out" 'cluster local is down'
check 'and leaves nothing' nothing_left $all
storm up --cluster other
check 'the other stays' says 0 "$out" 'runs already: 2 nodes'
storm down --cluster other
check 'until it goes too' says 0 "$out" 'cluster other is down'
STORM_HOME=$scratch/home-$(printf '%0150d' 0 | tr 0 d)
folder=$STORM_HOME/local
storm up --local 3
check 'a home too deep for an address' says 0 "$out" 'is up: 3 nodes'
all=$(processes)
storm down
check 'ends as well' says 0 "$out" 'is down'
check 'and leaves nothing there' nothing_left $all
STORM_HOME=$scratch/home
folder=$STORM_HOME/local
rm -f "$folder"/state.db*
echo nonsense >"$folder/state.db"
storm up --local 2
check 'a damaged state: up says so' says 125 "$err" 'state.db: it is damaged'
storm down
check 'and begins nothing' says 0 "$out" 'no cluster local runs'
STORM_HOME=/proc/nowhere
storm up --local 1
check 'a home that cannot be' says 125 "$err" 'STORM_HOME'
STORM_HOME=$scratch/home

check 'no daemon has failed an assertion' sh -c "! grep assertion '$scratch'/home*/*/log"

echo "1..$count"
test "$failed" -eq 0
