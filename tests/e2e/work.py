#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""storm work: lines and values, output and its order, failures, going on after a kill, nothing left behind. Speaks TAP."""
import json
import os
import re
import signal
import struct

from harness import play
from terminal import Terminal


def processes(t, name):
    """Those of this suite that have this name."""
    found = []
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            with open(f'/proc/{pid}/comm') as f:
                comm = f.read().strip()
            exe = os.readlink(f'/proc/{pid}/exe')
        except OSError:
            continue
        if comm == name and exe.startswith(t.scratch):
            found.append(int(pid))
    return found


def work(t, *args, lines=None, **more):
    return t.run('work', *args, data=None if lines is None else lines.encode(), **more)


def folders(t):
    path = os.path.join(t.home, 'local', 'work')
    return os.listdir(path) if os.path.isdir(path) else []


def jobs(t):
    return json.loads(t.run('ps', '--json').out)


def nothing_left(t):
    return t.until(lambda: not processes(t, 'storm-worker') and not processes(t, 'storm-wodi') and not jobs(t))


def lines(t):
    r = work(t, lines='echo one\necho two; echo more\n\nexpr 1 + 2\n')
    t.check('command lines', r.status == 0 and r.out == 'one\ntwo\nmore\n3\n' and r.err == '', r)
    t.write('list', ''.join(f'echo {i}\n' for i in range(200)))
    r = work(t, '-f', 'list')
    t.check('of a file, in order', r.status == 0 and r.out == ''.join(f'{i}\n' for i in range(200)), r)
    r = work(t, lines='')
    t.check('none', r.status == 0 and r.out == '' and r.err == '', r)
    r = work(t, lines='printf x')
    t.check('one without an end', r.out == 'x', r)
    r = work(t, '-0', 'echo', lines='a\nb\0c')
    t.check('zero bytes', r.out == 'a\nb\nc\n', r)
    r = work(t, lines='echo out; echo err >&2; exit 0\n')
    t.check('both streams', r.out == 'out\n' and r.err == 'err\n', r)
    r = work(t, lines='cat\necho "$X:$STORM_STEP"; pwd\n', env={'X': 'a b'})
    t.check('environment, folder, no input', r.out == f'a b:2\n{t.work}\n', r)
    outer = {'STORM_PETITION': '7', 'STORM_JOB_ID': '99', 'STORM_RANK': '1', 'STORM_WANTED': 'x'}
    r = work(t, lines='echo "$STORM_PETITION:$STORM_JOB_ID:$STORM_RANK:$STORM_WANTED"\n', env=outer)
    t.check('nothing of a job that storm work is in itself', r.out == ':::x\n', r)
    r = work(t, '-f', '/nowhere')
    t.check('a file that is not there', r.status == 125 and r.is_one_line('/nowhere'), r)
    t.check('nothing is left of all that', nothing_left(t) and folders(t) == [], folders(t))


def values(t):
    r = work(t, 'echo', '{#}', '{/.}', '{//}', ':::', 'd/a.b', 'c.d')
    t.check('places', r.out == '1 a d\n2 c .\n', r)
    r = work(t, 'echo', ':::', '$(id)', "it's", 'a  b')
    t.check('values are what they are', r.out == "$(id)\nit's\na  b\n", r)
    t.write('values', '1\n2\n')
    r = work(t, 'echo', '{1}-{2}', ':::', 'a', 'b', '::::', 'values')
    t.check('all combinations', r.out == 'a-1\na-2\nb-1\nb-2\n', r)
    r = work(t, 'echo {}; echo again', lines='x\ny\n')
    t.check('a command for lines', r.out == 'x\nagain\ny\nagain\n', r)
    r = work(t, '--dry-run', 'echo', '{}', ':::', 'a b', 'c')
    t.check('only shown', r.status == 0 and r.out == "echo 'a b'\necho c\n", r)
    r = work(t, 'echo', '{2}', ':::', 'a')
    t.check('a value that is not there', r.status == 2 and r.is_one_line('{2}'), r)
    r = work(t, '-f', 'values', 'echo', ':::', 'a')
    t.check('two sources', r.status == 2 and r.is_one_line('-f'), r)


