#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Limits on what a process may use of its node: --mem. Speaks TAP."""
import json
import os

from harness import play

HOG = 'dd if=/dev/zero of=/dev/null bs=%dM count=1 2>/dev/null'


def limits_here(t):
    """Has the node a memory controller for us?"""
    return not t.user and 'by control groups' in next(
        c['words'] for c in json.loads(t.run('doctor', '--json').out)['checks'] if c['name'] == 'memory limits')


def groups(t):
    """Control groups of this suite's cluster, wherever they are mounted."""
    with open(os.path.join(t.home, 'local', 'cluster')) as f:
        watcher = int(dict(line.rstrip('\n').split(' ', 1) for line in f)['watcher'])
    with open(f'/proc/{watcher}/stat') as f:
        sweeper = f.read().rpartition(')')[2].split()[1]
    name = f'storm-local-0-{sweeper}'
    return [os.path.join(where, d) for where, folders, _ in os.walk('/sys/fs/cgroup') for d in folders if d == name]


def one_is_killed(t):
    script = f'if [ $STORM_RANK = 3 ]; then {HOG % 100}; else {HOG % 4}; echo fine; fi'
    r = t.sh(f'{script}', '-n', 6, '--mem', '32M')
    if not limits_here(t):
        t.skip('a process that uses too much is killed', 'no memory controller for us')
        return
    t.check('a process that uses too much is killed', r.status == 137, r)
    t.check('it is said which, where, and what it might have used', r.is_one_line(
        'process 3 on n1 was killed', 'more than its 32 MiB of memory (--mem)'), r)
    t.check('the others go on', r.out == 'fine\n' * 5, r)
    job = json.loads(t.run('ps', '-a', '--json').out)[-1]
    t.check('ps knows it later', 'rank 3 on n1 was killed: it used more than its 32 MiB' in job['why'], job)
    t.check('so does show', '32 MiB of memory' in t.run('show', job['id']).out, t.run('show', job['id']))


def it_alone_is_named(t):
    """Who is ended because of it has not used too much."""
    if not limits_here(t):
        return
    r = t.sh(f'if [ $STORM_RANK = 1 ]; then {HOG % 100}; fi; sleep 300', '-n', 2, '--mem', '32M',
             '--kill-on-bad-exit')
    t.check('the rest of the job is ended, and the first is named', r.status == 137 and
            all(w in r.err for w in ('process 1 on', '32 MiB')) and 'process 0' not in r.err, r)
    r = t.sh('kill -9 $$', '--mem', '32M')
    t.check('who is killed by others is not said to have used too much', r.status == 137 and
            'memory' not in r.err and 'signal 9' in r.err, r)


def offspring(t):
    if not limits_here(t):
        return
    r = t.sh(f'({HOG % 100}); exit 3', '--mem', '32M')
    t.check('what a process starts counts with it', r.status == 137 and
            all(w in r.err for w in ('process 0 on n0', '32 MiB')), r)


def the_node_goes_on(t):
    r = t.sh('echo $STORM_NODE', '-w', 'n1')
    t.check('the node runs the next job', r.status == 0 and r.out == 'n1\n', r)
    r = t.sh(HOG % 100, '-n', 6)
    t.check('without --mem there is no limit', r.status == 0 and r.err == '', r)


def in_a_script(t):
    path = t.write('job.sh', f'#!/bin/sh\n#STORM --mem 32M -o job.out\n{HOG % 100}\nstatus=$?\necho $status\nexit $status\n', 0o755)
    r = t.run('submit', '--wait', path)
    if limits_here(t):
        t.check('a script has it from its own lines', r.status == 137 and '32 MiB of memory' in r.err, r)
    else:
        t.check('a script has it from its own lines', r.status == 1 and 'cannot limit memory' in r.err, r)


def sizes(t):
    for size, words in (('much', ['no size', '64M']), ('0', ['at least 1 MiB']), ('64', ['at least 1 MiB']),
                        ('99999T', ['at most'])):
        r = t.run('run', '--mem', size, 'true')
        t.check(f'--mem {size}', r.status == 2 and r.is_one_line('--mem', size, *words), r)
    r = t.run('run', '--mem', '1.5G', '--dry-run', 'true')
    t.check('--dry-run tells the limit', '1.5 GiB for each process' in r.out, r)


def nothing_is_left(t):
    if t.user:
        return
    found = groups(t)
    left = [d for g in found for d, _, _ in os.walk(g) if os.path.basename(d).startswith('p')]
    t.check('no group of a process is left', left == [], left)
    pl = t.daemon('storm-pl n0')
    p = t.start('run', '--mem', '32M', '-w', 'n0', 'sleep', '300')
    t.until(lambda: any(t.ours('sleep 300')))
    os.kill(pl, 9)
    r = t.finish(p)
    t.check('a launcher dies with processes that have a limit', r.status == 125, r)
    t.check('the next has none of theirs', t.until(lambda: t.sh('exit 4', '--mem', '32M', '-w', 'n0').status == 4, 60))
    t.run('down')
    t.check('nor anything when the cluster is gone', [g for g in found if os.path.exists(g)] == [], found)


def no_controller(t):
    """As on a node that has none."""
    t.run('down')
    r = t.run('up', '--local', '3', env={'STORM_TEST_RATIONS': 'none'})
    t.check('up without a memory controller', r.status == 0, r)
    r = t.sh('ulimit -d', '-n', 3, '--mem', '32M')
    t.check('one warning, and a limit of another kind', r.status == 0 and r.out == '32768\n' * 3 and
            r.is_one_line('cannot limit memory as --mem asks', 'storm doctor'), r)
    r = t.sh('exit 0', '-n', 3)
    t.check('no warning without --mem', r.status == 0 and r.err == '', r)


play(one_is_killed, it_alone_is_named, offspring, the_node_goes_on, in_a_script, sizes, nothing_is_left,
     no_controller, up=('--local', '3', '--pes', '2', '--orphan', '2s'))
