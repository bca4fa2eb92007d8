#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""storm exec: commands on hosts through trees of remote shells.

Most of it is done with a connector that stays on this machine: every host is a home of its own here, and a host
may have a trouble, a few lines that its connector goes through first. What ssh must show is done on machines in
namespaces (tests/hosts), if there can be any. Speaks TAP."""
import collections
import glob
import hashlib
import json
import os
import re
import resource
import select
import shutil
import signal
import subprocess
import threading
import time

from harness import NOBODY, play
from machines import Machines, no_machines

HERE = os.path.dirname(os.path.abspath(__file__))
CONNECTOR = """#!/bin/sh
# HOST LINE. Which host this is, and from which it was reached, is written down.
cd {work} || exit 1
echo "${{H-desk}} $1" >>reached
H=$1 HOME={work}/homes/$1
export H HOME
unset XDG_CACHE_HOME SHELL
mkdir -p "$HOME"
if [ -e "troubles/$1" ]; then . "{work}/troubles/$1"; fi
cd "$HOME" && exec sh -c "$2"
"""
MARK = f'{os.getpid()}77'   # seconds that only commands of this test sleep


def prepare(t):
    os.makedirs(t.home, exist_ok=True)   # whose owner is looked at
    for name in ('homes', 'troubles'):
        os.mkdir(t.path(name))
    t.write('connector', CONNECTOR.format(work=t.work), 0o755)
    t.env['STORM_CONNECTOR'] = t.path('connector')
    if t.user:
        for path in (t.home, t.path('homes'), t.path('troubles')):
            os.chown(path, NOBODY, NOBODY)


def trouble(t, host, lines):
    t.write(f'troubles/{host}', lines)


def mend(t):
    for name in os.listdir(t.path('troubles')):
        os.unlink(t.path(f'troubles/{name}'))


def lines(r):
    return sorted(r.out.splitlines())


def helpers(t, host):
    """Processes of the helper on a host."""
    found = []
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            with open(f'/proc/{pid}/cmdline', 'rb') as f:
                if not f.read().startswith(f'{t.work}/homes/{host}/.cache/storm/hop-'.encode()):
                    continue
        except OSError:
            continue
        found.append(int(pid))
    return found


def gone(t):
    """No command sleeps any more, no helper is there."""
    return t.until(lambda: not t.ours(MARK) and
                   not any(helpers(t, h) for h in os.listdir(t.path('homes'))), 60)


# ---- what is shown ----

def output(t):
    r = t.run('exec', '-w', 'h[0-4]', 'echo I am $H; echo bad >&2')
    t.check('a line of each, behind its name', lines(r) == [f'h{i}: I am h{i}' for i in range(5)], r)
    t.check('errors go to stderr', sorted(r.err.splitlines()) == [f'h{i}: bad' for i in range(5)], r)
    t.check('all went well', r.status == 0, r)
    r = t.run('exec', '-w', 'h[0-2]', '-N', '--', 'printf', '%s-', '$H')
    t.check('without names it is as it comes', sorted(r.out.split('-')) == ['', 'h0', 'h1', 'h2'], r)
    r = t.run('exec', '-w', 'h[0-7],gate', '-b', 'case $H in h3) echo odd;; *) echo same; echo more >&2;; esac')
    rule = '-' * 15
    t.check('what is the same is shown once',
            r.out == f'{rule}\nh[0-2,4-7],gate (8)\n{rule}\nsame\nmore\n{rule}\nh3\n{rule}\nodd\n', r)
    r = t.run('exec', '-w', 'h[0-1]', 'umask; pwd')
    t.check('first steps do not show in the command', r.out.count(': 0022') == 2, r)


def first_time(t):
    """A host that has no helper yet and one that has are not to be told apart."""
    said = [t.run('exec', '-w', 'fresh', '-N', 'umask; pwd; echo $0; env | grep -v "^_="') for _ in range(2)]
    t.check('the second time is as the first', said[0].out == said[1].out and said[0].status == 0, said)
    cache = os.listdir(t.path('homes/fresh/.cache/storm'))
    t.check('only the helper is kept', len(cache) == 1 and cache[0].startswith('hop-'), cache)


HELPER = '0123456789abcdef' * 4


def aged(path, days):
    """An empty file that was last changed so long ago."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o700))
    then = time.time() - days * 86400
    os.utime(path, (then, then))


