#!/bin/bash
# SPDX-License-Identifier: MIT
# Manual pages and completion: well formed, and they agree with each other and with the command. Speaks TAP.
# The environment variable STORM is the path of the command.
set -u
: "${STORM:?set STORM to the path of the storm command}"
top=$(cd "$(dirname "$0")/../.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
count=0
failed=0

# check NAME COMMAND...: one test; what the command prints says what is wrong.
check() {
    local name=$1
    shift
    count=$((count + 1))
    if "$@" >"$scratch/why" 2>&1; then
        echo "ok $count - $name"
    else
        failed=$((failed + 1))
        echo "not ok $count - $name"
        head -n 10 "$scratch/why" | sed 's/^/# /'
    fi
}

skip() {
    count=$((count + 1))
    echo "ok $count - $1 # SKIP $2"
}

# ---- pages ----

lint() {
    # Pages are not installed where they are checked.
    mandoc -T lint -W warning "$top"/docs/man/*.1 | grep -v 'referenced manual not found' >"$scratch/lint"
    cat "$scratch/lint"
    test ! -s "$scratch/lint"
}

if command -v mandoc >/dev/null; then
    check 'mandoc finds no fault in the pages' lint
else
    skip 'mandoc finds no fault in the pages' 'mandoc is not installed'
fi

# Every page is listed in storm(1), and everything listed there has a page.
listed() {
    python3 - "$top/docs/man" <<'END'
import glob, os, re, sys
pages = set()
for path in glob.glob(sys.argv[1] + '/storm-*.1'):
    head = open(path).read().split('.Sh SYNOPSIS')[0]
    pages |= set(re.findall(r'^\.Nm (storm-\w+)', head, re.M))
    assert os.path.basename(path)[:-2] in pages, path
listed = set(re.findall(r'^\.It Xr (storm-\w+) 1', open(sys.argv[1] + '/storm.1').read(), re.M))
assert pages == listed, pages ^ listed
for path in glob.glob(sys.argv[1] + '/*.1'):
    for name in re.findall(r'^\.Xr (\S+) 1', open(path).read(), re.M):
        assert name in pages | {'storm', 'yod', 'pingd'}, f'{path} refers to {name}'
END
}
check 'pages, their list and their references agree' listed

# Every command of this storm is explained and completed.
explained() {
    "$STORM" help | sed -n '/^commands:/,/^$/s/^  \([a-z]*\) .*/\1/p' >"$scratch/commands"
    test -s "$scratch/commands" || return 1
    local name
    while read -r name; do
        grep -q -w -e "storm-$name" -e "Cm.* $name" -e "Cm $name" "$top/docs/man/storm.1" ||
            test "$name" = help || { echo "storm.1: nothing on $name" && return 1; }
        grep -q -w "$name" <<<"$__storm_commands" || { echo "bash: nothing on $name" && return 1; }
        grep -q "'$name:" "$top/tools/completion/_storm" || { echo "zsh: nothing on $name" && return 1; }
        test "$("$STORM" "$name" --help | grep -c '^options:')" -le 1 ||
            { echo "$name --help: options twice" && return 1; }
    done <"$scratch/commands"
}

# ---- completion ----

# Stands in for storm: two jobs, three nodes; another cluster has others.
mkdir "$scratch/bin" "$scratch/home"
cat >"$scratch/bin/storm" <<'END'
#!/bin/sh
case $* in
'ps --json') echo '{"jobs":[{"id":17,"name":"a \"id\": b","nodes":3},{"id": 42,"name":"x"}]}' ;;
'nodes --json') echo '{"nodes":[{"name":"n0","pes":1},{"name":"n1"},{"name":"n12"}]}' ;;
'nodes --cluster other --json') echo '{"nodes":[{"name":"m0"}]}' ;;
*) exit 125 ;;
esac
END
chmod +x "$scratch/bin/storm"
mkdir "$scratch/home/local" "$scratch/home/big"
: >"$scratch/home/stray"

# shellcheck source=/dev/null
. "$top/tools/completion/storm.bash"

# completes EXPECTED WORD...: the last word is completed; what comes out, sorted.
completes() {
    local expected=$1
    shift
    PATH=$scratch/bin:$PATH
    export STORM_HOME=$scratch/home
    COMP_WORDS=("$@")
    COMP_CWORD=$(($# - 1))
    _storm
    local got
    got=$(printf '%s\n' "${COMPREPLY[@]}" | sort -u | xargs)
    echo "expected: $expected; got: $got"
    test "$got" = "$expected"
}

check 'every command of storm is explained and completed' explained
check 'commands' completes 'submit suspend' storm su
check 'options' completes '--debug --detach' storm run --de
check 'options after options with values' completes '--exclude --exclusive --export' storm run -n 4 --ex
check 'an option with a value is offered once' completes '--cluster' storm ps --cl
check 'jobs' completes '17 42' storm kill ''
check 'jobs, with a beginning' completes '42' storm wait 17 4
check 'nodes' completes 'n0 n1 n12' storm drain ''
check 'nodes of an option' completes 'n1 n12' storm run -N 2 -w n1
check 'nodes of --on=' completes 'n1 n12' storm run --on = n1
check 'nodes of another cluster' completes 'm0' storm run --cluster other -w ''
check 'clusters' completes 'big local' storm ps --cluster ''
check 'signals' completes 'KILL' storm kill -s KIL
check 'networks' completes 'ib-hdr ib-ndr' storm model --network ib
check 'benches' completes 'launch' storm bench l
check 'programs' completes 'mkdir' storm run -N 4 mkdi
check "a program's arguments are its own" completes '' storm run -N 4 prog --de
check 'no cluster, no jobs' completes '' storm show --cluster none ''

# The options that are completed are those in the pages: of its own page, or of storm-run(1).
options() {
    local name
    for name in up down run submit alloc ps nodes kill drain model sim work; do
        __storm_options $name | tr ' ' '\n' | sed -e 's/=$//' -e '/^$/d' -e "s/^/$name /"
    done >"$scratch/options"
    python3 - "$top/docs/man" "$scratch/options" <<'END'
import re, sys
def page(name):
    text = open(f'{sys.argv[1]}/storm-{name}.1').read()
    return {'-' + o for line in re.findall(r'^\.(?:It|Op|Fl).*', text, re.M)
            for o in re.findall(r'Fl (-?[\w-]+)', line)}
own = {}
for line in open(sys.argv[2]):
    name, option = line.split()
    own.setdefault(name, set()).add(option)
for name, options in own.items():
    options -= {'--help'}
    written = page(name)
    known = written | page('run') if name in ('submit', 'alloc') else written
    assert options <= known, f'{name}: completed, not written: {options - known}'
    if name not in ('submit', 'alloc'):
        assert written - {'-', '--'} <= options, f'{name}: written, not completed: {written - options}'
END
}
check 'completion and pages know the same options' options

if command -v zsh >/dev/null; then
    check 'zsh reads its completion' zsh -n "$top/tools/completion/_storm"
else
    skip 'zsh reads its completion' 'zsh is not installed'
fi

echo "1..$count"
test "$failed" -eq 0