def ends(t):
    r = work(t, lines='exit 3\ntrue\nkill -9 $$\n')
    t.check('failures are counted', r.status == 2 and r.is_one_line('2 of 3', 'line', 'exit 3'), r)
    r = work(t, 'exit', '{}', ':::', *range(1, 103))
    t.check('more than 100', r.status == 101, r)
    r = work(t, '--json', lines='echo a; echo b >&2; exit 3\nkill -9 $$\n')
    rows = [json.loads(line) for line in r.out.splitlines()]
    t.check('as JSON', [(x['seq'], x['status'], x['stdout'], x['stderr']) for x in rows] ==
            [(1, 3, 'a\n', 'b\n'), (2, 137, '', '')] and rows[0]['node'].startswith('n') and
            rows[0]['start'] > 1e9 and rows[0]['time'] > 0, r)
    r = work(t, lines='no-such-command-anywhere\n/dev/null\n')
    t.check('a command that is not there', r.status == 2 and 'status 127' in r.err, r)
    r = work(t, '-t', '200ms', '--json', lines='sleep 1000 & sleep 1000\n')
    t.check('a time limit', r.status == 1 and json.loads(r.out)['status'] == 124, r)
    r = work(t, '--retries', 3, 'echo x >>tried; test $(wc -l <tried) -ge {} && echo {}', ':::', 3)
    t.check('tried again', r.status == 0 and r.out == '3\n' and t.read('tried') == 'x\n' * 3, r)
    r = work(t, '--retries', 2, 'echo x >>vainly; false', ':::', 1)
    t.check('in vain', r.status == 1 and t.read('vainly') == 'x\n' * 3, r)
    r = work(t, '--joblog', 'log', lines='true\nexit 4\n')
    rows = [line.split('\t') for line in t.read('log').splitlines()]
    t.check('a log', rows[0][0] == 'Seq' and sorted((x[0], x[6], x[8]) for x in rows[1:]) ==
            [('1', '0', 'true'), ('2', '4', 'exit 4')], rows)
    text = 'echo a\nfalse\nuntil test -e halt.open; do sleep 0.02; done; echo b >after\n'
    r = work(t, '-n', 1, '--halt', lines=text)
    t.check('halt', r.status == 1 and r.out == 'a\n' and '--resume' in r.err and t.read('after') == '', r)
    name = re.search(r'--resume (\S+)', r.err).group(1)
    t.write('halt.open', '')
    r = work(t, '--resume', name, lines=text)
    t.check('and on from there', r.status == 1 and r.out == '' and t.read('after') == 'b\n', r)
    r = work(t, '--resume', name, lines=text)
    t.check('what has failed is kept', r.status == 1 and r.out == '', r)
    r = work(t, '--resume-failed', name, lines=text)
    t.check('and is tried again if that is wanted', r.status == 1 and 'line 2' in r.err, r)
    r = work(t, '--resume', name, lines='echo a\ntrue\n')
    t.check('another list is refused', r.status == 125 and 'line 2 is not what it was' in r.err, r)
    r = work(t, lines='head -c 3000000 /dev/zero\n')
    t.check('more output than is kept is told', r.status == 0 and 1e6 < len(r.raw) < 1.1e6 and 'bytes more' in r.err, r.err)
    r = work(t, lines='(sleep 1000; echo late) & echo early\n')
    t.check('who stays behind is not waited for', r.status == 0 and r.out == 'early\n', r)


def slow(t):
    """One line waits until the others have been shown: it can, only if it keeps none of them."""
    os.mkfifo(t.path('gate'))
    os.chmod(t.path('gate'), 0o666)
    p = t.start('work', '--unordered', '-n', 2)
    p.stdin.write(b'read x <gate; echo slow\n' + b'echo fast\n' * 50)
    p.stdin.close()
    p.stdin = None
    got = [p.stdout.readline() for _ in range(50)]
    t.check('a slow line keeps no other waiting', got == [b'fast\n'] * 50, got)
    t.spawn('sh', '-c', 'echo go >gate').wait()
    r = t.finish(p)
    t.check('and comes in the end', r.status == 0 and r.out == 'slow\n', r)
    p = t.start('work', '-n', 2)
    p.stdin.write(b'read x <gate; echo slow\n' + b'echo fast; echo x >>count\n' * 50)
    p.stdin.close()
    p.stdin = None
    t.check('lines behind it are run', t.until(lambda: t.read('count') == 'x\n' * 50))
    t.spawn('sh', '-c', 'echo go >gate').wait()
    r = t.finish(p)
    t.check('their output waits for it', r.status == 0 and r.out == 'slow\n' + 'fast\n' * 50, r)


