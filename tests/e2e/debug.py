#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Debugging: signals to some ranks, debuggers that start processes, and those that look for them.
Speaks TAP."""
import fcntl
import json
import os
import shutil
import subprocess
import tempfile
import time

from harness import play
from terminal import Terminal

ASK = 'trap "echo $STORM_RANK has it; exit 0" USR1; >ready.$STORM_RANK; while :; do sleep 0.05; done'


def begin(t, script, *args, procs=4, **more):
    """A job whose processes each make a file when they are ready; and its number."""
    for name in os.listdir(t.work):
        if name.startswith('ready.'):
            os.unlink(t.path(name))
    more.setdefault('stdin', subprocess.DEVNULL)
    p = t.start('run', '-n', procs, *args, '--', 'sh', '-c', script, **more)
    t.check('it runs', t.until(lambda: all(os.path.exists(t.path(f'ready.{r}')) for r in range(procs))))
    return p, json.loads(t.run('ps', '--json').out)[-1]['id']


def state(pid):
    try:
        with open(f'/proc/{pid}/stat') as f:
            return f.read().rpartition(')')[2].split()[0]
    except FileNotFoundError:
        return None


def ranks(t):
    for how in ('block', 'cyclic', 'n0,n1,n0,n1'):
        p, job = begin(t, ASK, '--map', how)
        r = t.run('kill', '-s', 'USR1', '--ranks', '1,3', job)
        t.check(f'a signal to some ranks, {how}', r.status == 0, r)
        out = sorted(p.stdout.readline() for _ in range(2))
        t.check('it came to them', out == [b'1 has it\n', b'3 has it\n'], out)
        r = t.run('kill', '-s', 'USR1', '--ranks', '0-2', job)
        r = t.finish(p)
        t.check('and to the others later', r.status == 0 and sorted(r.out.split('\n')[:2]) == ['0 has it', '2 has it'], r)


def ranks_itself(t):
    """The process of a rank is meant, and not what it has started."""
    script = 'trap "echo caught; kill \\$!; exit 0" TERM; n=1; sleep 81$n & >ready.$STORM_RANK; while :; do wait; done'
    p, job = begin(t, script, procs=2)
    r = t.run('kill', '--ranks', '0', job)
    t.check('SIGTERM is the usual signal', r.status == 0, r)
    t.check('it has it', p.stdout.readline() == b'caught\n')
    t.check('the other goes on', t.until(lambda: len(t.ours('sleep 811')) == 1))
    r = t.run('kill', '-s', 'KILL', '--ranks', '1', job)
    r = t.finish(p)
    t.check('SIGKILL to one: the job ends as it does when one dies', r.status == 137 and 'rank 1' in r.err, r)


def ranks_wrong(t):
    p, job = begin(t, ASK, procs=3)
    r = t.run('kill', '-s', 'USR1', '--ranks', '1-3', job)
    t.check('there is no such rank', r.status == 125 and r.is_one_line(f'job {job}', 'no rank 3', '3 processes'), r)
    r = t.run('kill', '--ranks', '1-', job)
    t.check('that is no list', r.status == 2 and r.is_one_line('--ranks', '0,3-5'), r)
    r = t.run('kill', '--ranks', '0', 4711)
    t.check('there is no such job', r.status == 125 and r.is_one_line('4711'), r)
    t.run('kill', job)
    t.finish(p)
    r = t.run('kill', '--ranks', '0', job)
    t.check('one that is over does not run', r.status == 125 and r.is_one_line(f'job {job}'), r)


def pids(t):
    p, job = begin(t, ASK, '--map', 'cyclic')
    r = t.run('ps', '--pids', job)
    t.check('ps --pids', r.status == 0 and r.out.startswith('RANK') and len(r.out.splitlines()) == 5, r)
    rows = json.loads(t.run('ps', '--pids', '--json', job).out)
    t.check('as JSON', [(x['rank'], x['node']) for x in rows] == [(0, 'n0'), (1, 'n1'), (2, 'n0'), (3, 'n1')], rows)
    t.check('with the name of this machine', all(x['host'] == os.uname().nodename for x in rows), rows)
    for x in rows:
        with open(f'/proc/{x["pid"]}/environ') as f:
            t.check(f'process {x["rank"]} is that rank', f'STORM_RANK={x["rank"]}\0' in f.read())
    t.run('kill', job)
    t.finish(p)
    r = t.run('ps', '--pids', job)
    t.check('none of one that is over', r.status == 125 and r.is_one_line(f'job {job}'), r)
    p, job = begin(t, '>ready.$STORM_RANK; [ $STORM_RANK = 1 ] || exec sleep 600', procs=3)
    some = lambda: [x['rank'] for x in json.loads(t.run('ps', '--pids', '--json', job).out)]
    t.check('one that has ended has no number any more', t.until(lambda: some() == [0, 2], 20), some())
    r = t.run('ps', '--pids', job)
    t.check('and nothing is wrong with that', r.status == 0 and r.err == '', r)
    t.run('kill', job)
    t.finish(p)
    r = t.run('ps', '--pids')
    t.check('of which job?', r.status == 2 and r.is_one_line('--pids JOB'), r)



# ---- debuggers ----

CRASH = 'if [ $STORM_RANK = 1 ] || [ $STORM_RANK = 3 ]; then kill -SEGV $$; fi; echo $STORM_RANK fine'


def batch(t):
    """A debugger that asks nobody."""
    gdb = 'gdb -nx -batch -ex run -ex bt'
    r = t.run('run', '-n', 4, '--debug', gdb, '--ranks', '3', '--', 'sh', '-c', CRASH.replace('= 1', '= 9'))
    t.check('one rank by gdb, the others as always', 'SIGSEGV' in r.out and sorted(
        x for x in r.out.splitlines() if x.endswith(' fine')) == ['0 fine', '1 fine', '2 fine'], r)
    t.check('its status is the debugger\'s', r.status == 0, r)
    r = t.run('run', '-n', 4, '--debug', gdb, '--ranks', '1,3', '--', 'sh', '-c', CRASH)
    both = [x for x in r.out.splitlines() if 'received signal SIGSEGV' in x]
    t.check('several: lines have labels', sorted(x.split(':')[0].strip('[] ') for x in both) == ['1', '3'], r)
    t.check('of all', all(any(x.startswith(f'{n}:') or x.startswith(f'[{n}]') for x in r.out.splitlines())
                          for n in range(4)), r)
    r = t.run('run', '-n', 2, '--debug', 'env A="b c"', 'sh', '-c', 'echo "$A $STORM_RANK $0 $1"', 'x', 'y')
    t.check('any command, quotes, and all ranks unless said otherwise',
            sorted(x.split(': ')[-1] for x in r.out.splitlines()) == ['b c 0 x y', 'b c 1 x y'], r)
    r = t.run('run', '-n', 1, '--copy', '--debug', 'env', t.write('prog', '#!/bin/sh\necho "$0 $@"\n', 0o755), 'a')
    t.check('a program that was sent', r.out.endswith(' a\n') and r.status == 0, r)


def wrong(t):
    r = t.run('run', '-n', 2, '--debug', 'gdb', '--ranks', '2', 'true')
    t.check('there is no such rank', r.status == 125 and r.is_one_line('no rank 2', '2 processes'), r)
    r = t.run('run', '-n', 2, '--ranks', '1', 'true')
    t.check('ranks of what?', r.status == 2 and r.is_one_line('--debug'), r)
    r = t.run('run', '--debug', 'no-such-debugger', 'true')
    t.check('there is no such debugger', r.status == 127 and r.is_one_line('no-such-debugger'), r)
    r = t.run('run', '--debug', 'gdb "x', 'true')
    t.check('a quote', r.status == 2 and r.is_one_line('quote'), r)


def person(t):
    """One rank at the terminal: as if there were no others."""
    x = Terminal(t, 'run', '-n', 3, '--debug', 'gdb -nx -q', '--ranks', '2', '--', 'sh', '-c',
                 'test -t 0 && echo "I am $STORM_RANK"; test -t 0 || echo "no keys for $STORM_RANK"')
    t.check('the prompt comes', x.expect('(gdb) '), x.text)
    t.check('the others run', x.expect('no keys for 0') and x.expect('no keys for 1'), x.text)
    x.type(b'run\r')
    t.check('it does what is typed', x.expect('I am 2'), x.text)
    t.check('and its process has the terminal', x.expect('exited normally'), x.text)
    x.type(b'quit\r')
    t.check('the end is the debugger\'s', x.wait() == 0, x.text)
    x.close()
    r = t.run('run', '-n', 2, '--debug', 'gdb -nx -q', '--ranks', '1', 'true', data=b'run\nquit\n')
    t.check('without a terminal it has what is typed', r.status == 0 and 'exited normally' in r.out, r)


def many(t):
    """Several at a terminal: a window for each, or a server; both are played here."""
    where = t.path('played')
    os.mkdir(where)
    for name, text in (('xterm', '[ "$1" = -e ] && shift && echo "window of $STORM_RANK: $*"'),
                       ('gdbserver', 'echo "Listening for $STORM_RANK: $*"')):
        t.write(f'played/{name}', f'#!/bin/sh\n{text}\n', 0o755)
    path = {'PATH': f'{where}:{os.environ["PATH"]}'}
    gdb, sh = shutil.which('gdb'), shutil.which('sh')
    x = Terminal(t, 'run', '-n', 2, '--debug', 'gdb -q', 'sh', '-x', env={**path, 'DISPLAY': ':77'})
    t.check('windows', all(x.expect(f'window of {n}: {gdb} -q --args {sh} -x') for n in (0, 1)), x.text)
    t.check('end', x.wait() == 0, x.text)
    x.close()
    x = Terminal(t, 'run', '-n', 2, '--debug', 'gdb -q', 'sh', '-x', env={**path, 'DISPLAY': ''})
    t.check('a hint', x.expect('target remote HOST:PORT'), x.text)
    t.check('servers', all(x.expect(f'Listening for {n}: --once :0 {sh} -x') for n in (0, 1)), x.text)
    t.check('end', x.wait() == 0, x.text)
    x.close()


# ---- debuggers that look for processes ----

HELD = """set pagination off
set confirm off
set debuginfod enabled off
set breakpoint pending off
handle SIGINT nostop
handle SIGCONT SIGPIPE nostop noprint pass
break MPIR_Breakpoint
break main
run
set var MPIR_being_debugged = 1
continue
python
import gdb
import time
n = int(gdb.parse_and_eval('MPIR_proctable_size'))
print('size', n, 'state', int(gdb.parse_and_eval('MPIR_debug_state')))
for i in range(n):
    row = gdb.parse_and_eval('MPIR_proctable')[i]
    pid = int(row['pid'])
    for again in range(1000):  # the stop waits for it: on a busy machine it may still be on its way there
        with open('/proc/%d/stat' % pid) as f:
            state = f.read().rpartition(')')[2].split()[0]
        if state == 'T':
            break
        time.sleep(0.02)
    with open('/proc/%d/maps' % pid) as f:
        begun = any('libc' in line for line in f)
    print('row', i, row['host_name'].string(), row['executable_name'].string(), state, 'begun' if begun else 'fresh',
          'rank' if 'STORM_RANK=%d' % i in open('/proc/%d/environ' % pid).read().split('\\0') else 'other')
