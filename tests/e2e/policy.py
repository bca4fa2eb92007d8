#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Scheduling policies of a cluster: shown, changed while jobs run, loaded from files, and those that break the rules. Speaks TAP."""
import json
import os
import shutil
import signal

from harness import play

BUILT = os.path.dirname(os.environ['STORM'])


def said(t):
    """What is told of the policy that is chosen."""
    r = t.run('policy', '--json')
    return next((p for p in json.loads(r.out) if p['chosen']), {}) if r.status == 0 else {}


def state(t, job):
    r = t.run('show', '--json', job)
    return json.loads(r.out).get('state', '') if r.status == 0 else ''


def becomes(t, job, what):
    return t.until(lambda: state(t, job) == what)


def submit(t, *args):
    return int(t.run('submit', *args).out.split('-')[0])


def until_file(name):
    return 'sh', '-c', f'while [ ! -e {name} ]; do sleep 0.05; done'


def shown(t):
    r = t.run('policy')
    t.check('what there is, and what is chosen', r.status == 0 and '*  fcfs' in r.out and 'conservative' in r.out, r)
    r = t.run('policy', 'gnag')
    t.check('a name that is not there', r.status == 125 and r.is_one_line('gnag', 'storm policy'), r)
    r = t.run('policy', 'gang', '--mpl', '65')
    t.check('none at all', t.run('policy', '--mpl', '0').is_one_line('--mpl 0') and
            t.run('up', '--cluster', 'other', '--quantum', '0s').is_one_line('--quantum'))
    t.check('no name', t.run('policy', '').status == 2)
    t.check('too many slots', r.status == 2 and r.is_one_line('--mpl 65'), r)
    r = t.run('policy', '--quantum', '100us')
    t.check('too short turns', r.status == 2 and r.is_one_line('300us'), r)
    r = t.run('policy', './x.so')
    t.check('a file, too late', r.status == 2 and r.is_one_line('storm up'), r)
    r = t.run('up', '--cluster', 'other', '--policy', 'esay')
    t.check('storm up knows names', r.status == 2 and r.is_one_line('did you mean easy?'), r)
    r = t.run('up', '--cluster', 'other', '--policy', '/etc/passwd')
    t.check('and files', r.status == 2 and r.is_one_line('/etc/passwd'), r)
    r = t.run('up', '--cluster', 'other', '--policy', os.path.join(BUILT, 'wrong-mute.so'))
    t.check('and those that lack something', r.status == 2 and r.is_one_line('words'), r)


def overtaking(t):
    """Under fcfs nobody overtakes; under easy who does not delay the head does. Nobody is lost by the change."""
    runs = submit(t, '-t', '1h', '-n', '1', *until_file('first'))
    head = submit(t, '-t', '1h', '-n', '2', 'true')
    short, endless = submit(t, '-t', '1m', '-n', '1', 'true'), submit(t, '-n', '1', 'true')
    t.check('fcfs: all wait behind the head', becomes(t, runs, 'running') and
            [state(t, j) for j in (head, short, endless)] == ['queued'] * 3)
    r = t.run('policy', 'easy')
    t.check('another policy', r.status == 0 and said(t).get('name') == 'easy', r)
    t.check('easy: the short one overtakes', becomes(t, short, 'done') and state(t, head) == 'queued')
    t.check('one that nobody knows the end of does not', state(t, endless) == 'queued')
    os.kill(t.daemon('storm-mm'), signal.SIGKILL)
    t.check('a new manager goes on with it', t.until(lambda: said(t).get('name') == 'easy') and
            state(t, head) == 'queued')
    t.write('first', '')
    t.check('all come to their end', all(becomes(t, j, 'done') for j in (runs, head, endless)))
    r = t.run('policy', 'fcfs')
    t.check('and back', r.status == 0 and said(t).get('name') == 'fcfs', r)


