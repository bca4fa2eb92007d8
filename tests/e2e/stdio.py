#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Standard input and output of jobs: complete, in order, where they were asked for. Speaks TAP."""
import hashlib
import json
import os
import signal
import subprocess
import time

from harness import play
from terminal import Terminal

BIG = 100 << 20


def order(t):
    r = t.sh('i=0; while [ $i -lt 200 ]; do echo "$STORM_RANK $i"; i=$((i+1)); done', '-N', 6)
    lines = [line.split() for line in r.out.splitlines()]
    each = {str(k): [int(i) for rank, i in lines if rank == str(k)] for k in range(6)}
    t.check('every stream is in order, no line torn',
            all(v == list(range(200)) for v in each.values()) and len(lines) == 1200, r)
    r = t.sh('echo out; echo err >&2')
    t.check('output and error are kept apart', r.out == 'out\n' and r.err == 'err\n', r)
    turns = 'i=0; while [ $i -lt 200 ]; do echo o$i; echo e$i >&2; i=$((i+1)); done'
    right = ''.join(f'o{i}\ne{i}\n' for i in range(200))
    r = t.sh(turns, stderr=subprocess.STDOUT)
    t.check('unless they go to one place: there they are in order', r.out == right, r)
    t.sh(turns, '-o', 'turns')
    t.check('in a file, too', t.read('turns') == right)
    t.sh(turns, '-o', 'named', '-e', 'named')
    t.check('though it is named twice', t.read('named') == right)
    with open(t.path('twice'), 'w') as one, open(t.path('twice'), 'a') as other:
        t.sh('echo out; echo err >&2', stdout=one, stderr=other)
    t.check('a file that was opened twice is two places', sorted(t.read('twice').split()) == ['err', 'out'])


def labels(t):
    r = t.sh('printf "a\\nb"; echo e >&2', '-l', '-N', 3)
    t.check('-l: every line has its rank', sorted(r.out.splitlines()) ==
            sorted(f'{k}: {c}' for k in range(3) for c in 'ab') and
            sorted(r.err.splitlines()) == [f'{k}: e' for k in range(3)], r)


def files(t):
    r = t.sh('echo "$STORM_RANK $STORM_NODE"; echo x >&2', '-N', 3, '-o', 'o-%j-%r-%n', '-e', 'e-%j')
    job = t.run('ps', '-a', '--json')
    number = json.loads(job.out)[-1]['id'] if job.status == 0 else 0
    t.check('-o: a file for each rank, with job, rank and node in its name', r.status == 0 and
            all(t.read(f'o-{number}-{k}-n{k}') == f'{k} n{k}\n' for k in range(3)),
            (r, os.listdir(t.work)))
    t.check('-e: one file for all', t.read(f'e-{number}') == 'x\nx\nx\n', r)
    r = t.sh('echo o; echo e >&2', '-o', 'both')
    t.check('-o alone: both go there', r.out == r.err == '' and
            sorted(t.read('both').split()) == ['e', 'o'], r)
    r = t.sh('echo 100%', '-o', 'odd%%name')
    t.check('%% is a percent sign', t.read('odd%name') == '100%\n', (r, os.listdir(t.work)))
    r = t.sh('true', '-o', 'nowhere/file')
    t.check('a file that cannot be made', r.status == 125 and r.is_one_line('nowhere/file'), r)


def inputs(t):
    script = 'echo "$STORM_RANK:$(cat)"'
    for to, takers in ((None, {0}), ('2', {2}), ('all', {0, 1, 2}), ('none', set())):
        r = t.sh(script, '-N', 3, *(['--stdin', to] if to else []), data=b'words')
        t.check(f'stdin to {to or "rank 0"}', sorted(r.out.splitlines()) ==
                [f'{k}:{"words" if k in takers else ""}' for k in range(3)], r)
    r = t.sh('true', '-N', 3, '--stdin', '7')
    t.check('stdin to a rank that there is not', r.status == 125 and r.is_one_line('7'), r)
    r = t.sh('cat; echo end')
    t.check('no input: end of file at once', r.out == 'end\n', r)
    r = t.run('run', 'true', data=b'x' * 300000)
    t.check('a program that reads nothing', r.status == 0, r)
    p = t.start('run', 'cat')
    p.stdin.write(b'first\n')
    p.stdin.flush()
    t.check('bytes arrive while input stays open', p.stdout.readline() == b'first\n')
    r = t.finish(p, b'last\n')
    t.check('and the rest', r.status == 0 and r.out == 'last\n', r)
    r = t.run('run', 'cat', stdin=None, stdout=subprocess.PIPE, preexec_fn=lambda: os.close(0))
    t.check('a closed standard input', r.status == 0 and r.out == '', r)


