#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Files to nodes when something goes wrong in the middle, and what moving them costs. Speaks TAP."""
import os
import signal
import subprocess
import time

from harness import play
from transfers import (NODES, digest, everybody, folder, have, healthy, hidden, listed, make, manager, mover, moving,
                       nodes, partial, send, strays, text, there, without, Held)

SIZE = 48 << 20
SLOWLY = ('--chunk', '4KiB', '--slots', '2')   # so that there is a middle
OTHERS = nodes(0, 1, 3, 4)


def named(r, node, *words):
    """It has failed, and says on which node and why."""
    return r.status == 1 and r.err.startswith(f'storm: cp: {node}: ') and all(w in r.err for w in words)


def again(t, path, to, what):
    """What has failed works when it is tried once more, and leaves nothing behind."""
    r = t.run('cp', *SLOWLY, path, f'all:{to}')
    t.check(f'{what}: the same again is done', r.status == 0 and not have(t, to, everybody(), path), r)
    t.check('nothing is left on the way', t.until(lambda: not strays(t, everybody()), 10), strays(t, everybody()))
    t.check('the cluster is well', t.until(lambda: healthy(t), 20))


def killed(t):
    for who, find in (('manager', manager), ('mover', mover)):
        for shape in ('chain', 'flat'):
            to = f'/{who}-{shape}'
            path = make(t, 'killed', SIZE, to)
            h = Held(t, *SLOWLY, '--tree', shape, path, f'all:{to}', near=['n2'])
            send(find(t, 'n2'), signal.SIGKILL)
            r = h.finish()
            t.check(f'the {who} of a node is killed, {shape}: it is named', h.held and named(r, 'n2'), r)
            t.check('the others have it', not have(t, to, OTHERS, path), have(t, to, OTHERS, path))
            t.check('that node has nothing under its name', not without(t, to, ['n2']))
            t.until(lambda: healthy(t), 20)
            again(t, path, to, who)


def stopped(t):
    path = make(t, 'paused', SIZE, 'short')
    h = Held(t, *SLOWLY, path, 'all:/paused', near=['n2'])
    pids = [manager(t, 'n2'), mover(t, 'n2')]
    for pid in pids:
        send(pid, signal.SIGSTOP)
    h.go()
    time.sleep(0.3)   # for so long; nobody waits for anything
    for pid in pids:
        send(pid, signal.SIGCONT)
    r = h.finish()
    t.check('a node that stops for a moment has it as well', h.held and r.status == 0 and
            not have(t, '/paused', everybody(), path), r)
    path = make(t, 'paused', SIZE, 'mover')
    h = Held(t, *SLOWLY, path, 'all:/onlymover', near=['n2'])
    pid = mover(t, 'n2')
    send(pid, signal.SIGSTOP)
    h.go()
    time.sleep(1)
    send(pid, signal.SIGCONT)
    r = h.finish()
    t.check('a mover alone that stops for a second', h.held and r.status == 0 and
            not have(t, '/onlymover', everybody(), path), r)
    for shape in ('chain', 'binomial'):
        to = f'/stopped-{shape}'
        path = make(t, 'paused', SIZE, to)
        h = Held(t, *SLOWLY, '--tree', shape, path, f'all:{to}', near=['n2'])
        pids = [manager(t, 'n2'), mover(t, 'n2')]
        for pid in pids:
            send(pid, signal.SIGSTOP)
        r = h.finish()
        t.check(f'a node that stops for long, {shape}: it is named', h.held and named(r, 'n2'), r)
        t.check('the others have it', not have(t, to, OTHERS, path))
        t.check('that node has nothing under its name', not without(t, to, ['n2']))
        for pid in pids:
            send(pid, signal.SIGCONT)
        t.check('it comes back', t.until(lambda: healthy(t), 30), t.run('nodes'))
        again(t, path, to, 'stopped')
    path = make(t, 'absent', 1 << 20)
    send(manager(t, 'n1'), signal.SIGSTOP)
    t.until(lambda: 'n1' in t.run('nodes').out and ' down' in t.run('nodes').out, 20)
    r = t.run('cp', path, 'all:/absent')
    t.check('a node that is down from the start', named(r, 'n1', 'down') and r.is_one_line() and
            not have(t, '/absent', nodes(0, 2, 3, 4), path), r)
    r = t.run('cp', path, 'n1:/absent')
    t.check('and nobody else wants it', named(r, 'n1', 'down') and r.is_one_line(), r)
    send(manager(t, 'n1'), signal.SIGCONT)
    t.until(lambda: healthy(t), 30)


def small(path, size):
    """A file system of that size over a folder; whether that was possible."""
    os.makedirs(path, exist_ok=True)
    return subprocess.run(['mount', '-t', 'tmpfs', '-o', f'size={size}', 'none', path], capture_output=True,
                          check=False).returncode == 0


