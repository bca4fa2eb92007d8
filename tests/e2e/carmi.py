#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""CARMI: each call of <storm/carmi.h> on a real cluster, with what can go wrong, and with daemons that are killed. Speaks TAP."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys

from harness import play
from teller import Teller, program

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..')
PYTHON = next(p for p in ('/usr/bin/python3', sys.executable) if os.path.exists(p))     # that any user may execute


def jobs(t):
    return json.loads(t.run('ps', '--json').out)


def classes(t):
    p = Teller(t)
    t.check('a class is defined', p.does('define', 'any') == ['defined', 'last'])
    t.check('once', p.does('define', 'any')[:4] == ['defined', 'failed', 'File', 'exists'])
    t.check('with an expression', p.does('define', 'large', 'PROCESSORS>=1') == ['defined', 'last'])
    t.check('they are listed', p.does('classes') == ['classes', 'any::1', 'large:PROCESSORS>=1:1', 'last'])
    t.check('one is removed', p.does('remove', 'large') == ['removed', 'last'])
    t.check('once', p.does('remove', 'large')[:3] == ['removed', 'failed', 'Invalid'])
    hosts = p.grows('any')
    t.check('not while it has hosts', 'busy' in p.does('remove', 'any'))
    p.does('del', *hosts)
    t.check('but when they are gone', p.does('remove', 'any') == ['removed', 'last'])
    t.check('the end', p.end())


def shared(t):
    """What one process defines the others know, also those that are started later, and after the manager's end."""
    p = Teller(t, '-N', '2', '--stdin', '0')
    p.does('define', 'any')
    host = p.grows('any')[0]
    for _ in range(8):      # requests of the other have numbers below those of this
        p.does('config')
    os.mkfifo(t.path('told'), 0o666)
    number = p.ask('on', host, '/bin/sh', '-c', f'{program(t)}<{t.path("told")}'.replace(' ', '\t'))
    with open(t.path('told'), 'w') as other:
        other.write('classes\ndefine any\ndefine more PROCESSORS>=1\nremove any\n')
        other.flush()
        while (line := p.line()) and not line.startswith('4 removed'):
            p.kept.append(line)
        p.kept.append(line)
    while (said := p.hear(number)) and said[-1] != 'last':
        pass
    t.check('a process of it has ended', 'status 0' in ' '.join(said), said)
    kept = ' '.join(p.kept)
    t.check('it knows the class', 'classes any::1 last' in kept, p.kept)
    t.check('cannot define it again', 'defined failed File exists' in kept, p.kept)
    t.check('nor remove it while there are hosts', 'removed failed Device or resource busy' in kept, p.kept)
    p.kept = []
    t.check('and has defined another', p.does('classes')[1:] == ['any::1', 'more:PROCESSORS>=1:1', 'last'])
    os.kill(t.daemon('storm-mm'), signal.SIGKILL)
    t.check('which stays when the manager dies', p.does('classes')[1:] == ['any::1', 'more:PROCESSORS>=1:1', 'last'])
    t.check('and is removed by who has not defined it', p.does('remove', 'more') == ['removed', 'last'])
    os.kill(t.daemon('storm-mm'), signal.SIGKILL)
    t.check('for good', p.does('classes')[1:] == ['any::1', 'last'])
    t.check('the end', p.end())
    p = Teller(t)
    t.check('another program has none of them', p.does('classes') == ['classes', 'last'])
    t.check('the end of it', p.end())


def hosts(t):
    p = Teller(t)
    p.does('define', 'any')
    t.check('none at first', p.does('config') == ['config', 'last'])
    one = p.grows('any')
    t.check('a host comes', len(one) == 1)
    t.check('it is listed', p.does('config') == ['config', *one, 'last'])
    number = p.ask('add', 'any', 4, 2)
    first, second = p.hear(number), p.hear(number)
    t.check('two and two', (len(first), len(second), second[-1]) == (3, 4, 'last'), (first, second))
    all_hosts = p.does('config')[1:-1]
    t.check('all of them', sorted(all_hosts) == sorted(one + first[1:] + second[1:-1]))
    info = dict(w.split('=', 1) for w in p.does('info', one[0]) if '=' in w)
    t.check('what one is like', info.get('CLASS') == 'any' and info.get('STATE') == 'running' and
            {'NAME', 'SPEED', 'PROCESSORS', 'ARCH', 'OPSYS'} <= set(info), info)
    t.check('one that is not ours', 'process' in p.does('info', 1), '')
    t.check('given back', p.does('del', *one) == ['deleted', *one, 'last'])
    t.check('twice', p.does('del', *one)[:2] == ['deleted', 'failed'])
    said = p.does('del', all_hosts[1], 77)
    t.check('in part', said[:2] == ['deleted', 'failed'] and all_hosts[1] in said, said)
    t.check('an unknown class', 'Invalid' in p.does('add', 'what', 1, 1))
    t.check('the end', p.end())
    t.check('hosts end with it', t.until(lambda: not jobs(t)), jobs(t))


