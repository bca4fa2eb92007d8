#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""CARMI: messages between the processes of a program, on one node and between nodes, with what can go wrong. Speaks TAP."""
import os
import shutil
import signal
import subprocess

from harness import play


def program(t):
    to = os.path.join(t.bin, 'carmi_talker')
    if not os.path.exists(to):
        shutil.copy(os.path.join(os.path.dirname(os.environ['STORM']), 'tests', 'carmi_talker'), to)
    return to


def begin(t, scene, *options):
    return t.start('run', *(options or ('-w', 'n0')), program(t), scene, stderr=subprocess.DEVNULL)


def verdicts(t, p):
    """What the program has found, until it ends."""
    said = [line.decode().rstrip('\n').rpartition(': ') for line in p.stdout]
    for what, _, holds in said:
        t.check(what, holds == 'yes', holds)
    t.check('to its end', p.wait() == 0 and said[-1:] == [('the end', ': ', 'yes')], said[-1:])


def ranks(t):
    verdicts(t, begin(t, 'ranks', '-n', 2, '-w', 'n1'))


def family(t):
    verdicts(t, begin(t, 'family', '--exclusive', '-w', 'n0'))


def classes(t):
    verdicts(t, begin(t, 'classes', '-w', 'n1'))


def survives(t):
    p = begin(t, 'survives')
    t.check('it has begun', p.stdout.readline() == b'kill\n')
    os.kill(t.daemon('storm-mm'), signal.SIGKILL)
    p.stdin.write(b'go\n')
    p.stdin.flush()
    verdicts(t, p)


def deaf(t):
    verdicts(t, begin(t, 'deaf'))


def strangers(t):
    verdicts(t, begin(t, 'strangers', '-n', 2, '-w', 'n1'))


def one_wait(t):
    p = begin(t, 'one_wait')
    words = p.stdout.readline().decode().split()
    t.check('it has begun', words[:1] == ['suspend'], words)
    t.run('suspend', words[-1])
    verdicts(t, p)


def example(t):
    library = os.path.join(os.path.dirname(os.environ['STORM']), 'libstorm.so')
    if not os.path.exists(library) or b'__asan_init' in open(library, 'rb').read():
        t.skip('the example', 'this build is instrumented, or has no such library')
        return
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..')
    shutil.copy(library, os.path.join(t.bin, 'libstorm.so.0'))
    r = t.finish(t.spawn('cc', '-Wall', '-Wextra', '-Werror', f'-I{root}/include', '-o', f'{t.bin}/ring', f'{root}/examples/ring.c',
                         f'{t.bin}/libstorm.so.0', f'-Wl,-rpath,{t.bin}', stderr=subprocess.PIPE))
    t.check('the example compiles', r.status == 0, r)
    r = t.run('run', '-N', 2, '-n', 6, f'{t.bin}/ring', 1000)
    t.check('it passes a number round', (r.status, r.out) == (0, '15000\n'), r)


play(ranks, family, classes, survives, deaf, strangers, one_wait, example, up=('--local', '4', '--pes', '10', '--orphan', '2s'))
