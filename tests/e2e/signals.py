#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Signals and ends: whoever is told to go goes, with all that it has started, and the status says so.
Speaks TAP."""
import fcntl
import json
import os
import signal
import subprocess
import sys
import termios
import time

from harness import play


def start(t, *args, ready=None, **more):
    """A storm run that is left running; returns when a process of it has made the file `ready`."""
    name = ready or 'ready'
    if os.path.exists(t.path(name)):
        os.unlink(t.path(name))
    more.setdefault('stdin', subprocess.DEVNULL)
    p = t.start('run', *args, **more)
    if not t.until(lambda: os.path.exists(t.path(name))):
        p.kill()
    return p


def job_of(t):
    rows = json.loads(t.run('ps', '--json').out)
    return rows[-1]['id'] if rows else None


def ctrl_c(t):
    p = start(t, '-N', 3, 'sh', '-c', '>ready; exec sleep 601')
    p.send_signal(signal.SIGINT)
    r = t.finish(p)
    t.check('Ctrl-C: every process gets SIGINT', r.status == 130, r)
    t.check('none is left', not t.ours('sleep 601'))
    p = start(t, '-N', 2, 'sh', '-c', "trap 'echo $STORM_RANK caught; exit 0' INT; >ready; while :; do sleep 0.05; done")
    time.sleep(0.3)
    p.send_signal(signal.SIGINT)
    r = t.finish(p)
    t.check('a program may end well on Ctrl-C', r.status == 0 and
            sorted(r.out.splitlines()) == ['0 caught', '1 caught'], r)
    p = start(t, '-N', 2, 'sh', '-c', "trap '' INT; >ready; while :; do sleep 602; done")
    time.sleep(0.3)
    p.send_signal(signal.SIGINT)
    t.check('a deaf program: a line says how to go on', b'again within' in p.stderr.readline())
    p.send_signal(signal.SIGINT)
    r = t.finish(p)
    t.check('Ctrl-C twice kills', r.status == 130, r)
    t.check('everything', t.until(lambda: not t.ours('sleep 602'), 5))
    p = start(t, 'sh', '-c', "trap '' INT; >ready; while :; do sleep 603; done")
    p.send_signal(signal.SIGINT)
    r = t.finish(p)
    t.check('Ctrl-C once and a grace kill too', r.status == 130 and not t.ours('sleep 603'), r)
    p = start(t, 'sh', '-c', "trap '' INT TERM; >ready; while :; do sleep 603; done")
    p.send_signal(signal.SIGTERM)
    r = t.finish(p)
    t.check('a command that is asked to end ends its job', r.status == 143, r)
    t.check('also one that is deaf', t.until(lambda: not t.ours('sleep 603'), 15))


def unread(t):
    """Nobody reads what the job has written, and the pipe is full."""
    for sig, status in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
        reader, writer = os.pipe()
        p = start(t, '-N', 3, 'sh', '-c', '>ready; exec cat /dev/zero', stdout=writer)
        os.close(writer)
        full = fcntl.fcntl(reader, fcntl.F_GETPIPE_SZ)
        t.until(lambda: int.from_bytes(fcntl.ioctl(reader, termios.FIONREAD, bytes(4)), sys.byteorder) >= full)
        p.send_signal(sig)
        r = t.finish(p)
        t.check(f'a command that nobody reads from ends on {sig.name}', r.status == status, r)
        os.close(reader)


def kill(t):
    p = start(t, '-N', 2, 'sh', '-c',
              "trap 'echo got-usr1; exit 7' USR1; >ready; while :; do sleep 0.05; done")
    time.sleep(0.3)
    r = t.run('kill', '-s', 'USR1', job_of(t))
    t.check('kill -s', r.status == 0, r)
    r = t.finish(p)
    t.check('the signal arrives', r.status == 7 and r.out == 'got-usr1\n' * 2, r)
    p = start(t, '-N', 2, 'sh', '-c', "trap '' TERM INT HUP; >ready; while :; do sleep 604; done")
    job = job_of(t)
    r = t.run('kill', job)
    t.check('kill', r.status == 0, r)
    r = t.finish(p)
    t.check('one that ignores SIGTERM is killed', r.status in (137, 143) and
            r.is_one_line('killed'), r)
    t.check('and gone', not t.ours('sleep 604'))
    r = t.run('kill', job)
    t.check('killing what is over', r.status in (0, 125), r)
    r = t.run('kill', '-s', 'NONSENSE', job)
    t.check('a signal that there is not', r.status == 2 and r.is_one_line('NONSENSE'), r)
    r = t.run('kill', 4711)
    t.check('a job that there is not', r.status == 125 and r.is_one_line('4711'), r)
    a = t.run('submit', '-N', 6, 'sleep', '605').out.strip()
    b = t.run('submit', '-N', 6, 'sleep', '605').out.strip()
    r = t.run('kill', b)
    s = t.run('show', b, '--json')
    t.check('a job that waits is killed too', r.status == 0 and
            json.loads(s.out)['state'] == 'killed', (r, s))
    t.run('kill', a)
    r = t.run('wait', a, b)
    t.check('wait of several: the highest status', r.status in (137, 143), r)
    many = t.run('submit', '--array', '1-9000', '-N', 6, 'sleep', '605').out.strip()
    r = t.run('kill', many)
    t.check('thousands at once', r.status == 0 and not r.err and '-' in many, (many, r))
    t.check('all of them', t.until(lambda: job_of(t) is None), t.run('ps'))


def limit(t):
    r = t.run('run', '-N', 2, '-t', '1', 'sleep', '606')
    t.check('--time', r.status == 124 and r.is_one_line('time limit'), r)
    r = t.sh("trap '' TERM; while :; do sleep 607; done", '-t', '1')
    t.check('--time and a deaf program', r.status == 124 and not t.ours('sleep 607'), r)


def deaths(t):
    r = t.sh("if [ $STORM_RANK = 1 ]; then kill -9 $$; fi;"
             "trap 'echo $STORM_RANK told; exit 0' TERM; while :; do sleep 0.1; done", '-N', 3)
    t.check('a process killed by a signal ends its job: SIGTERM for the rest', r.status == 137 and
            sorted(r.out.splitlines()) == ['0 told', '2 told'], r)
    t.check('and a line says who', 'rank 1 on n1 killed by signal 9' in r.err.splitlines()[-1], r)
    r = t.sh("[ $STORM_RANK = 0 ] && kill -SEGV $$; trap '' TERM; while :; do sleep 608; done", '-N', 2)
    t.check('SIGKILL for those that ignore it', r.status == 139 and not t.ours('sleep 608'), r)
    r = t.sh('[ $STORM_RANK = 1 ] && exit 3; sleep 609', '-N', 3, '--kill-on-bad-exit')
    t.check('--kill-on-bad-exit', r.status == 3 and not t.ours('sleep 609'), r)
    r = t.sh('[ $STORM_RANK = 1 ] && exit 3; sleep 0.5; echo late', '-N', 2)
    t.check('without it the rest goes on', r.status == 3 and r.out == 'late\n', r)
    r = t.sh('exit $((STORM_RANK * 20))', '-N', 6)
    t.check('the highest status counts', r.status == 100, r)


def strays(t):
    r = t.sh('setsid sh -c "sleep 610 & sleep 610 &" & sleep 0.2; echo over', '-N', 2)
    t.check('a double fork does not hold the job up', r.status == 0 and r.out == 'over\n' * 2, r)
    t.check('and is gone when the job is', not t.ours('sleep 610'))
    r = t.sh('i=0; while [ $i -lt 40 ]; do setsid sh -c "trap \\"\\" TERM HUP INT; sleep 611 & sleep 611" '
             '>/dev/null 2>&1 & i=$((i+1)); done', '-N', 2)
    t.check('many of them', r.status == 0 and not t.ours('sleep 611'), (r, t.ours('sleep 611')))
    p = start(t, 'sh', '-c', 'setsid sh -c "trap \\"\\" TERM INT; >ready; while :; do sleep 612; done" & sleep 612')
    p.send_signal(signal.SIGINT)
    time.sleep(0.2)
    p.send_signal(signal.SIGINT)
    t.finish(p)
    t.check('Ctrl-C twice reaches those that hide', t.until(lambda: not t.ours('sleep 612'), 5))


# Generations that live for an instant, each in a session of its own, for two seconds at most. Each leaves a
# byte. Nobody who looks for them one by one finds the last.
CHAIN = '''
import os, time
end = time.monotonic() + 2
beat = os.open('chain', os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
if os.fork() == 0:
    while time.monotonic() < end:
        os.setsid()
        os.write(beat, b'x')
        if os.fork():
            os._exit(0)
    os._exit(0)
while os.fstat(beat).st_size < 20:
    time.sleep(0.001)
'''

# At most some hundred processes, which do not want to go.
BOMB = '''
import os, signal, time
for s in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(s, signal.SIG_IGN)
for _ in range(7):
    os.fork()
    os.setsid() if os.getpid() != os.getpgrp() else None
open('bomb', 'a').write('x')
time.sleep(616)
'''


def stubborn(t, *where):
    """What is hardest to end is gone when the job is said to be; on the cluster that `where` names."""
    for name in ('chain', 'bomb'):
        if os.path.exists(t.path(name)):
            os.unlink(t.path(name))
    r = t.run('run', *where, 'python3', '-c', CHAIN)
    size = len(t.read('chain'))
    time.sleep(0.2)  # were it there it would leave a hundred bytes
    t.check('a chain that forks away all the time is gone', r.status == 0 and size >= 20 and
            len(t.read('chain')) == size, r)
    p = t.start('run', *where, 'python3', '-c', BOMB, stdin=subprocess.DEVNULL)
    t.check('a bomb of some hundred processes', t.until(lambda: len(t.read('bomb')) == 128))
    p.send_signal(signal.SIGINT)
    time.sleep(0.2)
    p.send_signal(signal.SIGINT)
    r = t.finish(p)   # the prompt is back within a second, also where so many need longer to go
    t.check('is gone', (r.status == 130 or 'still ending' in r.err) and
            t.until(lambda: not t.ours('time.sleep(616)') and not t.run('ps', *where, '--json').out.strip('[] \n')), r)
    if os.path.exists(t.path('ready')):
        os.unlink(t.path('ready'))
    p = t.start('run', *where, 'sh', '-c', 'setsid sh -c "trap \\"\\" TERM INT; (sleep 617 & sleep 617) & >ready; sleep 617" & sleep 617')
    t.until(lambda: os.path.exists(t.path('ready')) and len(t.ours('sleep 617')) >= 4)
    os.kill(t.daemon('storm-pl n0', where[1] if where else 'local'), signal.SIGKILL)
    r = t.finish(p)
    t.check('its launcher is killed: none of them is left', r.status == 125 and
            t.until(lambda: not t.ours('sleep 617'), 5), r)


def confined(t):
    """What holds a job together can be chosen; what is to be had is said, and true."""
    up = t.run('up', '-v').out
    strong = 'none escapes' in up
    t.check('up says what holds', strong or 'one that hides may escape' in up, up)
    if strong:
        stubborn(t)
    else:
        t.skip('strong', 'neither control groups nor pid namespaces here')
    r = t.run('up', '--cluster', 'spaces', '--local', 2, '--confine', 'namespace', '-v')
    if r.status == 0:
        t.check('pid namespaces', 'by pid namespaces: none escapes' in r.out, r)
        stubborn(t, '--cluster', 'spaces')
        r = t.run('run', '--cluster', 'spaces', 'sh', '-c', 'grep -h ^Cap[PEA] /proc/self/status; id -u; id -g')
        ids = '\n'.join([str(os.stat(t.home).st_uid)] * 2) + '\n'
        t.check('one is who one was', r.out.endswith(ids), r)
        t.check('and has no more power', not t.user or
                all(int(line.split()[1], 16) == 0 for line in r.out.splitlines()[:3]), r)
        r = t.run('run', '--cluster', 'spaces', '-N', 2, 'sh', '-c', 'echo $$')
        t.check('numbers of processes differ', len(set(r.out.split())) == 2, r)
        t.run('down', '--cluster', 'spaces')
    else:
        t.check('no pid namespaces: why', r.status == 125 and r.is_one_line('namespaces cannot be'), r)
    if t.user:
        r = t.run('up', '--cluster', 'groups', '--confine', 'cgroup')
        t.check('no control groups: why', r.status == 125 and r.is_one_line('control groups cannot be'), r)


def weaker(t, name):
    """On a cluster where jobs are held together by their launcher alone: what still holds."""
    r = t.run('run', '--cluster', name, '-N', 2, 'sh', '-c',
              'setsid sh -c "trap \\"\\" TERM; sleep 618 & sleep 618 &" & sleep 0.2; echo over')
    t.check('a double fork is gone when the job is', r.status == 0 and r.out == 'over\n' * 2 and
            not t.ours('sleep 618'), r)
    r = t.run('run', '--cluster', name, 'python3', '-c', CHAIN)
    size = -1
    while size != len(t.read('chain')):  # it may outlive the job, but not its own two seconds
        size = len(t.read('chain'))
        time.sleep(0.2)
    t.check('a chain may outlive it', r.status == 0, r)
    t.run('down', '--cluster', name)


def unconfined(t):
    r = t.run('up', '--cluster', 'weak', '--local', 2, '--confine', 'none', '-v')
    t.check('without: it is said', r.status == 0 and 'one that hides may escape' in r.out, r)
    weaker(t, 'weak')
    if not t.user:
        return
    for kind in ('user', 'pid'):
        poor = ['unshare', '--map-current-user', '--keep-caps', 'sh', '-c',
                f'echo 0 >/proc/sys/user/max_{kind}_namespaces && exec "$@"', 'sh', t.storm]
        if t.finish(t.spawn(*poor, 'version', stdout=subprocess.PIPE, stderr=subprocess.PIPE)).status != 0:
            t.skip(f'no {kind} namespaces', 'they cannot be forbidden here')
            continue
        r = t.finish(t.spawn(*poor, 'up', '--cluster', kind, '--confine', 'namespace',
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE))
        t.check(f'no {kind} namespaces: asked for', r.status == 125 and
                r.is_one_line(f'{kind} namespaces cannot be made'), r)
        r = t.finish(t.spawn(*poor, 'up', '--cluster', kind, '--local', '2', '-v',
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE))
        t.check('not asked for: it is said', r.status == 0 and 'one that hides may escape' in r.out, r)
        with open(os.path.join(t.home, kind, 'log')) as f:
            t.check('and why', f'{kind} namespaces cannot be made' in f.read())
        weaker(t, kind)


def hold(t):
    script = '>ready; while :; do echo x >>beat-$STORM_RANK; sleep 0.02; done'
    p = start(t, '-N', 3, 'sh', '-c', script)
    job = job_of(t)
    t.until(lambda: all(t.read(f'beat-{k}') for k in range(3)))

    def sizes():
        return [len(t.read(f'beat-{k}')) for k in range(3)]
    r = t.run('suspend', job)
    t.check('suspend', r.status == 0, r)
    state = json.loads(t.run('show', job, '--json').out)['state']
    time.sleep(0.3)  # it is on its way; then nothing moves any more
    before = sizes()
    time.sleep(0.5)
    t.check('no process of it moves', sizes() == before and state == 'suspended', state)
    r = t.run('resume', job)
    t.check('resume: all go on', r.status == 0 and t.until(
        lambda: all(a > b for a, b in zip(sizes(), before))), r)
    t.run('suspend', job)
    r = t.run('kill', job)
    r = t.finish(p)
    t.check('a suspended job can be killed', r.status in (137, 143), r)
    r = t.run('suspend', 4711)
    t.check('suspend a job that there is not', r.status == 125 and r.is_one_line('4711'), r)


def orphans(t):
    p = start(t, 'sh', '-c', '>ready; exec sleep 613')
    p.kill()
    p.wait()
    t.check('a job whose command was killed goes on for a while', t.ours('sleep 613') != [])
    t.check('and is ended', t.until(lambda: not t.ours('sleep 613'), 30))
    p = start(t, '--detach', 'sh', '-c', '>ready; exec sleep 614')
    job = job_of(t)
    p.kill()
    p.wait()
    time.sleep(3)
    t.check('with --detach it is not', t.ours('sleep 614') != [] and job_of(t) == job)
    r = t.run('kill', job)
    t.check('until somebody ends it', r.status == 0 and
            t.until(lambda: not t.ours('sleep 614'), 15), r)


def stopped_node(t):
    p = start(t, '-w', 'n3', 'sh', '-c', '>ready; exec sleep 615')
    job = job_of(t)
    manager = t.daemon('storm-n3')
    os.kill(manager, signal.SIGSTOP)
    try:
        p.send_signal(signal.SIGINT)
        time.sleep(0.2)
        p.send_signal(signal.SIGINT)
        r = t.finish(p)
        t.check('a node that does not answer: the prompt is back all the same', r.status == 125 and
                f'job {job} still ending on n3' in r.err, r)
        state = json.loads(t.run('show', job, '--json').out)['state']
        t.check('the job is ending', state == 'ending', state)
        row = [n for n in json.loads(t.run('nodes', '--json').out) if n['name'] == 'n3'][0]
        t.check('its processor stays held', row['used'] == 1, row)
    finally:
        os.kill(manager, signal.SIGCONT)
    t.check('until the node confirms', t.until(lambda: job_of(t) is None), t.run('ps'))
    r = t.run('run', '-w', 'n3', 'echo', 'again')
    t.check('and is used again', r.out == 'again\n', r)


def foreign(t):
    """Who enters a pid namespace of somebody else leaves orphans there, not with the launcher."""
    if t.user or 'cgroup' not in t.run('doctor').out:
        return
    host = subprocess.Popen(['unshare', '--pid', '--fork', 'sleep', '7071'])
    def first():
        with open(f'/proc/{host.pid}/task/{host.pid}/children') as f:
            return f.read().split()
    t.until(first)
    inside = first()[0]
    r = t.run('run', 'nsenter', '-t', inside, '-p', 'sh', '-c', 'sleep 7072 </dev/null >/dev/null 2>&1 & exit 3')
    t.check('an orphan in a foreign pid namespace is gone with its job', r.status == 3 and
            not t.ours('sleep 7072'), (r, t.ours('sleep 7072')))
    for pid in t.ours('sleep 7071'):
        os.kill(pid, signal.SIGKILL)
    host.wait()


play(ctrl_c, unread, kill, limit, deaths, strays, foreign, confined, unconfined, hold, orphans, stopped_node)
