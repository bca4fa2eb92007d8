#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Many transfers, in the middle of each something happens to one node: its manager or mover is killed or stops, or its
disk is full. Whatever it is: the command comes to its end and names that node and the reason, the others have the
file, nowhere is half of it under its name, and afterwards the same copy works and leaves nothing on its way.

STORM_FILE_FAULTS says how many (8), STORM_FILE_SEED which; --writer: pieces are written by a thread of their own, however
few processors there are. Speaks TAP."""
import errno
import os
import random
import re
import signal
import subprocess
import sys

from harness import play
from transfers import (NODES, Held, everybody, folder, have, healthy, make, manager, mover, nodes, send, strays,
                       there)

ROUNDS = int(os.environ.get('STORM_FILE_FAULTS', '8'))
SEED = os.environ.get('STORM_FILE_SEED', '1')
WRITER = '--writer' in sys.argv
if WRITER:
    os.environ['STORM_TEST_WRITER'] = '1'
SMALL = nodes(0, 1, 2)    # have a disk of their own for what is copied
DISK = 96 << 20
SHAPES = ('chain', 'binomial', 'flat', 'pair', 'k-ary:2', 'k-ary:3')
SLOWLY = ('--chunk', '32KiB', '--slots', '4')   # so that there is a middle


class Killed:
    """A process of the node is killed."""
    words = ()

    def __init__(self, find):
        self.find = find

    def strike(self, t, node):
        send(self.find(t, node), signal.SIGKILL)

    def heal(self, t, node):
        pass


class Stopped(Killed):
    """Processes of the node stand still until the command has ended."""

    def strike(self, t, node):
        self.pids = [f(t, node) for f in self.find]
        for pid in self.pids:
            send(pid, signal.SIGSTOP)

    def heal(self, t, node):
        for pid in self.pids:
            send(pid, signal.SIGCONT)


class Full:
    """Something else takes the room on the node's disk."""
    words = ('No space left',)

    def strike(self, t, node):
        with open(there(t, node, '/ballast'), 'wb', buffering=0) as f:
            try:
                while f.write(bytes(1 << 16)):
                    pass
            except OSError as e:
                if e.errno != errno.ENOSPC:
                    raise

    def heal(self, t, node):
        os.unlink(there(t, node, '/ballast'))


def judge(t, r, victim, fault, to, path):
    """What is wrong with how it ended; nothing if all is well."""
    wrong = []
    if r.status not in (0, 1):
        wrong.append('it did not end as it should')
    if r.status == 1 and not re.match(rf'storm: cp: {victim}: ', r.err):
        wrong.append('the node is not named')
    if r.status == 1 and not all(w in r.err for w in fault.words):
        wrong.append('the reason is not named')
    lacking = have(t, to, everybody(), path)
    if r.status == 0 and lacking or set(lacking) - {victim}:
        wrong.append(f'not on {lacking}')
    if victim in lacking and os.path.lexists(there(t, victim, to)):
        wrong.append('half a file under its name')
    return wrong


def round_of(t, k, kinds, dice):
    name = dice.choice(sorted(kinds))
    fault = kinds[name]
    victim = dice.choice(SMALL if name == 'full' else everybody())
    shape = dice.choice(SHAPES)
    size = dice.randrange(8 << 20, 24 << 20)
    to = f'/fault-{k}'
    path = make(t, 'fault', size, k)
    before = set(strays(t, everybody()))
    h = Held(t, *SLOWLY, '--tree', shape, path, f'all:{to}', near=[dice.choice(nodes(3, 4))],
             at_least=dice.randrange(64 << 10, size // 2))
    fault.strike(t, victim)
    r = h.finish()
    wrong = judge(t, r, victim, fault, to, path)
    fault.heal(t, victim)
    well = t.until(lambda: healthy(t), 30)
    t.check(f'{k}: {name}, {victim}, {shape}, {size} bytes: {"" if r.status == 0 else "not "}done', not wrong and well,
            f'{wrong} held {h.held} well {well}\n{r}')
    r = t.run('cp', *SLOWLY, path, f'all:{to}')
    left = set()
    t.until(lambda: not left.clear() and not left.update(set(strays(t, everybody())) - before) and not left, 20)
    t.check('the same again is done, and nothing is left on the way', r.status == 0 and not left and
            not have(t, to, everybody(), path), (r, left))
    for n in everybody():
        os.unlink(there(t, n, to))
    return h.held


def writers(t):
    """Otherwise the rounds would say nothing about them."""
    r = t.run('cp', *SLOWLY, make(t, 'written', 1 << 20), 'all:/written')
    threads = {n: len(os.listdir(f'/proc/{mover(t, n)}/task')) for n in everybody()}
    t.check('every mover has a thread that writes', r.status == 0 and set(threads.values()) == {2}, (r, threads))


def faults(t):
    kinds = {'manager killed': Killed(manager), 'mover killed': Killed(mover),
             'node stopped': Stopped((manager, mover)), 'manager stopped': Stopped((manager,))}
    disks = []
    for n in SMALL if not t.user else []:
        os.makedirs(folder(t, n, 'root'), exist_ok=True)
        if subprocess.run(['mount', '-t', 'tmpfs', '-o', f'size={DISK}', 'none', folder(t, n, 'root')],
                          check=False).returncode == 0:
            disks.append(folder(t, n, 'root'))
    if len(disks) == len(SMALL):
        kinds['full'] = Full()
    dice = random.Random(SEED)
    try:
        if WRITER:
            writers(t)
        held = sum(round_of(t, k, kinds, dice) for k in range(ROUNDS))
        t.check(f'{held} of {ROUNDS} were in the middle', held * 2 > ROUNDS)
    finally:
        t.run('down')
        for disk in disks:
            subprocess.run(['umount', '-l', disk], check=False)


play(faults, up=('--local', str(NODES)))
