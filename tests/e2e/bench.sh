#!/bin/sh
# SPDX-License-Identifier: MIT
# The benches of whole commands, with a stand-in for the storm command that they measure. Speaks TAP.
# The environment variable STORM is the path of the command.
set -u
: "${STORM:?set STORM to the path of the storm command}"
ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 # many short processes: see tests/meson.build
NO_COLOR=
fake=$(dirname "$0")/fake_storm.sh
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
TMPDIR=$scratch
FAKE_LOG=$scratch/log
STORM_JOB_ID=77 # the bench may run inside a job; what it measures does not
export ASAN_OPTIONS NO_COLOR TMPDIR FAKE_LOG STORM_JOB_ID
out=$scratch/out
err=$scratch/err
count=0
failed=0

storm() {
    : >"$FAKE_LOG"
    "$STORM" "$@" >"$out" 2>"$err" </dev/null
    status=$?
}

check() {
    name=$1
    shift
    count=$((count + 1))
    if "$@" >/dev/null 2>"$scratch/why"; then
        echo "ok $count - $name"
    else
        failed=$((failed + 1))
        echo "not ok $count - $name"
        echo "# status $status"
        head -n 5 "$out" "$err" "$scratch/why" | sed 's/^/# /'
    fi
}

is_mistake() {
    test "$status" -eq 2 && test ! -s "$out" && test "$(wc -l <"$err")" -eq 1 &&
        grep -q -e "$1" "$err"
}

# Nothing may be left of a temporary cluster.
is_clean() {
    ! ls -d "$scratch"/storm-bench.*
}

# ---- launch ----

storm bench launch --command "$fake" --nodes 1,4 --runs 3 --json --svg "$scratch/launch.svg"
check 'launch --json' python3 - "$out" "$status" <<'END'
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
assert sys.argv[2] == '0'
assert [(r['case'], r['nodes']) for r in rows] == [(c, n) for n in (1, 4) for c in ('floor', 'storm')]
for r in rows:
    assert r['bench'] == 'launch' and r['runs'] == 3
    assert r['median_ms'] > 0 and r['ci95_ms'] >= 0
    assert abs(r['ratio'] - r['median_ms'] / r['floor_ms']) <= 0.0101, r
END
check 'a cluster for each size, warm-ups, no other calls' python3 - "$FAKE_LOG" <<'END'
import sys
calls = [line.split() for line in open(sys.argv[1])]
assert all(c[1] == 'none' for c in calls), 'STORM_JOB_ID leaks in'
words = [' '.join(c[2:5]) for c in calls]
expected = []
for n in ('1', '4'):
    expected += ['up --local ' + n] + ['run -N ' + n] * 5 + ['down']
assert words == expected, words
assert len({c[0] for c in calls}) == 2, 'a home for each'
END
check 'its plot is XML' python3 -c 'import sys, xml.dom.minidom as x
x.parse(sys.argv[1])' "$scratch/launch.svg"
check 'nothing is left' is_clean

storm bench launch --command "$fake" --nodes 2 --runs 1
check 'launch prints a table' grep -q '^ *2  storm run .* [0-9]*\.[0-9][0-9]$' "$out"