def old_helpers(t):
    """A helper that comes to a host takes those away that nobody has used for a month."""
    cache = t.path('homes/stale/.cache/storm')
    r = t.run('exec', '-w', 'stale', 'true')
    ours, = os.listdir(cache)
    for name, days in ((f'hop-{HELPER}', 31), (f'hop-{HELPER[::-1]}', 29), ('hop-notes', 400), ('.hop-somewhere-1', 31),
                       ('other', 400)):
        aged(f'{cache}/{name}', days)
        if t.user:
            os.chown(f'{cache}/{name}', NOBODY, NOBODY)
    before = sorted(os.listdir(cache))
    aged(f'{cache}/{ours}', 29)
    r = t.run('exec', '-w', 'stale', 'true')
    t.check('one that is used is young again', r.status == 0 and
            os.stat(f'{cache}/{ours}').st_mtime > time.time() - 86400, r)
    t.check('nothing is taken away as long as none comes', sorted(os.listdir(cache)) == before, os.listdir(cache))
    os.unlink(f'{cache}/{ours}')
    r = t.run('exec', '-w', 'stale', 'true')
    t.check('another takes the old ones away, and nothing else', sorted(os.listdir(cache)) ==
            sorted((ours, f'hop-{HELPER[::-1]}', 'hop-notes', 'other')), (os.listdir(cache), r))


def files_open(t):
    """Descriptors are as many as are allowed at all, but not for what is run."""
    def limited(soft, hard):
        return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    r = t.run('exec', '-w', 'f[0-39]', '--shape', 'flat', 'ulimit -Sn', preexec_fn=limited(64, 512))
    t.check('more hosts than a small limit allows', r.status == 0 and
            lines(r) == sorted(f'f{i}: 64' for i in range(40)), r)
    r = t.run('exec', '-w', 'f[0-39]', '--shape', 'flat', 'true', preexec_fn=limited(64, 64))
    t.check('where it cannot be raised, it is told before anything begins',
            r.status == 125 and r.is_one_line('40 hosts', '168 open files', '64 are allowed', 'shape'), r)
    r = t.run('exec', '-w', 'f[0-39]', '--shape', 'k-ary', 'true', preexec_fn=limited(64, 64))
    t.check('and another shape does without', r.status == 0, r)


def as_json(t):
    trouble(t, 'h1', 'echo no way >&2; exit 1\n')
    r = t.run('exec', '-w', 'h[0-3]', '--json',
              r'case $H in h0) printf "a\"\n\377"; echo b >&2;; h2) exit 7;; h3) kill -9 $$;; esac')
    mend(t)
    try:
        d = json.loads(r.out)
    except ValueError as e:
        t.check('JSON', False, f'{e}: {r}')
        return
    hosts = {h.pop('host'): h for h in d['hosts']}
    t.check('every host is there', list(hosts) == ['h0', 'h1', 'h2', 'h3'], r)
    t.check('output and errors', hosts['h0']['output'].startswith('a"\n') and hosts['h0']['error'] == 'b\n', r)
    t.check('how each has ended', [(h['state'], h['status']) for h in hosts.values()] ==
            [('exited', 0), ('not reached', 125), ('exited', 7), ('killed', 137)], r)
    t.check('and why not', hosts['h1'].get('reason') == 'no way' and 'reason' not in hosts['h0'], r)
    t.check('the status is in it too', d['status'] == r.status == 125, r)
    t.check('nothing else is said', r.err == '', r)


