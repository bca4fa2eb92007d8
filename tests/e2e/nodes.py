#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Nodes that are drained, stop, come back; what the cluster remembers of its jobs. Speaks TAP."""
import json
import os
import signal
import time

from harness import play


def node(t, name):
    rows = json.loads(t.run('nodes', '--json').out)
    return [n for n in rows if n['name'] == name][0]


def rows_of(r):
    return [line.split() for line in r.out.splitlines()[1:]]


def folded(t):
    """Those that do the same are in one row."""
    r = t.run('nodes')
    t.check('idle nodes are one row', [row[:5] for row in rows_of(r)] == [['n[0-5]', '6', 'up', '0', '1']], r)
    t.run('drain', 'n[1,4]', '--reason', 'new fan')
    job = t.run('submit', '-w', 'n[2-3]', '-N', 2, '-o', '/dev/null', 'sleep', 700).out.strip()
    t.check('a job runs on two', t.until(lambda: node(t, 'n3')['jobs'] == [int(job)] and node(t, 'n3')['used'] == 1))
    r = t.run('nodes')
    t.check('by what they do', [row[:4] for row in rows_of(r)] == [
        ['n[0,5]', '2', 'up', '0'], ['n[1,4]', '2', 'drained', '0'], ['n[2-3]', '2', 'up', '1']], r)
    t.check('why, and which job', rows_of(r)[1][-2:] == ['new', 'fan'] and rows_of(r)[2][-1] == job, r)
    r = t.run('nodes', '-l')
    t.check('-l: a row for each', [row[0] for row in rows_of(r)[:6]] == [f'n{k}' for k in range(6)], r)
    t.check('and their attributes, together', r.out.splitlines()[-1].split()[0][-1] == ':' and 'ARCH=' in r.out.splitlines()[-1], r)
    t.run('kill', job)
    t.run('undrain', 'n[1,4]')
    t.check('as before', t.until(lambda: len(rows_of(t.run('nodes'))) == 1), t.run('nodes'))


def shown(t):
    r = t.run('nodes', '--json')
    rows = json.loads(r.out)
    t.check('nodes --json', [n['name'] for n in rows] == [f'n{k}' for k in range(6)] and
            all(n['state'] == 'up' for n in rows), r)
    r = t.run('nodes', 'n[2-3]')
    t.check('some of them', [row[:3] for row in rows_of(r)] == [['n[2-3]', '2', 'up']], r)
    r = t.run('nodes', 'n9')
    t.check('one that there is not', r.status == 125 and r.is_one_line('n9'), r)


def drained(t):
    r = t.run('drain', 'n[1-2]', '--reason', 'new fan')
    t.check('drain', r.status == 0, r)
    row = node(t, 'n1')
    t.check('its state and the reason', row['state'] == 'drained' and row['reason'] == 'new fan', row)
    r = t.sh('echo $STORM_NODE', '-N', 4)
    t.check('jobs are given others', sorted(r.out.split()) == ['n0', 'n3', 'n4', 'n5'], r)
    r = t.run('run', '-w', 'n1', 'true')
    t.check('who insists is told at once', r.status == 125 and r.is_one_line('n1', 'drained'), r)
    t.check('nothing is left behind', t.run('ps', '--json').out.strip() == '[]')
    wide = t.run('submit', '-N', 5, '-o', '/dev/null', 'true').out.strip()
    r = t.run('why', wide)
    t.check('more than are left: it waits, and why says so', '2 nodes are drained' in r.out, r)
    os.kill(t.daemon('storm-mm'), signal.SIGKILL)
    t.check('a new manager remembers', t.until(
        lambda: t.run('nodes').status == 0 and node(t, 'n2')['state'] == 'drained'), t.run('nodes'))
    r = t.run('undrain', 'n[1-2]')
    t.check('undrain', r.status == 0 and t.until(lambda: node(t, 'n1')['state'] == 'up'), r)
    t.check('who has waited is started', t.run('wait', wide).status == 0)
    r = t.run('run', '-N', 6, 'echo', 'x')
    t.check('all are used again', r.out == 'x\n' * 6, r)
    r = t.run('drain', 'n9', '--reason', 'x')
    t.check('drain one that there is not', r.status == 125 and r.is_one_line('n9'), r)
    r = t.run('drain', 'n1')
    t.check('a reason is asked for', r.status == 2 and r.is_one_line('--reason'), r)
    p = t.start('run', '-w', 'n4', 'sh', '-c', '>here; sleep 1; echo done')
    t.until(lambda: os.path.exists(t.path('here')))
    t.run('drain', 'n4', '--reason', 'later')
    r = t.finish(p)
    t.check('what runs there may end', r.status == 0 and r.out == 'done\n', r)
    t.run('undrain', 'n4')