def cannot(t):
    p = Teller(t)
    p.does('define', 'none', 'MEMORY>=900TB')
    said = p.does('add', 'none', 1, 1)
    t.check('no node is like that', said[:2] == ['added', 'failed'] and said[-1] == 'last', said)
    p.does('define', 'any')
    number = p.ask('add', 'any', 40, 1)
    for _ in range(5):
        t.check('as many as there are', len(p.hear(number)) == 2)
    t.check('the rest is waited for, or not', p.does('cancel', number) == ['cancelled', 'last'])
    t.check('once', 'process' in p.does('cancel', number))
    t.check('what came stays', len(p.does('config')) == 7)
    t.check('nothing waits any more', t.until(lambda: all(j['state'] == 'running' for j in jobs(t))), jobs(t))
    t.check('the end', p.end())


def spawns(t):
    p = Teller(t)
    p.does('define', 'any')
    t.check('without hosts', p.does('spawn', 'any', 'true')[:2] == ['spawned', 'failed'])
    hosts = p.grows('any', 2, 2)
    number = p.ask('spawn', 'any', '/bin/sh', '-c', 'exit\t7')
    said = p.hear(number)
    t.check('a process is started', said[:1] == ['spawned'] and said[1] in hosts and said[-1] != 'last', said)
    said = p.hear(number)
    t.check('and ends', said[:1] == ['exited'] and 'status 7 cpu some last' in ' '.join(said), said)
    number = p.ask('on', hosts[1], 'sleep', '1000')
    started = p.hear(number)
    t.check('on one host', started[1] == hosts[1], started)
    said = p.does('processes')
    t.check('it is listed', said[1:-1] == [f'{started[3]}@{hosts[1]}:sleep'], said)
    t.check('it runs there', any(j['id'] == int(started[3]) for j in jobs(t)), jobs(t))
    p.does('del', hosts[1])
    said = p.hear(number)
    t.check('with its host it ends', said[0] == 'exited' and said[-1] == 'last', said)
    number = p.ask('on', hosts[0], '/nowhere/to/be/found')
    while (said := p.hear(number)) and said[-1] != 'last':
        pass
    t.check('a program that is not there', said[1:5] == ['failed', 'No', 'such', 'file'], said)
    number = p.ask('on', hosts[0], 'echo', 'word')
    p.hear(number)
    p.hear(number)
    t.check('what it writes is the program\'s output', 'word' in p.kept, p.kept)
    t.check('a host that is gone', p.does('on', hosts[1], 'true')[:2] == ['spawned', 'failed'])
    t.check('the end', p.end())


def notices(t):
    p = Teller(t)
    p.does('define', 'any')
    hosts = p.grows('any', 2, 1)
    lost, suspended, resumed = p.ask('lost'), p.ask('suspends'), p.ask('resumes', hosts[0])
    t.run('suspend', hosts[0])
    t.check('suspended', p.hear(suspended) == ['suspended', hosts[0]])
    t.run('resume', hosts[0])
    t.check('goes on', p.hear(resumed) == ['resumed', hosts[0]])
    t.run('suspend', hosts[1])
    t.run('resume', hosts[1])
    t.check('another is suspended', p.hear(suspended) == ['suspended', hosts[1]])
    t.run('kill', hosts[1])
    t.check('lost', p.hear(lost) == ['deleted', hosts[1]])
    t.check('what was not asked for is not told', not any(line.split()[0] == resumed for line in p.kept), p.kept)
    p.does('cancel', lost)
    p.does('del', hosts[0])
    t.check('no more', not any(line.split()[0] == lost for line in p.kept), p.kept)
    t.check('the end', p.end())


def survives(t):
    p = Teller(t)
    p.does('define', 'any')
    hosts = p.grows('any')
    task = p.ask('on', hosts[0], 'sleep', '1000')
    p.hear(task)
    lost = p.ask('lost')
    for name in ('storm-n0', 'storm-mm', 'storm-n0', 'storm-mm'):
        number = p.ask('add', 'any', 1, 1)
        os.kill(t.daemon(name), signal.SIGKILL)
        said = p.hear(number)
        t.check(f'{name} is killed: a host comes, once', said[:1] == ['added'] and len(said) == 3, said)
        hosts += said[1:2]
        t.check('as many as were asked for', sorted(p.does('config')[1:-1]) == sorted(hosts))
    os.kill(t.daemon('storm-mm'), signal.SIGKILL)
    r = t.run('kill', hosts[1])
    t.check('one is lost meanwhile', p.hear(lost) == ['deleted', hosts[1]], r)
    t.run('kill', p.does('processes')[1].split('@')[0])
    said = p.hear(task)
    t.check('the end of a process is told', said[:1] == ['exited'] and 'status 143' in ' '.join(said), said)
    t.check('the end', p.end())