def status(t):
    r = t.run('exec', '-w', 'h[0-4]', 'exit ${H#h}')
    t.check('the highest of all', r.status == 4 and 'storm: h4: exit 4' in r.err and 'h0' not in r.err, r)
    r = t.run('exec', '-w', 'h[0-4]', '-q', 'exit ${H#h}')
    t.check('silently, if one likes', r.status == 4 and r.err == '', r)
    r = t.run('exec', '-w', 'h[0-2]', 'kill -USR1 $$')
    t.check('a signal', r.status == 128 + signal.SIGUSR1 and r.is_one_line('h[0-2]', 'signal 10'), r)
    trouble(t, 'h1', 'export SHELL=/no/such/shell\n')
    r = t.run('exec', '-w', 'h[0-2]', 'true; true')   # what is plain needs no shell
    mend(t)
    t.check('a shell that is not there', r.status == 126 and r.is_one_line('h1', 'not run', 'No such file'), r)
    r = t.run('exec', '-w', 'h[0-2]', '-u', '4s', f'test $H = h0 || sleep {MARK}')
    t.check('one that takes too long', r.status == 124 and r.is_one_line('h[1-2]', 'too long'), r)
    t.check('is ended', gone(t), t.ours(MARK))


def hosts_named(t):
    r = t.run('exec', '-w', 'h[0-5]', '-x', 'h[1-4]', 'echo')
    t.check('but not there', lines(r) == ['h0: ', 'h5: '], r)
    name = t.write('hosts', '# these\nh[0-1] switch=a\nh2 switch=b # one\nh3\n')
    r = t.run('exec', '-w', f'@{name},h9', '-x', 'h3', 'echo')
    t.check('from a file', lines(r) == ['h0: ', 'h1: ', 'h2: ', 'h9: '], r)
    r = t.run('exec', '-w', 'h1,h[0-2],h1', 'echo')
    t.check('each once', lines(r) == ['h0: ', 'h1: ', 'h2: '], r)


def shapes(t):
    """The tree that each shape makes, as the connectors have written it down."""
    n = 15
    for shape in ('adaptive', 'binomial', 'k-ary', 'chain', 'flat'):
        t.write('reached', '')
        r = t.run('exec', '-w', f'h[0-{n - 1}]', '--shape', shape, 'echo')
        t.check(f'{shape}: all of them', lines(r) == sorted(f'h{i}: ' for i in range(n)) and r.status == 0, r)
        ways = [line.split() for line in t.read('reached').splitlines()]
        of = collections.Counter(parent for parent, _ in ways)
        t.check(f'{shape}: each was reached once', sorted(c for _, c in ways) == sorted(f'h{i}' for i in range(n)), ways)
        right = {'adaptive': True, 'binomial': of['desk'] == 4, 'k-ary': max(of.values()) == 2 == of['desk'],
                 'chain': max(of.values()) == 1, 'flat': of['desk'] == n}[shape]
        t.check(f'{shape}: by its own way', right, of)
    t.write('reached', '')
    t.run('exec', '-w', f'h[0-{n - 1}]', '--shape', 'k-ary', '-f', '3', 'echo')
    of = collections.Counter(line.split()[0] for line in t.read('reached').splitlines())
    t.check('three children each', max(of.values()) == 3 == of['desk'], of)


# ---- what is read ----

def stdin(t):
    data = bytes(i * i * 31 >> 3 & 255 for i in range(1 << 16)) * 64   # 4 MiB
    digest = hashlib.sha256(data).hexdigest()
    for shape in ('adaptive', 'chain', 'flat'):
        r = t.run('exec', '-w', 'h[0-4]', '--stdin', 'all', '--shape', shape,
                  'if [ $H = h3 ]; then sleep 0.5; while dd bs=64k count=8 2>/dev/null | grep -qa .; do sleep 0.02; '
                  'done | wc -c; else sha256sum; fi' if shape == 'flat' else
                  'case $H in h2) (dd bs=1k count=1 2>/dev/null; sleep 1; cat) | sha256sum;; *) sha256sum;; esac',
                  data=data)
        right = [f'h{i}: {digest}  -' for i in range(5) if shape != 'flat' or i != 3]
        t.check(f'{shape}: all read all of it, the slow one too', set(right) <= set(lines(r)), r)
    with open(t.path('data'), 'wb') as f:
        f.write(data)
    for name in ('h0', 'h4'):
        with open(t.path('data'), 'rb') as f:
            r = t.run('exec', '-w', 'h[0-4]', '--stdin', name, '--shape', 'chain', 'wc -c; sha256sum', stdin=f)
        t.check(f'only {name}, from a file', f'{name}: {len(data)}' in lines(r) and
                sum(line.endswith(': 0') for line in lines(r)) == 4, r)
    r = t.run('exec', '-w', 'h[0-4]', 'wc -c', data=data)
    t.check('nobody, if not told', all(line.endswith(': 0') for line in lines(r)), r)
    r = t.run('exec', '-w', 'h[0-4]', '--stdin', 'all', 'echo', data=data)
    t.check('commands that do not read', len(lines(r)) == 5 and r.status == 0, r)
    r = t.run('exec', '-w', 'h[0-1]', '--stdin', 'h1', 'cat', data=b'')
    t.check('nothing to read', r.out == '' and r.status == 0, r)


