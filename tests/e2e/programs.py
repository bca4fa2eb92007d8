#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Several programs in one job: which ranks run which, what they find, what is sent where, how they are told of. Speaks TAP."""
import json
import os
import shutil
import signal

from harness import NOBODY, play

NODES, PES = 64, 2
TELL = '#!/bin/sh\necho ${0##*/} $* p$STORM_PROGRAM $STORM_PROGRAM_RANK/$STORM_PROGRAM_SIZE $STORM_RANK/$STORM_SIZE $STORM_NODE\n'


def programs(t, *names, text=TELL):
    """Files that differ."""
    for name in names:
        t.write(name, text + f'# {name}\n', 0o755)


def rows(r):
    """What each rank has said, behind its label."""
    said = {}
    for line in r.out.splitlines():
        rank, words = line.split(': ', 1)
        said[int(rank)] = words
    return said


def expected(parts, node):
    """Of parts (words, count): what TELL says. `node` gives the node of a rank."""
    size, rank, said = sum(n for _, n in parts), 0, {}
    for p, (words, count) in enumerate(parts):
        for i in range(count):
            said[rank] = f'{words} p{p} {i}/{count} {rank}/{size} n{node(rank)}'
            rank += 1
    return said


def ranks(t):
    programs(t, 'master', 'worker', 'other')
    parts = [('master a', 1), ('worker b c', 40), ('other', 59)]
    r = t.run('run', '-l', '-n', 1, './master', 'a', ':', '-n', 40, './worker', 'b', 'c', ':', '-n', 59, './other')
    t.check('three programs on 50 nodes', r.status == 0 and rows(r) == expected(parts, lambda k: k // PES), r)
    r = t.run('run', '-l', './master', ':', './other')
    t.check('one process each, if nothing is said', rows(r) == expected([('master', 1), ('other', 1)], lambda k: 0), r)
    parts = [('master', 3), ('worker', 4)]
    r = t.run('run', '-l', '--map', 'cyclic', '-w', 'n[2-5]', '-n', 3, './master', ':', '-n', 4, './worker')
    t.check('dealt out', rows(r) == expected(parts, lambda k: 2 + k % 4), r)
    where = [7, 3, 3, 9, 7]
    r = t.run('run', '-l', '--map', ','.join(f'n{n}' for n in where), '-n', 2, './master', ':', '-n', 3, './worker')
    t.check('a list', rows(r) == expected([('master', 2), ('worker', 3)], lambda k: where[k]), r)
    r = t.run('run', '-n', 2, 'sh', '-c', 'env')
    t.check('of one program nobody is told that there are others', 'STORM_PROGRAM' not in r.out, r)
    r = t.run('run', 'sh', '-c', f'{t.storm} run -n 2 sh -c "env | grep -c ^STORM_PROGRAM"', ':', 'true')
    t.check('nor inside a job of several', r.out == '0\n0\n', r)
    programs(t, 'same')
    r = t.run('run', '-l', '-n', 1, './same', 'first', ':', '-n', 2, './same', 'then')
    t.check('one file twice', rows(r) == expected([('same first', 1), ('same then', 2)], lambda k: k // PES), r)
    r = t.run('run', '--', 'sh', '-c', 'echo $*', 'x', ':', 'y')
    t.check('behind -- a colon is an argument', r.out == ': y\n', r)


def surroundings(t):
    os.mkdir(t.path('there'))
    if t.user:
        os.chown(t.path('there'), 65534, 65534)
    say = 'echo $A $B $(pwd)'
    r = t.run('run', '-l', '--env', 'A=1', '--env', 'B=2', 'sh', '-c', say, ':', '--env', 'A=3', '-D', 'there', 'sh', '-c', say)
    t.check('an environment and a folder of its own', rows(r) == {0: f'1 2 {t.work}', 1: f'3 2 {t.path("there")}'}, r)
    r = t.run('run', '-l', '--stdin', 'all', '-n', 1, 'cat', ':', '-n', 2, 'sed', 's/^/x/', data=b'typed\n')
    t.check('input for all', rows(r) == {0: 'typed', 1: 'xtyped', 2: 'xtyped'}, r)
    r = t.run('run', '--stdin', 1, '-l', 'true', ':', 'cat', data=b'typed\n')
    t.check('and for one', rows(r) == {1: 'typed'}, r)
    r = t.run('run', '-o', 'out-%r', '-n', 1, 'echo', 'one', ':', '-n', 2, 'echo', 'two')
    t.check('files', [t.read(f'out-{k}') for k in range(3)] == ['one\n', 'two\n', 'two\n'], r)
    r = t.run('alloc', '-n', 8, '--', t.storm, 'run', '-l', '-n', 2, 'echo', 'one', ':', '-n', 3, 'echo', 'two')
    t.check('a step of an allocation', rows(r) == {0: 'one', 1: 'one', 2: 'two', 3: 'two', 4: 'two'}, r)


def ends(t):
    r = t.run('run', '-n', 3, 'true', ':', '-n', 2, 'sh', '-c', 'exit 3', ':', '-n', 2, 'sh', '-c', 'exit 7', ':', 'true')
    t.check('the worst status', r.status == 7, r)
    r = t.run('run', '-n', 3, 'sleep', 60, ':', '-n', 2, 'sh', '-c', 'test $STORM_PROGRAM_RANK = 0 || kill -9 $$; sleep 60')
    t.check('one that is killed ends all', r.status == 137 and r.is_one_line('rank 4', 'n2'), r)
    r = t.run('run', '--kill-on-bad-exit', 'sleep', 60, ':', 'false')
    t.check('so does a bad exit, if wished', r.status == 1, r)
    r = t.run('run', '-v', '-n', 1, 'true', ':', '-n', 3, 'true')
    t.check('-v', '4 processes of 2 programs' in r.err, r)
    programs(t, 'fine', text='#!/bin/sh\n')
    r = t.run('run', './fine', ':', './nowhere')
    t.check('a program that is not there', r.status == 127 and r.is_one_line('./nowhere'), r)
    t.write('gone', '#!/bin/sh\necho here\n', 0o755)
    p = t.run('submit', '--begin', '+1d', './fine', ':', './gone').out.strip()
    os.remove(t.path('gone'))
    t.check('one is queued', t.run('ps').out.count('fine+1') == 1, p)
    t.run('kill', p)


class Holder:
    """A job on all nodes that stays until it is let go. Its processes wait for a line each: so many that looked for a file every
    while would take all the machine's time, and nodes would be taken for gone."""

    def __init__(self, t):
        self.t, self.gate = t, t.path('gate')
        os.mkfifo(self.gate)
        if t.user:
            os.chown(self.gate, NOBODY, NOBODY)
        self.job = t.run('submit', '-n', NODES * PES, 'sh', '-c', 'read line < gate').out.strip()

    def let_go(self):
        with open(self.gate, 'w') as gate:
            gate.write('\n' * NODES * PES)
            gate.flush()
            r = self.t.run('wait', self.job)
        os.remove(self.gate)
        return r


def begun(t):
    """Which of them could not be begun is said."""
    programs(t, 'able', text='#!/bin/sh\n')
    holder = Holder(t)
    t.write('unable', '#!/bin/sh\n', 0o755)
    job = t.run('submit', '-o', 'begun-%j', '-n', 3, './able', ':', '-n', 2, './unable').out.strip()
    os.remove(t.path('unable'))
    r = holder.let_go()
    t.check('what held it', r.status == 0, r)
    r = t.run('wait', job)
    t.check('its status', r.status == 127, r)
    t.check('in its file, too', t.until(lambda: './unable: n' in t.read(f'begun-{job}')), t.read(f'begun-{job}'))


def stored(t, *names):
    """Which of these are in which node's store."""
    found = {name: set() for name in names}
    for n in range(NODES):
        for _, _, files in os.walk(os.path.join(t.home, 'local', f'n{n}', 'spool', 'objects')):
            for name in set(files) & set(names):
                found[name].add(n)
    return found


def images(t):
    programs(t, 'image-a', 'image-b', 'image-c', text='#!/bin/sh\necho ${0##*/} $STORM_NODE\n')
    r = t.run('run', '-l', '--copy', '-n', 3, './image-a', ':', '-n', 30, './image-b', ':', '-n', 51, './image-c', ':', '-n', 2, './image-a')
    names = ['image-a'] * 3 + ['image-b'] * 30 + ['image-c'] * 51 + ['image-a'] * 2
    t.check('they are sent', r.status == 0 and rows(r) == {k: f'{name} n{k // PES}' for k, name in enumerate(names)}, r)
    due = {name: {k // PES for k, n in enumerate(names) if n == name} for name in set(names)}
    t.check('each to the nodes that run it, and to no other', stored(t, *due) == due, stored(t, *due))
    r = t.run('run', '--copy', '-n', 4, './image-b', ':', '-n', 2, './image-c')
    due = {**due, 'image-b': due['image-b'] | {0, 1}, 'image-c': due['image-c'] | {2}}
    t.check('another time to those that lack it', r.status == 0 and stored(t, *due) == due, r)
    programs(t, 'image-d', 'image-e', text='#!/bin/sh\n')
    where = ['n60', 'n61', 'n62', 'n60', 'n62']
    r = t.run('run', '--copy', '--map', ','.join(where), '-n', 2, './image-d', ':', '-n', 3, './image-e')
    due = {'image-d': {60, 61}, 'image-e': {60, 62}}
    t.check('by a list', r.status == 0 and stored(t, *due) == due, (r, stored(t, *due)))
    programs(t, 'image-f', 'image-g', text='#!/bin/sh\n')
    r = t.run('run', '--copy', '--map', 'cyclic', '-w', 'n[40-42]', '-n', 1, './image-f', ':', '-n', 4, './image-g')
    due = {'image-f': {40}, 'image-g': {40, 41, 42}}
    t.check('dealt out', r.status == 0 and stored(t, *due) == due, (r, stored(t, *due)))
    for name in ('cat', 'echo'):
        shutil.copy(shutil.which(name), t.path(f'my-{name}'))
        os.chmod(t.path(f'my-{name}'), 0o755)
    r = t.run('run', '-l', '--with-libs', '-n', 2, './my-echo', 'one', ':', '-n', 2, './my-cat', 'image-a', ':', '-n', 2, './my-echo', 'two')
    said = rows(r)
    t.check('with libraries', r.status == 0 and said[0] == 'one' and said[5] == 'two', r)
    t.check('of each', stored(t, 'my-echo', 'my-cat') == {'my-echo': {0, 2}, 'my-cat': {1}}, stored(t, 'my-echo', 'my-cat'))
    t.write('given', 'words\n')
    r = t.run('run', '-l', '--copy', '--input', 'given', '-n', 1, './image-f', ':', '-n', 3, 'cat', 'given')
    t.check('with files for the job', r.status == 0 and rows(r) == {k: 'words' for k in (1, 2, 3)}, r)
    programs(t, *(f'many-{i}' for i in range(25)), text='#!/bin/sh\necho ${0##*/}\n')
    t.write('many', ''.join(f'./many-{i}\n' for i in range(25)))
    r = t.run('run', '--copy', '--load', 'many')
    t.check('there is a limit', r.status == 125 and r.is_one_line('24 different programs', 'storm cp'), r)
    t.write('many', ''.join(f'./many-{i}\n' for i in range(24)))
    r = t.run('run', '-l', '--copy', '--load', 'many')
    t.check('and up to there they are sent', r.status == 0 and rows(r) == {i: f'many-{i}' for i in range(24)}, r)


def load(t):
    programs(t, 'master', 'worker')
    t.write('two', '# a comment\n-n 2 ./master "a  b"\n\n  -n 3 ./worker : # and another\n')
    parts = [('master a b', 2), ('worker :', 3)]
    r = t.run('run', '-l', '--load', 'two')
    t.check('from a file', r.status == 0 and rows(r) == expected(parts, lambda k: k // PES), r)
    t.write('hundred', ''.join(f'echo {i}\n' for i in range(100)))
    r = t.run('run', '-l', '--load', 'hundred')
    t.check('a hundred programs', r.status == 0 and rows(r) == {i: str(i) for i in range(100)}, r)
    t.write('single', '-n 2 --env A=5 sh -c "echo $A $STORM_PROGRAM"')
    r = t.run('run', '--load', 'single')
    t.check('one that is alone', r.status == 0 and r.out == '5\n5\n', r)
    r = t.run('submit', '--wait', '-o', 'loaded', '--load', 'two')
    t.check('submitted', r.status == 0 and len(t.read('loaded').splitlines()) == 5, r)


def mistakes(t):
    for text, place, words, status in (
            ('true\n  -n x true\n', '2:6', ('not a number',), 2), ('true\n\n -n 2 ./nowhere\n', '3:7', ('./nowhere',), 127),
            ("true 'x\n", '1:6', ('quote',), 2), ('true\n  true --x\n --bogus true', '3:2', ('--bogus',), 2),
            ('-n 2\n', '1:1', ('no program',), 2), ('true\n-n 2 --env A true\n', '2:12', ('NAME=VALUE',), 2),
            ('true\n-n 2 -N x true\n', '2:9', ('not a number',), 2), ('true\n-n 2 --bind core true\n', '2:6', ('not yet',), 2), ('true\n--time=3 true\n', '2:1', ('whole job',), 2),
            ('true\n-D /nowhere true\n', '2:4', ('folder',), 125)):
        t.write('bad', text)
        r = t.run('run', '--load', 'bad')
        t.check(f'{text!r}', r.status == status and r.is_one_line(f'bad:{place}: ', *words), r)
    t.write('empty', '# nothing\n')
    for args, words in ((('--load', 'empty'), ('empty', 'no program')), (('--load', 'empty', 'true'), ('--load',)),
                        (('-n', 2, '--load', 'empty'), ('-n',)), (('true', ':'), ('behind a colon',)),
                        ((':', 'true'), ('before the first',)), (('true', ':', ':', 'true'), ('behind a colon',)),
                        (('true', ':', '-N', 'x', 'true'), ('not a number',)), (('--map', 'n0,n1', '-N', 2, 'true', ':', 'true'), ('not for programs',)),
                        (('true', ':', '-n', 0, 'true'), ('processes',)), (('true', ':', '--mem', '1G', 'true'), ('not yet',)),
                        (('true', ':', '--name', 'x', 'true'), ('whole job',))):
        r = t.run('run', *args)
        t.check(' '.join(map(str, args)), r.status == 2 and r.is_one_line(*words), r)
    r = t.run('run', '--load', 'nowhere')
    t.check('no file', r.status == 125 and r.is_one_line('nowhere', 'No such file'), r)
    r = t.run('run', '-n', NODES * PES, 'true', ':', 'true')
    t.check('more than there is room for', r.status == 125 and r.is_one_line('129'), r)
    r = t.run('run', '--map', 'n0,n1', '-n', 2, 'true', ':', 'true')
    t.check('a list that is too short', r.status == 125 and r.is_one_line('2 processes', '3 are asked for'), r)


def sections(t):
    t.check('nodes that differ', t.run('reload', '--nodespec', t.write('nodespec', 'n[8-23] label=fast\nn[40-47] label=big\n')).status == 0)
    say = ('sh', '-c', 'echo $STORM_NODE $STORM_SIZE $STORM_PROGRAM $STORM_PROGRAM_RANK/$STORM_PROGRAM_SIZE; exit $STORM_PROGRAM')
    r = t.run('run', '-l', '-n', 1, *say, ':', '-N', 10, '-n', 15, '--need', 'label=fast', *say, ':', '--size', '8:2', '--need', 'label=big', *say)
    rows = dict(line.split(': ', 1) for line in r.out.splitlines())
    node = {int(rank): int(words.split()[0][1:]) for rank, words in rows.items()}
    t.check('ranks of each follow each other', sorted(node) == list(range(32)) and r.status == 2, r)
    t.check('the first has what is left', node[0] not in range(8, 24) and node[0] not in range(40, 48), node)
    fast, big = [node[k] for k in range(1, 16)], [node[k] for k in range(16, 32)]
    t.check('the second nodes that it needs, as many as it wants', set(fast) <= set(range(8, 24)) and len(set(fast)) == 10, fast)
    t.check('in blocks', fast == sorted(fast) and [fast.count(n) for n in sorted(set(fast))] == [2] * 5 + [1] * 5, fast)
    t.check('the third all of its own', big == [n for n in range(40, 48) for _ in range(2)], big)
    t.check('who they are', rows['16'].split()[1:] == ['32', '2', '0/16'] and rows['15'].split()[2:] == ['1', '14/15'], rows)
    r = t.run('run', '-o', 's-%n-%r', '-n', 2, 'true', ':', '-N', 2, '--need', 'label=big', 'hostname')
    t.check('names of files', r.status == 0 and all(t.read(f's-n{k}-{k - 38}') for k in (40, 41)), r)
    r = t.run('run', '--dry-run', '-n', 2, 'true', ':', '-N', 2, '-n', 3, '--need', 'label=big', 'true')
    t.check('shown', '  node 0: ranks 0-1 (true)\n  node 1: ranks 2-3 (true)\n  node 2: ranks 4 (true)\n' in r.out, r)
    r = t.run('run', 'true', ':', '-N', 9, '--need', 'label=big', 'true')
    t.check('too few for one of them', r.status == 125 and r.is_one_line('needs 9 nodes with LABELS=big; 8 have it'), r)
    r = t.run('run', '-N', 40, 'true', ':', '-N', 30, 'true')
    t.check('too few for all', r.status == 125 and r.is_one_line('need 70 nodes; the cluster has 64'), r)
    r = t.run('run', *(['-N', 1, 'true', ':'] * 8), '-N', 1, 'true')
    t.check('too many', r.status == 2 and r.is_one_line('more than 8'), r)
    job = t.run('submit', '-n', 1, 'sleep', 1000, ':', '-N', 8, '--need', 'label=big', 'sleep', 1000).out.strip()
    t.until(lambda: 'running' in t.run('show', job).out)
    manager = t.daemon('storm-mm')
    os.kill(manager, signal.SIGKILL)
    t.until(lambda: t.daemon('storm-mm') not in (None, manager) and t.run('show', job).status == 0)
    used = {row['name']: row['used'] for row in json.loads(t.run('nodes', '--json').out)}
    t.check('a manager that comes anew knows who has which', [used[f'n{k}'] for k in range(40, 48)] == [1] * 8 and sum(used.values()) == 9, used)
    t.run('kill', job)
    t.check('its nodes are given back', t.until(lambda: sum(row['used'] for row in json.loads(t.run('nodes', '--json').out)) == 0))
    t.run('reload', '--nodespec', t.write('nodespec', ''))


def shown(t):
    r = t.run('run', '--dry-run', '-n', 3, 'true', ':', '-n', 2, 'sh')
    t.check('which ranks run what', '\nprograms  2\n  0: ranks 0-2, ' in r.out and '\n  1: ranks 3-4, ' in r.out, r)
    t.check('and where', '  node 0: ranks 0-1 (true)\n  node 1: ranks 2 (true) 3 (sh)\n  node 2: ranks 4 (sh)\n' in r.out, r)
    r = t.run('submit', '--dry-run', '--map', 'n1,n0,n1', 'true', ':', '-n', 2, 'sh')
    t.check('by a list', '  n0: ranks 1 (sh)\n  n1: ranks 0 (true) 2 (sh)\n' in r.out, r)
    job = t.run('submit', '--begin', '+1d', '-n', 3, 'true', ':', 'sh', ':', 'cat').out.strip()
    r = t.run('ps')
    t.check('storm ps', any(line.split()[:2] == [job, 'true+2'] for line in r.out.splitlines()), r)
    r = t.run('show', job)
    t.check('storm show', 'true+2' in r.out and '5 processes' in r.out, r)
    t.run('kill', job)
    job = t.run('submit', '--begin', '+1d', '--name', 'mine', 'true', ':', 'sh').out.strip()
    t.check('a name that is given', any(line.split()[:2] == [job, 'mine'] for line in t.run('ps').out.splitlines()))
    t.run('kill', job)


def script(t):
    programs(t, 'master', 'worker')
    t.write('job.sh', f'#!/bin/sh\n#STORM -n 6 -o script.out\n{t.storm} run -l -n 1 ./master : -n 5 ./worker\n', 0o755)
    r = t.run('submit', '--wait', './job.sh')
    said = sorted(t.read('script.out').splitlines(), key=lambda line: int(line.split(':')[0]))
    due = expected([('master', 1), ('worker', 5)], lambda k: k // PES)
    t.check('inside a script', r.status == 0 and said == [f'{k}: {due[k]}' for k in range(6)], (r, said))
    t.write('one.sh', '#!/bin/sh\n#STORM -n 99\necho one\n', 0o755)
    r = t.run('submit', '--wait', '-o', 'texts', '-n', 2, './one.sh', ':', 'echo', 'two')
    t.check('a text among several is a program', r.status == 0 and sorted(t.read('texts').splitlines()) == ['one', 'one', 'two'], t.read('texts'))


def queued(t):
    programs(t, 'master', 'worker')
    holder = Holder(t)
    job = t.run('submit', '-o', 'queued-%r', '-n', 2, './master', 'x', ':', '-n', 3, './worker').out.strip()
    t.check('it waits', t.until(lambda: 'queued' in t.run('show', job).out), t.run('show', job))
    old = t.daemon('storm-mm')
    os.kill(old, signal.SIGKILL)
    t.check('another manager', t.until(lambda: t.daemon('storm-mm') not in (None, old)))
    t.check('which knows of it', t.until(lambda: all(w in t.run('show', job).out for w in ('queued', 'master+1'))), t.run('show', job))
    r = holder.let_go()
    t.check('what held it ends', r.status == 0, (r, t.run('show', holder.job)))
    r = t.run('wait', job)
    due = expected([('master x', 2), ('worker', 3)], lambda k: k // PES)
    t.check('and starts it as it was', r.status == 0 and {k: t.read(f'queued-{k}').strip() for k in range(5)} == due, r)


play(ranks, surroundings, ends, begun, images, load, mistakes, sections, shown, script, queued, up=('--local', str(NODES), '--pes', str(PES)))
