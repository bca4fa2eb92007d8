#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Owners of machines: what is lent leaves when they come, and goes on when they go. Speaks TAP."""
import json
import os
import pty
import signal
import time

from harness import play

NODES = 4


def rows(t, env=None):
    return {row['id']: row for row in json.loads(t.run('ps', '-a', '--json', env=env).out)}


def state(t, job, env=None):
    return rows(t, env).get(job, {}).get('state')


def is_now(t, job, wanted, env=None):
    return t.until(lambda: state(t, job, env) == wanted)


def hosts(t, parent, *states, env=None):
    return sorted(row['id'] for row in rows(t, env).values() if row['parent'] == parent and row['state'] in (states or ('running',)))


def where(t, job, env=None):
    return rows(t, env)[job]['node_list']


def owners(t, env=None):
    return {row['name']: row.get('owner') for row in json.loads(t.run('nodes', '--json', env=env).out)}


def known(t, env=None, **wanted):
    return t.until(lambda: all(owners(t, env)[node] == state for node, state in wanted.items()))


def comes(t, node):
    """The owner has used the file, and will until he goes: a time that lies ahead counts as now."""
    later = time.time() + 86400
    os.utime(t.path(f'desk-{node}'), (later, later))


def goes(t, node):
    os.utime(t.path(f'desk-{node}'), (0, 0))


def node_file(t, name='owners'):
    for i in range(NODES):
        t.write(f'desk-n{i}', '')
        goes(t, f'n{i}')
    return t.write(name, ''.join(f'n{i} owner={t.path("desk-n")}{i}:20s\n' for i in range(NODES)))


def submit(t, *args, env=None):
    return int(t.run('submit', *args, env=env).out)


def mistakes(t):
    for words, place, said in (
            ('n0 owner=keybord', '1:10', 'did you mean keyboard?'), ('n0 owner=load>0', '1:10', 'load>0.5'),
            ('n[1-2] label=a\nn0 owner=keyboard+desk', '2:19', '"desk" does not tell of an owner'),
            ('n0 owner=/tmp/desk:soon', '1:20', '"soon" is no time'), ('n0 owner=', '1:10', 'does not tell'),
            ('n0 owner=load\nn[0-1] owner=keyboard', '2:14', 'n0 has owner=load already')):
        r = t.run('reload', '--nodespec', t.write('wrong', words + '\n'))
        t.check(f'{words!r}: refused, with its place', r.status == 125 and f'wrong:{place}: ' in r.err and said in r.err and
                '^' in r.err, r)
    r = t.run('nodes', '--json')
    t.check('nobody has an owner', r.status == 0 and 'owner' not in r.out, r)


def come_and_go(t):
    r = t.run('reload', '--nodespec', node_file(t))
    t.check('owners are said', r.status == 0, r)
    t.check('and away', known(t, **{f'n{i}': 'away' for i in range(NODES)}), owners(t))
    job = submit(t, '--class', 'w::0:3', 'sleep', 1019)
    t.check('hosts come', t.until(lambda: len(hosts(t, job)) == 3), rows(t))
    some = hosts(t, job)
    one, node = some[0], where(t, some[0])
    p = t.start('run', 'sleep', 1019, env={'STORM_INSIDE': '1', 'STORM_JOB_ID': str(one)})
    t.check('one works', t.until(lambda: len(t.ours('sleep 1019')) == 2))
    comes(t, where(t, job))
    t.check('the owner of the job\'s own node comes', known(t, **{where(t, job): 'active'}), owners(t))
    comes(t, node)
    t.check('and one of a host\'s', is_now(t, one, 'suspended'), rows(t))
    t.check('what is not lent goes on, and hosts elsewhere', [state(t, j) for j in (job, *some[1:])] == ['running'] * 3, rows(t))
    r = t.run('why', one)
    t.check('why, in words', 'the owner of its machine is there; it ends at' in r.out, r)
    r = t.run('nodes')
    t.check('the table says so', r.out.count('owner active') >= 1, r)
    goes(t, node)
    t.check('he goes: it goes on', is_now(t, one, 'running'), rows(t))
    comes(t, node)
    t.check('he comes again', is_now(t, one, 'suspended'), rows(t))
    old = t.daemon('storm-mm')
    os.kill(old, signal.SIGKILL)
    t.check('another manager', t.until(lambda: t.daemon('storm-mm') not in (None, old)))
    seen = []
    t.check('hears that he is there', t.until(lambda: seen.append(state(t, one)) or owners(t)[node] == 'active'))
    t.check('and has let nothing go on meanwhile', 'running' not in seen and is_now(t, one, 'suspended'), seen)
    r = t.run('reload', '--nodespec', t.write('nobody', f'{node} label=free\n'))
    t.check('nobody is an owner any more: it goes on', r.status == 0 and is_now(t, one, 'running'), (r, rows(t)))
    t.check('nothing is shown of owners', t.until(lambda: 'owner' not in t.run('nodes', '--json').out))
    t.run('kill', job)
    t.check('all end', t.until(lambda: not t.ours('sleep 1019')))
    t.finish(p)