def gone(t):
    p = t.start('run', '-N', 6, 'sleep', '701')
    job = None
    t.until(lambda: len(t.ours('sleep 701')) == 6)
    again = t.run('submit', '--requeue', '-w', 'n[2-3]', '-N', 1, 'sh', '-c', 'echo on $STORM_NODE; sleep 1')
    stopped = t.daemon('storm-n2')
    os.kill(stopped, signal.SIGSTOP)
    r = t.finish(p)
    t.check('a node that stops: its job fails and names it', r.status == 125 and 'n2' in r.err, r)
    t.check('the node is down', t.until(lambda: node(t, 'n2')['state'] == 'down'), node(t, 'n2'))
    t.check('the hook hears of it', t.until(lambda: 'n2 down' in t.read('hooked')), t.read('hooked'))
    r = t.run('run', '-N', 5, 'echo', 'x')
    t.check('the others are used', r.out == 'x\n' * 5, r)
    r = t.run('wait', again.out.strip())
    job = again.out.strip()
    t.check('who waits for one of two gets the other', r.status == 0 and
            t.until(lambda: t.read(f'storm-{job}.out') == 'on n3\n', 10), t.read(f'storm-{job}.out'))
    late = t.run('submit', '-w', 'n2', 'true').out.strip()
    r = t.run('why', late)
    t.check('why names a node that is down', 'n2' in r.out and 'down' in r.out, r)
    os.kill(stopped, signal.SIGCONT)
    t.check('it comes back', t.until(lambda: node(t, 'n2')['state'] == 'up'), node(t, 'n2'))
    t.check('the hook hears of that', t.until(lambda: 'n2 up' in t.read('hooked')), t.read('hooked'))
    r = t.run('wait', late)
    t.check('who waits for it is started', r.status == 0, r)
    t.check('no process of the lost job is left', t.until(lambda: not t.ours('sleep 701'), 20))


def requeued(t):
    t.write('again.sh', '#!/bin/sh\necho "on $STORM_NODE" >>runs\nif [ ! -e second ]; then >second; '
            'exec sleep 702; fi\n', 0o755)
    p = t.start('run', '--requeue', '-w', 'n[4-5]', '-N', 1, './again.sh')
    t.until(lambda: t.ours('sleep 702'))
    first = t.read('runs').split()[1]
    stopped = t.daemon(f'storm-{first}')
    os.kill(stopped, signal.SIGSTOP)
    r = t.finish(p)
    os.kill(stopped, signal.SIGCONT)
    t.check('--requeue: started again elsewhere', r.status == 0 and
            sorted(t.read('runs').split()) == ['n4', 'n5', 'on', 'on'], (r, t.read('runs')))
    t.until(lambda: node(t, first)['state'] == 'up')
    t.check('what ran before is gone', t.until(lambda: not t.ours('sleep 702'), 20))
    p = t.start('run', '-w', 'n1', 'sleep', '703')
    t.until(lambda: t.ours('sleep 703'))
    os.kill(t.daemon('storm-pl n1'), signal.SIGKILL)
    r = t.finish(p)
    t.check('a launcher is killed: 125, and the node is named', r.status == 125 and 'n1' in r.err, r)
    t.check('its processes are gone', t.until(lambda: not t.ours('sleep 703'), 20))
    r = t.run('run', '-w', 'n1', 'echo', 'x')
    t.check('and the node is used again', r.out == 'x\n', r)


