#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Nodes that are reserved for a while, whatever the policy; why jobs wait, and until when. Speaks TAP."""
import json
import os
import signal

from harness import play

POLICIES = ('fcfs', 'easy', 'easy-sjbf', 'conservative', 'gang', 'gang-backfill', 'local')


def submit(t, *args):
    r = t.run('submit', *args)
    return int(r.out.split('-')[0]) if r.status == 0 else None


def show(t, job, command='show'):
    r = t.run(command, '--json', job)
    return json.loads(r.out) if r.status == 0 else {}


def state(t, job):
    return show(t, job).get('state', '')


def becomes(t, job, what):
    return t.until(lambda: state(t, job) == what)


def listed(t):
    r = t.run('reserve', '--json')
    return {x['name']: x for x in json.loads(r.out)} if r.status == 0 else {}


def until_file(name):
    return 'sh', '-c', f'while [ ! -e {name} ]; do sleep 0.05; done'


def words(t):
    """Who waits is told for what, and until when if that can be known."""
    runs = submit(t, '-t', '1h', '-n', '4', *until_file('go'))
    becomes(t, runs, 'running')
    head, behind = submit(t, '-t', '10m', '-n', '3', 'true'), submit(t, '-t', '10m', '-n', '2', 'true')
    latest = show(t, runs)['start_time'] + 3600
    for policy in POLICIES[:4]:
        t.run('policy', policy)
        r = t.run('why', head)
        t.check(f'{policy}: the head', f'waits for 3 more processors; job {runs} ends by ' in r.out and
                'expected to start by ' in r.out, r)
        said = show(t, head, 'why').get('expected_start') or 0
        t.check(f'{policy}: when', abs(said - latest) < 60, said)
    t.run('policy', 'fcfs')
    r = t.run('why', behind)
    t.check('fcfs: behind the head', f'waits behind job {head}, which waits for 3 more processors' in r.out, r)
    said = show(t, behind).get('expected_start') or 0
    t.check('fcfs: when, by the limits of those before it', abs(said - latest - 600) < 60, said)
    r = t.run('ps')
    t.check('in the list', any('; waits for 3 more processors' in line and ' by ' in line for line in r.out.splitlines()), r)
    t.run('policy', 'conservative')
    t.check('conservative: everybody is promised a time, in the list, too', all(
        j['expected_start'] for j in json.loads(t.run('ps', '--json').out) if j['state'] == 'queued'))
    t.run('policy', 'gang', '--mpl', '1')
    r = t.run('why', head)
    t.check('gang', 'more processors' in r.out and 'expected' in r.out, r)
    t.run('policy', 'fcfs')
    t.write('go', '')
    t.check('all come to their end', all(becomes(t, j, 'done') for j in (runs, head, behind)))


def endless(t):
    runs = submit(t, '-n', '4', *until_file('stop'))
    becomes(t, runs, 'running')
    head = submit(t, '-t', '10m', '-n', '1', 'true')
    r = t.run('why', head)
    t.check('behind one that nobody knows the end of', f'job {runs} has no time limit, so nobody knows when' in r.out and
            'expected' not in r.out and show(t, head)['expected_start'] is None, r)
    t.write('stop', '')
    t.check('it ends all the same', becomes(t, head, 'done'))


def ahead(t, policy):
    """Before it begins nothing starts there that might not be over."""
    t.run('policy', policy)
    name = f'later-{policy}'
    r = t.run('reserve', 'n[0-1]', '--from', '+1h', '--for', '1h', '--name', name)
    t.check(f'{policy}: reserved', r.status == 0 and r.out.strip() == name and not listed(t)[name]['open'], r)
    stop = f'stop-{policy}'
    jobs = [submit(t, *until_file(stop)) for _ in range(3)]
    t.check(f'{policy}: who has no limit starts elsewhere', all(becomes(t, j, 'running') for j in jobs[:2]) and
            all(show(t, j)['node_list'] not in ('n0', 'n1', 'n[0-1]') for j in jobs))
    long = submit(t, '-t', '2h', '-w', 'n0', 'true')
    r = t.run('why', long)
    t.check(f'{policy}: who would not be over waits', state(t, long) == 'queued' and (
        name in r.out or 'waits behind' in r.out), r)
    if policy not in ('fcfs',):
        short = submit(t, '-t', '1m', '-w', 'n0', 'true')
        t.check(f'{policy}: who will be over does not', becomes(t, short, 'done'))
    r = t.run('reserve', '--cancel', name)
    t.check(f'{policy}: taken back', r.status == 0 and name not in listed(t), r)
    t.write(stop, '')
    t.check(f'{policy}: all come to their end', all(becomes(t, j, 'done') for j in (*jobs, long)))