def waits(t):
    r = t.run('reload', '--nodespec', node_file(t))
    job = submit(t, '--on', 'n0', 'sleep', 1019)
    holder = submit(t, '--on', 'n[1-2]', '-N', 2, 'sleep', 1019)
    t.check('one node is free', r.status == 0 and is_now(t, job, 'running') and is_now(t, holder, 'running'), rows(t))
    comes(t, 'n3')
    t.check('its owner comes', known(t, n3='active'), owners(t))
    host = int(t.run('grow', job).out)
    t.check('nothing is lent there', t.until(lambda: 'waits for the owner of n3 to be away' in t.run('why', host).out), t.run('why', host))
    other = submit(t, '--on', 'n3', 'true')
    t.check('what is not lent runs there', is_now(t, other, 'done'), rows(t))
    t.check('the host waits', state(t, host) == 'queued', rows(t))
    goes(t, 'n3')
    t.check('he goes: it starts', is_now(t, host, 'running') and where(t, host) == 'n3', rows(t))
    t.run('kill', job, holder)
    t.check('all end', t.until(lambda: not t.ours('sleep 1019')))


def signs(t):
    """What the system itself tells: somebody types, somebody uses processors."""
    spec = t.write('signs', 'n0 owner=load>0.05\nn1 owner=load>90\nn2 owner=/none:1s+keyboard:1h\n')
    near, far = pty.openpty()
    busy = t.spawn('sh', '-c', 'while :; do :; done')
    try:
        r = t.run('reload', '--nodespec', spec)
        os.write(near, b'x\n')
        os.read(far, 2)
        t.check('who types is there, and who computes', r.status == 0 and known(t, n0='active', n1='away', n2='active'), owners(t))
        t.check('where nobody is looked for', owners(t)['n3'] is None)
    finally:
        busy.kill()
        busy.wait()
        os.close(near)
        os.close(far)


def vacated(t):
    """He stays: what is there ends, and something else is found."""
    r = t.run('up', '--cluster', 'soon', '--local', NODES, '--pes', 1, '--vacate', '1s', '--nodespec', node_file(t, 'more'))
    env = {'STORM_CLUSTER': 'soon'}
    t.check('a cluster with owners', r.status == 0 and known(t, env, **{f'n{i}': 'away' for i in range(NODES)}), r)
    job = submit(t, '--class', 'w::0:2', 'sleep', 1019, env=env)
    t.check('two hosts, and a free node', t.until(lambda: len(hosts(t, job, env=env)) == 2), rows(t, env))
    one, other = hosts(t, job, env=env)
    node = where(t, one, env)
    comes(t, node)
    t.check('a host is ended', is_now(t, one, 'killed', env), rows(t, env))
    r = t.run('why', one, env=env)
    t.check('why', 'the owner of the machine came back' in r.out, r)
    t.check('another is found', t.until(lambda: len(hosts(t, job, env=env)) == 2), rows(t, env))
    t.check('elsewhere', node not in [where(t, h, env) for h in hosts(t, job, env=env)] and state(t, other, env) == 'running', rows(t, env))
    for i in range(NODES):
        comes(t, f'n{i}')
    t.check('all owners come', t.until(lambda: not hosts(t, job, env=env)) and state(t, job, env) == 'running', rows(t, env))
    t.check('others are asked for', t.until(lambda: len(hosts(t, job, 'queued', env=env)) == 2), rows(t, env))
    for i in range(NODES):
        goes(t, f'n{i}')
    t.check('and come when they have gone', t.until(lambda: len(hosts(t, job, env=env)) == 2), rows(t, env))
    t.run('down', '--cluster', 'soon')


play(mistakes, come_and_go, waits, signs, vacated, up=('--local', str(NODES), '--pes', '1', '--vacate', '10m', '--orphan', '2s'))
