#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Which process is on which node: --map block, cyclic and lists, and what depends on it. Speaks TAP."""
from harness import play

WHERE = ('-l', 'sh', '-c', 'echo $STORM_NODE $STORM_LOCAL_RANK/$STORM_LOCAL_SIZE')


def where(t, *args):
    r = t.run('run', *args, *WHERE)
    rows = sorted((line.split(': ', 1) for line in r.out.splitlines()), key=lambda row: int(row[0]))
    return [words for _, words in rows]


def maps(t):
    t.check('block', where(t, '-N', 3, '-n', 7, '--map', 'block') ==
            ['n0 0/3', 'n0 1/3', 'n0 2/3', 'n1 0/2', 'n1 1/2', 'n2 0/2', 'n2 1/2'])
    t.check('it is the default', where(t, '-N', 2, '-n', 3) == ['n0 0/2', 'n0 1/2', 'n1 0/1'])
    t.check('cyclic', where(t, '-N', 3, '-n', 7, '--map', 'cyclic') ==
            ['n0 0/3', 'n1 0/2', 'n2 0/2', 'n0 1/3', 'n1 1/2', 'n2 1/2', 'n0 2/3'])
    t.check('a list', where(t, '--map', 'n2,n0*2,n2,n1') == ['n2 0/2', 'n0 0/2', 'n0 1/2', 'n2 1/2', 'n1 0/1'])
    t.check('of folded names', where(t, '--map', 'n[1-2]*2,n0') == ['n1 0/2', 'n1 1/2', 'n2 0/2', 'n2 1/2', 'n0 0/1'])
    t.check('more on one than on another', where(t, '--map', 'n0*4,n1') == [f'n0 {i}/4' for i in range(4)] + ['n1 0/1'])
    t.check('among these nodes only', where(t, '-w', 'n[1-2]', '-N', 2, '-n', 4, '--map', 'cyclic') ==
            ['n1 0/2', 'n2 0/2', 'n1 1/2', 'n2 1/2'])


def streams(t):
    for how in (('--map', 'cyclic', '-N', 2, '-n', 5), ('--map', 'n1,n0,n1,n0,n1')):
        name = how[1]
        r = t.run('run', *how, '--stdin', 3, '-l', 'sh', '-c', 'test $STORM_RANK != 3 || cat', data=b'typed\n')
        t.check(f'{name}: input to a rank', r.status == 0 and r.out == '3: typed\n', r)
        r = t.run('run', *how, '--stdin', 'all', 'cat', data=b'x\n')
        t.check(f'{name}: to all', r.out == 'x\n' * 5, r)
        r = t.run('run', *how, 'sh', '-c', 'head -c 2000000 /dev/zero')
        t.check(f'{name}: output that must be taken', r.status == 0 and len(r.out) == 10000000, r.status)
        r = t.run('run', *how, 'sh', '-c', 'test $STORM_RANK != 3 || kill -9 $$; sleep 60')
        t.check(f'{name}: who was killed, and where', r.status == 137 and 'rank 3' in r.err and ('n1' if name == 'cyclic' else 'n0') in r.err, r)
        r = t.run('run', *how, '-o', f'{name[:3]}-%n-%r', 'sh', '-c', 'echo $STORM_NODE')
        second = 'n1' if name == 'cyclic' else 'n0'
        t.check(f'{name}: names of files', r.status == 0 and t.read(f'{name[:3]}-{second}-1') == f'{second}\n', r)
        r = t.run('submit', '--wait', *how, '-o', f'batch-{name[:3]}-%n-%r', 'sh', '-c', 'echo $STORM_NODE')
        t.check(f'{name}: of a job that was submitted', r.status == 0 and
                t.until(lambda: t.read(f'batch-{name[:3]}-{second}-1') == f'{second}\n'), r)


def shown(t):
    r = t.run('run', '--dry-run', '--map', 'cyclic', '-N', 2, '-n', 5, 'true')
    t.check('ranks of nodes that are not chosen yet', '  node 0: ranks 0,2,4\n  node 1: ranks 1,3\n' in r.out, r)
    r = t.run('run', '--dry-run', '--map', 'n2*2,n0', 'true')
    t.check('of nodes that are named', '  n0: ranks 2\n  n2: ranks 0-1\n' in r.out, r)
    r = t.run('run', '--dry-run', '-N', 2, '-n', 5, 'true')
    t.check('in rows', '  node 0: ranks 0-2\n  node 1: ranks 3-4\n' in r.out, r)


def inside(t):
    r = t.run('alloc', '-N', 2, '-n', 4, '--', t.storm, 'run', '-N', 2, '-n', 4, '--map', 'cyclic', *WHERE)
    t.check('a step of an allocation', r.status == 0 and sorted(r.out.splitlines()) ==
            ['0: n0 0/2', '1: n1 0/2', '2: n0 1/2', '3: n1 1/2'], r)


def mistakes(t):
    for words, what in ((('--map', 'n9'), ('n9', 'no such node')), (('--map', 'round'), ('round', 'cyclic')),
                        (('--map', 'n0*5'), ('5 processes on n0', '4 processors')),
                        (('-n', 3, '--map', 'n0,n1'), ('2 processes', '3 are asked for')),
                        (('-N', 3, '--map', 'n0,n1'), ('2 nodes', '3 are asked for'))):
        r = t.run('run', *words, 'true')
        t.check(f'{" ".join(map(str, words))}', r.status == 125 and r.is_one_line(*what), r)
    for words, what in ((('--map', 'n0*x'), ('how many',)), (('--map', 'n[0-'), ('--map',)), (('-w', 'n0', '--map', 'n1'), ('leave -w out',))):
        r = t.run('run', *words, 'true')
        t.check(f'{" ".join(words)}', r.status == 2 and r.is_one_line(*what), r)


play(maps, streams, shown, inside, mistakes, up=('--local', '3', '--pes', '4'))
