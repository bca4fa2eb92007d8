#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Hosts that come and go, as the file `hosts` of a cluster says, and commands that call nodes by their names.
Speaks TAP."""
import json
import os
import signal

from harness import NOBODY, play


def folder(t, name=''):
    return os.path.join(t.home, 'local', name)


def enrol(t, *lines):
    fresh = folder(t, 'hosts.fresh')
    with open(fresh, 'w') as f:
        f.writelines(line + '\n' for line in lines)
    if t.user:
        os.chown(fresh, NOBODY, NOBODY)
    os.rename(fresh, folder(t, 'hosts'))


def names(t):
    return [n['name'] for n in json.loads(t.run('nodes', '--json').out)]


def all_up(t, *who):
    def holds():
        rows = json.loads(t.run('nodes', '--json').out)
        return [n['name'] for n in rows] == list(who) and all(n['state'] == 'up' for n in rows)
    return t.until(holds, 60)


def named(t):
    t.check('at first numbers are names', names(t) == ['n0', 'n1', 'n2', 'n3'], names(t))
    enrol(t, '# who is there', '0 h0', '1 h1', '3 gate')
    t.check('the manager hears of hosts', all_up(t, 'h0', 'h1', 'gate'), t.run('nodes'))
    r = t.run('nodes', 'h[0-1]')
    t.check('nodes by name', r.out.splitlines()[1].split()[:3] == ['h[0-1]', '2', 'up'] and 'gate' not in r.out, r)
    r = t.run('nodes', 'n2')
    t.check('a vacant number is no node', r.status == 125 and r.is_one_line('n2'), r)
    r = t.run('run', '-N', 4, 'true')
    t.check('jobs that are too large count hosts', r.status == 125 and r.is_one_line('3'), r)
    r = t.run('run', '-N', 3, 'echo', 'x')
    t.check('all of them are used', r.out == 'x\n' * 3, r)
    r = t.run('run', '-w', 'gate,h1', '-o', '%n.out', 'echo', 'here')
    t.check('-w and %n by name', r.status == 0 and t.read('gate.out') == t.read('h1.out') == 'here\n', r)
    r = t.run('doctor')
    t.check('doctor counts hosts', '3 of 3 nodes up' in r.out, r)


def told(t):
    former = t.daemon('storm-scribe')
    os.kill(former, signal.SIGKILL)   # it began when there were no hosts
    t.check('the next scribe knows hosts', t.until(lambda: t.daemon('storm-scribe') not in (None, former)))
    r = t.run('drain', 'h[0-1]', '--reason', 'paint')
    t.check('drain by name', r.status == 0, r)
    job = t.run('submit', '-N', 2, '-o', '%n-batch.out', 'echo', 'x').out.strip()
    r = t.run('why', job)
    t.check('why counts hosts', '2 nodes are drained or down' in r.out, r)
    r = t.run('run', '-w', 'h0', 'true')
    t.check('who insists is told the name', r.status == 125 and r.is_one_line('h0', 'drained'), r)
    t.run('undrain', 'h[0-1]')
    t.check('it ran', t.run('wait', job).status == 0)
    row = json.loads(t.run('ps', '-a', '--json').out)[-1]
    t.check('ps -a has names', row['node_list'] in ('h[0-1]', 'h0,gate', 'h1,gate'), row)
    t.check('the scribe has them too', t.until(lambda: t.read(
        row['node_list'].split(',')[-1].replace('h[0-1]', 'h1') + '-batch.out') == 'x\n', 20))


def changed(t):
    p = t.start('run', '-w', 'gate,h1', 'sleep', '801')
    t.check('a job on some', t.until(lambda: len(t.ours('sleep 801')) == 2))
    row = json.loads(t.run('ps', '--json').out)[0]
    t.check('ps has names', row['node_list'] == 'h1,gate', row)
    enrol(t, '0 h0', '1 h1', '2 h2')
    r = t.finish(p)
    t.check('a host leaves: its job is lost', r.status == 125, r)
    t.check('its processes are gone', t.until(lambda: not t.ours('sleep 801'), 30))
    t.check('and another has come', all_up(t, 'h0', 'h1', 'h2'), t.run('nodes'))
    r = t.run('run', '-N', 3, 'echo', 'x')
    t.check('which is used', r.out == 'x\n' * 3, r)
    enrol(t, '0 h0', '1 h0')
    t.check('a file that makes no sense is complained of', t.until(
        lambda: 'hosts: line 2: h0 has another number, too' in open(folder(t, 'log')).read(), 30))
    enrol(t, '0 h0', '2 h2', '3 gate')
    t.check('and the next is taken', all_up(t, 'h0', 'h2', 'gate'), t.run('nodes'))
    os.kill(t.daemon('storm-mm'), signal.SIGKILL)
    t.until(lambda: t.run('nodes').status == 0)
    t.check('a new manager reads it', all_up(t, 'h0', 'h2', 'gate'), t.run('nodes'))


def again(t):
    t.run('down')
    row = json.loads(t.run('ps', '-a', '--json').out)[0]
    t.check('ps -a without a cluster has names', row['node_list'].startswith(('h0', 'h[')), row)
    t.run('up', '--local', 2)
    t.check('a cluster of virtual nodes has no hosts', names(t) == ['n0', 'n1'], names(t))


play(named, told, changed, again, up=('--local', '4'))