def stream(t):
    p = t.start('work')
    p.stdin.write(b'echo first\n')
    p.stdin.flush()
    first = p.stdout.readline()
    t.check('lines are run as they come', first == b'first\n', first)
    p.stdin.write(b'echo second\n')
    r = t.finish(p)
    t.check('until there are no more', r.status == 0 and r.out == 'second\n', r)


def begun(t, name, *more, count=60):
    """Lines of which each leaves a mark; all but ten wait at a gate. Returns the command and the list."""
    wait = f'until test -e {name}.open; do sleep 0.02; done; '
    t.write(f'{name}.list', ''.join(f'echo x >>{name}.{i}; {wait if i >= 10 else ""}echo {i}\n' for i in range(count)))
    p = t.start('work', '-f', f'{name}.list', *more)
    head = [p.stdout.readline() for _ in range(10)]
    t.check(f'{name}: ten lines have ended', head == [b'%d\n' % i for i in range(10)], head)
    return p


SHOWN = 3


def book(t, name):
    return os.path.join(t.home, 'local', 'work', name, 'book')


def records(t, name):
    """State, number and bytes of each record of the book (src/cli/workbook.c)."""
    with open(book(t, name), 'rb') as f:
        text, at = f.read(), 0
    while at + 24 <= len(text):
        state, _, size, number, _ = struct.unpack_from('<BBxxIQQ', text, at)
        yield state, number, text[at:at + 24 + size]
        at += 24 + size


def shown(t, name):
    """Lines of which the book says that they were shown."""
    return len({number for state, number, _ in records(t, name) if state == SHOWN})


def killed(t):
    p = begun(t, 'k', '--resume', 'k')
    t.check('what was shown is written down', t.until(lambda: shown(t, 'k') == 10), shown(t, 'k'))
    r = work(t, '--resume', 'k', '-f', 'k.list')
    t.check('two at a time are one too many', r.status == 125 and r.is_one_line('another command is at work on k'), r)
    p.kill()
    t.finish(p)
    t.check('killed: workers and server end by themselves', nothing_left(t), (processes(t, 'storm-worker'), jobs(t)))
    t.write('k.open', '')
    r = work(t, '--resume', 'k', '-f', 'k.list')
    t.check('the rest comes, once', r.status == 0 and r.out == ''.join(f'{i}\n' for i in range(10, 60)), r)
    t.check('what had ended was not run again', all(t.read(f'k.{i}') == 'x\n' for i in range(10)))
    t.check('all was run', all(t.read(f'k.{i}') for i in range(60)))
    t.check('and nothing is kept', 'k' not in folders(t), folders(t))


def unshown(t):
    """All lines had ended when the command was killed, and some were not shown yet."""
    t.write('u.list', 'echo x >>u.ran; read x <u.gate; echo 1\n' + 'echo x >>u.ran; echo 2\n' * 3 + 'echo x >>u.ran; false\n')
    os.mkfifo(t.path('u.gate'))
    os.chmod(t.path('u.gate'), 0o666)
    p = t.start('work', '-n', 2, '--resume', 'u', '-f', 'u.list')
    t.check('unshown: the others have ended', t.until(lambda: t.read('u.ran') == 'x\n' * 5))
    t.spawn('sh', '-c', 'echo go >u.gate').wait()
    r = t.finish(p)
    t.check('unshown: all ended, one failed', r.status == 1 and r.out == '1\n2\n2\n2\n', r)
    kept = [text for state, number, text in records(t, 'u') if state != SHOWN or number == 1]
    with open(book(t, 'u'), 'wb') as f:
        f.write(b''.join(kept))
    r = work(t, '--resume', 'u', '-f', 'u.list')
    t.check('unshown: they are shown, and nothing is run', r.out == '2\n2\n2\n' and t.read('u.ran') == 'x\n' * 5, r)


def full(t):
    """Nothing can be written: it is told, and kept."""
    t.write('f.list', 'echo out; echo err >&2\n' * 3 + 'head -c 9000 /dev/zero | tr "\\0" y; echo err >&2\n')
    with open('/dev/full', 'wb') as nowhere:
        r = work(t, '--resume', 'f', '-f', 'f.list', stdout=nowhere)
    t.check('full: the output cannot be written', r.status == 125 and 'the output cannot be written: No space left' in r.err, r)
    r = work(t, '--resume', 'f', '-f', 'f.list')
    t.check('full: all of it comes later', r.status == 0 and r.out == 'out\n' * 3 + 'y' * 9000, r)


