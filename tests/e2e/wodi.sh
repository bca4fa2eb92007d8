#!/bin/sh
# SPDX-License-Identifier: MIT
# WoDi as a user meets it: the header in C and C++, the library's symbols, the example with one line, the server's answers to
# what is wrong. Speaks TAP. What happens when somebody is killed is in wodi_fire_test.c.
set -u
bin=$(cd "$(dirname "$STORM")" && pwd)
root=$(cd "$(dirname "$0")/../.." && pwd)
scratch=$(mktemp -d)
server=
trap 'test -z "$server" || kill "$server" 2>/dev/null; rm -rf "$scratch"' EXIT
count=0
check() { # what, then a command
    what=$1
    shift
    count=$((count + 1))
    if "$@" >"$scratch/log" 2>&1; then
        echo "ok $count - $what"
    else
        sed 's/^/# /' "$scratch/log"
        echo "not ok $count - $what"
    fi
}
skip() {
    count=$((count + 1))
    echo "ok $count - $1 # SKIP $2"
}
no() { ! "$@"; }

# Starts a server on a folder; its line goes into the environment.
serve() {
    mkfifo "$scratch/line.$1"
    "$bin/storm-wodi" --folder "$scratch/$1" >"$scratch/line.$1" &
    server=$!
    read -r line <"$scratch/line.$1"
    rm "$scratch/line.$1"
    export "$line"
}
# So many have connected: one that comes when all is done would wait for another master.
joined() {
    tries=0
    while test "$(grep -c "/$1/socket" /proc/net/unix)" -le "$2" && test $tries -lt 2000; do
        tries=$((tries + 1))
        sleep 0.02
    done
}
unserve() {
    kill "$1" "$server"
    wait "$server" 2>/dev/null
    server=
}

printf '#include <storm/wodi.h>\n#include <storm/carmi.h>\n' >"$scratch/h.c"
cp "$scratch/h.c" "$scratch/h.cc"
check "the headers are C11" cc -std=c11 -Wall -Wextra -Wpedantic -Werror -I"$root/include" -fsyntax-only "$scratch/h.c"
if command -v c++ >/dev/null; then
    check "the headers are C++" c++ -std=c++11 -Wall -Wextra -Wpedantic -Werror -I"$root/include" -fsyntax-only "$scratch/h.cc"
else
    skip "the headers are C++" "there is no c++"
fi

if test -e "$bin/libstorm.so" && ! nm "$bin/libstorm.so" | grep -q __asan; then
    nm -D --defined-only "$bin/libstorm.so" | awk '{print $3}' >"$scratch/symbols"
    check "the library shows its interface" grep -qx wodi_rcvresult "$scratch/symbols"
    check "and nothing else" no grep -vEq '^(wodi|carmi)_' "$scratch/symbols"
    nm "$bin/libstorm.a" | awk '$2 == "T" {print $3}' >"$scratch/symbols"
    check "so does the static one" grep -qx wodi_rcvresult "$scratch/symbols"
    check "and nothing else" no grep -vEq '^(wodi|carmi)_' "$scratch/symbols"
    check "the example builds with it" cc -o "$scratch/wodi" "$root/examples/wodi.c" -I"$root/include" "$bin/libstorm.a"
    check "the example builds with one line" cc -o "$scratch/wodi" "$root/examples/wodi.c" -I"$root/include" \
        -L"$bin" -lstorm -Wl,-rpath,"$bin"
else
    skip "the library shows its interface" "this build is instrumented"
    cp "$bin/wodi" "$scratch/wodi"
fi

# Python loads the library; one that is instrumented it cannot.
if test -e "$bin/libstorm.so" && ! nm "$bin/libstorm.so" | grep -q __asan; then
    export PYTHONPATH="$root/python" STORM_LIB="$bin/libstorm.so" PYTHONDONTWRITEBYTECODE=1
    serve python
    # One worker at a time: a second that comes when all is done would wait for another master.
    python3 "$root/examples/wodi.py" worker &
    a=$!
    python3 "$root/examples/wodi.py" master >"$scratch/sums"
    check "in Python it computes the same" grep -qx 'cycle 3: 229524022577525000' "$scratch/sums"
    wait $a
    check "its worker ends with its master" test $? = 0
    "$scratch/wodi" worker &
    a=$!
    python3 "$root/examples/wodi.py" master >"$scratch/sums"
    check "a worker in C works for a master in Python" grep -qx 'cycle 3: 229524022577525000' "$scratch/sums"
    wait $a
    python3 "$root/examples/materials.py" worker &
    a=$!
    python3 "$root/examples/materials.py" master >"$scratch/level"
    check "cycles that need each other" grep -qx 'Fermi level -1.175[0-9]*' "$scratch/level"
    wait $a
    python3 - <<'END' >"$scratch/steps" &