def full(t):
    for part in ('root', 'spool'):
        place = folder(t, 'n3', part)
        send(mover(t, 'n3'), signal.SIGKILL)
        t.until(lambda: not mover(t, 'n3'))
        t.until(lambda: healthy(t), 20)
        if t.user or not small(place, '8m'):
            t.skip(f'a full disk below {part}', 'needs root')
            continue
        try:
            path = make(t, 'much', 32 << 20, part)
            if part == 'root':
                r = t.run('cp', path, 'all:/much')
                t.check('a full disk: the node is named, and why', named(r, 'n3', 'No space left'), r)
                t.check('the others have it', not have(t, '/much', nodes(0, 1, 2, 4), path))
                t.check('it has nothing', not without(t, '/much', ['n3']) and t.until(lambda: not hidden(t, 'n3'), 10),
                        hidden(t, 'n3'))
                r = t.run('cp', make(t, 'little', 1 << 20), 'all:/little')
                t.check('what fits is copied', r.status == 0 and
                        not have(t, '/little', everybody(), t.path('little')), r)
                h = Held(t, *SLOWLY, make(t, 'little', 7 << 20), 'n3:/little', near=['n0'], at_least=0)
                t.until(lambda: hidden(t, 'n3') or h.p.poll() is not None, 20)
                h.go()
                t.until(lambda: hidden(t, 'n3') or h.p.poll() is not None, 20)
                send(mover(t, 'n3'), signal.SIGKILL)
                h.finish()
                t.run('cp', make(t, 'less', 1000), 'n3:/less')
                t.check('hidden files of a mover that died go when the next begins',
                        t.until(lambda: not hidden(t, 'n3'), 10), hidden(t, 'n3'))
            else:
                os.chmod(path, 0o755)
                r = t.run('run', '-N', NODES, '--copy', path)
                t.check('a full cache: no job, the node is named, and why', r.status == 125 and 'n3' in r.err and
                        'No space left' in r.err, r)
                t.check('the room is given back', t.until(lambda: not partial(t, 'n3'), 10), partial(t, 'n3'))
        finally:
            send(mover(t, 'n3'), signal.SIGKILL)
            t.until(lambda: not mover(t, 'n3'))
            subprocess.run(['umount', '-l', place], check=False)
        t.check('the cluster is well', t.until(lambda: healthy(t), 20))


def more(t, before):
    """What is on its way now and was not then: what failed for a reason that may pass is kept for another try."""
    return sorted(set(strays(t, everybody())) - set(before))


def sources(t):
    before = strays(t, everybody())
    for what, change in (('shrinks', lambda f: f.truncate(1 << 20)),
                         ('is written to', lambda f: (f.seek(SIZE - 100), f.write(b'changed'))),
                         ('grows', lambda f: (f.seek(SIZE), f.write(b'x' * 100000)))):
        to = '/source'
        path = make(t, 'source', SIZE, what)
        h = Held(t, *SLOWLY, path, f'all:{to}', near=['n0'])
        with open(path, 'r+b') as f:
            change(f)
        r = h.finish()
        t.check(f'a source that {what} while it is read: said so', h.held and r.status == 1 and 'source' in r.err and
                'meanwhile' in r.err, r)
        t.check('nobody has it', not without(t, to, everybody()), without(t, to, everybody()))
    r = t.run('cp', path, f'all:{to}')
    t.check('as it is now it is copied', r.status == 0 and not have(t, to, everybody(), path), r)
    t.check('nothing is left of what will not be sent again', t.until(lambda: not more(t, before), 10), more(t, before))


def managers(t):
    before = strays(t, everybody())
    path = make(t, 'restart', SIZE)
    h = Held(t, *SLOWLY, path, 'all:/restart', near=['n1'])
    old = t.daemon('storm-mm')
    send(old, signal.SIGKILL)
    r = h.finish()
    t.check('the machine manager is killed: the command asks the next one, and it is done', h.held and
            r.status == 0 and not have(t, '/restart', everybody(), path), r)
    path = make(t, 'restart', SIZE, 'later')
    h = Held(t, *SLOWLY, path, 'all:/later', near=['n1'])
    old = t.daemon('storm-mm')
    send(old, signal.SIGKILL)
    t.until(lambda: t.daemon('storm-mm') not in (None, old))
    t.until(lambda: healthy(t), 20)
    r = h.finish()
    t.check('also if the command hears of it late', h.held and r.status == 0 and
            not have(t, '/later', everybody(), path), r)
    t.check('nothing is left on the way', t.until(lambda: not more(t, before), 10), more(t, before))


