#!/bin/sh
# SPDX-License-Identifier: MIT
# The storm command from outside: what it prints, where, and its exit status. Speaks TAP.
# The environment variable STORM is the path of the command.
set -u
: "${STORM:?set STORM to the path of the storm command}"
ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 # many short processes: see tests/meson.build
NO_COLOR=
export ASAN_OPTIONS NO_COLOR

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
out=$scratch/out
err=$scratch/err
count=0
failed=0

# Runs storm; its output, complaints and status are kept for the checks that follow.
storm() {
    "$STORM" "$@" >"$out" 2>"$err" </dev/null
    status=$?
}

# check NAME CONDITION...: one test.
check() {
    name=$1
    shift
    count=$((count + 1))
    if "$@" >/dev/null 2>&1; then
        echo "ok $count - $name"
    else
        failed=$((failed + 1))
        echo "not ok $count - $name"
        echo "# status $status"
        head -n 5 "$out" "$err" | sed 's/^/# /'
    fi
}

# A mistake: status 2, nothing on stdout, one line on stderr that begins and ends as it should.
is_mistake() {
    test "$status" -eq 2 && test ! -s "$out" && test "$(wc -l <"$err")" -eq 1 &&
        grep -q '^storm: .*: ' "$err" && grep -q -e "$1" "$err"
}

is_fine() {
    test "$status" -eq 0 && test ! -s "$err" && grep -q -e "$1" "$out"
}

# ---- help and version ----

storm
check 'storm alone shows the commands' is_fine 'commands:'
storm help
check 'help' is_fine 'commands:'
storm --help
check '--help' is_fine 'commands:'
for command in bench campaign demo model version; do
    storm help "$command"
    check "help $command" is_fine "^usage: storm $command"
    storm "$command" --help
    check "$command --help" is_fine "^usage: storm $command"
done
storm version
check 'version' is_fine '^storm [0-9]*\.[0-9]*\.[0-9]* '
storm --version
check '--version' is_fine '^storm [0-9]'
storm version --json
check 'version --json' sh -c "python3 -c 'import json,sys; json.load(sys.stdin)[\"version\"]' <'$out'"

# ---- mistakes ----

storm benhc
check 'an unknown command suggests the nearest' is_mistake 'did you mean: storm bench?'
storm xyzzy
check 'a very unknown command' is_mistake 'storm help'
storm help benhc
check 'help for an unknown command' is_mistake 'did you mean: storm bench?'
storm bench primitives --sim --node 4
check 'an unknown option suggests the nearest' is_mistake 'did you mean --nodes?'
storm demo --xyzzy
check 'a very unknown option' is_mistake 'storm help demo'
storm bench primitives --sim --nodes four
check 'a value that is no number' is_mistake 'for example --nodes'
storm bench primitives --sim --nodes
check 'a missing value' is_mistake 'needs a value'
storm bench primitives --sim --nodes 10000000
check 'too many nodes' is_mistake 'give another number'
storm bench primitives --sim --shape star
check 'an unknown shape' is_mistake 'binomial'
storm bench primitives --sim --net carrier-pigeon
check 'an unknown network' is_mistake 'storm help bench'
storm bench primitives --links pigeon
check 'an unknown kind of links' is_mistake 'give tcp or unix'
storm bench primitives --nodes 100000
check 'too many processes' is_mistake 'processes of one machine'
storm demo --nodes 3
check 'a demo of too few nodes' is_mistake 'give 20 to 1024'
storm bench
check 'bench of nothing' is_mistake 'primitives'
storm campaign --trace
check '--trace without --seed' is_mistake '--seed S'
storm version please
check 'an argument too many' is_mistake 'leave it out'

# ---- bench ----

storm bench primitives --sim --nodes 4,16 --shape k-ary
check 'bench prints a table' is_fine '^ *16 '
grep '^ *[0-9]' "$out" >"$scratch/first"
storm bench primitives --sim --nodes 4,16 --shape k-ary
grep '^ *[0-9]' "$out" >"$scratch/second"
check 'twice the same numbers' cmp "$scratch/first" "$scratch/second"
storm bench primitives --sim --nodes 4..64 --shape all --json --runs 3 \
    --svg "$scratch/latency.svg" --svg-bandwidth "$scratch/bandwidth.svg"
check 'bench --json' sh -c "test $status -eq 0 && python3 - '$out' <<'END'
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
keys = {'bench', 'case', 'nodes', 'shape', 'runs', 'median_ms', 'ci95_ms', 'steps', 'floor_ms', 'ratio'}
assert len(rows) == 5 * 4 * 8, len(rows)
assert all(keys <= row.keys() for row in rows)
assert all(row['ci95_ms'] == 0 for row in rows if row['case'] != 'xfer-stream')
at = {(r['shape'], r['nodes'], r['case']): r['median_ms'] for r in rows}
assert at['k-ary', 64, 'compare'] < at['k-ary', 64, 'compare-write'] < at['flat', 64, 'compare-write']
assert all(r['median_ms'] >= r['floor_ms'] for r in rows)
END"
check 'its plots are XML' python3 -c "import sys, xml.dom.minidom as x
for name in sys.argv[1:]: x.parse(name)" "$scratch/latency.svg" "$scratch/bandwidth.svg"
storm bench primitives --sim --nodes 20000 --depth primitives --cases compare-write,wave
check 'bench under the primitives' is_fine '^ *20000 '
storm bench primitives --sim --nodes 4 --cases compare --latency 1ms --cpu 0us --json
check 'a custom network' is_fine '"network":"custom".*"median_ms":2.000'
storm bench primitives --sim --nodes 4 --svg "$scratch/no/such/place.svg"
check 'a plot that cannot be written' test "$status" -eq 1

