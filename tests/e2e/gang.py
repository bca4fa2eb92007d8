#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Gangs on real processes: slots take turns, never two at once; what works on a job works on one whose turn it is not.
Speaks TAP.

How long something takes is not judged. "Meanwhile" is told by the processor time of whoever runs."""
import ctypes
import json
import os
import signal
import subprocess

from harness import play

# Computes, and writes down from when until when it ran without a pause; says so with the first and last words.
WORK = '''
import os, sys, time
name, rank, pause = sys.argv[1], os.environ['STORM_RANK'], 50000000
print('begins', name, rank, flush=True)
begun = last = time.monotonic_ns()
with open(f'{name}.{rank}', 'a', buffering=1) as out:
    over = False
    while not over:
        for _ in range(200):
            now = time.monotonic_ns()
            if now - last > pause:
                out.write(f'{begun} {last}\\\\n')
                begun = now
            last = now
        over = os.path.exists(f'{name}.stop')
    out.write(f'{begun} {last}\\\\n')
print('ends', name, rank, flush=True)
'''.replace('\\\\n', '\\n')

# A hundred that compute: children, children of children, some in sessions of their own, some with threads.
CROWD = '''
import os, sys, threading, time
def compute():
    while not os.path.exists(sys.argv[1] + '.go'):
        time.sleep(0.01)
    while True:
        pass
def child(depth):
    if os.fork() > 0:
        return
    if depth % 2:
        os.setsid()
    if depth > 0:
        child(depth - 1)
    else:
        threading.Thread(target=compute, daemon=True).start()
    compute()
for _ in range(25):
    child(3)
compute()
'''

HZ = os.sysconf('SC_CLK_TCK')
WHILE = HZ // 5   # ticks of processor time that somebody has had: then others could have had some


def said(t):
    r = t.run('policy', '--json')
    return next((p for p in json.loads(r.out) if p['chosen']), {}) if r.status == 0 else {}


def state(t, job):
    r = t.run('show', '--json', job)
    return json.loads(r.out).get('state', '') if r.status == 0 else ''


def becomes(t, job, what):
    return t.until(lambda: state(t, job) == what)


def fields(pid):
    """Of /proc/PID/stat, from the third on; none if it is gone."""
    try:
        with open(f'/proc/{pid}/stat') as f:
            return f.read().rpartition(')')[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def ticks(pids):
    """Processor time that these have had, all threads."""
    each = [fields(p) for p in pids]
    return sum(int(f[11]) + int(f[12]) for f in each if f)


def slices(t, name, rank):
    return [tuple(map(int, line.split())) for line in t.read(f'{name}.{rank}').splitlines() if line.count(' ') == 1]


def common(ours, theirs):
    return sum(max(0, min(a[1], b[1]) - max(a[0], b[0])) for a in ours for b in theirs)


def length(some):
    return sum(last - begun for begun, last in some)


class Gang:
    """A job that computes on both nodes."""

    def __init__(self, t, name, *how, text=WORK):
        self.t, self.name = t, name
        for rank in range(2):
            if os.path.exists(t.path(f'{name}.{rank}')):
                os.unlink(t.path(f'{name}.{rank}'))
        if os.path.exists(t.path(f'{name}.stop')):
            os.unlink(t.path(f'{name}.stop'))
        self.script = t.write(f'{name}.py', text)
        words = ('-n', 2, '--name', name, 'python3', self.script, name)
        self.command = t.start(*(how or ('run',)), *words, stdin=subprocess.DEVNULL)
        t.until(lambda: self.job() is not None)
        self.id = self.job()

    def job(self):
        r = self.t.run('ps', '--json')
        rows = json.loads(r.out) if r.status == 0 else []
        return next((row['id'] for row in rows if row['name'] == self.name and row['state'] != 'queued'), None)

    def pids(self):
        return [p for p in self.t.ours(f'python3 {self.script} ') if p != self.command.pid]

    def begun(self):
        return self.t.until(lambda: len(self.pids()) >= 2)

    def time(self):
        return ticks(self.pids())

    def stop(self):
        self.t.write(f'{self.name}.stop', '')

    def end(self):
        """Its end, as its command tells it."""
        self.stop()
        return self.t.finish(self.command)

    def gets_on(self, so=WHILE):
        before = self.time()
        return self.t.until(lambda: self.time() >= before + so)


def turns(t, *gangs, count=3):
    """Until each process of each has had so many turns."""
    return t.until(lambda: all(len(slices(t, g.name, r)) >= count for g in gangs for r in range(2)))


def at_rest(t, *gangs, first=None):
    """Whose turn it is from now on, and the others. Turns are so long that this stays so. If somebody is to be the first, until
    it is."""
    found = []
    t.run('policy', '--quantum', '30m')

    def settled():
        before = [g.time() for g in gangs]
        if not t.until(lambda: any(g.time() >= b + WHILE for g, b in zip(gangs, before)), 20):
            return False
        moved = [g for g, b in zip(gangs, before) if g.time() > b]
        found[:] = moved
        if first is None or first in moved:
            return len(moved) == 1
        quick(t, quantum='1s')   # longer than it takes to say that it shall stay so
        first.gets_on(1)
        t.run('policy', '--quantum', '30m')
        return False
    t.check('one has its turn', t.until(settled), [(g.name, g.time()) for g in gangs])
    return found[0], [g for g in gangs if g is not found[0]]


def stays_still(t, still, runs, what):
    before = still.time()
    t.check(what, runs.gets_on() and still.time() == before, (before, still.time()))


def quick(t, mpl=3, quantum='100ms'):
    t.run('policy', 'gang', '--mpl', mpl, '--quantum', quantum)


def in_turns(t):
    quick(t, quantum='200ms')
    gangs = [Gang(t, name) for name in ('ada', 'bob', 'cyn')]
    t.check('three gangs have turns', turns(t, *gangs))
    ends = [g.end() for g in gangs]
    t.check('all end well', all(r.status == 0 for r in ends), ends)
    t.check('and have said so', all(r.out.count('begins') == r.out.count('ends') == 2 for r in ends), ends)
    ran = {(g.name, r): slices(t, g.name, r) for g in gangs for r in range(2)}
    for a, b in (('ada', 'bob'), ('bob', 'cyn'), ('ada', 'cyn')):
        both = [(common(ran[a, r], ran[b, r]), min(length(ran[a, r]), length(ran[b, r]))) for r in range(2)]
        t.check(f'{a} and {b} do not run at once', all(c * 10 < of for c, of in both), both)
    # A busy machine may hold either up, so this says nothing of how long.
    names = [g.name for g in gangs]
    same = sum(common(ran[a, 0], ran[a, 1]) for a in names)
    other = sum(common(ran[a, 0], ran[b, 1]) for a in names for b in names if a != b)
    t.check('a gang runs on both nodes at once, and no other', same > 2 * other, (same, other, ran))


def uncoordinated(t):
    """The same under a policy that does not let them take turns: so the test above can fail."""
    t.run('policy', 'local', '--mpl', 3)
    gangs = [Gang(t, name) for name in ('ada', 'bob')]
    t.check('two run', all(g.begun() and g.gets_on(HZ // 2) for g in gangs))
    t.check('and end', all(g.end().status == 0 for g in gangs))
    both = [(common(slices(t, 'ada', r), slices(t, 'bob', r)), length(slices(t, 'bob', r))) for r in range(2)]
    t.check('they run at once', sum(c for c, _ in both) * 10 > sum(of for _, of in both), both)


def foreign(t):
    """Kill, suspend, output, ends."""
    quick(t)
    gangs = [Gang(t, name) for name in ('ada', 'bob', 'cyn')]
    t.check('all have begun', all(g.begun() for g in gangs) and turns(t, *gangs, count=1))
    runs, (one, two) = at_rest(t, *gangs)
    stays_still(t, one, runs, 'the others stand still')
    r = t.run('suspend', one.id)
    t.check('one is suspended', r.status == 0 and becomes(t, one.id, 'suspended'), r)
    r = t.run('kill', two.id)
    t.check('the other is killed', r.status == 0 and t.until(lambda: not two.pids()), r)
    r = t.finish(two.command)
    t.check('its command is told, its output is there', r.status != 0 and r.out.count('begins') == 2, r)
    t.check('nothing happens to the third', runs.gets_on())
    quick(t)
    before = one.time(), len(slices(t, runs.name, 0))
    t.check('turns come and go', t.until(lambda: len(slices(t, runs.name, 0)) >= before[1] + 3), before)
    t.check('what is suspended stays so in its turn', one.time() == before[0])
    r = t.run('resume', one.id)
    t.check('until it is resumed', r.status == 0 and one.gets_on(), r)
    runs, (one,) = at_rest(t, runs, one)
    one.stop()
    t.run('suspend', one.id)
    t.run('resume', one.id)
    stays_still(t, one, runs, 'resumed in the turn of another it waits for its own')
    r = runs.end()
    t.check('when the last of a slot ends, the next runs at once', r.status == 0 and t.finish(one.command).status == 0, r)


def interrupted(t):
    """Ctrl-C for a job that runs, and for one that does not."""
    quick(t)
    gangs = [Gang(t, name) for name in ('ada', 'bob')]
    t.check('both have begun', all(g.begun() for g in gangs))
    runs, (waits,) = at_rest(t, *gangs)
    waits.command.send_signal(signal.SIGINT)
    r = t.finish(waits.command)
    t.check('Ctrl-C, not in its turn', r.status == 130 and not waits.pids(), r)
    t.check('the other goes on', runs.gets_on())
    runs.command.send_signal(signal.SIGINT)
    r = t.finish(runs.command)
    t.check('Ctrl-C, in its turn', r.status == 130 and not runs.pids(), r)


def attached(t):
    """Output and input do not depend on whose turn it is."""
    quick(t)
    gangs = [Gang(t, name, 'run', '--detach') for name in ('ada', 'bob')]
    t.check('both have begun', all(g.begun() for g in gangs) and turns(t, *gangs, count=1))
    runs, (waits,) = at_rest(t, *gangs)
    waits.command.kill()
    t.finish(waits.command)
    p = t.start('attach', waits.id, stdin=subprocess.DEVNULL)
    waits.stop()
    stays_still(t, waits, runs, 'somebody has attached to the other, which stands still')
    r = runs.end()
    t.check('the first ends', r.status == 0, r)
    r = t.finish(p)
    t.check('what the other writes then comes here', r.status == 0 and r.out.count('ends') == 2, r)


def late(t):
    """A job that starts, and is ended, while another has its turn."""
    quick(t)
    runs = Gang(t, 'ada')
    t.check('one runs', runs.begun() and runs.gets_on())
    t.run('policy', '--quantum', '30m')
    waits, other = Gang(t, 'bob'), Gang(t, 'cyn')
    t.check('others start in other slots', all(becomes(t, g.id, 'running') for g in (waits, other)))
    t.check('and wait for their turns', runs.gets_on() and waits.time() == other.time() == 0,
            [(g.name, g.pids(), g.time()) for g in (waits, other)] + [t.run('policy').out])
    r = t.run('kill', other.id)
    t.check('one is killed before it had any', r.status == 0 and t.finish(other.command).status != 0, r)
    waits.stop()
    t.check('the other runs when it can', runs.end().status == 0 and t.finish(waits.command).status == 0)


def whole(t):
    """A hundred processes of a job are switched as one."""
    quick(t)
    crowd = Gang(t, 'crowd', 'run', text=CROWD)
    runs = Gang(t, 'ada')
    t.check('two hundred processes', t.until(lambda: len(crowd.pids()) >= 202 and runs.begun()), len(crowd.pids()))
    t.write('crowd.go', '')
    at_rest(t, runs, crowd, first=crowd)
    stays_still(t, runs, crowd, 'the other stands still while they run')
    at_rest(t, runs, crowd, first=runs)
    stays_still(t, crowd, runs, 'none of them runs in the turn of the other')
    r = t.run('kill', crowd.id)
    t.check('all are killed though they stand still', r.status == 0 and t.until(lambda: not crowd.pids()), crowd.pids())
    t.finish(crowd.command)
    t.check('the other ends', runs.end().status == 0)


def held(t):
    """Who was stopped by a user, or by a debugger, stays so though turns come and go. Where turns are made by stopping, only who
    was stopped in its turn."""
    ptrace = ctypes.CDLL(None, use_errno=True).ptrace
    quick(t)
    gangs = [Gang(t, name) for name in ('ada', 'bob')]
    t.check('both have begun', all(g.begun() for g in gangs) and turns(t, *gangs, count=1))
    runs, (waits,) = at_rest(t, *gangs)
    victim, other = (runs, waits) if t.user else (waits, runs)
    stopped, traced = sorted(victim.pids())[:2]
    os.kill(stopped, signal.SIGSTOP)
    attach, detach, wall = 16, 17, 0x40000000
    t.check('a debugger', ptrace(attach, traced, 0, 0) == 0)
    quick(t)   # it stops in its turn
    os.waitpid(traced, wall)
    before, alone = ticks([stopped, traced]), ticks([stopped])
    count = len(slices(t, other.name, 0))
    t.check('turns come and go', t.until(lambda: len(slices(t, other.name, 0)) >= count + 4))
    t.check('both stay stopped', fields(traced)[0] == 't' and ticks([stopped, traced]) == before and
            fields(stopped)[0] == 'T', (fields(stopped)[:1], fields(traced)[:1]))
    ptrace(detach, traced, 0, 0)
    os.kill(stopped, signal.SIGCONT)
    t.check('and go on when they may', t.until(lambda: ticks([stopped]) > alone))
    t.check('to their ends', all(g.end().status == 0 for g in gangs))


def killed(t):
    """Daemons die while gangs take turns."""
    quick(t)
    gangs = [Gang(t, name) for name in ('ada', 'bob')]
    t.check('both have turns', turns(t, *gangs))
    os.kill(t.daemon('storm-n0'), signal.SIGKILL)
    os.kill(t.daemon('storm-mm'), signal.SIGKILL)
    counts = [len(slices(t, g.name, 0)) for g in gangs]
    t.check('without a manager of the node, and with a new one, they go on',
            t.until(lambda: all(len(slices(t, g.name, 0)) >= c + 4 for g, c in zip(gangs, counts))), counts)
    ends = [g.end() for g in gangs]
    t.check('to their ends', all(r.status == 0 for r in ends), ends)
    ran = [slices(t, g.name, 0) for g in gangs]
    t.check('never two at once', common(*ran) * 10 < min(map(length, ran)), (common(*ran), list(map(length, ran))))


def launcher(t):
    quick(t)
    gangs = [Gang(t, name) for name in ('ada', 'bob')]
    t.check('both have turns', turns(t, *gangs, count=1))
    os.kill(t.daemon('storm-pl n1'), signal.SIGKILL)
    ends = [t.finish(g.command) for g in gangs]
    t.check('a launcher dies, and its gangs with it', all(r.status == 125 and 'n1' in r.err for r in ends), ends)
    t.check('nothing is left of them', t.until(lambda: not any(g.pids() for g in gangs)))
    gangs = [Gang(t, name) for name in ('cyn', 'dan')]
    t.check('the next have turns', turns(t, *gangs))
    t.check('and end', all(g.end().status == 0 for g in gangs))


def changed(t):
    """Another policy, three gangs are there: nobody is lost."""
    quick(t)
    gangs = [Gang(t, name) for name in ('ada', 'bob', 'cyn')]
    t.check('three have turns', turns(t, *gangs, count=1))
    for name in ('fcfs', 'gang-backfill', 'local', 'easy'):
        t.run('policy', name)
        t.check(f'{name}: all get on', all(g.gets_on() for g in gangs), [g.time() for g in gangs])
    t.check('all end', all(g.end().status == 0 for g in gangs))


def alone(t):
    """Only one slot has somebody: nobody is woken for turns."""
    quick(t, quantum='1ms')
    gangs = [Gang(t, name) for name in ('ada', 'bob')]
    t.check('two share', all(g.begun() for g in gangs) and t.until(lambda: said(t).get('rows') == 2))
    pids = [t.daemon('storm-mm'), t.daemon('storm-pl n0')]

    def woken():
        total = 0
        for pid in pids:
            with open(f'/proc/{pid}/status') as f:
                total += sum(int(line.split()[1]) for line in f if 'ctxt_switches' in line)
        return total
    before = woken()
    t.check('turns need somebody to be woken', gangs[0].gets_on() and woken() - before > 40, woken() - before)
    t.check('one ends', gangs[1].end().status == 0)
    t.check('one is left', t.until(lambda: said(t).get('rows') == 1))

    def calm():
        before = woken()
        return gangs[0].gets_on(HZ) and woken() - before < 250   # a thousand turns, if there were any
    t.check('and needs nobody', t.until(calm))
    if not t.user:
        t.check('nobody has a priority then', t.until(lambda: os.sched_getscheduler(pids[1]) & 7 == os.SCHED_OTHER))
    t.check('it ends', gangs[0].end().status == 0)


def by_whom(t):
    """It is said how well an ordinary user can be served."""
    quick(t, quantum='20ms')
    gangs = [Gang(t, name) for name in ('ada', 'bob')]
    t.check('two share', all(g.begun() for g in gangs))
    t.check('nodes have told', t.until(lambda: said(t).get('samples', 0) > 0))
    now, r = said(t), t.run('policy')
    if t.user:
        t.check('a user: by stopping, from 10ms up', now['cgroups'] is False and '10ms' in r.out, (now, r))
    else:
        t.check('by cgroups, with priority', now['cgroups'] and now['real_time'] and '10ms' not in r.out, (now, r))
    t.check('both get on', all(g.gets_on() for g in gangs))
    t.check('and end', all(g.end().status == 0 for g in gangs))


play(in_turns, uncoordinated, foreign, interrupted, attached, late, whole, held, killed, launcher, changed, alone, by_whom,
     up=('--local', '2', '--policy', 'gang', '--orphan', '10m'))
