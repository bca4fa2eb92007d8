#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What jobs have used, while they run and when they are over; load and memory of nodes. Speaks TAP.

The same program runs beside the cluster, and what the system says of it there is what is expected of the jobs: neither the clock
nor the file system that this happens to run on matters."""
import json
import os
import signal
import subprocess
import sys

from harness import play

PROCS = 4
MIB = 1 << 20
PYTHON = next((p for p in ('/usr/bin/python3', sys.executable) if os.path.exists(p)))   # that any user may execute

# Uses half a second of a processor, 64 MiB of memory, and writes 8 MiB; then waits for a file if it is told to.
WORK = '''import os, sys, time
memory = bytearray(64 << 20)
for i in range(0, len(memory), 4096):
    memory[i] = 1
with open(f'out.{os.getpid()}', 'wb') as f:
    f.write(memory[:8 << 20])
while sum(os.times()[:2]) < 0.5:
    pass
os.write(1, b'used\\n')
while len(sys.argv) > 1 and not os.path.exists(sys.argv[1]):
    time.sleep(0.05)
'''


def job(t, number):
    rows = json.loads(t.run('ps', '-a', '--json').out)
    return [r for r in rows if r['id'] == number][0]


def last(t):
    return json.loads(t.run('ps', '-a', '--json').out)[-1]


def near(have, want, share=0.25):
    return abs(have - want) <= share * want


def beside(t):
    """What one of them uses without us."""
    pid = os.fork()
    if pid == 0:
        p = t.spawn(PYTHON, t.path('work.py'), stdout=subprocess.DEVNULL)
        p.wait()
        os._exit(0)
    _, _, used = os.wait4(pid, 0)
    return used


def is_right(t, use, one, procs):
    cpu = use['user_s'] + use['system_s']
    t.check('processors: half a second each, as the program itself counts', near(cpu, 0.5 * procs), use)
    t.check('memory: of the largest process, and where', near(use['process_memory'], one.ru_maxrss * 1024) and
            use['process_memory_node'] in [f'n{k}' for k in range(6)], (use, one))
    written = one.ru_oublock * 512 * procs
    if written >= 8 * MIB * procs:
        t.check('what was written', near(use['written_bytes'], written), (use, one))
    else:
        t.skip('what was written', 'this file system does not count')


def over(t):
    t.write('work.py', WORK)
    one = beside(t)
    r = t.run('run', '-v', '-n', PROCS, PYTHON, 'work.py')
    t.check('run', r.status == 0 and r.out == 'used\n' * PROCS, r)
    t.check('run -v says what it has used', 'of processors (' in r.err and 'of memory in one process on n' in r.err, r)
    row = last(t)
    use = row['usage']
    t.check('that is final', use is not None and use['final'] and use['as_of'] == row['end_time'], row)
    is_right(t, use, one, PROCS)
    r = t.run('show', row['id'])
    t.check('show', '\nused ' in r.out and 'in one process' in r.out, r)
    r = t.run('ps', '-a', '-l')
    line = [w for w in r.out.splitlines() if w.split()[0] == str(row['id'])][0]
    t.check('ps -a -l', 'CPU' in r.out.splitlines()[0] and 'MiB' in line, r)
    r = t.run('ps', '--swf', row['id'], '--scale', 100)
    fields = r.out.splitlines()[-1].split()
    cpu = (use['user_s'] + use['system_s']) / PROCS
    t.check('ps --swf: of a processor, in a time that is a hundred times as long', fields[4] == str(PROCS) and
            abs(int(fields[5]) - 100 * cpu) <= 1 and int(fields[6]) == -(-use['process_memory'] // 1024), (r, use))
    r = t.run('submit', '--wait', '-v', '-o', '/dev/null', '-n', '2', 'sh', '-c', 'true')
    t.check('submit --wait -v', r.status == 0 and 'of processors (' in r.err, r)
    r = t.run('wait', '-v', row['id'])
    t.check('wait -v, afterwards', r.status == 0 and f'job {row["id"]}: used ' in r.err, r)
    r = t.run('wait', row['id'])
    t.check('wait alone is silent', r.status == 0 and r.err == '', r)
    os.kill(t.daemon('storm-mm'), signal.SIGKILL)
    t.check('a new manager has the same', t.until(lambda: t.run('ps').status == 0) and
            job(t, row['id'])['usage'] == use and
            json.loads(t.run('show', '--json', row['id']).out)['usage'] == use, job(t, row['id']))


# A child that uses 0.3 seconds, and is not waited for.
LEAVE = '''import os, time
if os.fork() == 0:
    while sum(os.times()[:2]) < 0.3:
        pass
    open('left', 'w').close()
    os._exit(0)
while not os.path.exists('left'):
    time.sleep(0.05)
os._exit(0)
'''


def orphans(t):
    """What a process has started and nobody has waited for counts where there are control groups."""
    t.write('leave.py', LEAVE)
    r = t.run('run', PYTHON, 'leave.py')
    use = last(t)['usage']
    t.check('a job that does not wait for its child', r.status == 0 and use['final'], (r, use))
    r = t.run('up', '-v')
    if t.user or 'control groups' not in r.out + r.err:
        t.skip('what it spent is known', 'no control groups')
    else:
        t.check('what it spent is known', use['user_s'] + use['system_s'] > 0.25, use)


def running(t):
    p = t.start('run', '-n', PROCS, PYTHON, 'work.py', t.path('go'))
    t.check('they have used what they use', t.until(lambda: t.run('ps', '--json').out != '[]\n') and
            [p.stdout.readline() for _ in range(PROCS)] == [b'used\n'] * PROCS)
    number = json.loads(t.run('ps', '--json').out)[0]['id']

    def now():
        rows = json.loads(t.run('ps', '--json', number).out)
        use = rows[0]['usage']
        return use if use is not None and use['user_s'] + use['system_s'] > 0.4 * PROCS else None
    t.check('ps says so while they run', t.until(lambda: now() is not None), t.run('ps', '--json', number))
    use = now()
    t.check('it is not final, and says of when it is', not use['final'] and use['as_of'] > 0 and
            use['running_nodes'] == PROCS, use)
    t.check('memory', near(use['process_memory'], 64 * MIB + 20 * MIB, 0.4), use)
    r = t.run('ps', '-l')
    t.check('ps -l: how old it is', ' ago' in r.out, r)
    r = t.run('show', number)
    t.check('show: the same', ' ago' in r.out and 'of processors' in r.out, r)
    t.write('go', '')
    r = t.finish(p)
    t.check('in the end it is no less', r.status == 0 and job(t, number)['usage']['final'] and
            job(t, number)['usage']['user_s'] >= 0.9 * use['user_s'], (use, job(t, number)))


def nodes(t):
    def rows():
        return json.loads(t.run('nodes', '--json').out)
    t.check('load and memory of all nodes come by themselves', t.until(
        lambda: all(n['load'] is not None for n in rows())), rows())
    with open('/proc/meminfo') as f:
        total = int(f.read().split()[1]) * 1024
    t.check('memory is that of this machine', all(near(n['memory'], total, 0.01) and
            0 < n['memory_used'] < n['memory'] for n in rows()), rows())
    t.check('and of when it is', all(n['seen'] > 1e9 for n in rows()))
    r = t.run('nodes', '-l')
    head = r.out.splitlines()[0].split()
    t.check('nodes -l', head[4:7] == ['LOAD', 'MEM', 'OF'] and 'GiB' in r.out, r)
    r = t.run('nodes')
    head, row = r.out.splitlines()[0].split(), r.out.splitlines()[1].split()
    t.check('nodes: all in one row, with load and memory', head[5:8] == ['LOAD', 'MEM', 'OF'] and row[:2] == ['n[0-5]', '6'] and
            'GiB' in r.out and '-' != row[5], r)


play(over, orphans, running, nodes)