def clients(t):
    for k in range(10):   # more than there are places
        h = Held(t, *SLOWLY, make(t, 'gone', 8 << 20, k), 'all:/gone', near=['n0'], at_least=4096)
        h.p.kill()
        t.finish(h.p)
    path = make(t, 'gone', 1 << 20)
    r = t.run('cp', path, 'all:/gone')
    t.check('ten commands are killed in the middle: the next one is served', r.status == 0 and
            not have(t, '/gone', everybody(), path), r)


def flipped(t):
    path = make(t, 'flipped', SIZE)
    h = Held(t, *SLOWLY, path, 'all:/flipped', near=['n0', 'n2'], at_least=8 << 20)
    before = sum(partial(t, 'n2').values())
    h.p.send_signal(signal.SIGINT)
    h.finish()
    spoilt = 0
    for n in nodes(0, 2):
        for name, size in partial(t, n).items():
            if os.path.basename(name) == 'f0' and size > 5 << 20:   # there may be others that have just begun
                with open(folder(t, n, 'spool', 'partial', name), 'r+b') as f:
                    f.seek(5 << 20)
                    byte = f.read(1)[0]
                    f.seek(5 << 20)
                    f.write(bytes([byte ^ 4]))
                spoilt += 1
    r = t.run('cp', *SLOWLY, '--json', path, 'all:/flipped')
    t.check('a bit of a partial file is flipped before the copy goes on: the copy is right', h.held and
            spoilt >= 2 and r.status == 0 and not have(t, '/flipped', everybody(), path), (r, spoilt, before))


def private_kb(pid):
    """What would be free without it. Clean pages of a file that is sent from where it lies are the system's cache."""
    return sum(int(line.split()[1]) for line in text(f'/proc/{pid}/smaps_rollup').splitlines()
               if line.startswith('Private_Dirty'))


def memory(t):
    path = make(t, 'giant', 256 << 20)
    t.run('down')
    t.env.pop('MALLOC_PERTURB_', None)   # it touches memory that is not used
    t.run('up', '--local', NODES)
    p = t.start('cp', '-q', path, 'n[0-1]:/giant')
    most = {}
    pids = {}
    while p.poll() is None:
        for n in nodes(0, 1):
            for find, name in ((manager, 'manager'), (mover, 'mover')):
                key = f'{name} of {n}'
                pids[key] = pids.get(key) or find(t, n)
                most[key] = max(most.get(key, 0), private_kb(pids[key]))
        most['command'] = max(most.get('command', 0), private_kb(p.pid))
        time.sleep(0.05)
    r = t.finish(p)
    t.check('256 MB', r.status == 0 and not have(t, '/giant', nodes(0, 1), path), r)
    t.check('takes less than 32 MB of anybody', len(most) == 5 and 0 < min(most.values()) and
            max(most.values()) < 32 << 10, most)
    for n in nodes(0, 1):
        os.unlink(there(t, n, '/giant'))
    os.unlink(path)


def leaks(t):
    def state():
        return {n: (len(listed(f'/proc/{manager(t, n)}/fd')), manager(t, n)) for n in everybody()}

    def movers():
        return {n: (len(listed(f'/proc/{mover(t, n)}/fd')), mover(t, n)) for n in everybody()}
    path = make(t, 'often', 100000)
    t.run('cp', path, 'all:/often')
    before = (state(), movers())
    failed = []
    for k in range(100):
        with open(path, 'r+b') as f:
            f.write(str(k).encode())
        r = t.run('cp', path, 'all:/often')
        failed += [] if r.status == 0 else [r]
    last = time.monotonic()
    t.check('a hundred copies', not failed, failed[:3])
    t.check('by the same movers and managers, with no more descriptors', t.until(
        lambda: all(now[n][1] == then[n][1] and now[n][0] <= then[n][0]
                    for now, then in zip((state(), movers()), before) for n in everybody()), 5),
        ((state(), movers()), before))
    t.check('movers end by themselves', t.until(lambda: not any(mover(t, n) for n in everybody()), 30))
    took = time.monotonic() - last
    t.check('about ten seconds later', 5 < took < 25, took)
    t.check('nobody is left of them', not any(
        'storm-fm' in text(f'/proc/{pid}/comm') and f'/proc/{pid}' for n in everybody()
        for pid in text(f'/proc/{manager(t, n)}/task/{manager(t, n)}/children').split()))
    t.check('and the manager has as many descriptors, but the one of its mover', t.until(
        lambda: all(before[0][n][0] - 3 <= state()[n][0] <= before[0][n][0] for n in everybody()), 5),
        (state(), before[0]))


play(killed, stopped, full, sources, managers, clients, flipped, memory, leaks, up=('--local', str(NODES)))
