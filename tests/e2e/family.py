#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Jobs that grow and shrink: storm grow, --class, loans that are called back. Speaks TAP."""
import json
import os
import signal

from harness import play

NODES = 8


def rows(t):
    return {row['id']: row for row in json.loads(t.run('ps', '-a', '--json').out)}


def state(t, job):
    return rows(t).get(job, {}).get('state')


def hosts(t, parent, *states):
    """Hosts of a job that are in one of these states, by number."""
    return sorted(row['id'] for row in rows(t).values() if row['parent'] == parent and row['state'] in (states or ('running',)))


def where(t, *jobs):
    all_rows = rows(t)
    return [all_rows[job]['node_list'] for job in jobs]


def used(t):
    return sum(row['used'] for row in json.loads(t.run('nodes', '--json').out))


def submit(t, *args):
    return int(t.run('submit', *args).out)


def grow(t, job, *args):
    return [int(word) for word in t.run('grow', job, *args).out.split()]


def running(t, *jobs):
    return t.until(lambda: all(state(t, job) == 'running' for job in jobs))


def free(t):
    return t.until(lambda: used(t) == 0)


def short(t):
    return [(job, row['name'], row['state'], row['parent'], row['node_list']) for job, row in rows(t).items()][-24:]


def grown(t):
    job = submit(t, 'sleep', 1013)
    running(t, job)
    some = grow(t, job, 3)
    t.check('three hosts', len(some) == 3 and running(t, *some), short(t))
    t.check('on other nodes', len(set(where(t, job, *some))) == 4, where(t, job, *some))
    r = t.run('show', some[0])
    t.check('whose they are', f'host of    {job}\n' in r.out, r)
    t.check('the job tells how many', 'hosts      3\n' in t.run('show', job).out)
    inside = {'STORM_INSIDE': '1', 'STORM_JOB_ID': str(some[1])}
    r = t.run('run', 'sh', '-c', 'echo $STORM_NODE', env=inside)
    t.check('what runs there is there', r.out.strip() == where(t, some[1])[0], r)
    r = t.run('run', '-n', 2, 'true', env=inside)
    t.check('not more than it has', r.status == 125 and r.is_one_line('the allocation has 1'), r)
    t.run('kill', some[0])
    t.check('one is given back', t.until(lambda: used(t) == 3) and state(t, some[0]) == 'done', short(t))
    p = t.start('run', 'sleep', 1013, env=inside)
    t.check('a step that stays', t.until(lambda: len(t.ours('sleep 1013')) == 2), t.ours('sleep 1013'))
    t.run('kill', job)
    t.check('with the job all end', free(t) and {state(t, h) for h in some} == {'done'}, short(t))
    t.check('and what runs there', not t.ours('sleep 1013') and t.finish(p).status != 0)


def refused(t):
    job = submit(t, 'sleep', 1013)
    running(t, job)
    for what, args, words in (
            ('no such job', (999,), ('999', 'does not run')), ('too wide', (job, '--ppn', 3), ('3 processors',)),
            ('a need that nobody has', (job, '--need', 'PES>=64'), ('PES>=64',)),
            ('a need that makes no sense', (job, '--need', 'NOISE>2'), ('NOISE',))):
        r = t.run('grow', *args)
        t.check(what, r.status == 125 and all(w in r.err for w in words), r)
    for args in ((), ('x',), (job, 0), (job, 'y'), (job, 5000), (job, '--class', ''), (job, '--ppn', 0)):
        r = t.run('grow', *args)
        t.check(f'wrong: {args}', r.status == 2 and r.is_one_line('grow'), r)
    for text in ('w', 'w::1', 'w::2:1', ':x:1:2', 'w::0:0', 'a b::1:1'):
        r = t.run('run', '--class', text, 'true')
        t.check(f'--class {text}', r.status == 2 and r.is_one_line('--class'), r)
    r = t.run('run', '--class', 'w::1:1', '--class', 'w::1:1', 'true')
    t.check('a name twice', r.status == 2 and r.is_one_line('twice'), r)
    r = t.run('run', '--class', f'w::{NODES}:{NODES}', 'true')
    t.check('more than there are', r.status == 125 and r.is_one_line('the cluster has 8'), r)
    r = t.run('run', '--class', 'w:NOISE>3:1:2', 'true')
    t.check('a class that makes no sense', r.status == 125 and 'NOISE' in r.err, r)
    r = t.run('run', 'true', env={'STORM_INSIDE': '1', 'STORM_JOB_ID': str(job)})
    t.check('a job that is no allocation', r.status == 125 and r.is_one_line('no allocation'), r)
    t.run('kill', job)
    free(t)