def sharing(t):
    """More jobs than processors run at once; each gets on, and the policy can be changed meanwhile."""
    t.run('policy', 'gang', '--quantum', '20ms', '--mpl', '3')
    now = said(t)
    t.check('slots and turns', (now.get('mpl'), now.get('quantum_ns')) == (3, 20000000), now)
    jobs = [submit(t, '-n', '2', *until_file('shared')) for _ in range(4)]
    t.check('three share two processors', all(becomes(t, j, 'running') for j in jobs[:3]) and state(t, jobs[3]) == 'queued')
    t.check('each in a row of its own', t.until(lambda: said(t).get('rows') == 3))
    t.check('nodes tell how they switch', t.until(lambda: said(t).get('samples', 0) > 0))
    t.run('policy', 'conservative')
    t.check('under another policy they go on', said(t).get('rows') == 3 and all(state(t, j) == 'running' for j in jobs[:3]))
    os.kill(t.daemon('storm-mm'), signal.SIGKILL)
    t.check('under another manager, too', t.until(lambda: said(t).get('rows') == 3) and
            said(t).get('name') == 'conservative')
    t.write('shared', '')
    t.check('all come to their end', all(becomes(t, j, 'done') for j in jobs))
    t.run('policy', 'fcfs')


def limits(t):
    """A limit counts the turns of a job, not those of others."""
    t.run('policy', 'gang', '--quantum', '100ms', '--mpl', '2')
    other = submit(t, '-n', '2', *until_file('over'))
    becomes(t, other, 'running')
    job = submit(t, '-n', '2', '-t', '2s', 'sh', '-c', 'sleep 3600')
    t.check('one that has a limit', becomes(t, job, 'timeout'))
    r = json.loads(t.run('show', '--json', job).out)
    t.check('had its time, and as much again for the other', r['end_time'] - r['start_time'] >= 3.5, r)
    t.write('over', '')
    becomes(t, other, 'done')
    t.run('policy', 'fcfs')


def guests(t):
    """A policy from a file."""
    t.run('down')
    path = t.path('sjf-aging.so')
    shutil.copy(os.path.join(BUILT, 'sjf-aging.so'), path)
    r = t.run('up', '--local', '2', '--policy', './sjf-aging.so')
    t.check('is loaded', r.status == 0 and said(t).get('name') == 'sjf-aging', r)
    t.run('policy', 'easy')
    r = t.run('policy', 'sjf-aging')
    t.check('can be left and chosen again', r.status == 0 and said(t).get('name') == 'sjf-aging', r)
    r = t.run('run', '-n', '2', 'true')
    t.check('jobs run', r.status == 0, r)


def wrong(t, kind, words, before=lambda: None):
    t.run('down')
    path = t.path(f'{kind}.so')
    shutil.copy(os.path.join(BUILT, f'wrong-{kind}.so'), path)
    t.run('up', '--local', '2', '--policy', path)
    before()
    jobs = [submit(t, 'true'), submit(t, 'true')]
    t.check(f'{kind}: the cluster goes on under fcfs', t.until(lambda: said(t).get('name') == 'fcfs'))
    t.check(f'{kind}: no job is lost', all(becomes(t, j, 'done') for j in jobs))
    t.check(f'{kind}: it is said why', words in said(t).get('fault', ''), said(t))
    with open(os.path.join(t.home, 'local', 'log')) as log:
        t.check(f'{kind}: also in the log', words in log.read())


def twice(t):
    wrong(t, 'twice', 'starts a job twice')


def busy(t):
    wrong(t, 'busy', 'processors that are busy', lambda: submit(t, *until_file('free')))
    t.write('free', '')


def down(t):
    wrong(t, 'down', 'a node that is down', lambda: t.run('drain', 'n0', '--reason', 'test'))
    os.kill(t.daemon('storm-mm'), signal.SIGKILL)
    t.check('a new manager does not try it again', t.until(lambda: said(t).get('name') == 'fcfs'))


def crash(t):
    wrong(t, 'crash', 'has died 3 times')


play(shown, overtaking, sharing, limits, guests, twice, busy, down, crash, up=('--local', '2'))