# ---- model ----

storm model
check 'model' is_fine '^ *16384  hardware .* 134\.71$'
storm model --table
check 'model --table prints table 3' sh -c "test $status -eq 0 && python3 - '$out' <<'END'
import sys
rows = [[int(n) for n in line.split()] for line in open(sys.argv[1]) if line.split()[:1] and line.split()[0].isdigit()]
assert [r[:4] for r in rows] == [[4 ** s, 4 ** (s + 1), s, 2 * s - 1] for s in range(1, 7)], rows
assert [r[4:] for r in rows] == [
    [320, 320, 320, 315, 291, 271, 253, 238, 224], [320, 319, 295, 274, 256, 240, 226, 213, 202],
    [298, 277, 258, 242, 228, 215, 204, 194, 184], [261, 244, 230, 217, 206, 195, 186, 177, 170],
    [232, 219, 207, 197, 187, 178, 171, 163, 157], [209, 198, 188, 180, 172, 164, 158, 152, 146]], rows
END"
storm model --figure --svg "$scratch/figure.svg"
check 'model --figure' is_fine '18.5 ms: 110 and 135 ms here'
check 'its plot is XML, and the one in the documentation' sh -c "
    python3 -c 'import sys, xml.dom.minidom as x; x.parse(sys.argv[1])' '$scratch/figure.svg' &&
    cmp '$scratch/figure.svg' '$(dirname "$0")/../../docs/figures/launch-model.svg'"
for view in --table --figure --launcher '--network 10gbe' '--network ib-ndr --arity 1 --nodes 5..9'; do
    # shellcheck disable=SC2086
    storm model $view --json
    check "model $view --json" sh -c "test $status -eq 0 && python3 - '$out' <<'END'
import json, sys
d = json.load(open(sys.argv[1]))
for row in d.get('launches', []):
    parts = sum(row[p + '_ms'] for p in ('transfer', 'command', 'exec', 'timeslice'))
    assert abs(parts - row['launch_ms']) < 1e-6, row
points = {p['nodes']: p for p in d.get('points', [])}
for p in d.get('paper', []):
    assert round(points[p['nodes']]['hosts_ms']) == p['launch_ms'], p
assert d['model'] in ('launch', 'table', 'figure', 'launcher')
assert any(d.get(k) for k in ('launches', 'rows', 'points'))
END"
done
storm model --network 10gbe --nodes 64 --exec 5ms --timeslice 2ms --host 100MB
check 'model of other hosts' is_fine '^ *64 .* hosts .* 5.00 *2.00 '
storm model --launcher --lambda 10ms --arity 2 --nodes 64
check 'model --launcher' is_fine '^ *64 *120.00 *60.00$'
storm model --network token-ring
check 'model of an unknown network' is_mistake '10gbe'
storm model --arity 2
check 'QsNet has no tree' is_mistake 'give another --network'
storm model --table --launcher
check 'two models at once' is_mistake 'give one'
storm model --lambda 5ms
check 'an option for another model' is_mistake 'it is for --launcher'
storm model --nodes 0
check 'a launch on no nodes' is_mistake 'give 1 to'
storm model --image 12XB
check 'an image of no size' is_mistake 'for example --image 12MB'
storm model --figure --svg "$scratch/no/such/place.svg"
check 'a figure that cannot be written' test "$status" -eq 1

# ---- bench on real processes ----

storm bench primitives --nodes 4 --runs 20
check 'bench on processes' is_fine '^ *compare '
for links in tcp unix; do
    storm bench primitives --nodes 4,9 --runs 20 --links $links --json
    check "bench on processes, $links, --json" sh -c "test $status -eq 0 && python3 - '$out' <<'END'
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
keys = {'bench', 'case', 'nodes', 'shape', 'links', 'runs', 'median_ms', 'ci95_ms'}
assert len(rows) == 2 * 7, len(rows)
assert all(keys <= row.keys() for row in rows)
assert all({'floor_ms', 'ratio', 'rounds'} <= row.keys() for row in rows if 'rate_mb_per_s' not in row)
assert all(row['links'] == '$links' for row in rows)
END"
done
storm bench idle --nodes 4 --period 500ms --json
check 'bench idle' is_fine '"private_kb_max":'

# ---- demo and campaign ----

storm demo --sim
check 'demo --sim' is_fine '^all [0-9]* checks passed$'
storm demo
check 'demo' is_fine '^all [0-9]* checks passed$'
check 'demo fits on a screen' test "$(wc -l <"$out")" -le 40
check 'no colours when it is no terminal' sh -c "! grep -q '$(printf '\033')' '$out'"
storm campaign --seeds 2 --processes 1
check 'campaign' is_fine '2 seeds, 0 failed'
storm campaign --seed 1 --trace
check 'campaign --trace' is_fine 'seed 1: ok'

echo "1..$count"
test "$failed" -eq 0