def classes(t):
    holder = submit(t, '-N', NODES - 2, 'sleep', 1013)
    running(t, holder)
    job = submit(t, '--class', 'w::2:5', 'sleep', 1013)
    t.check('it waits for the fewest', t.until(lambda: state(t, job) == 'queued') and not hosts(t, job), short(t))
    r = t.run('why', job)
    t.check('and says so', 'waits for' in r.out, r)
    t.check('nothing is held for it', used(t) == NODES - 2)
    t.run('kill', holder)
    t.check('then it starts, and all come', running(t, job) and t.until(lambda: len(hosts(t, job)) == 5), short(t))
    lost = hosts(t, job)[0]
    old = t.daemon('storm-mm')
    os.kill(old, signal.SIGKILL)
    t.check('another manager', t.until(lambda: t.daemon('storm-mm') not in (None, old)))
    t.check('knows them', t.until(lambda: len(hosts(t, job)) == 5) and used(t) == 6, short(t))
    t.run('kill', lost)
    t.check('what was given back is not asked for again', t.until(lambda: used(t) == 5) and len(hosts(t, job, 'running', 'queued')) == 4)
    t.run('kill', job)
    t.check('all end', free(t) and not hosts(t, job, 'running', 'queued'), short(t))
    wordy = ('PROCESSORS >= 1' + ' ' * 900)[:900]
    r = t.run('run', *(w for k in range(6) for w in ('--class', f'c{k}:{wordy}:0:1')), '--need', wordy, 'true')
    t.check('many words', r.status == 0, r)
    r = t.run('run', '--class', 'w::1:2', 'sh', '-c', 'exit 7')
    t.check('the status is the program\'s', r.status == 7 and free(t), r)


def together(t):
    holder = submit(t, '-N', NODES - 3, 'sleep', 1013)
    job = submit(t, 'sleep', 1013)
    running(t, holder, job)
    some = grow(t, job, 6, '--together', 3)
    t.check('too few for three', all(state(t, h) == 'queued' for h in some) and used(t) == NODES - 2, short(t))
    one = grow(t, job, 1)
    t.check('nobody overtakes', state(t, one[0]) == 'queued')
    t.run('kill', one[0], some[5])
    t.check('three of them are over with the one', t.until(lambda: [state(t, h) for h in some[3:]] != ['queued'] * 3), short(t))
    t.run('kill', holder)
    t.check('three at once', running(t, *some[:3]) and used(t) == 4, short(t))
    t.run('kill', some[1])
    t.check('each is given back alone', t.until(lambda: used(t) == 3), short(t))
    t.run('kill', job)
    free(t)


def lent(t):
    job = submit(t, '--class', f'w::1:{NODES - 1}', 'sleep', 1013)
    t.check('all nodes', t.until(lambda: len(hosts(t, job)) == NODES - 1), short(t))
    steps = [t.start('run', 'sleep', 1013, env={'STORM_INSIDE': '1', 'STORM_JOB_ID': str(h)}) for h in hosts(t, job)]
    t.until(lambda: len(t.ours('sleep 1013')) == NODES)
    other = submit(t, '-N', 3, 'sh', '-c', 'read x < gate')
    os.mkfifo(t.path('gate'))
    if t.user:
        os.chmod(t.path('gate'), 0o666)
    t.check('three are called back', t.until(lambda: len(hosts(t, job, 'suspended')) == 3), short(t))
    t.check('not the one that it needs', hosts(t, job)[0] == job + 1, short(t))
    r = t.run('why', other)
    t.check('who waits is told', f'{other}' in r.out and r.status == 0, r)
    t.check('then they end, and it starts', running(t, other) and len(hosts(t, job)) == NODES - 4, short(t))
    t.check('why they ended', len([1 for row in rows(t).values() if row['parent'] == job and row['state'] == 'killed']) == 3)
    t.check('others are asked for', len(hosts(t, job, 'queued')) == 3, short(t))
    with open(t.path('gate'), 'w') as gate:
        gate.write('\n\n\n')
        gate.flush()
        t.run('wait', other)
    t.check('and come', t.until(lambda: len(hosts(t, job)) == NODES - 1), short(t))
    here = [h for h in hosts(t, job) if where(t, h) == ['n3']]
    t.run('drain', 'n3', '--reason', 'dust')
    t.check('a node that is drained is vacated', t.until(lambda: state(t, here[0]) == 'killed'), (here, short(t)))
    t.run('undrain', 'n3')
    t.check('and used again', t.until(lambda: len(hosts(t, job)) == NODES - 1), short(t))
    t.run('kill', job)
    t.check('nothing is left', free(t) and t.until(lambda: not t.ours('sleep 1013')))
    for p in steps:
        t.finish(p)
    os.remove(t.path('gate'))