# Peers: one that fails from nine processes on, one that has three nodes only.
mkdir "$scratch/bin"
printf '#!/bin/sh\ntest "$4" -lt 9\n' >"$scratch/bin/mpiexec.hydra"
printf '#!/bin/sh\necho 3\n' >"$scratch/bin/sinfo"
printf '#!/bin/sh\nexit 0\n' >"$scratch/bin/srun"
chmod +x "$scratch"/bin/*
path=$PATH
PATH=$scratch/bin:$PATH
storm bench launch --command "$fake" --nodes 2,9 --runs 2 --json --peers
PATH=$path
check 'launch --peers' python3 - "$out" "$status" <<'END'
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
assert sys.argv[2] == '0'
assert [(r['nodes'], r['case']) for r in rows] == [(2, 'floor'), (2, 'storm'), (2, 'hydra'), (2, 'slurm'),
                                                  (9, 'floor'), (9, 'storm')], rows
END
check 'a peer that fails is left out, once' test "$(grep -c 'mpiexec.hydra does not run 9' "$err")" -eq 1

FAKE_FAIL=run
export FAKE_FAIL
storm bench launch --command "$fake" --nodes 2 --runs 1
check 'a launch that fails ends the bench' test "$status" -eq 1
check 'and is told' grep -q '^storm: bench: storm run ended with status 3' "$err"
check 'and its cluster is taken down' sh -c "grep -q ' down' '$FAKE_LOG'"
check 'and nothing is left of it' is_clean
FAKE_FAIL=up
storm bench launch --command "$fake" --nodes 2 --runs 1
check 'a cluster that does not come up' test "$status" -eq 1
unset FAKE_FAIL
rm -rf "$scratch"/storm-bench.*
storm bench launch --command "$scratch/none" --nodes 2 --runs 1
check 'a command that is not there' grep -q 'is it a storm command?' "$err"
check 'leaves nothing' is_clean

storm bench launch --launchers process --nodes 2 --runs 1
check 'one launcher a process' grep -q 'storm run' "$out"
storm bench launch --launchers many
check 'launchers of no kind' is_mistake 'give node or process'
storm bench launch --nodes 0
check 'no nodes' is_mistake 'give 1 to'
storm bench launch --rnus 4
check 'an unknown option' is_mistake 'did you mean --runs?'
storm bench --json launch
check 'options before the name' is_mistake 'options follow the name'
storm bench launch --help
check 'launch --help' grep -q '^usage: storm bench launch' "$out"

# ---- throughput ----

storm bench throughput --command "$fake" --nodes 2 --jobs 400 --queued 50 --runs 1 --json
check 'throughput --json' python3 - "$out" "$status" <<'END'
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
assert sys.argv[2] == '0'
assert [r['case'] for r in rows] == ['array', 'queued-submit', 'queued-launch', 'queued-ps']
a = rows[0]
assert a['jobs'] == 400 and a['nodes'] == 2 and a['runs'] == 1
assert abs(a['rate_per_s'] - 400e3 / a['median_ms']) < 0.01 * a['rate_per_s']
assert abs(a['first_rate_per_s'] - 1000) < 1 and abs(a['last_rate_per_s'] - 2000) < 2, a
assert abs(a['ratio'] - a['median_ms'] / a['floor_ms']) <= 0.0101
for r in rows[1:]:
    assert r['queued'] == 50 and r['runs'] >= 15
    assert abs(r['ratio'] - r['median_ms'] / r['empty_ms']) <= 0.0101
END
check 'the queue is filled on one of two clusters' test "$(grep -c -e '--array 1-50 ' "$FAKE_LOG")" -eq 1
check 'both are asked alike' python3 - "$FAKE_LOG" <<'END'
import collections, sys
asked = collections.Counter()
for line in open(sys.argv[1]):
    home, _, *words = line.split()
    if words[0] in ('run', 'ps') and '-a' not in words:
        asked[home, words[0]] += 1
assert len(asked) == 4 and set(asked.values()) == {17}, asked
END
check 'nothing is left' is_clean
storm bench throughput --command "$fake" --nodes 2 --jobs 40 --runs 1
check 'throughput in words' grep -q '^40 jobs .* jobs/s' "$out"
storm bench throughput --jobs 1
check 'a single job' is_mistake 'give 2 to'
storm bench throughput --help
check 'throughput --help' grep -q '^usage: storm bench throughput' "$out"

# ---- files ----

storm bench launch --command "$fake" --nodes 1,3 --runs 2 --image 100KB,1MB --json
check 'launch --image --json' python3 - "$out" "$status" <<'END'
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
assert sys.argv[2] == '0'
cases = ('floor', 'storm', 'cached', 'floor-image', 'cold')
assert [(r['nodes'], r['image'], r['case']) for r in rows] == [
    (n, b, c) for n in (1, 3) for b in (100 << 10, 1 << 20) for c in cases], rows
for r in rows:
    assert r['bench'] == 'launch' and r['runs'] == 2 and r['median_ms'] > 0 and r['ci95_ms'] >= 0
    assert abs(r['ratio'] - r['median_ms'] / r['floor_ms']) <= 0.0101, r
by = {(r['nodes'], r['image'], r['case']): r for r in rows}
for (n, b, c), r in by.items():
    floor = by[n, b, 'floor-image' if c in ('floor-image', 'cold') else 'floor']
    assert r['floor_ms'] == floor['median_ms']
    assert abs(r['plain_ratio'] - r['median_ms'] / by[n, b, 'storm']['median_ms']) <= 0.0101, r
END
check 'other programs, and one again' python3 - "$FAKE_LOG" <<'END'
import sys
runs = [line.split()[2:] for line in open(sys.argv[1]) if ' run ' in line]
assert len(runs) == 2 * 2 * 4 * 3, len(runs)
assert sum('--copy' in r for r in runs) == 2 * 2 * 4 * 2
END
check 'nothing is left' is_clean
storm bench launch --command "$fake" --nodes 2 --runs 1 --image 1MB --tree flat
check 'launch --image prints a table' grep -q '^ *2 .* storm run --copy, cached  *[0-9]' "$out"
check '--tree is passed on' grep -q 'run -N 2 --copy --tree flat' "$FAKE_LOG"
storm bench launch --image small
check 'an image of no size' is_mistake 'sizes such as'
storm bench launch --image 1MB --svg x
check 'an image and a plot' is_mistake 'there is a plot only of'
storm bench launch --load cpu
check 'a load for nothing' is_mistake 'goes with --image'
storm bench launch --image 1MB --load tape
check 'a load of no kind' is_mistake 'give cpu or network'
storm bench load tape
check 'such a load does not run' is_mistake 'give cpu or network'
storm bench launch --command "$fake" --nodes 2 --image 1MB,2MB --load cpu --runs 1 --json --svg "$scratch/load.svg"
check 'launch --load --json' python3 - "$out" "$status" <<'END'
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
assert sys.argv[2] == '0'
assert [(r['image'], r['case']) for r in rows] == [(b << 20, c) for b in (1, 2) for c in ('idle', 'cpu')], rows
for r in rows:
    assert abs(r['ratio'] - r['median_ms'] / r['idle_ms']) <= 0.0101 and r['execute_ms'] > 0 and r['send_ms'] >= 0, r
END
check 'the load is a job, and ended' python3 - "$FAKE_LOG" <<'END'
import sys
words = [line.split()[2:] for line in open(sys.argv[1])]
assert [w for w in words if w[0] == 'submit'][0][-3:] == ['bench', 'load', 'cpu']
assert [w for w in words if w[0] == 'kill'] == [['kill', '1']]
END
check 'its plot is XML' python3 -c 'import sys, xml.dom.minidom as x
x.parse(sys.argv[1])' "$scratch/load.svg"
storm bench launch --nodes 2 --image 1MB --load network --runs 1
check 'with real loads' grep -q '^  both .* [0-9]*\.[0-9][0-9]$' "$out"
PATH=$scratch/bin:$PATH
storm bench launch --command "$fake" --nodes 3,4 --runs 1 --image 1KB --peers --json
PATH=$path
check 'srun --bcast, where there are nodes enough' test "$(grep -c '"case":"slurm","nodes":3' "$out")" -eq 1
check 'and not elsewhere' test "$(grep -c '"case":"slurm"' "$out")" -eq 1
storm bench launch --tree flat
check 'a tree for nothing' is_mistake 'add --image'

storm bench transfer --command "$fake" --nodes 1,4 --size 10KB,1MB --runs 2 --flat --json --chunk 8KB --slots 4 \
    --svg "$scratch/transfer.svg"
check 'transfer --json' python3 - "$out" "$status" <<'END'
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
assert sys.argv[2] == '0'
assert [(r['nodes'], r['bytes'], r['case']) for r in rows] == [
    (n, b, c) for n in (1, 4) for b in (10 << 10, 1 << 20) for c in ('floor', 'cp', 'known', 'flat')], rows
for r in rows:
    assert r['bench'] == 'transfer' and r['runs'] == 2 and r['source'] == 'ram'
    assert abs(r['ratio'] - r['median_ms'] / r['floor_ms']) <= 0.0101, r
    assert abs(r['rate_mb_per_s'] - r['bytes'] / 1e3 / r['median_ms']) <= 0.01 * r['rate_mb_per_s'] + 0.01, r
    if r['case'] != 'floor':
        assert r['given'] == r['bytes'] and r['shape'] == 'chain' and r['pieces'] == 2
    if r['case'] == 'cp':
        assert r['looked_ms'] == 0.1 and r['last_ms'] == 0.6 and r['done_ms'] == 0.7
END
check 'its options are passed on' grep -q 'cp --json --chunk 8KB --slots 4 .* all:/bench/file' "$FAKE_LOG"
check 'one in four is flat' test "$(grep -c -e '--tree flat' "$FAKE_LOG")" -eq 12
check 'its plot is XML' python3 -c 'import sys, xml.dom.minidom as x
x.parse(sys.argv[1])' "$scratch/transfer.svg"
check 'nothing is left' is_clean
storm bench transfer --command "$fake" --nodes 2 --size 100KB --runs 1 --source disk --breakdown
check 'transfer prints a table' grep -q '^ *2 .* storm cp  *[0-9]' "$out"
check 'and where the time goes' grep -q 'until on all nodes' "$out"
FAKE_FAIL=cp
export FAKE_FAIL
storm bench transfer --command "$fake" --nodes 2 --size 1KB --runs 1
check 'a copy that fails ends the bench' test "$status" -eq 1
check 'and nothing is left of it' is_clean
unset FAKE_FAIL
storm bench transfer --nodes 3 --size 300KB --runs 1 --json
check 'with a real cluster' python3 - "$out" "$status" <<'END'
import json, sys
rows = {r['case']: r for r in map(json.loads, open(sys.argv[1]))}
assert sys.argv[2] == '0'
assert rows['cp']['given'] >= 300 << 10 and rows['cp']['read'] == 300 << 10, rows
assert rows['known']['given'] >= 300 << 10 and rows['known']['read'] == 0, rows
END
check 'nothing is left' is_clean
storm bench transfer --nodes 3 --size 300KB --runs 1 --breakdown --json
check 'where the time of nodes goes' python3 - "$out" "$status" <<'END'
import json, sys
row = {r['case']: r for r in map(json.loads, open(sys.argv[1]))}['cp']
assert sys.argv[2] == '0'
assert all(row[f'node_{s}_ms'] > 0 for s in ('connect', 'ready', 'first', 'data', 'overhead')), row
END
storm bench launch --image 1MB --nodes 3 --timeline "$scratch/timeline.svg"
check 'launch --timeline draws the stages' python3 - "$out" "$status" "$scratch/timeline.svg" <<'END'
import sys, xml.etree.ElementTree as tree
rows = [line.strip().split('  ')[0] for line in open(sys.argv[1]) if line.startswith('  ')]
assert sys.argv[2] == '0' and rows[0] == 'command: look over' and rows[-1] == 'command: report of the end', rows
for stage in ('open file', 'await received', 'write chunk', 'commit'):
    assert len([r for r in rows if r.endswith(f': {stage}')]) == 2, (stage, rows)
svg = tree.parse(sys.argv[3]).getroot()
texts = {t.text for t in svg.iter('{http://www.w3.org/2000/svg}text')}
assert set(rows) <= texts and len(list(svg.iter('{http://www.w3.org/2000/svg}rect'))) > 20, texts
END
check 'nothing is left of it' is_clean
storm bench launch --timeline x
check 'a timeline of nothing' is_mistake 'goes with --image'
storm bench launch --image 1MB --nodes 2 --runs 1
check 'a program sent in a real cluster' grep -q 'storm run --copy, cold' "$out"
storm bench transfer --sim --nodes 8,64 --tree pair,chain --size 1MB --json --svg "$scratch/delivery.svg" --launch
check 'transfer --sim --json' python3 - "$out" "$status" <<'END'
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
assert sys.argv[2] == '0' and [(r['nodes'], r['shape']) for r in rows] == [
    (8, 'pair'), (64, 'pair'), (8, 'chain'), (64, 'chain')], rows
for r in rows:
    assert r['bench'] == 'transfer' and r['case'] == 'sim' and r['bytes'] == 1 << 20
    assert r['floor_ms'] < r['median_ms'] < r['known_ms'] < r['ended_ms'], r
END
check 'a plot of it' python3 -c 'import sys, xml.dom.minidom as x
x.parse(sys.argv[1])' "$scratch/delivery.svg"
storm bench transfer --sim --nodes 12 --arity 2,4 --per-switch 4 --numbering across --even --slots 4
check 'transfer --sim prints a table' grep -q '^ *12 .* k-ary:4 ' "$out"
storm bench transfer --sim --tree star
check 'no such shape' is_mistake 'a list of auto'
storm bench transfer --sim --chunk 1KiB
check 'too small pieces' is_mistake 'from 4KiB to 2MiB'
storm bench transfer --sim --nodes 100000
check 'too many nodes' is_mistake 'can be simulated'
storm bench transfer --sim --help
check 'transfer --sim --help' grep -q '^usage: storm bench transfer --sim' "$out"
storm bench transfer --size 0
check 'a file of nothing' is_mistake 'sizes such as'
storm bench transfer --source tape
check 'no such source' is_mistake 'give disk or ram'
storm bench transfer --help
check 'transfer --help' grep -q '^usage: storm bench transfer' "$out"

# ---- wodi ----

storm bench wodi --workers 1,2 --steps 500 --sync none --runs 3 --json --out "$scratch/wodi"
check 'wodi --json' python3 - "$out" "$status" <<'END'
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
assert sys.argv[2] == '0' and all(r['bench'] == 'wodi' for r in rows)
rates = [r for r in rows if r['case'] == 'rate']
assert [r['workers'] for r in rates] == [1, 2] and all(r['rate_per_s'] > 0 and r['bare_per_s'] > 0 for r in rates)
order = {r['order']: r for r in rows if r['case'] == 'order'}
assert order['longest first']['run_s'] < order['as sent']['run_s']
assert order['longest first']['efficiency'] > order['as sent']['efficiency']
levels = [r for r in rows if r['case'] == 'level']
assert [r['workers'] for r in levels] == list(range(1, 25))
assert all(r['cycle_s'] <= 1.1 * r['bound_s'] for r in levels), 'more than 10 % above the greedy bound'
summary = {r['measure']: r for r in rows if r['case'] == 'summary'}
assert set(summary) == {'workers', 'run_s', 'efficiency', 'occupancy_s', 'adds', 'losses'}
assert all(r['min'] <= r['average'] <= r['max'] for r in summary.values()) and summary['losses']['average'] > 0
END
check 'wodi: figures' python3 - "$scratch/wodi" <<'END'
import os, sys, xml.dom.minidom
names = sorted(os.listdir(sys.argv[1]))
assert names == [f'wodi-{n}.svg' for n in ('efficiency', 'run', 'runs', 'steps', 'time')], names
for name in names:
    xml.dom.minidom.parse(os.path.join(sys.argv[1], name))
END
storm bench wodi --workers 0
check 'wodi: no workers' grep -q 'give 1 to' "$err"

# ---- gang ----

# With real daemons; nothing that depends on the machine's speed.
storm bench gang --quanta 10ms,20ms --mpl 1,3 --work 30ms --runs 1 --pes 2 --kernels compute,pair \
    --json --plot "$scratch/gang.svg"
check 'gang --json' python3 - "$out" "$status" <<'END'
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
assert sys.argv[2] == '0'
assert all(r['bench'] == 'gang' for r in rows)
measured = [r for r in rows if r.get('simulated') is False]
def of(experiment):
    return [(r['nodes'], r['pes'], r['jobs'], r['quantum_ms'], r['kernel']) for r in measured if r['experiment'] == experiment]
both = ('compute', 'pair')
assert of('quantum') == [(1, 2, 2, q, k) for q in (10, 20) for k in both], of('quantum')
assert of('sharing') == [(1, 2, 2, 1, k) for k in both], of('sharing')
assert of('mpl') == [(1, 2, j, 50, k) for j in (1, 3) for k in both], of('mpl')
assert of('nodes') == [(n, 2 // n, 2, q, k) for q in (10, 20) for n in (1, 2) for k in both], of('nodes')
assert all(r['alone_ms'] > 0 and r['turns_ms'] > 0 and r['runs'] == 1 for r in measured)
assert all(r['each_percent'] == [r['slower_percent']] for r in measured)
assert all(('plain_ms' in r) == (r['experiment'] == 'sharing') for r in measured)
simulated = [r for r in rows if r.get('simulated')]
assert {r['nodes'] for r in simulated} == {4, 16, 64, 256, 1024, 4096}
for q in (10, 20): # the more nodes, the more is lost
    slower = [r['slower_percent'] for r in simulated if r['quantum_ms'] == q]
    assert slower == sorted(slower) and slower[0] >= 0, slower
END
check 'its plot is XML' python3 -c 'import sys, xml.dom.minidom as x
x.parse(sys.argv[1])' "$scratch/gang.svg"
check 'nothing is left' is_clean
storm bench gang --experiments quantum --quanta 10ms --work 20ms --runs 1 --kernels wave
check 'gang prints a table' grep -q '^ *1 *2 *10 ms *wave .* %' "$out"
check 'and the others of table 6' grep -q '^ *SCore-D *100 ms' "$out"

# What a bare program needs for a switch, where it may: as root with cgroups and a priority.
floor_lines() { # NUMBER
    test "$status" -eq 0 && test "$(grep -c '^bare switching at 5 ms, compute, 1 node: .*, 99 % .*, [+-].* % (the same' "$out")" -eq "$1"
}

no_floor_left() { # of a bench that has ended
    for group in $(find /sys/fs/cgroup -maxdepth 3 -name 'storm-floor-*' 2>/dev/null); do
        test -e "/proc/${group##*-}" || return 1
    done
}

storm doctor
floor=0
grep -q '^ok *control groups ' "$out" && grep -q '^ok *real-time priority ' "$out" && floor=1
storm bench gang --experiments quantum --quanta 5ms,10ms --work 200ms --runs 1 --pes 1 --kernels compute,cache --json
check 'gang --json tells the floor of switches' python3 - "$out" "$status" "$floor" <<'END'
import json, sys
rows = [r for r in map(json.loads, open(sys.argv[1])) if r['experiment'] == 'quantum']
assert sys.argv[2] == '0' and len(rows) == 4, rows
for r in rows:
    expected = sys.argv[3] == '1' and r['quantum_ms'] == 5
    assert ('floor_switch_ms' in r) == ('floor_switch_99_ms' in r) == expected, r
    assert ('floor_slower_percent' in r) == expected, r
    assert not expected or 0 < r['floor_switch_ms'] <= r['floor_switch_99_ms'], r
END
storm bench gang --experiments quantum --quanta 5ms --work 200ms --runs 1 --pes 1 --kernels compute
check 'it stands below the table' floor_lines "$floor"
check 'no group is left of it' no_floor_left
if [ "$(id -u)" -eq 0 ]; then
    mkdir "$scratch/user"
    cp "$(dirname "$STORM")"/storm "$(dirname "$STORM")"/storm-mm "$(dirname "$STORM")"/storm-pl "$scratch/user"
    chmod 755 "$scratch"
    chown 65534:65534 "$scratch/user"
    TMPDIR=$scratch/user HOME=$scratch/user setpriv --reuid 65534 --regid 65534 --clear-groups "$scratch/user/storm" \
        bench gang --experiments quantum --quanta 5ms --work 50ms --runs 1 --pes 1 --kernels compute \
        >"$out" 2>"$err" </dev/null
    status=$?
    check 'an ordinary user does without' floor_lines 0
    check 'and hears no complaint' test ! -s "$err"
fi

storm bench gang --quanta 1ns
check 'too short turns' is_mistake 'will not do'
storm bench gang --kernels none
check 'no such kernel' is_mistake 'there is no kernel "none"'
storm bench gang --experiments all
check 'no such experiment' is_mistake 'there are: quantum, sharing'
storm bench gang --mpl 99
check 'too many jobs' is_mistake 'give 1 to 16'
storm bench gang --help
check 'gang --help' grep -q '^usage: storm bench gang' "$out"

# ---- all that is promised ----

# With real daemons, but nothing that depends on the machine's speed.
figures() {
    "$(dirname "$0")/../../bench/figures" --build "$(dirname "$STORM")" "$@" >"$out" 2>"$err" </dev/null
    status=$?
}

no_figures_left() {
    ! ls -d "$scratch"/storm-figures-* && test -z "$(pgrep -f "$scratch/storm-figures-")"
}

figures --only launch65
check 'an unknown figure' grep -q 'there is no figure "launch65"; there are: launch64' "$err"
check 'is a mistake' test "$status" -eq 2
figures --quick --only stages --json "$scratch/figures.json"
check 'figures --json' python3 - "$scratch/figures.json" "$status" <<'END'
import json, sys
assert sys.argv[2] == '0'
d = json.load(open(sys.argv[1]))
assert d['runs'] == 3 and d['quick'] is True
assert len(d['figures']) >= 4 and all(r['figure'] == 'stages' and r['value'] > 0 for r in d['figures']), d
END
check 'a table' grep -q '^| launch64: in all .* ms' "$out"
check 'nothing is left' no_figures_left
figures --quick --only idle &
until ls "$scratch"/storm-figures-*/c*/local/cluster >/dev/null 2>&1 || ! kill -0 $!; do sleep 0.02; done
kill "$(pgrep -P $! | head -n 1)"
wait $!
check 'interrupted, it says so' grep -q 'everything is taken down' "$err"
check 'and nothing is left' no_figures_left

echo "1..$count"
test "$failed" -eq 0
