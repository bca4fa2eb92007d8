#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Exactly once under fire: a master that hires its workers on a real cluster, and somebody is killed again and again, sometimes two at once:
a worker, the manager or the launcher of a node, the server, the master, the machine manager. A master that died is started again, as a user would.

Every result is received; none again after it was acknowledged; a cycle that was ended stays so; only a master whose own processes were hit may
fail; and when it is over nothing is left. When somebody is killed is said by how many results there are, not by a clock.

STORM_WODI_FIRE says how many rounds (10), STORM_WODI_FIRE_SEED with which seed the first one is drawn (1). Speaks TAP."""
import collections
import errno
import json
import os
import random
import shutil
import signal
import subprocess
import time

from harness import PATIENCE, play

ROUNDS = int(os.environ.get('STORM_WODI_FIRE', '10'))
SEED = int(os.environ.get('STORM_WODI_FIRE_SEED', '1'))
NODES = 6
LIVES = 30      # a round that takes more of them does not end
PROGRAM = 'wodi_hirer'


# ---- who can be killed ----

def jobs(t):
    """As text while there is no manager: it has been killed so often that it is not started again at once."""
    r = t.run('ps', '--json')
    return json.loads(r.out) if r.status == 0 else [r.err]


def environment(pid):
    try:
        with open(f'/proc/{pid}/environ', 'rb') as f:
            pairs = (word.partition(b'=') for word in f.read().split(b'\0'))
            return {key.decode(): value.decode(errors='replace') for key, _, value in pairs}
    except OSError:
        return {}


def program(t):
    return os.path.join(t.bin, PROGRAM)


def workers(t):
    return sorted(t.ours(f'{program(t)} worker'))


def masters(t):
    return sorted(t.ours(f'{program(t)} {t.work}'))


def servers(t):
    return t.running('storm-wodi')


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except (TypeError, ProcessLookupError):     # there is none, or it ends just now
        return False
    return True


class Fire:
    """Kills whom it draws, and remembers what the master that lives now may have died of."""

    def __init__(self, t, drawn, hits):
        self.t, self.drawn, self.hits = t, drawn, hits
        self.struck = []
        self.new_life()

    def new_life(self):
        self.nodes, self.fatal = set(), False

    def node(self):
        """Mostly one where something of ours is."""
        busy = [environment(pid).get('STORM_NODE') for pid in workers(self.t) + masters(self.t)]
        busy = sorted(filter(None, busy))
        return self.drawn.choice(busy) if busy and self.drawn.random() < 0.9 else f'n{self.drawn.randrange(NODES)}'

    def one_of(self, pids):
        return kill(self.drawn.choice(pids)) if pids else False

    def worker(self):
        return self.one_of(workers(self.t))

    def server(self):
        return self.one_of(servers(self.t))

    def master(self):
        self.fatal = self.one_of(masters(self.t)) or self.fatal
        return self.fatal

    def of_node(self, kind):
        node = self.node()
        hit = kill(self.t.daemon(kind + node))
        if hit:
            self.nodes.add(node)
        return hit and node

    def node_manager(self):
        return self.of_node('storm-')

    def launcher(self):
        return self.of_node('storm-pl ')

    def machine_manager(self):
        return kill(self.t.daemon('storm-mm'))

    def strike(self, names, results):
        """Those of them that are not there yet, or not again."""
        left = []
        for name in names:
            hit = getattr(self, name)()
            if hit:
                self.struck.append(f'{results}: {name}{"" if hit is True else " of " + hit}')
                self.hits[name] += 1
            else:
                left.append(name)
        return left

    def excuses(self, node):
        """A master that ran there, or has not come to run."""
        return self.fatal or (self.nodes if node is None else node in self.nodes)


VICTIMS = ('worker', 'node_manager', 'launcher', 'server', 'master', 'machine_manager')


# ---- what a master writes down ----

class Record:
    """Read as it grows. It outlives each master."""

    def __init__(self, t, name):
        self.t, self.path = t, t.path(name)
        self.at, self.lines = 0, 0
        self.got, self.acked, self.ended = collections.Counter(), set(), set()
        self.wrong = []
        self.new_life()

    def new_life(self):
        self.node, self.done, self.error = None, False, None

    def look(self):
        """All whole lines that are new."""
        try:
            with open(self.path, 'rb') as f:
                f.seek(self.at)
                text = f.read()
        except FileNotFoundError:
            return
        text = text[:text.rfind(b'\n') + 1]
        self.at += len(text)
        for line in text.decode().splitlines():
            self.take(*line.split(' ', 1))

    def take(self, what, rest):
        if what == 'b':
            self.node = rest
        elif what == 'd':
            self.done = True
        elif what == 'x' and rest == os.strerror(errno.EBADMSG):
            self.wrong.append('a wrong result')
        elif what == 'x':
            self.error = rest
        else:
            cycle, step = map(int, rest.split())
            getattr(self, f'take_{what}')(cycle, step)

    def take_g(self, cycle, step):
        self.got[cycle, step] += 1
        if (cycle, step) in self.acked:
            self.wrong.append(f'step {step} of cycle {cycle} came after it was acknowledged')
        if cycle in self.ended:
            self.wrong.append(f'step {step} of cycle {cycle} came after that had ended')

    def take_a(self, cycle, step):
        self.acked.add((cycle, step))

    def take_e(self, cycle, _):
        self.ended.add(cycle)

    def take_r(self, cycle, _):
        self.ended.add(cycle)   # it may have been killed before it could say so


# ---- a round ----

class Round:
    def __init__(self, t, seed, hits):
        self.t, self.seed = t, seed
        draw = self.drawn = random.Random(seed)
        self.cycles, self.steps = draw.randint(1, 4), draw.randint(10, 60)
        self.workers, self.ms = draw.choice((0, 2, 4)), draw.choice((5, 20, 50))
        count = draw.randint(3, 10)
        self.moments = sorted(draw.randint(0, self.cycles * self.steps) for _ in range(count))
        self.victims = [draw.sample(VICTIMS, draw.choice((1, 1, 1, 2))) for _ in range(count)]
        self.fire, self.record = Fire(t, draw, hits), Record(t, f'record.{seed}')
        self.folder, self.lives, self.state = t.path(f'w{seed}'), 0, None

    def start(self, last):
        self.lives += 1
        self.fire.new_life()
        self.record.new_life()
        words = (self.record.path, self.folder, self.cycles, self.steps, self.workers, self.ms, 'complete' if last else 'go')
        return self.t.start('run', program(self.t), *words, stdin=subprocess.DEVNULL)

    def follow(self, p):
        """Until it has ended; kills somebody whenever it is time, or as soon as he is there."""
        end = time.monotonic() + PATIENCE
        while p.poll() is None and time.monotonic() < end:
            self.record.look()
            results = len(self.record.got)
            if self.moments and results >= self.moments[0]:
                self.victims[0] = self.fire.strike(self.victims[0], results)
            if self.moments and not self.victims[0]:
                self.moments.pop(0)
                self.victims.pop(0)
            time.sleep(0.002)

    def live(self, last=False):
        """One life of the master. True: it was its last."""
        p = self.start(last)
        self.follow(p)
        stuck = p.poll() is None
        if stuck:
            self.state = self.everything()
            p.send_signal(signal.SIGINT)
        r = self.t.finish(p)
        self.record.look()
        if stuck:
            self.record.wrong.append(f'it does not end: {r}')
        elif r.status == 0 and not self.record.done:
            self.record.wrong.append(f'it ended without a word: {r}')
        elif r.status != 0 and not self.fire.excuses(self.record.node):
            self.record.wrong.append(f'it failed on {self.record.node}, where nobody was killed: {self.record.error}, {r}')
        return r.status == 0 or bool(self.record.wrong)

    def everything(self):
        """That could tell why."""
        said = [line for words in (('ps',), ('nodes',)) for line in self.t.run(*words).out.splitlines()]
        rows = subprocess.run(['ps', '-eo', 'pid,ppid,stat,wchan:20,args'], capture_output=True, text=True).stdout
        said += [row for row in rows.splitlines() if self.t.scratch in row]
        with open(os.path.join(self.t.home, 'local', 'log'), errors='replace') as f:
            said += f.read().splitlines()[-40:]
        return said

    def run(self):
        while not self.live():
            if self.lives == LIVES:
                self.record.wrong.append('it does not come to an end')
                break
        if not self.record.wrong:   # it finds everything done; started again after that it would begin anew: it is not killed
            self.moments, self.victims = [0], [[self.drawn.choice(('server', 'machine_manager'))]]
            self.live(last=True)
        missing = [(c, s) for c in range(1, self.cycles + 1) for s in range(1, self.steps + 1) if not self.record.got[c, s]]
        if missing and not self.record.wrong:
            self.record.wrong.append(f'never received: {missing}')
        if not self.t.until(lambda: not self.left(), 60):
            self.record.wrong.append(f'left: {self.left()}')
        if self.record.wrong and self.state is None:
            self.state = self.everything()
        return self.record.wrong

    def left(self):
        return jobs(self.t) + servers(self.t) + self.t.ours(program(self.t))

    def __str__(self):
        return (f'seed {self.seed}: {self.cycles} cycles of {self.steps} steps, {self.workers} workers, {self.ms} ms, '
                f'{self.lives} lives; {", ".join(self.fire.struck)}')


def under_fire(t):
    shutil.copy(os.path.join(os.path.dirname(os.path.abspath(os.environ['STORM'])), 'tests', PROGRAM), t.bin)
    failed, hits = 0, collections.Counter()
    for seed in range(SEED, SEED + ROUNDS):
        r, began = Round(t, seed, hits), time.monotonic()
        wrong = r.run()
        good = t.check(f'every result once, seed {seed}', not wrong, '\n'.join(wrong))
        print(f'# {r} ({time.monotonic() - began:.1f} s)', flush=True)
        for line in r.state or []:
            print('#  ', line)
        failed += not good
        if failed == 5:
            break   # so many tell enough
    print('# killed:', ', '.join(f'{hits[name]} {name}' for name in VICTIMS))


play(under_fire, up=('--local', str(NODES)))