def changed_mind(t):
    """Who wanted them does not any more."""
    t.run('up', '--cluster', 'slow', '--local', 2, '--pes', 1, '--vacate', '10m')
    env = {'STORM_CLUSTER': 'slow'}
    job = int(t.run('submit', '--class', 'w::0:1', 'sleep', 1013, env=env).out)
    host = job + 1

    def is_now(wanted):
        return t.until(lambda: f'state      {wanted}' in t.run('show', host, env=env).out)
    t.check('a host', is_now('running'))
    other = t.run('submit', 'true', env=env).out.strip()
    t.check('is suspended', is_now('suspended'))
    step = t.start('run', 'echo', 'late', env={**env, 'STORM_INSIDE': '1', 'STORM_JOB_ID': str(host)})
    t.check('nothing starts there', t.until(lambda: 'queued' in t.run('ps', env=env).out))
    t.run('kill', other, env=env)
    t.check('and goes on', is_now('running'))
    t.check('so does what is there', t.finish(step).out == 'late\n')
    stays_suspended(t, env, host, is_now)
    waits_for_its_time(t, env, is_now)
    t.run('down', '--cluster', 'slow')


def stays_suspended(t, env, host, is_now):
    """What its user has suspended is not resumed by a change of mind, nor by the manager's end in between."""
    t.run('suspend', host, env=env)
    t.check('its user suspends it', is_now('suspended'))
    for dies in (False, True):
        other = t.run('submit', 'true', env=env).out.strip()
        t.check('it is called back', t.until(lambda: 'are lent' in t.run('why', host, env=env).out), t.run('why', host, env=env))
        if dies:
            os.kill(t.daemon('storm-mm', 'slow'), signal.SIGKILL)
        t.run('kill', other, env=env)
        t.check('it is not any more', t.until(lambda: 'are lent' not in t.run('why', host, env=env).out), t.run('why', host, env=env))
        t.check('and stays suspended', 'state      suspended' in t.run('show', host, env=env).out)
    t.run('resume', host, env=env)
    t.check('until its user resumes it', is_now('running'))


def waits_for_its_time(t, env, is_now):
    """Who could not start with it because of a reservation has nothing called back."""
    r = t.run('reserve', 'n[0-1]', '--from', '+8h', '--for', '1h', '--name', 'later', env=env)
    other = t.run('submit', 'true', env=env)
    t.check('somebody waits', r.status == 0 and 'is queued' in t.run('why', other.out.strip(), env=env).out, (r, other))
    t.check('nothing is called back for that', is_now('running'))
    t.run('kill', other.out.strip(), env=env)


def limits(t):
    t.run('up', '--cluster', 'tight', '--local', 8, '--pes', 1, '--hosts-each', 2, '--hosts-all', 3)
    env = {'STORM_CLUSTER': 'tight'}
    jobs = [t.run('submit', '--class', 'w::0:5', 'sleep', 1013, env=env).out.strip() for _ in range(2)]

    def count():
        return sum(1 for row in json.loads(t.run('ps', '--json', env=env).out) if row['parent'] != 0)
    t.check('no more than all may have', t.until(lambda: count() == 3) and t.run('ps', env=env).out.count('queued') == 0, count())
    r = t.run('grow', jobs[0], env=env)
    t.check('a job that has its share', r.status == 125 and r.is_one_line('a job may have 2'), r)
    r = t.run('grow', jobs[1], env=env)
    t.check('all together', r.status == 125 and r.is_one_line('all together may have 3'), r)
    t.run('down', '--cluster', 'tight')


def thousands(t):
    """More hosts wait than the manager can write down the ends of at once."""
    job = submit(t, '-n', '1', 'sleep', '1000')
    running(t, job)
    count = sum(len(grow(t, job, '4096')) for _ in range(3))
    t.check('thousands of hosts wait', count == 3 * 4096, count)
    t.run('kill', job)
    t.check('and end with their job', t.until(lambda: json.loads(t.run('ps', '--json').out) == []))


def opposite(t):
    """One grows while the other shrinks, and back."""
    big = NODES - 2
    one, two = submit(t, 'sleep', 1013), submit(t, 'sleep', 1013)
    running(t, one, two)
    held = {one: grow(t, one, big), two: []}
    running(t, *held[one])
    fine = True
    for turn in range(6):
        giver, taker = (one, two) if turn % 2 == 0 else (two, one)
        held[taker] = grow(t, taker, big)
        why = t.run('why', held[taker][-1]).out
        fine = fine and 'waits' in why
        for host in held[giver]:
            t.run('kill', host)
        fine = fine and running(t, *held[taker])
        nodes = where(t, one, two, *hosts(t, one), *hosts(t, two))
        fine = fine and len(nodes) == len(set(nodes)) == NODES
    t.check('six times, no node ever in both', fine, (why, short(t)))
    t.run('kill', one, two)
    t.check('both end', free(t))


play(grown, refused, classes, together, lent, changed_mind, limits, thousands, opposite, up=('--local', str(NODES), '--pes', '1', '--vacate', '4s', '--orphan', '2s'))