def endless(t):
    """Who writes without end delays neither the end of its line nor its time."""
    r = work(t, lines='yes &\necho next\n')
    t.check('one left behind is not waited for', r.status == 0 and r.out.endswith('next\n'), r)
    r = work(t, '--time', '1s', lines='yes\n')
    t.check('its time ends', 'status 124' in r.err, r)


def interrupted(t):
    p = begun(t, 'i')
    p.send_signal(signal.SIGINT)
    r = t.finish(p)
    t.check('interrupted: says how to go on', r.status == 130 and r.is_one_line('--resume'), r)
    t.check('interrupted: nothing is left', nothing_left(t))
    name = re.search(r'--resume (\S+)', r.err).group(1)
    t.write('i.open', '')
    r = work(t, '--resume', name, '-f', 'i.list')
    t.check('it goes on', r.status == 0 and r.out == ''.join(f'{i}\n' for i in range(10, 60)), r)


def casualties(t):
    p = begun(t, 'w')
    worker = next(j['id'] for j in jobs(t) if j['state'] == 'running')
    t.run('kill', worker)
    t.run('wait', worker)
    for pid in processes(t, 'storm-wodi'):
        os.kill(pid, signal.SIGKILL)
    t.write('w.open', '')
    r = t.finish(p)
    t.check('a worker and the server were killed: nothing is lost',
            r.status == 0 and r.out == ''.join(f'{i}\n' for i in range(10, 60)), r)
    p = begun(t, 'a', '-n', 2)
    t.run('kill', *[j['id'] for j in jobs(t)])
    r = t.finish(p)
    t.check('all workers were ended', r.status == 125 and 'all workers have been ended' in r.err and '--resume' in r.err, r)


def at_a_terminal(t):
    term = Terminal(t, 'work', '--progress', 'sleep 0.3; echo done {}', ':::', 1, 2, 3, 4, 5, 6)
    t.check('how far it is', term.expect('of 6, ') and term.expect('done 6'), term.text)
    t.check('goes away again', term.wait() == 0 and term.expect('done 6\r\n\r\x1b[K'), term.text)
    term.close()
    t.run('drain', 'n[0-2]', '--reason', 'to see who waits')
    term = Terminal(t, 'work', 'echo done {}', ':::', 1)
    t.check('nobody can start: that is told', term.expect('no worker has started yet; job '), term.text)
    t.run('undrain', 'n[0-2]')
    t.check('until somebody can', term.expect('done 1') and term.wait() == 0, term.text)
    term.close()


def refused(t):
    r = work(t, '--need', 'no such thing', 'echo', ':::', 'a')
    t.check('a need that makes no sense', r.status == 125 and r.err.startswith('storm: work: '), r)
    r = work(t, '--cluster', 'none', 'echo', ':::', 'a')
    t.check('no cluster', r.status == 125 and r.is_one_line('none'), r)
    r = work(t, '--resume', 'a/b', 'echo', ':::', 'a')
    t.check('no name', r.status == 2 and r.is_one_line('a/b'), r)
    r = work(t, '--halt', '--keep-going', 'echo', ':::', 'a')
    t.check('contradictions', r.status == 2 and r.is_one_line('--halt'), r)
    r = work(t, 'echo', ':::', 'a', stdout=open('/dev/full', 'w'))
    t.check('output that cannot be written', r.status == 125 and 'No space' in r.err, r)
    t.check('nothing is left', nothing_left(t))


def over_tcp(t):
    r = t.run('up', '--cluster', 'tcp', '--local', 2, '--links', 'tcp')
    t.check('a cluster with sockets of the network', r.status == 0, r)
    r = work(t, '--cluster', 'tcp', 'echo', ':::', *range(100))
    t.check('works too', r.status == 0 and r.out == ''.join(f'{i}\n' for i in range(100)), r)
    t.run('down', '--cluster', 'tcp')


def down(t):
    p = begun(t, 'd')
    t.run('down')
    r = t.finish(p)
    t.check('the cluster has ended', r.status == 125 and '--resume' in r.err and
            all(line.startswith('storm: ') for line in r.err.splitlines()), r)


play(lines, values, ends, slow, stream, killed, unshown, full, endless, interrupted, casualties, at_a_terminal, refused, over_tcp, down, up=('--local', '3', '--orphan', '2s'))