import storm
def work(data):
    if data == b'bad':
        raise ValueError('no good')
    if data == b'odd':
        raise ValueError('no good \udcff')
    if data == b'long':
        return bytes(storm.BYTES_MAX + 1)
    if data == b'none':
        return None
    return data.upper()
storm.wodi_worker(work)
END
    a=$!
    python3 - <<'END' >"$scratch/steps"
import storm
with storm.WodiMaster(name='map') as m:
    assert sorted(m.map([b'a', b'b'])) == [(1, b'A'), (2, b'B')]
    m.send(3, b'bad')
    r = m.receive()
    assert r.step == 3 and r.status == 1 and b'no good' in r.data, r.data
    for step, word, why in (4, b'odd', b'no good ?'), (5, b'long', b'bytes at most'), (6, b'none', b'not NoneType'):
        m.send(step, word)
        r = m.receive()
        assert r.step == step and r.status == 1 and why in r.data, r.data
    assert m.receive() is None and m.state() == (0, 0, 0)
try:
    storm.WodiMaster(server='unix:/nowhere#x')
except storm.WodiError as e:
    print('refused', e.errno)
END
    check "exceptions are results, and mistakes are told" grep -qx 'refused 22' "$scratch/steps"
    wait $a
    python3 - <<'END' >"$scratch/closed"
import storm
def closed(call, *arguments):
    try:
        call(*arguments)
    except ValueError:
        return True
with storm.WodiMaster(name='over') as m:
    pass
left = storm.WodiMaster(name='left')
left.close()
for m in (m, left):
    m.close()                                           # again: nothing happens
    assert closed(m.begin_cycle, 1) and closed(m.send, 1, b'') and closed(m.receive) and closed(m.end_cycle, 1)
    assert closed(m.state) and closed(m.complete) and closed(list, m.results()) and closed(list, m.map([b'a']))
w = storm.WodiWorker()
w.leave()
w.leave()
assert closed(w.receive) and closed(w.send, b'')
print('closed')
END
    timeout 60 python3 - <<'END' >"$scratch/thread"
import threading, storm
threading.Thread(target=storm.wodi_worker, args=(bytes.upper,), daemon=True).start()
with storm.WodiMaster(name='thread') as m:
    assert list(m.map([b'a'])) == [(1, b'A')]
print('thread')
END
    check "a worker may be a thread" grep -qx thread "$scratch/thread"
    python3 - "$scratch/fake" <<'END' >"$scratch/again"
import errno, socket, struct, sys, threading, storm
REFUSED, OVER = 21, 19
def frame(kind, number):
    return struct.pack('<IBI', 5, kind, number)
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
listener.listen()
def serve():
    for answer in (frame(REFUSED, errno.ETIMEDOUT), frame(OVER, 1)):
        c, _ = listener.accept()
        c.recv(1000)
        c.sendall(answer)
    c.recv(1)
threading.Thread(target=serve, daemon=True).start()
with storm.WodiWorker(server=f'unix:{sys.argv[1]}#{"0" * 32}') as w:
    assert w.receive().kind == storm.OVER
print('again')
END
    check "a worker that was given up comes again" grep -qx again "$scratch/again"
    check "what is closed is not used" grep -qx closed "$scratch/closed"
    unserve -TERM
    unset PYTHONPATH STORM_LIB
else
    skip "in Python it computes the same" "this build is instrumented"
fi

serve one
"$scratch/wodi" worker &
a=$!
"$scratch/wodi" worker &
b=$!
joined one 2
"$scratch/wodi" master >"$scratch/sums"
check "it computes" grep -qx 'cycle 3: 229524022577525000' "$scratch/sums"
wait $a $b
check "workers end with their master" test $? = 0
check "a second server is refused the folder" no "$bin/storm-wodi" --folder "$scratch/one"
unserve -KILL

serve one
"$scratch/wodi" worker &
a=$!
"$scratch/wodi" master >"$scratch/sums"
check "after the server was killed too" grep -qx 'cycle 3: 229524022577525000' "$scratch/sums"
wait $a
check "lengths of steps are kept" test -s "$scratch"/one/history.*
right=$STORM_WODI
STORM_WODI=${right%????}0000 "$scratch/wodi" master 2>"$scratch/err"
check "a wrong token is refused" grep -q 'Permission denied' "$scratch/err"
STORM_WODI=nonsense "$scratch/wodi" master 2>"$scratch/err"
check "an address that is none is refused" grep -q 'Invalid argument' "$scratch/err"
unserve -TERM
printf 'something else entirely\n' >"$scratch/one/journal"
check "a journal that is none is refused" no "$bin/storm-wodi" --folder "$scratch/one"
check "wrong usage is told" no "$bin/storm-wodi" --folder "$scratch/two" --sync perhaps
echo "1..$count"