def stdin_closed(t):
    """A command that has closed its input, and goes on, holds up nobody: those that read end before it does."""
    data = b'a line\n' + b'0123456789abcdef' * (1 << 17)   # 2 MiB
    rest = [f'h{i}: {hashlib.sha256(data).hexdigest()}  -\n' for i in (0, 1, 3)]
    for shape in ('flat', 'chain'):
        for when in ('before anything comes', 'in the midst of it'):
            go = t.path('go on')
            p = t.start('exec', '-w', 'h[0-3]', '--stdin', 'all', '--shape', shape,
                        'case $H in h2) %s exec <&-; echo closed; until [ -e "%s" ]; do sleep 0.1; done; echo late;; '
                        '*) sha256sum;; esac' % ('read x;' if when.startswith('in') else '', go))
            stuck = threading.Timer(60, p.kill)
            stuck.start()
            early = [] if when.startswith('in') else [p.stdout.readline().decode()]
            threading.Thread(target=lambda: (p.stdin.write(data), p.stdin.close()), daemon=True).start()
            early += [p.stdout.readline().decode() for _ in range(4 - len(early))]
            stuck.cancel()
            t.write('go on', '')
            t.check(f'{shape}, {when}: the others have read all', sorted(early) == sorted(rest + ['h2: closed\n']), early)
            late = p.stdout.read()
            t.check(f'{shape}, {when}: then it', late == b'h2: late\n' and p.wait() == 0, late)
            os.unlink(go)


def full(t, pipe):
    """Until a pipe that we read from takes no more: whoever writes to it waits."""
    other = os.open(f'/proc/self/fd/{pipe.fileno()}', os.O_WRONLY | os.O_NONBLOCK)
    try:
        return t.until(lambda: not select.select([], [other], [], 0)[1])
    finally:
        os.close(other)


def silence(t):
    """A host stands still, from after now, until it is given up: for longer than anybody may be silent."""
    p = t.start('exec', '-w', 'still', f'echo up; exec sleep {MARK}')
    t.check('it is there', p.stdout.readline() == b'still: up\n')
    for pid in helpers(t, 'still'):
        os.kill(pid, signal.SIGSTOP)
    return t.finish(p)


def large_output(t):
    """More than anybody keeps, to somebody who does not read for a while."""
    script = 'seq 1 1500000'   # 11 MB
    expected = hashlib.sha256(b''.join(b'%d\n' % i for i in range(1, 1500001))).hexdigest()
    p = t.start('exec', '-w', 'h[0-2]', '--shape', 'chain', script)
    t.check('everything fills up', full(t, p.stdout))
    r = t.finish(p)
    of = {f'h{i}'.encode(): hashlib.sha256() for i in range(3)}
    strange = []
    for line in r.raw.splitlines(keepends=True):
        host, _, rest = line.partition(b': ')
        of[host].update(rest) if host in of else strange.append(line)
    t.check('nothing is lost, nothing is mixed up', not strange and
            {h.hexdigest() for h in of.values()} == {expected}, (strange[:3], r.status, len(r.raw), r.err))
    r = t.run('exec', '-w', 'h0', '-N', 'head -c 30000000 /dev/zero; echo end')
    t.check('bytes as they are', r.raw == b'\0' * 30000000 + b'end\n', len(r.raw))
    p = t.start('exec', '-w', 'h[0-2]', '--shape', 'chain', '-t', '5s', script)
    t.check('it waits for somebody to read', full(t, p.stdout))
    r = silence(t)
    t.check('meanwhile somebody is given up because of silence', r.status == 125 and r.is_one_line(
        'still: ', 'no answer for 20 s'), r)
    r = t.finish(p)
    t.check('who does not read loses nobody', r.status == 0 and len(r.raw) == 3 * (10888896 + 4 * 1500000), r.err)
    p = t.start('exec', '-w', 'h[0-2]', f'yes {MARK}')
    p.stdout.readline()
    p.stdout.close()
    p.stdout = None
    t.check('somebody who reads no more ends it', t.until(lambda: p.poll() is not None, 60), p.poll())
    p.kill()
    p.wait()
    p.stderr.close()
    p.stdin.close()
    t.check('everywhere', gone(t), t.ours(MARK))


