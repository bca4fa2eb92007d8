#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""State that an earlier version has written is read; what a newer one has written is refused, in words. Speaks TAP.

tests/fixtures/state-vN is what a cluster of state format N has left, its databases as SQL: see README there."""
import glob
import json
import os
import shutil
import sqlite3

from harness import NOBODY, play

FIXTURES = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'fixtures')


def lay_out(t, fixture, name):
    """The folder of a cluster of that name, as the fixture has it."""
    folder = os.path.join(t.home, name)
    shutil.copytree(fixture, folder, ignore=shutil.ignore_patterns('*.sql', 'README'))
    db = sqlite3.connect(os.path.join(folder, 'state.db'))
    with open(os.path.join(fixture, 'state.sql')) as f:
        db.executescript(f.read())
    db.close()
    for where, folders, names in os.walk(folder):
        os.chmod(where, 0o700)
        for path in [where] + [os.path.join(where, n) for n in names]:
            if t.user:
                os.chown(path, NOBODY, NOBODY)
    return folder


def sql(folder, words):
    db = sqlite3.connect(os.path.join(folder, 'state.db'))
    db.executescript(words)
    db.close()


def jobs(t, name):
    r = t.run('ps', '-a', '--json', '--cluster', name)
    return {j['id']: j for j in json.loads(r.out)} if r.status == 0 else {}


def older(t):
    for fixture in sorted(glob.glob(f'{FIXTURES}/state-v*')):
        v = os.path.basename(fixture)
        lay_out(t, fixture, 'old')   # the name is part of the state
        with open(f'{fixture}/expected.json') as f:
            expected = json.load(f)
        r = t.run('up', '--local', '2', '--cluster', 'old')
        t.check(f'{v}: it comes up', r.status == 0, r)
        known = jobs(t, 'old')
        for number, job in expected['jobs'].items():
            have = known.get(int(number), {})
            t.check(f'{v}: job {number}, {job["state"]}', all(have.get(k) == w for k, w in job.items()), have)
            t.check(f'{v}: job {number}: what it has used is not known', 'usage' in have and have['usage'] is None, have)
        r = t.run('nodes', '--json', '--cluster', 'old')
        nodes = {n['name']: n for n in json.loads(r.out)}
        t.check(f'{v}: a node is drained, for its reason', expected['drained'] in json.dumps(nodes['n1']), r)
        r = t.run('reserve', '--cluster', 'old')
        t.check(f'{v}: a reservation', expected['reservation'] in r.out, r)
        t.run('undrain', 'n1', '--cluster', 'old')
        waiting = [int(n) for n, job in expected['jobs'].items() if job['state'] == 'queued']
        for job in waiting:
            t.check(f'{v}: job {job}, which has waited, runs now',
                    t.until(lambda: jobs(t, 'old').get(job, {}).get('state') == 'done'), jobs(t, 'old').get(job))
        r = t.run('submit', '--cluster', 'old', 'true')
        t.check(f'{v}: numbers go on', int(r.out) == max(known) + 1, (r, max(known)))
        r = t.run('down', '--cluster', 'old')
        t.check(f'{v}: it goes', r.status == 0, r)
        shutil.rmtree(f'{t.home}/old')


def newer(t):
    newest = sorted(glob.glob(f'{FIXTURES}/state-v*'))[-1]
    folder = lay_out(t, newest, 'old')
    sql(folder, "UPDATE about SET value = value + 1 WHERE what = 'format'")
    r = t.run('up', '--local', '2', '--cluster', 'old')
    t.check('a newer log: refused, before anything is started',
            r.status == 125 and r.is_one_line('state.db', 'written by a newer STORM'), r)
    sql(folder, "UPDATE about SET value = value - 1 WHERE what = 'format'")
    with open(f'{folder}/mm/state', 'r+b') as f:
        f.seek(6)
        f.write(b'2')
    r = t.run('up', '--local', '2', '--cluster', 'old')
    t.check('a newer state of the manager: refused', r.status == 125 and r.is_one_line('mm/state', 'newer STORM'), r)
    with open(f'{folder}/mm/state', 'r+b') as f:
        f.seek(6)
        f.write(b'1')
    r = t.run('up', '--local', '2', '--cluster', 'old')
    t.check('none of that has done it harm', r.status == 0, r)


def not_understood(t):
    """A job of which too little is left: it is told, and its number is not another's."""
    t.run('down', '--cluster', 'old')
    shutil.rmtree(f'{t.home}/old')
    folder = lay_out(t, sorted(glob.glob(f'{FIXTURES}/state-v*'))[-1], 'old')
    last = max(int(n) for n in json.load(open(f'{FIXTURES}/state-v1/expected.json'))['jobs'])
    sql(folder, f'UPDATE events SET body = substr(body, 1, 30) WHERE key = {last}')
    r = t.run('up', '--local', '2', '--cluster', 'old')
    t.check('the rest comes up', r.status == 0, r)
    with open(f'{folder}/log') as f:
        t.check('the log names it', f'job {last} is left out' in f.read())
    r = t.run('submit', '--cluster', 'old', 'true')
    t.check('its number is not given out again', r.out.strip() == str(last + 1), r)


play(older, newer, not_understood, up=None)