end
continue
"""

LOOK = """set pagination off
set confirm off
set debuginfod enabled off
handle SIGINT nostop
python
import gdb
n = int(gdb.parse_and_eval('MPIR_proctable_size'))
for i in range(n):
    row = gdb.parse_and_eval('MPIR_proctable')[i]
    print('row', i, row['host_name'].string(), row['executable_name'].string(), int(row['pid']))
end
detach
"""


WANT = LOOK.replace('python', """break MPIR_Breakpoint
set var MPIR_being_debugged = 1
continue
delete
python""", 1)


def held(t):
    """A parallel debugger starts storm run: processes are held until it lets them go."""
    script = t.write('held.gdb', HELD)
    p = t.spawn('gdb', '-nx', '-batch', '-x', script, '--args', t.storm, 'run', '-n', 4, '--', 'sh', '-c',
                'echo $STORM_RANK goes', stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    r = t.finish(p)
    lines = r.out.splitlines()
    t.check('the table has them all', 'size 4 state 1' in lines, r)
    sh, host = os.path.realpath(shutil.which('sh')), os.uname().nodename
    rows = [x.split() for x in lines if x.startswith('row ')]
    t.check('with host and program', [(x[1], x[2]) for x in rows] == [(str(i), host) for i in range(4)] and
            all(os.path.realpath(x[3]) == sh for x in rows), rows)
    t.check('each is stopped before its first instruction', all(x[4:] == ['T', 'fresh', 'rank'] for x in rows), rows)
    t.check('then they go', sorted(x for x in lines if x.endswith(' goes')) == [f'{i} goes' for i in range(4)], r.out)
    t.check('and all ends well', 'exited normally' in r.out, r.out[-500:])


def found(t):
    """One that attaches to a command that waits for a job."""
    look, want = t.write('look.gdb', LOOK), t.write('want.gdb', WANT)
    def rows(pid, script=look):
        r = t.finish(t.spawn('gdb', '-nx', '-batch', '-p', pid, '-x', script, t.storm, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE))
        return [x.split() for x in r.out.splitlines() if x.startswith('row ')]
    p, job = begin(t, ASK)
    there = [str(x['pid']) for x in json.loads(t.run('ps', '--pids', '--json', job).out)]
    time.sleep(1.5)
    t.check('nothing is asked for that nobody wants', rows(p.pid) == [])
    got = rows(p.pid, want)
    t.check('a debugger that attaches to storm run', [x[4] for x in got] == there, got)
    t.check('who comes later finds it', [x[4] for x in rows(p.pid)] == there)
    a = t.start('attach', '--debug', job)
    line = a.stderr.readline().decode()
    t.check('storm attach --debug says when it may', f'process {a.pid}' in line, line)
    got = rows(a.pid)
    t.check('and has the table', [x[4] for x in got] == there and all(x[3].endswith('sh') for x in got), got)
    t.run('kill', job)
    t.finish(a)
    t.finish(p)


# ---- cores ----

def setting(name, value=None):
    """A setting of the kernel; with a value it is changed, and what it was comes back."""
    path = '/proc/sys/kernel/' + name
    with open(path) as f:
        was = f.read().rstrip('\n')
    if value is not None and value != was:
        with open(path, 'w') as f:
            f.write(value)
    return was


DUMP = 'if [ $STORM_RANK != 0 ]; then kill -SEGV $$; fi; sleep 0.2'


def next_job(t):
    return json.loads(t.run('ps', '-a', '--json').out)[-1]['id'] + 1


def cores_of_others(t):
    """What the user has under such a name is neither moved, nor overwritten, nor told of."""
    uses = setting('core_uses_pid')
    if os.geteuid() == 0:
        setting('core_uses_pid', '0')
    away = tempfile.mkdtemp()
    os.chmod(away, 0o777)
    t.write('core', 'my work\n')
    t.write('core.cfg', 'what was typed\n')
    old = next_job(t)
    t.write(f'core.{old}.0.n0', 'an old one\n')
    r = t.run('run', '-n', 2, '--cores', 'true')
    t.check('an old core is none of this job', r.status == 0 and r.err == '', r)
    old = next_job(t)
    t.write(f'core.{old}.0.n1', 'an old one\n')
    r = t.run('run', '-n', 1, '--cores', 'sh', '-c', f'cd {away} && kill -ABRT $$')
    t.check('nor if it has failed', r.status == 134 and 'rank 0 on n1' not in r.err, r)
    t.check('a file that is called core is no core', t.read('core') == 'my work\n', r)
    os.unlink(t.path('core'))
    os.mkdir(t.path('core'))
    t.write('core/file', 'deep')
    r = t.run('run', '-n', 1, '--cores', 'sh', '-c', f'cd {away} && kill -ABRT $$')
    t.check('nor a folder', r.status == 134 and t.read('core/file') == 'deep', r)
    shutil.rmtree(t.path('core'))
    r = t.run('run', '-n', 1, '--cores', '--input', 'core.cfg', 'sh', '-c', 'echo changed >core.cfg; exit 3')
    t.check('an input of such a name does not come back', r.status == 3 and t.read('core.cfg') == 'what was typed\n', r)
    shutil.rmtree(away)
    if os.geteuid() == 0:
        setting('core_uses_pid', uses)
    for name in os.listdir(t.work):
        if name.startswith('core'):
            os.unlink(t.path(name))


def cores(t):
    """Where the kernel puts cores is a matter of the whole machine: only root may change it, and it is changed back."""
    one = open('/proc/sys/kernel/core_pattern')
    fcntl.flock(one, fcntl.LOCK_EX)   # another of these tests may want to do the same
    pattern, uses = setting('core_pattern'), setting('core_uses_pid')
    if os.geteuid() != 0 and (pattern[0] in '|@/'):
        print(f'# skipped: kernel.core_pattern is {pattern}, which only root may change')
        return
    try:
        if os.geteuid() == 0:
            setting('core_pattern', 'core')
            setting('core_uses_pid', '1')
        r = t.run('run', '-n', 3, '--cores', 'sh', '-c', DUMP)
        job = json.loads(t.run('ps', '-a', '--json').out)[-1]['id']
        t.check('the end says who has left a core', r.status == 139 and f'rank 1 on n0 dumped core: core.{job}.1.n0' in
                r.err and f'rank 2 on n1 dumped core: core.{job}.2.n1' in r.err and 'rank 0' not in r.err, r)
        names = sorted(x for x in os.listdir(t.work) if x.startswith('core'))
        t.check('both are here, and nothing else', names == [f'core.{job}.1.n0', f'core.{job}.2.n1'], names)
        with open(t.path(names[0]), 'rb') as f:
            t.check('it is one', f.read(4) == b'\x7fELF')
        for name in names:
            os.unlink(t.path(name))
        r = t.run('run', '-n', 2, '--cores', 'true')
        t.check('who ends well says nothing', r.status == 0 and r.err == '', r)
        cores_of_others(t)
        r = t.run('run', '-n', 2, 'sh', '-c', f'ulimit -c 0; {DUMP}')
        t.check('without --cores it is as always', not [x for x in os.listdir(t.work) if x.startswith('core')], r)
        r = t.run('run', '--detach', '--cores', 'true')
        t.check('somebody has to fetch it', r.status == 2 and r.is_one_line('--cores'), r)
        if os.geteuid() == 0:
            setting('core_pattern', '|/bin/false %p')
            r = t.run('run', '-n', 2, '--cores', 'sh', '-c', DUMP)
            t.check('a program has it', 'rank 1 on n0 dumped core' in r.err and '|/bin/false' in r.err, r)
            folder = t.path('elsewhere')
            os.mkdir(folder)
            os.chmod(folder, 0o777)
            setting('core_pattern', folder + '/c-%e-%p')
            r = t.run('run', '-n', 2, '--cores', 'sh', '-c', DUMP)
            names = [x for x in os.listdir(t.work) if x.startswith('core.')]
            t.check('from another folder', len(names) == 1 and names[0] in r.err and not os.listdir(folder), (r, names))
        if os.geteuid() == 0 and os.path.isdir('/dev/shm') and os.stat('/dev/shm').st_dev != os.stat(t.home).st_dev:
            setting('core_pattern', 'core')
            folder = tempfile.mkdtemp(dir='/dev/shm')
            os.chmod(folder, 0o777)
            r = t.run('run', '-n', 2, '--cores', '-D', folder, 'sh', '-c', DUMP)
            names = os.listdir(folder)
            t.check('on another file system it stays there', len(names) == 1 and f'{folder}/{names[0]}' in r.err, (r, names))
            shutil.rmtree(folder)
    finally:
        if os.geteuid() == 0:
            setting('core_pattern', pattern)
            setting('core_uses_pid', uses)
        one.close()


# ---- Cplant's names ----

def cplant(t):
    for name in ('yod', 'pingd'):
        os.symlink(t.storm, os.path.join(t.bin, name))
    yod = lambda *args: t.finish(t.spawn(os.path.join(t.bin, 'yod'), *args, stdin=subprocess.DEVNULL,
                                         stdout=subprocess.PIPE, stderr=subprocess.PIPE))
    pingd = lambda *args: t.finish(t.spawn(os.path.join(t.bin, 'pingd'), *args, stdin=subprocess.DEVNULL,
                                           stdout=subprocess.PIPE, stderr=subprocess.PIPE))
    r = yod('-sz', '2:2', 'sh', '-c', 'echo $STORM_SIZE $STORM_NODES')
    t.check('yod -sz', r.status == 0 and r.out == '4 n[0-1]\n' * 4, r)
    r = yod('-sz', '1', '-list', '1', 'sh', '-c', 'echo $STORM_NODE')
    t.check('on these nodes', r.out == 'n1\n', r)
    r = t.run('yod', '-sz', '::3', 'echo', 'x')
    t.check('storm yod', r.out == 'x\n' * 3, r)
    r = yod('-frob', 'true')
    t.check('what it does not know', r.status == 2 and r.is_one_line('-frob', '-sz'), r)
    r = pingd()
    t.check('pingd shows the nodes', r.status == 0 and '\nn[0-' in r.out, r)
    r = pingd('-list', '1')
    t.check('some of them', 'n0' not in r.out and 'n1' in r.out, r)
    p, job = begin(t, ASK, procs=2)
    r = pingd(str(job))
    t.check('or a job', str(job) in r.out and 'running' in r.out, r)
    r = pingd('-kill', str(job))
    t.check('and does nothing to it', r.status == 2 and r.is_one_line('storm kill'), r)
    t.run('kill', job)
    t.finish(p)


DEBUGGERS = (batch, wrong, person, many, held, found) if shutil.which('gdb') else ()
play(ranks, ranks_itself, ranks_wrong, pids, *DEBUGGERS, cores, cplant, up=('--local', '2', '--pes', '2'))