def each(t):
    for policy in POLICIES:
        ahead(t, policy)
    t.run('policy', 'fcfs')


def begun(t):
    """While it is open only those start there that name it; a new manager knows it, too."""
    r = t.run('reserve', 'n2', 'n3', '--for', '1h', '--name', 'class')
    t.check('it begins at once', r.status == 0 and listed(t)['class']['open'], r)
    jobs = [submit(t, '--reservation', 'class', *until_file('bell')) for _ in range(3)]
    other = submit(t, '-n', '3', 'true')
    t.check('who names it starts there', all(becomes(t, j, 'running') for j in jobs[:2]) and
            {show(t, j)['node_list'] for j in jobs[:2]} == {'n2', 'n3'})
    r = t.run('why', jobs[2])
    t.check('or waits for room in it', 'in reservation class' in r.out, r)
    r = t.run('why', other)
    t.check('others wait', 'n[2-3], which are reserved until' in r.out, r)
    os.kill(t.daemon('storm-mm'), signal.SIGKILL)
    t.check('the manager is killed: the next one knows', t.until(lambda: listed(t).get('class', {}).get('running') == 2))
    t.check('and all wait or run as before', state(t, jobs[2]) == 'queued' and state(t, other) == 'queued')
    last = submit(t, '-n', '1', 'true')
    t.check('fcfs: nobody overtakes those who wait', state(t, last) == 'queued' and t.run('kill', last).status == 0)
    r = t.run('submit', '-n', '3', '--reservation', 'class', 'true')
    t.check('what is too large for it is refused', r.status == 125 and r.is_one_line('the reservation has 2'), r)
    r = t.run('reserve', 'n[0-3]', '--for', '1h')
    t.check('nodes are reserved once at a time', r.status == 125 and r.is_one_line('reserved at that time'), r)
    r = t.run('reserve', '--cancel', 'class')
    t.check('taken back: who has not started is ended', r.status == 0 and becomes(t, jobs[2], 'killed'), r)
    t.check('who has runs on', all(state(t, j) == 'running' for j in jobs[:2]))
    t.write('bell', '')
    t.check('all come to their end', all(becomes(t, j, 'done') for j in (*jobs[:2], other)))


def over(t):
    """It ends by itself: its nodes are for all again, and who waits for it is ended."""
    stays = submit(t, '-w', 'n0', *until_file('leave'))
    becomes(t, stays, 'running')
    r = t.run('reserve', 'n0', '--for', '3s', '--name', 'short')
    t.check('what runs there is told of', r.status == 0 and '1 job runs there' in r.err, r)
    late = submit(t, '-w', 'n0', '--reservation', 'short', 'true')
    other = submit(t, '-n', '4', 'true')
    t.check('it is over: who had waited for it is ended', becomes(t, late, 'killed') and 'short' not in listed(t))
    t.write('leave', '')
    t.check('others are not', becomes(t, other, 'done') and becomes(t, stays, 'done'))


def mistakes(t):
    for args, status, said in ((('n0',), 2, '--for'), (('--for', '1h'), 2, 'which nodes'), (('n9', '--for', '1h'), 125, 'n9'),
                               (('n0', '--for', '1h', '--from', 'soon'), 2, '--from'), (('--cancel', 'x'), 125, 'no such'),
                               (('n0', '--for', '1h', '--name', 'a/b'), 125, 'letters'), (('n0', '--cancel', 'x'), 2, '--cancel'),
                               (('n0', '--from', '2001-01-01', '--for', '1h'), 125, 'over'),
                               (('n0', '--for', '1h', '--name', 'x' * 41), 2, '1 to 40')):
        r = t.run('reserve', *args)
        t.check(f'{" ".join(args)!r} is refused', r.status == status and r.is_one_line(said), r)
    r = t.run('submit', '--reservation', 'nothing', 'true')
    t.check('nobody starts in none', r.status == 125 and r.is_one_line('no reservation nothing'), r)
    r = t.run('reserve')
    t.check('there are none', r.status == 0 and r.out == 'no reservations\n', r)


play(words, endless, each, begun, over, mistakes, up=('--local', '4', '--pes', '1'))