# ---- ends ----

# Its shell and its sleep are in one session; another has left it, and takes no notice of requests.
STUBBORN = f"setsid sh -c 'trap \"\" TERM INT HUP; sleep {MARK}' >/dev/null 2>&1 & echo up; sleep {MARK}; true"


def running(t, n, *args, command=STUBBORN):
    p = t.start('exec', '-w', f'h[0-{n - 1}]', *args, command)
    up = [p.stdout.readline() for _ in range(n)]
    t.check(f'it runs on all {n}', all(line.endswith(b': up\n') for line in up), up)
    return p


def interrupted(t):
    for number in (signal.SIGINT, signal.SIGTERM):
        p = running(t, 5, '--shape', 'chain', command=f'echo up; sleep {MARK}; true')
        p.send_signal(number)
        r = t.finish(p)
        t.check(f'{number.name}: the status', r.status == 128 + number, r)
        t.check(f'{number.name}: nothing is left', gone(t), t.ours(MARK))
    p = running(t, 3, command=f'trap "" INT TERM; echo up; while :; do sleep {MARK}; done')
    p.send_signal(signal.SIGINT)
    r = t.finish(p)
    t.check('nor of what does not listen', r.status == 130 and gone(t), (r, t.ours(MARK)))
    trouble(t, 'h0', f'sleep {MARK}\n')
    p = t.start('exec', '-w', 'h[0-3]', '--shape', 'chain', f'touch {t.path("begun")}')
    t.until(lambda: t.ours(MARK))
    p.send_signal(signal.SIGINT)
    r = t.finish(p)
    mend(t)
    t.check('whoever was not reached never begins', r.status == 130 and not os.path.exists(t.path('begun')), r)
    t.check('and nothing is left', gone(t), t.ours(MARK))


def killed(t):
    for shape in ('adaptive', 'chain', 'flat'):
        p = running(t, 5, '--shape', shape)
        p.kill()
        t.finish(p)
        t.check(f'{shape}: storm is killed, nothing is left', gone(t), t.ours(MARK))


def helper_killed(t):
    """h0 - h1 - h2 - h3. Without h1 those behind it are lost."""
    go = t.path('go')
    p = running(t, 4, '--shape', 'chain', command=f'echo up; until [ -e {go} ]; do sleep 0.1; done; echo on')
    found = helpers(t, 'h1')
    t.check('it is there', len(found) == 1, found)
    for pid in found:
        os.kill(pid, signal.SIGKILL)
    complaints = [p.stderr.readline().decode() for _ in range(3)]
    t.check('who is lost is named', sorted(c[:len('storm: h0: lost')] for c in complaints) ==
            [f'storm: h{i}: lost' for i in (1, 2, 3)], complaints)
    t.check('and where it broke', all('broke at h1' in c for c in complaints if not c.startswith('storm: h1')) and
            any('h1: lost: the connection broke' in c for c in complaints), complaints)
    t.check('behind it nothing goes on', t.until(lambda: not helpers(t, 'h2') and not helpers(t, 'h3'), 60))
    t.write('go', '')
    r = t.finish(p)
    t.check('the other does', r.out == 'h0: on\n' and r.status == 125, r)


# ---- connectors ----

