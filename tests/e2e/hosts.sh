#!/bin/bash
# SPDX-License-Identifier: MIT
# Machines in namespaces (tests/hosts): they are there, apart from each other, can be broken and mended, and nothing
# is left of them. Speaks TAP.
set -u
hosts=$(cd "$(dirname "$0")/.." && pwd)/hosts

if [ "$(id -u)" -ne 0 ]; then
    echo '1..0 # SKIP only root can make machines'
    exit 0
fi
for need in /usr/sbin/sshd unshare nsenter ip pgrep; do
    if ! command -v "$need" >/dev/null; then
        echo "1..0 # SKIP $need is not installed; tools/setup hosts does so"
        exit 0
    fi
done
if ! unshare --net --mount --pid --fork true 2>/dev/null; then
    echo '1..0 # SKIP no namespaces can be made here'
    exit 0
fi

scratch=$(mktemp -d)
bed=$scratch/bed
count=0
failed=0
trap '"$hosts" down "$bed" 2>/dev/null; rm -rf "$scratch"' EXIT

check() { # NAME COMMAND...
    local name=$1
    shift
    count=$((count + 1))
    if "$@" >"$scratch/said" 2>&1; then
        echo "ok $count - $name"
    else
        failed=$((failed + 1))
        echo "not ok $count - $name"
        sed 's/^/# /' "$scratch/said"
    fi
}

says() { # WORDS COMMAND...
    local words=$1 said
    shift
    said=$("$@" 2>&1 </dev/null)
    [ "$said" = "$words" ] || { echo "said: $said; expected: $words"; false; }
}

fails() { ! "$@" </dev/null; }
on() { "$hosts" run "$bed" "$@"; }
far() { on desk ssh -o ConnectTimeout=5 "$@" </dev/null; }
holders() { pgrep -f -- "--hold $bed" | wc -l; }

mkdir "$scratch/hidden" && touch "$scratch/hidden/file"
check 'three machines' "$hosts" up "$bed" 3 --hide "$scratch/hidden"
check 'not twice' fails "$hosts" up "$bed" 3
check 'they know each other by name' says h1 far h1 hostname
check 'by IPv6 too' says h2 far -6 h2 hostname
check 'files are their own' far h0 'echo mine >/tmp/own && echo mine >own'
check 'and not those of others' far h1 'test ! -e /tmp/own && test ! -e own'
check 'what is hidden is empty there' far h0 "test -d $scratch/hidden && test ! -e $scratch/hidden/file"
check 'but not at the desk' on desk test -e "$scratch/hidden/file"
check 'processes are their own' fails far h1 'pgrep -f "hold .* h2"'
check 'this machine is not in their network' fails on h0 ip route get 192.0.2.1
for trouble in dead hang key; do
    check "h1: $trouble" "$hosts" break "$bed" h1 "$trouble"
    check 'it cannot be reached' fails far h1 true
    check 'the others can' says h2 far h2 hostname
    check 'mended' "$hosts" mend "$bed" h1
    check 'it is there again' says h1 far h1 hostname
done
check 'a full disk' "$hosts" break "$bed" h1 full
check 'nothing can be written' fails far h1 'echo more >/tmp/more'
check 'mended' "$hosts" mend "$bed" h1
check 'it can again' far h1 'echo more >/tmp/more'
check 'another processor' "$hosts" break "$bed" h1 arch
check 'says so' says vax far h1 uname -m
check 'no such trouble' fails "$hosts" break "$bed" h1 bored
check 'no such machine' fails on h7 true
check 'down' "$hosts" down "$bed"
check 'nothing is left' says 0 holders
check 'of files neither' says '' ls "$bed"

check 'two with slow links' "$hosts" up "$bed" 2 --rate 100mbit
check 'as tc says' sh -c '"$1" run "$2" h1 tc qdisc show dev eth0 | grep -q "tbf.*rate 100Mbit"' - "$hosts" "$bed"
check 'down again' "$hosts" down "$bed"
echo "1..$count"
test "$failed" -eq 0