def binary(t):
    data = bytes(range(256)) * 500 + b'no newline at the end \0'
    r = t.run('run', 'cat', data=data)
    t.check('every byte comes back', r.status == 0 and r.raw == data, r.status)
    r = t.run('run', '-N', 3, '--stdin', 'all', '-o', 'bin-%r', 'cat', data=data)
    t.check('through files of each rank too', all(
        open(t.path(f'bin-{k}'), 'rb').read() == data for k in range(3)), r)


def large(t):
    block = os.urandom(1 << 20)
    r = t.run('run', 'md5sum', data=block * 100)
    t.check('100 MB of input', r.out.split()[:1] == [hashlib.md5(block * 100).hexdigest()], r)
    p = t.start('run', '-N', 2, 'sh', '-c', 'yes $STORM_RANK | head -c 52428800',
                stdin=subprocess.DEVNULL)
    r = t.finish(p)
    t.check('100 MB of output', r.status == 0 and len(r.raw) == BIG and
            r.raw.count(b'0\n') == r.raw.count(b'1\n') == BIG // 4, (r.status, len(r.raw), r.err))
    r = t.run('run', 'cat', data=block * 30)
    t.check('both ways at once', r.raw == block * 30, r.err)


def closed(t):
    p = t.start('run', '-N', 2, 'yes', 'storm-e2e-closed', stdin=subprocess.DEVNULL)
    p.stdout.readline()
    p.stdout.close()
    p.stdout = None
    r = t.finish(p)
    t.check('a reader that leaves (head -1) ends the job', r.status == 128 + signal.SIGPIPE and
            r.err == '', r)
    t.check('and its processes', t.until(lambda: not t.ours('storm-e2e-closed'), 10))
    with open('/dev/full', 'w') as full:
        r = t.finish(t.start('run', 'echo', 'words', stdout=full, stdin=subprocess.DEVNULL))
    t.check('a full disk is told', r.status == 125 and 'No space' in r.err, r)


def attach(t):
    r = t.run('submit', '-N', 2, 'sh', '-c', 'while [ ! -e go ]; do sleep 0.05; done; echo "late $STORM_RANK"')
    job = r.out.split()[-1] if r.out else '?'
    p = t.start('attach', job, stdin=subprocess.DEVNULL)
    t.check('attach to a submitted job', t.until(
        lambda: 'running' in t.run('show', job).out), r)
    time.sleep(0.3)
    t.write('go', '')
    r = t.finish(p)
    t.check('its end is told', r.status == 0, r)
    os.unlink(t.path('go'))
    r = t.run('attach', 4711)
    t.check('attach to a job that there is not', r.status == 125 and r.is_one_line('4711'), r)
    p = t.start('run', '--detach', 'sh', '-c',
                'while [ ! -e go ]; do sleep 0.05; done; echo late', stdin=subprocess.DEVNULL)
    t.until(lambda: 'sh' in t.run('ps').out)
    job = t.run('ps', '--json')
    job = json.loads(job.out)[-1]['id']
    p.kill()
    p.communicate()
    p = t.start('attach', job, stdin=subprocess.DEVNULL)
    time.sleep(0.3)
    t.write('go', '')
    r = t.finish(p)
    os.unlink(t.path('go'))
    t.check('attach to a job whose client is gone: output goes here', r.out == 'late\n' and
            r.status == 0, r)


def submitted(t):
    r = t.run('submit', '-N', 3, 'sh', '-c', 'echo "out $STORM_RANK"; echo "err $STORM_RANK" >&2')
    job = r.out.strip()
    t.check('submit prints the number of the job', job.isdigit(), r)
    r = t.run('wait', job)
    t.check('wait', r.status == 0, r)
    want = sorted(f'{s} {k}' for s in ('out', 'err') for k in range(3))
    t.check('its output is in storm-%j.out', t.until(
        lambda: sorted(t.read(f'storm-{job}.out').splitlines()) == want, 10),
        t.read(f'storm-{job}.out'))
    r = t.run('submit', '--wait', '-o', 'so-%j-%r', '-e', 'se-%j', '-N', 2, 'sh', '-c',
              'echo $STORM_RANK; echo e >&2; exit 3')
    job = r.out.split()[0]
    t.check('submit --wait has the status of the job', r.status == 3, r)
    t.check('-o and -e of submit', t.until(lambda: t.read(f'so-{job}-0') == '0\n' and
            t.read(f'so-{job}-1') == '1\n' and t.read(f'se-{job}') == 'e\ne\n', 10),
            os.listdir(t.work))
    r = t.run('submit', 'sh', '-c', 'echo before; kill -9 $$')
    job = r.out.strip()
    r = t.run('wait', job)
    t.check('wait tells of a death', r.status == 137, r)
    t.check("STORM's own words are in the file too", t.until(
        lambda: 'before\n' in t.read(f'storm-{job}.out') and
        'signal 9' in t.read(f'storm-{job}.out'), 10), t.read(f'storm-{job}.out'))
    r = t.run('submit', '-t', '1', '-e', 'te-%j', 'sleep', '60')
    job = r.out.strip()
    r = t.run('wait', job)
    t.check('also when the time is over', r.status == 124 and t.until(
        lambda: 'time limit' in t.read(f'te-{job}'), 10), (r, t.read(f'te-{job}')))
    r = t.run('submit', 'sh', '-c', 'echo one; while [ ! -e go ]; do sleep 0.05; done; echo two')
    job = r.out.strip()
    t.until(lambda: t.read(f'storm-{job}.out') == 'one\n')
    os.kill(t.daemon('storm-scribe'), signal.SIGKILL)
    time.sleep(0.5)
    t.write('go', '')
    r = t.run('wait', job)
    os.unlink(t.path('go'))
    t.check('who writes the files is killed: nothing is lost, nothing is there twice', t.until(
        lambda: t.read(f'storm-{job}.out') == 'one\ntwo\n', 10), t.read(f'storm-{job}.out'))
    r = t.run('submit', '-D', 'nowhere-at-all', 'true')
    t.check('a folder that is not there: submit', r.status == 125 and r.is_one_line('nowhere-at-all'), r)
    r = t.run('submit', 'no-such-program-here')
    t.check('a program that is not there: submit', r.status == 127, r)


# ---- terminals ----

def terminal(t):
    x = Terminal(t, 'run', '--pty', 'sh', '-c', 'test -t 0 && test -t 1 && echo yes-tty; stty size')
    t.check('--pty: the program has a terminal', x.expect('yes-tty'), x.text)
    t.check('of the size of ours', x.expect('33 77'), x.text)
    t.check('and its status', x.wait() == 0, x.text)
    x.close()
    x = Terminal(t, 'run', '--pty', 'sh', '-c',
                 "trap 'stty size' WINCH; echo ready; while :; do sleep 0.05; done")
    x.expect('ready')
    x.resize(44, 99)
    t.check('a new size arrives', x.expect('44 99'), x.text)
    x.type(b'\x03')
    t.check('Ctrl-C interrupts the program', x.wait() == 130, x.text)
    x.close()
    x = Terminal(t, 'run', '--pty', 'sh', '-c', "trap 'echo caught' INT; echo ready;"
                 ' while [ -z "$l" ]; do read l; done; echo "got $l"; cat')
    x.expect('ready')
    x.type(b'\x03')
    t.check('a program may catch Ctrl-C', x.expect('caught'), x.text)
    x.type(b'line\r')
    t.check('what is typed arrives', x.expect('got line'), x.text)
    x.type(b'\x04')
    t.check('Ctrl-D is the end of file', x.wait() == 0, x.text)
    x.close()
    x = Terminal(t, 'run', '--pty', 'bash', '--norc', '-i')
    x.type(b'PS1="pro""mpt> "\r')
    x.expect('prompt> ')
    x.type(b'sleep 99\r')
    time.sleep(0.5)
    x.type(b'\x1a')
    t.check("Ctrl-Z stops the shell's job, not storm", x.expect('Stopped'), x.text)
    x.type(b'kill -9 %1; sleep 0.2\r\r')
    x.expect('Killed')
    x.type(b'exit 5\r')
    t.check('and the shell goes on', x.wait() == 5, x.text)
    x.close()
    x = Terminal(t, 'run', 'sh', '-c', 'echo plain; test -t 1 || echo no-tty')
    t.check('without --pty it has none', x.expect('no-tty') and x.wait() == 0, x.text)
    x.close()


def job_control(t):
    """Ctrl-Z, fg and Ctrl-C of a shell, without --pty: the command and its job are one."""
    def beats():
        return len(t.read('beats'))
    x = Terminal(t, 'bash', '--norc', '-i', shell=True)
    x.type(b'PS1="pro""mpt> "\r')
    x.expect('prompt> ')
    x.type(f'{t.storm} run sh -c "while :; do echo x >>beats; sleep 0.02; done"\r'.encode())
    t.until(lambda: beats() > 0)
    x.type(b'\x1a')
    t.check('Ctrl-Z stops the command', x.expect('Stopped'), x.text)
    x.text = x.text.split('Stopped')[-1]
    time.sleep(0.3)  # its job has heard of it by then
    before = beats()
    time.sleep(0.5)
    t.check('and its job', beats() == before, (before, beats()))
    x.expect('prompt> ')
    x.text = ''
    x.type(b'fg\r')
    x.expect('>>beats')  # the shell says what it goes on with
    t.check('fg: both go on', t.until(lambda: beats() > before, 10), x.text)
    x.text = ''
    x.type(b'\x03')
    x.expect('prompt> ')
    x.type(b'echo "status $?"\r')
    t.check('Ctrl-C ends both', x.expect('status 130'), x.text)
    x.type(b'exit\r')
    x.wait()
    x.close()


play(order, labels, files, inputs, binary, large, closed, attach, submitted, terminal, job_control)