def connectors(t):
    trouble(t, 'h1', 'echo first >&2; echo no way in >&2; exit 3\n')
    trouble(t, 'h2', 'exit 9\n')
    r = t.run('exec', '-w', 'h[0-4]', 'echo')
    t.check('one fails, with words or without', r.status == 125 and 'storm: h1: not reached: no way in\n' in r.err and
            'storm: h2: not reached: the remote shell ended with status 9\n' in r.err, r)
    t.check('the others are reached', lines(r) == ['h0: ', 'h3: ', 'h4: '], r)
    mend(t)
    trouble(t, 'h1', f'sleep {MARK}\n')
    trouble(t, 'h3', f'trap "" TERM; sleep {MARK}; sleep {MARK}\n')
    for shape in ('adaptive', 'chain'):
        r = t.run('exec', '-w', 'h[0-4]', '-t', '5s', '--shape', shape, 'echo')
        t.check(f'{shape}: one hangs', r.status == 125 and 'storm: h1: not reached: no answer for 5 s\n' in r.err and
                'storm: h3: not reached: no answer for 5 s\n' in r.err, r)
        t.check(f'{shape}: the others do not', lines(r) == ['h0: ', 'h2: ', 'h4: '], r)
        t.check(f'{shape}: nothing is left', gone(t), t.ours(MARK))
    mend(t)
    trouble(t, 'h1', 'echo; echo Welcome to $1; yes storm-hop | head -500; printf "title "\n')
    shutil.rmtree(t.path('homes/h1'))
    for time_ in ('the first', 'the second'):
        r = t.run('exec', '-w', 'h[0-2]', 'echo')
        t.check(f'noise before a greeting, {time_} time', lines(r) == ['h0: ', 'h1: ', 'h2: '] and r.status == 0, r)
    trouble(t, 'h1', 'yes\n')
    r = t.run('exec', '-w', 'h[0-2]', 'echo')
    t.check('nothing but noise', r.status == 125 and r.is_one_line('h1', 'no shell'), r)
    mend(t)
    trouble(t, 'h1', f'sleep {MARK} & echo gone >&2; exit 1\n')
    r = t.run('exec', '-w', 'h[0-2]', 'echo')
    mend(t)
    t.check('one that leaves somebody behind', r.status == 125 and r.is_one_line('h1', 'gone') and
            len(lines(r)) == 2, r)
    for pid in t.ours(MARK):
        os.kill(pid, signal.SIGKILL)
    r = t.run('exec', '-w', 'h0', '--connector', '/no/such/connector', 'echo')
    t.check('one that is not there', r.status == 125 and
            r.is_one_line('h0: not reached: cannot start /no/such/connector: No such file'), r)
    words = f"env X=%h%% {t.path('connector')} %h %c"
    r = t.run('exec', '-w', 'h[0-1]', '--connector', words, 'echo $X')
    t.check('its signs', lines(r)[0] == 'h0: h0%', r)