def history(t):
    def rows():
        return json.loads(t.run('ps', '-a', '--json').out)
    before = rows()
    t.check('ps -a: all jobs, by number', [r['id'] for r in before] ==
            list(range(1, len(before) + 1)), before[-1:])
    t.sh('exit 5', '-N', 2, '--name', 'five')
    last = rows()[-1]
    t.check('ps -a --json: name, state, status, nodes', last['name'] == 'five' and
            last['state'] == 'failed' and last['exit_status'] == 5 and
            last['node_list'] == 'n[0-1]' and last['nodes'] == last['procs'] == 2, last)
    r = t.run('show', last['id'], '--json')
    t.check('show tells the same of it', json.loads(r.out) == last, (r, last))
    t.check('and times that are in order', isinstance(last['start_time'], float) and
            last['submit_time'] <= last['start_time'] <= last['end_time'] <= time.time(), last)
    r = t.run('submit', '--array', '1-150', '-o', '/dev/null', 'true')
    first, end = (int(x) for x in r.out.split()[0].split('-'))
    r = t.run('wait', str(end), f'{first}-{end}', str(first))
    t.check('wait: jobs that are named twice', r.status == 0, r)
    r = t.run('ps', '-a')
    t.check('ps -a: the last hundred, and how many there are', r.out.count('\n') == 102 and
            f'last 100 of {end} jobs' in r.out, r)
    p = t.start('run', 'sleep', '704')
    t.until(lambda: t.ours('sleep 704'))
    t.check('what runs is there too', rows()[-1]['state'] == 'running', rows()[-1])
    os.kill(t.daemon('storm-mm'), signal.SIGKILL)
    t.until(lambda: t.run('ps').status == 0)
    t.check('a new manager has the same', [r['state'] for r in rows()[:len(before)]] ==
            [r['state'] for r in before])
    p.send_signal(signal.SIGINT)
    r = t.finish(p)
    t.check('and the client has found it', r.status == 130, r)
    t.run('down')
    r = t.run('ps', '-a')
    t.check('ps -a without a cluster', r.status == 0 and '130' not in r.err, r)
    r = t.run('up', '--local', '4')
    more = t.run('run', '-N', 4, 'true')
    t.check('numbers go on in the next cluster', more.status == 0 and
            rows()[-1]['id'] == end + 2, (r, more, rows()[-1]))


def bring_up(t):
    hook = t.write('hook.sh', f'#!/bin/sh\necho "$1 $2" >>{t.work}/hooked\n', 0o755)
    r = t.run('up', '--local', '6', '--orphan', '2s', '--hook', hook)
    t.check('up with a hook', r.status == 0, r)
    r = t.run('up', '--cluster', 'other', '--hook', '/no/such/hook')
    t.check('a hook that there is not', r.status == 2 and r.is_one_line('/no/such/hook'), r)


def crowd(t):
    """Four nodes to a processor: each has one to begin on, where control groups tell who is to be let go."""
    cpus = len(os.sched_getaffinity(0))
    if cpus < 2:
        t.skip('a crowd', 'one processor')
        return
    t.run('down')
    r = t.run('up', '--local', 4 * cpus, '-v')
    bound = 'control groups' in r.out + r.err
    r = t.sh('grep Cpus_allowed_list /proc/self/status', '-N', 4 * cpus)
    homes = [line.split()[1] for line in r.out.splitlines()]
    t.check('in a crowd a process begins on the processor of its node', len(homes) == 4 * cpus and
            all(homes.count(h) == (4 if bound else 4 * cpus) for h in homes), r)
    r = t.sh(f'nproc; (while [ $(nproc) != {cpus} ]; do sleep 0.1; done; nproc) & wait; nproc', '-N', 2)
    first = '1' if bound else str(cpus)
    t.check('after a while it may go anywhere, and what it has started, too', r.status == 0 and
            sorted(r.out.split()) == sorted([first] * 2 + [str(cpus)] * 4), r)
    t.run('down')
    t.run('up', '--local', 4 * cpus, '--pes', 2)
    r = t.run('run', '-N', 2, 'nproc')
    t.check('with two processors each it may at once', r.out == f'{cpus}\n' * 2, r)
    t.run('down')
    t.run('up', '--local', cpus)
    r = t.run('run', 'nproc')
    t.check('so it may where there is no crowd', r.out == f'{cpus}\n', r)


play(bring_up, shown, folded, drained, gone, requeued, history, crowd, up=None)
