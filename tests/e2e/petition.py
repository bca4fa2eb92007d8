#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Programs that talk to the machine manager: answers come whoever is killed, and nobody else is harmed. Speaks TAP."""
import os
import shutil
import signal
import subprocess

from harness import play


def program(t):
    """The test's program, where every user can execute it."""
    to = os.path.join(t.bin, 'petitioner')
    if not os.path.exists(to):
        shutil.copy(os.path.join(os.path.dirname(os.environ['STORM']), 'tests', 'petitioner'), to)
    return to


def memory(pid):
    """KiB that a process has in use."""
    with open(f'/proc/{pid}/status') as f:
        return int(next(line.split()[1] for line in f if line.startswith('VmRSS')))


class Talker:
    """A job whose program asks for its own row whenever it is told to."""

    def __init__(self, t, *options):
        self.t = t
        self.p = t.start('run', *options, program(t), 'lines', stderr=subprocess.DEVNULL)

    def ask(self):
        self.p.stdin.write(b'\n')
        self.p.stdin.flush()

    def answer(self):
        return self.p.stdout.readline().decode()

    def asks(self):
        self.ask()
        return self.answer() == 'running\n'

    def end(self):
        return self.t.finish(self.p).status == 0


def killed(t, name):
    """Kills a daemon; it is started again."""
    old = t.daemon(name)
    os.kill(old, signal.SIGKILL)
    return old


def asks(t):
    talker = Talker(t, '-w', 'n2')
    t.check('a program hears of its own job', talker.asks())
    t.check('again and again', all(talker.asks() for _ in range(10)))
    t.check('and ends as any other', talker.end())
    r = t.run('run', '-n', 3, program(t), 'many', 50)
    t.check('several processes talk', r.out == '50 answers\n' * 3, r)
    r = t.run('run', 'python3', '-c', 'import os, sys; os.close(int(os.environ["STORM_PETITION"])); '
              'os.execv(sys.argv[1], sys.argv[1:])', program(t), 'lines')
    t.check('without a bell: it is told', r.status == 1 and 'open: No such file or directory' in r.out, r)


def survives(t):
    talker = Talker(t, '-w', 'n2')
    t.check('before', talker.asks())
    for name in ('storm-n2', 'storm-mm', 'storm-n2', 'storm-mm'):
        old = killed(t, name)
        t.check(f'{name} is killed: asked at once', talker.asks())
        t.check('it was started again', t.until(lambda: t.daemon(name) not in (None, old)))
        t.check('asked later', talker.asks())
    for name in ('storm-mm', 'storm-n2'):
        old = killed(t, name)
        t.check('first it is there again', t.until(lambda: t.daemon(name) not in (None, old)))
        t.check('then asked', talker.asks())
    talker.ask()
    killed(t, 'storm-n2')
    killed(t, 'storm-mm')
    t.check('a question was on its way: it is answered', talker.answer() == 'running\n')
    t.check('the end', talker.end())


def many(t):
    before = {name: memory(t.daemon(name)) for name in ('storm-mm', 'storm-n1', 'storm-pl n1')}
    r = t.run('run', '-w', 'n1', program(t), 'many', 10000)
    t.check('10,000 questions', r.out == '10000 answers\n', r)
    after = {name: memory(t.daemon(name)) for name in before}
    t.check('leave no trace', all(after[name] < before[name] + 4096 for name in before), (before, after))


def deaf(t):
    talker = Talker(t, '-w', 'n2')
    t.check('another on the same node', talker.asks())
    p = t.start('run', '-w', 'n2', program(t), 'deaf')
    t.check('who does not listen is not listened to any more', p.stdout.readline() == b'stalled\n')
    t.check('the other is not bothered', all(talker.asks() for _ in range(20)))
    t.check('when it listens it begins anew', p.stdout.readline() == b'running\n')
    t.check('and ends', t.finish(p).status == 0)
    t.check('the end', talker.end())


def noise(t):
    talker = Talker(t, '-w', 'n2')
    t.check('another on the same node', talker.asks())
    r = t.run('run', '-w', 'n2', program(t), 'noise')
    t.check('nonsense is passed over, or answered', r.out == 'that cannot be understood\n', r)
    r = t.run('run', '-w', 'n2', program(t), 'crowd')
    t.check('there are only so many lines', 0 < int(r.out.split()[0]) <= 128, r)
    t.check('the other is not bothered', talker.asks())
    t.check('the end', talker.end())
    r = t.run('run', '-w', 'n2', program(t), 'many', 10)
    t.check('and the next is let in', r.out == '10 answers\n', r)


play(asks, survives, many, deaf, noise, up=('--local', '6', '--pes', '3'))