def files(t):
    """Before the command and after it, through the same tree."""
    big = os.urandom(5_000_000)
    with open(t.path('big'), 'wb') as f:
        f.write(big)
    os.chmod(t.path('big'), 0o754)
    t.write('empty', '')
    t.write('script', '#!/bin/sh\necho "I am $H"\n', 0o755)
    digest = hashlib.sha256(big).hexdigest()
    for shape in ('adaptive', 'binomial', 'k-ary', 'chain', 'flat'):
        r = t.run('exec', '-w', 'h[0-6]', '--shape', shape, '--put', f'{t.path("big")}:there-{shape}', '--put',
                  f'{t.path("empty")}:./', f'sha256sum <there-{shape}; stat -c %a there-{shape}; stat -c %s empty; ls -A')
        of = {line.partition(': ')[0] for line in lines(r) if digest in line}
        t.check(f'{shape}: it is there before the command begins', len(of) == 7 and r.status == 0, r)
        t.check(f'{shape}: with its mode, an empty one too, and nothing else', r.out.count(': 754\n') == 7 and
                r.out.count(': 0\n') == 7 and '.storm-' not in r.out, r)
    r = t.run('exec', '-w', 'h[0-4]', '--put', f'{t.path("script")}:script', './script')
    t.check('a program that is sent runs', lines(r) == [f'h{i}: I am h{i}' for i in range(5)], r)
    r = t.run('exec', '-w', 'h[0-4]', '--shape', 'chain', '--put', f'{t.path("big")}:no/such/folder/file', 'true')
    t.check('no folder for it: named, with the reason', r.status == 126 and r.err.count('not run') == 5 and
            'No such file' in r.err, r)
    t.run('exec', '-w', 'h1', 'mkdir taken')
    r = t.run('exec', '-w', 'h[0-4]', '--shape', 'chain', '--put', f'{t.path("big")}:taken', 'sha256sum <taken')
    t.check('one cannot have it, and is named', r.status == 126 and r.is_one_line('h1', 'not run', 'taken'), r)
    t.check('those behind it have it all the same', r.out.count(digest) == 4, r)
    r = t.run('exec', '-w', 'h[0-4]', '--shape', 'chain', '--stdin', 'all', '--put', f'{t.path("script")}:taken', 'sha256sum', data=big)
    t.check('and all of the input', r.out.count(digest) == 4, r)
    r = t.run('exec', '-w', 'h[0-4]', '--shape', 'chain', '--put', f'{t.path("big")}:cut', ': >cut; wc -c <cut')
    t.check('a command may change its file at once: nobody waits for ever', r.status in (0, 126), r)
    with open('/dev/full', 'wb') as full:
        r = t.run('exec', '-w', 'h[0-1]', 'echo x', stdout=full)
    t.check('output that cannot be written is told', r.status == 125 and 'No space left' in r.err, r)
    t.run('exec', '-w', 'h[0-4]', 'mkdir -p out/deep; echo $H >out/a; head -c 300000 /dev/zero >out/deep/b; '
          'ln -sf /etc/passwd out/link; echo x >alone-$H')
    got = t.path('got')
    r = t.run('exec', '-w', 'h[0-4]', '--get', f'out:{got}', '--get', f'alone-*:{got}', 'true')
    ours = all(open(f'{got}/h{i}/out/a').read() == f'h{i}\n' and os.path.getsize(f'{got}/h{i}/out/deep/b') == 300000 and
               os.path.exists(f'{got}/h{i}/alone-h{i}') and not os.path.lexists(f'{got}/h{i}/out/link') for i in range(5))
    t.check('folders and patterns come back, each host into its own', r.status == 0 and ours, r)
    t.run('exec', '-w', 'h[0-1]', 'for d in d1 d2; do mkdir -p $d/in; echo $d >$d/in/result; done')
    r = t.run('exec', '-w', 'h[0-1]', '--get', f'd*/in/result:{got}', 'true')
    ours = all(open(f'{got}/h{i}/d{k}/in/result').read() == f'd{k}\n' for i in range(2) for k in (1, 2))
    t.check('of a pattern amid a path none takes the place of another', r.status == 0 and ours, r)
    r = t.run('exec', '-w', 'h[0-1]', '--get', f'missing:{got}', 'true')
    t.check('what is not there is told', r.status == 125 and r.err.count('not fetched') == 2 and 'No such file' in r.err, r)
    r = t.run('exec', '-w', 'h0', '--put', 'nothing', 'true')
    t.check('how --put is said', r.status == 2 and 'FILE:PATH' in r.err, r)
    r = t.run('exec', '-w', 'h0', '--put', '/no/such/file:x', 'true')
    t.check('a file that is not here', r.status == 125 and 'No such file' in r.err, r)
    r = t.run('exec', '-w', 'h0', '--get', 'x:', 'true')
    t.check('how --get is said', r.status == 2 and 'PATH:DIR' in r.err, r)


