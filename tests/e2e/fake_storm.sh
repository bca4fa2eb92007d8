#!/bin/sh
# SPDX-License-Identifier: MIT
# Stands in for the storm command where a bench itself is tested: it starts processes, counts jobs and notes
# when they end, without any cluster. FAKE_LOG gets a line for each call; FAKE_FAIL is a command that fails.
set -eu
echo "${STORM_HOME:-none} ${STORM_JOB_ID:-none} $*" >>"${FAKE_LOG:-/dev/null}"
command=$1
shift
if [ "$command" = "${FAKE_FAIL:-}" ]; then
    echo "fake storm: told to fail" >&2
    exit 3
fi
case $command in
up)
    mkdir "$STORM_HOME/local"
    echo 0 >"$STORM_HOME/local/jobs"
    : >"$STORM_HOME/local/ends"
    exit
    ;;
down)
    rm "$STORM_HOME/local/jobs"
    exit
    ;;
esac
test -e "$STORM_HOME/local/jobs" # up, and not down yet

nodes=1
first=1
last=1
while :; do
    case $1 in
    -N) nodes=$2 ;;
    --array) first=${2%-*} last=${2#*-} ;;
    --size | -o | --priority | --tree | --chunk | --slots | --pes) ;;
    --wait | -a | --json | --copy | --exclusive)
        shift
        test $# -gt 0 || break
        continue
        ;;
    *) break ;;
    esac
    shift 2
done

case $command in
run)
    i=0
    while [ $i -lt "$nodes" ]; do
        "$@" &
        i=$((i + 1))
    done
    wait
    ;;
submit)
    jobs=$(cat "$STORM_HOME/local/jobs")
    echo "$((jobs + 1))"
    echo $((jobs + last - first + 1)) >"$STORM_HOME/local/jobs"
    i=$first
    while [ "$i" -le "$last" ]; do # a thousand a second at first, two thousand in the second half
        at=$((i * 10))
        test "$i" -le $((last / 2)) || at=$((last * 5 + (i - last / 2) * 5))
        printf '{"id":%d,"end_time":%d.%04d},' "$i" $((1000 + at / 10000)) $((at % 10000))
        i=$((i + 1))
    done >>"$STORM_HOME/local/ends"
    ;;
kill) ;;
cp)
    bytes=$(wc -c <"$1")
    printf '{"nodes":4,"pieces":2,"bytes":%d,"read":%d,"given":%d,"shape":"chain"' "$bytes" "$bytes" "$bytes"
    printf ',"looked_ms":0.1,"connected_ms":0.2,"accepted_ms":0.3,"met_ms":0.4,"first_ms":0.5,"last_ms":0.6'
    printf ',"done_ms":0.7}\n'
    ;;
ps)
    printf '{"jobs":[%s{"id":0,"end_time":null}]}\n' "$(cat "$STORM_HOME/local/ends")"
    ;;
*) exit 2 ;;
esac
