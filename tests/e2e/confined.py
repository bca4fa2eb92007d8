#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a process may use of its node, and where on it: --mem, --bind. Speaks TAP."""
import json
import os
import re

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


def allowed(text):
    """Processors in a list as the kernel prints them."""
    parts = (part.partition('-') for part in text.split(','))
    return {n for a, _, b in parts for n in range(int(a), int(b or a) + 1)}


def seats(t, *args):
    """Of each rank the processors it may use, as the kernel has it."""
    r = t.sh('echo $STORM_RANK $(sed -n s/^Cpus_allowed_list:.//p /proc/self/status)', *args)
    rows = sorted((int(a), allowed(b)) for a, b in (line.split() for line in r.out.splitlines()))
    return r, [b for _, b in rows]


def cores(t):
    lines = t.finish(t.spawn(os.path.join(t.bin, 'storm-topo'), stdout=-1)).out.splitlines()
    return [allowed(line.split()[1]) for line in lines if line.startswith('core ')]


def bound(t):
    if not os.path.exists(os.path.join(t.bin, 'storm-topo')):
        t.skip('--bind', 'built without hwloc')
        return
    all_of_it = os.sched_getaffinity(0)
    have = [c & all_of_it for c in cores(t) if c & all_of_it]
    count = min(len(have), 2)
    r, found = seats(t, '-n', count, '-N', 1, '--bind', 'core', '-o', 'out', '-v')
    r.out = t.read('out')
    t.check('-v tells where they are', re.search(r'bind: ranks? [0-1-]+ on n\d: cores? [\d,-]+$', r.out, re.M), r)
    r, found = seats(t, '-n', count, '-N', 1, '--bind', 'core')
    t.check('--bind core: each on its own', r.err == '' and len(found) == count and
            all(f and any(f <= c for c in have) for f in found) and not set.intersection(*found, *found[1:] or [set()]),
            (r, found, have))
    for what in ('none', None):
        r, found = seats(t, '-n', 2, '-N', 1, *(['--bind', what] if what else []))
        t.check(f'--bind {what}', found == [all_of_it] * 2 and r.err == '', (r, found))
    for what in ('socket', 'numa'):
        r, found = seats(t, '-n', 2, '-N', 1, '--bind', what)
        t.check(f'--bind {what}: no less than a core', r.status == 0 and
                all(any(c <= f for c in have) for f in found), (r, found))
    r = t.run('run', '--bind', 'chair', 'true')
    t.check('to what there is not', r.status == 2 and r.is_one_line('--bind', 'chair', 'socket'), r)


def without_hwloc(t):
    """The kernel's own files do where there is no storm-topo."""
    topo = os.path.join(t.bin, 'storm-topo')
    if os.path.exists(topo):
        os.rename(topo, topo + '.away')
    t.run('down')
    t.run('up', '--local', '2', '--pes', '2')
    r, found = seats(t, '-n', 2, '-N', 1, '--bind', 'core')
    good = 'in turn' in r.err or (r.err == '' and len(set(map(frozenset, found))) == 2)
    t.check('--bind core without hwloc', r.status == 0 and len(found) == 2 and good, (r, found))
    if os.path.exists(topo + '.away'):
        os.rename(topo + '.away', topo)


def shared_and_spared(t):
    if not os.path.exists(os.path.join(t.bin, 'storm-topo')):
        return
    all_of_it = os.sched_getaffinity(0)
    have = [c & all_of_it for c in cores(t) if c & all_of_it]
    many = len(have) + 1
    t.run('down')
    t.run('up', '--local', '2', '--pes', many)
    r, found = seats(t, '-n', 2 * many, '--bind', 'core')
    t.check('more processes than cores: in turn, with one warning',
            found == (have + have[:1]) * 2 and r.is_one_line('--bind', f'{many} processes', 'in turn'), (r, found))
    t.run('down')
    t.run('up', '--local', '2', '--pes', many, '--system-cores', '1')
    if len(have) < 2:
        t.skip('--system-cores', 'one core')
        return
    r, found = seats(t, '-n', 2, '-N', 1)
    t.check('--system-cores: nothing of a job is there', found == [all_of_it - cores(t)[0]] * 2, (r, found))
    r, found = seats(t, '-n', len(have) - 1, '-N', 1, '--bind', 'core')
    t.check('nor bound there', found == have[1:], (r, found))


play(one_is_killed, it_alone_is_named, offspring, the_node_goes_on, in_a_script, sizes, bound,
     nothing_is_left, no_controller, without_hwloc,
     shared_and_spared, up=('--local', '3', '--pes', '2', '--orphan', '2s'))