def half_a_file(t):
    """The first megabytes come, then nothing: what is there when storm goes is not left."""
    with open(t.path('large'), 'wb') as f:
        f.write(os.urandom(8_000_000))
    t.write('some', 'import os\nleft = 4_000_000\nwhile got := os.read(0, 65536):\n    left -= os.write(1, got[:left]) if left > 0 else 0\n')
    trouble(t, 'h1', f'cd "$HOME"; python3 {t.path("some")} | sh -c "$2"; exit\n')

    def parts():
        return glob.glob(t.path('homes/h1/half*'))

    for number in (signal.SIGINT, signal.SIGKILL):
        p = t.start('exec', '-w', 'h[0-1]', '--shape', 'flat', '--put', f'{t.path("large")}:half', 'true')
        t.check('it comes', t.until(lambda: any(os.path.getsize(path) > 1_000_000 for path in parts())), parts())
        p.send_signal(number)
        t.finish(p)
        t.check(f'{number.name}: half a file is not left', t.until(lambda: parts() == []) and gone(t), parts())
    mend(t)


def usage(t):
    for args, words in ((('-w', 'h0'), 'which command'), (('true',), 'say -w HOSTS'),
                        (('-w', 'h[', 'true'), 'h['), (('-w', '@/no/file', 'true'), '/no/file'),
                        (('-w', 'h0', '-x', 'h0', 'true'), 'no host that is left'),
                        (('-w', 'h0', '--shape', 'star', 'true'), 'there is no shape "star"'),
                        (('-w', 'h0', '--stdin', 'h1', 'true'), 'none of the hosts'),
                        (('-w', 'h0', '--connector', "a 'b", 'true'), 'quote'),
                        (('-w', 'h0', '--connector', ' ', 'true'), 'no words'),
                        (('-w', 'h0', '-l', 'me', 'true'), '--user is for ssh'),
                        (('-w', 'h0', '-u', 'soon', 'true'), 'soon'),
                        (('-w', 'h0', 'x' * 50000), 'longer than')):
        r = t.run('exec', *args)
        t.check(f'refused: {words}', r.status == 2 and r.is_one_line(words), r)
    r = t.run('exec', '--help')
    t.check('help', r.status == 0 and '--shape' in r.out, r)


# ---- real ones ----

def ssh(t):
    why = no_machines(t)
    if why is not None:
        t.skip('through ssh', why)
        return
    m = Machines(t, 8)
    try:
        on_machines(t, m)
    finally:
        m.do('down')


def on_machines(t, m):
    look = 'hostname; stat -c "%i %Z" .cache/storm/hop-*; ls -A .cache/storm | wc -l'
    said = [m.storm('exec', '-w', 'h[0-1]', look) for _ in range(2)]
    t.check('two of them', said[0].status == 0 and 'h0: h0' in lines(said[0]) and 'h1: 1' in lines(said[0]), said[0])
    t.check('the helper is kept, and not sent again', lines(said[0]) == lines(said[1]), said)
    troubles = {'h2': ('dead', 'no answer for 15 s|No route to host'), 'h3': ('hang', 'no answer for 15 s'),
                'h4': ('key', 'Permission denied'), 'h5': ('full', 'No space left on device'),
                'h6': ('arch', 'its processor is vax')}
    for host, (kind, _) in troubles.items():
        m.do('break', host, kind)
    for shape in ('adaptive', 'flat'):
        r = m.storm('exec', '-w', 'h[0-7]', '-t', '15s', '--shape', shape, 'hostname')
        t.check(f'{shape}: the sound ones', lines(r) == ['h0: h0', 'h1: h1', 'h7: h7'], r)
        for host, (kind, words) in troubles.items():
            named = [line for line in r.err.splitlines() if line.startswith(f'storm: {host}: not reached: ')]
            t.check(f'{shape}: {kind} is named, with its reason', len(named) == 1 and re.search(words, named[0]), r.err)
        t.check(f'{shape}: 125', r.status == 125, r)
    for host in troubles:
        m.do('mend', host)
    for shape in ('adaptive', 'binomial', 'k-ary', 'chain', 'flat'):
        r = m.storm('exec', '-w', 'h[0-7]', '-t', '60s', '--shape', shape, 'hostname')
        t.check(f'{shape}: mended, all of them', lines(r) == [f'h{i}: h{i}' for i in range(8)] and r.status == 0, r)


if __name__ == '__main__':
    play(prepare, output, first_time, old_helpers, files_open, as_json, status, hosts_named, shapes, stdin, stdin_closed,
         large_output, interrupted, killed, helper_killed, connectors, files, half_a_file, usage, ssh, up=None)