def given(t):
    p = Teller(t, '--class', 'some:PROCESSORS>=1:1:2')
    t.check('classes of the command', p.does('classes')[1] == 'some:PROCESSORS>=1:1', p.kept)
    number = p.ask('comes', 'some')
    said = p.hear(number)
    t.check('its first host', said[0] == 'added' and len(said) == 2, said)
    said = p.hear(number)
    t.check('and the second', said[0] == 'added' and len(said) == 2, said)
    t.check('the end', p.end())


def seesaw(t):
    """One grows from 1 to 32 nodes and back while the other does the opposite, ten times."""
    t.run('up', '--cluster', 'wide', '--local', 33, '--pes', 1)
    wide = {'STORM_CLUSTER': 'wide'}
    pair = [Teller(t, '--cluster', 'wide') for _ in range(2)]
    for p in pair:
        p.does('define', 'any')
    held = pair[0].grows('any', 31, 31)
    t.check('32 nodes', len(held) == 31)
    apart, told = [], []
    for turn in range(20):
        giver, taker = pair[turn % 2], pair[1 - turn % 2]
        number = taker.ask('add', 'any', 31, 31)
        rows = {}

        def waits():
            rows.update({row['id']: row for row in json.loads(t.run('ps', '--json', env=wide).out)})
            return sum(row['state'] == 'queued' for row in rows.values()) == 31
        told.append(t.until(waits) and 'waits' in t.run('why', next(i for i, row in rows.items() if row['state'] == 'queued'), env=wide).out)
        gone = giver.does('del', *held)
        said = taker.hear(number)
        held = [w for w in said[1:] if w.isdigit()]
        rows = [row for row in json.loads(t.run('ps', '--json', env=wide).out) if row['state'] == 'running']
        apart.append(len(gone) == 33 and len(held) == 31 and len({row['node_list'] for row in rows}) == len(rows) == 33)
    t.check('ten times there and back, no node ever in both', all(apart), apart)
    t.check('who waits is told why', all(told), told)
    t.check('both end', all([p.end() for p in pair]))
    t.run('down', '--cluster', 'wide')


def is_loadable(library):
    """Python cannot load one that is instrumented."""
    return os.path.exists(library) and b'__asan_init' not in open(library, 'rb').read()


def python(t):
    library = os.path.join(os.path.dirname(os.environ['STORM']), 'libstorm.so')
    if not is_loadable(library):
        t.skip('in Python', 'this build is instrumented, or has no such library')
        return
    for path in (library, f'{ROOT}/python/storm.py', f'{ROOT}/examples/grow.py', f'{ROOT}/tests/e2e/carmi_in_python.py'):
        shutil.copy(path, t.bin)
    env = {'STORM_LIB': f'{t.bin}/libstorm.so', 'PYTHONPATH': t.bin, 'PYTHONDONTWRITEBYTECODE': '1', 'PYTHONIOENCODING': 'utf-8'}
    with open(f'{ROOT}/include/storm/carmi.h') as header:
        kinds = re.findall(r'^    CARMI_(\w+)', header.read(), re.M)
    r = t.finish(t.spawn(PYTHON, '-c', 'import storm; print(*(storm.CarmiKind(i).name for i in range(len(storm.CarmiKind))))', env=env, stdout=subprocess.PIPE))
    t.check('kinds are those of the header', len(kinds) > 0 and r.out.split() == kinds, r)
    r = t.run('run', '-w', 'n0', PYTHON, f'{t.bin}/carmi_in_python.py', env=env)
    lines = r.out.splitlines()
    t.check('what a process writes is the program\'s output', lines.count('a word ü') == 1, r)
    for line in lines:
        what, _, said = line.partition(': ')
        if said:
            t.check(what, said == 'yes', said)
    t.check('to its end', r.status == 0 and lines[-1:] == ['the end: yes'], r)
    r = t.run('run', '-w', 'n0', PYTHON, f'{t.bin}/grow.py', 4, 'echo', 'word', env=env)
    t.check('the example', r.status == 0 and r.out == 'word\n' * 4, r)
    r = t.run('run', '-w', 'n0', PYTHON, f'{t.bin}/grow.py', 1, '/nowhere/to/be/found', env=env)
    t.check('with a program that is not there', r.status == 0 and 'grow: it could not be started' in r.err, r)
    r = t.finish(t.spawn(PYTHON, f'{t.bin}/grow.py', env=env, stderr=subprocess.PIPE))
    t.check('outside of a job', r.status == 1 and r.err == 'grow: this process is not of a job; storm run starts those that are\n', r)
    t.check('nothing is left', t.until(lambda: not jobs(t)), jobs(t))


play(classes, shared, hosts, cannot, spawns, notices, survives, given, python, seesaw)
