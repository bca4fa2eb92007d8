#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A job's own folder on its nodes: storm run --input and --fetch, as users see them. Speaks TAP."""
import os
import shutil
import signal

from harness import NOBODY, play
from transfers import NODES, digest, everybody, folder, listed, make, manager, moving, partial, send, there


def folders(t):
    """Folders of jobs that are on nodes."""
    return [(n, name) for n in everybody() for name in listed(there(t, n, '/jobs'))]


def gone(t):
    return t.until(lambda: not folders(t), 30)


def own(t, path):
    if t.user:
        os.chown(path, NOBODY, NOBODY)


def put(t):
    t.write('one', '1\n')
    big = make(t, 'big', 3 << 20)
    os.makedirs(t.path('tree/a/b'))
    t.write('tree/a/b/deep', 'deep')
    os.symlink('a/b/deep', t.path('tree/link'))
    for where, names, files in os.walk(t.path('tree')):
        own(t, where)
    r = t.sh('cat one in/two; cat in/tree/link', '-N', 1, '--input', 'one', '--input', 'one:in//./two',
             '--input', 'tree:in/')
    t.check('files and folders, under their names', r.status == 0 and r.out == '1\n1\ndeep', r)
    r = t.sh('sha256sum < big; test "$PWD" = "$STORM_JOB_DIR" && pwd', '-N', NODES, '--input', big)
    lines = sorted(r.out.splitlines())
    t.check('on every node, in a folder of its own', r.status == 0 and
            [x for x in lines if x.endswith('-')] == [f'{digest(big)}  -'] * NODES and
            len(set(lines)) == NODES + 1, r)
    r = t.sh('pwd; test -e "$STORM_JOB_DIR/one" && echo there', '-n', 1, '--input', 'one', '-D', '/')
    t.check('-D goes elsewhere, STORM_JOB_DIR says where it is', r.out == '/\nthere\n', r)
    r = t.sh('echo "<$STORM_JOB_DIR>"', '-n', 1, env={'STORM_JOB_DIR': '/stale'})
    t.check('without them there is none', r.out == '<>\n', r)
    name = 'a:b ü'
    t.write(name, 'colon')
    r = t.run('run', '-n', 1, '--input', name, 'cat', name)
    t.check('a name with a colon', r.out == 'colon', r)
    r = t.run('run', '-n', 1, '--copy', '--input', 'one', t.write('prog', '#!/bin/sh\ncat one\n', 0o755))
    t.check('together with --copy', r.status == 0 and r.out == '1\n', r)
    t.check('nothing is left', gone(t), folders(t))


def mistakes(t):
    for bad, words in (('one:/abs', 'slash'), ('one:../up', '".."'), ('one:a/../../b', '".."'), ('..', 'NAME')):
        r = t.run('run', '-n', 1, '--input', bad, 'true')
        t.check(f'--input {bad}: refused', r.status == 2 and r.is_one_line('--input', words), r)
    r = t.run('run', '-n', 1, '--input', 'missing', 'true')
    t.check('a file that is not there', r.status not in (0, 'stuck') and r.is_one_line('--input', 'missing'), r)
    r = t.run('run', '-n', 1, '--input', 'one', '--input', 'tree/a/b/deep:one', 'true')
    t.check('two of one name', r.status not in (0, 'stuck') and r.is_one_line('--input', 'one'), r)
    for bad in ('/etc/passwd', '../../x', 'a/../b', '*/x', ''):
        r = t.run('run', '-n', 1, '--fetch', bad, 'true')
        t.check(f'--fetch "{bad}": refused', r.status == 2 and r.is_one_line('--fetch'), r)
    r = t.run('run', '-n', 1, '--detach', '--fetch', 'x', 'true')
    t.check('--fetch with --detach', r.status == 2 and r.is_one_line('--fetch', 'detach'), r)
    for option in (('--copy',), ('--with-libs',), ('--input', 'one'), ('--fetch', 'x')):
        r = t.run('submit', *option, 'true')
        t.check(f'submit {option[0]}: refused, and what to do', r.status == 2 and r.out == '' and
                r.is_one_line('submit', 'storm cp', 'storm run'), r)
    r = t.run('submit', '--help')
    t.check('submit --help does not offer them', r.status == 0 and '--copy' not in r.out and '--input' not in r.out, r)
    t.check('nothing is left', gone(t), folders(t))


def fetched(t):
    t.write('one', '1\n')
    script = 'echo $STORM_NODE > out.$STORM_RANK; mkdir -p d/e; echo x > d/e/f; chmod 640 d/e/f'
    r = t.sh(script, '-N', NODES, '--fetch', 'out.*:res', '--fetch', 'd:res')
    t.check('from every node into a folder for each', r.status == 0 and r.err == '' and
            sorted(listed(t.path('res'))) == everybody() and
            all(len(listed(t.path(f'res/{n}'))) == 2 and t.read(f'res/{n}/d/e/f') == 'x\n' for n in everybody()),
            (r, list(os.walk(t.path('res')))))
    t.check('each its own', sorted(t.read(f'res/{n}/{f}') for n in everybody() for f in listed(t.path(f'res/{n}'))
                                   if f != 'd') == [n + '\n' for n in everybody()])
    r = t.sh('mkdir o; head -c 3000000 /dev/urandom > o/big; sha256sum < o/big', '-n', 1, '--fetch', 'o/b*:single')
    t.check('from one node as it is', r.status == 0 and r.out.split()[0] == digest(t.path('single/big')), r)
    os.mkdir(t.path('here'))
    own(t, t.path('here'))
    r = t.sh('echo x > y', '-n', 1, '--fetch', 'y', cwd=t.path('here'))
    t.check('here, unless it is said where', r.status == 0 and t.read('here/y') == 'x\n', r)
    r = t.sh('echo $STORM_RANK > r; exit $STORM_RANK', '-N', 3, '--fetch', 'r:failed')
    t.check('also of a job that failed, with its status', r.status == 2 and
            sorted(t.read(f'failed/{n}/r') for n in listed(t.path('failed'))) == ['0\n', '1\n', '2\n'], r)
    r = t.sh('test $STORM_RANK = 1 && echo x > only; true', '-N', 3, '--fetch', 'only:some')
    t.check('of those that have it', r.status == 0 and r.err == '' and len(listed(t.path('some'))) == 1, r)
    r = t.sh('echo done', '-n', 1, '--fetch', 'nothing*')
    t.check('nothing fits: said, no failure', r.status == 0 and r.out == 'done\n' and
            r.is_one_line('nothing*', 'no node'), r)
    r = t.sh('exit 7', '-n', 1, '--fetch', 'nothing*')
    t.check('nor does it hide one', r.status == 7 and 'no node' in r.err, r)
    t.write('file', 'in the way')
    r = t.sh('echo x > y', '-n', 1, '--fetch', 'y:file')
    t.check('a folder that cannot be: its status says so', r.status == 125 and 'file' in r.err, r)
    r = t.sh('echo x > y; exit 3', '-n', 1, '--fetch', 'y:file')
    t.check('but for that of the job', r.status == 3 and 'file' in r.err, r)
    r = t.sh('echo out >&2; cat one > two', '-n', 1, '--input', 'one', '--fetch', '*:both')
    t.check('input and result', r.status == 0 and sorted(listed(t.path('both'))) == ['one', 'two'], r)
    r = t.run('run', '-n', 1, '--fetch', 'x', t.write('odd', '#!/no/such\n', 0o755))
    t.check('a program that cannot be started: that is said', r.status in (126, 127) and 'fetch' not in r.err, r)
    t.check('nothing is left', gone(t), folders(t))


def visible(t):
    """A path that means one file here and another, or none, for the daemons, who are in the cluster's folder."""
    body = '#!/bin/sh\necho ${0##*/} $STORM_RANK; echo $STORM_RANK >> %s\n'
    log = t.write('begun', '', 0o666)
    path = t.write('seen', body % log, 0o755)

    def begun():
        ranks = t.read('begun').split()
        t.write('begun', '', 0o666)
        return sorted(ranks)
    t.write('one', '1\n')
    everyone = [str(k) for k in range(NODES)]
    r = t.run('run', '-N', NODES, path)
    t.check('a program that all see is not sent', r.status == 0 and begun() == everyone and
            not any('seen' in files for n in everybody() for _, _, files in os.walk(folder(t, n, 'spool'))), r)
    r = t.run('run', '-N', NODES, '/proc/self/cwd/seen')
    t.check('one that they do not see is, and each process runs once', r.status == 0 and r.err == '' and
            sorted(r.out.splitlines()) == [f'seen {k}' for k in everyone] and begun() == everyone, r)
    r = t.run('run', '-v', '-n', 1, '/proc/self/cwd/seen')
    t.check('-v says so', r.status == 0 and 'not every node sees' in r.err and begun() == ['0'], r)
    shutil.copy(path, os.path.join(t.home, 'local', 'seen'))
    r = t.run('run', '-N', NODES, '/proc/self/cwd/seen')
    os.unlink(os.path.join(t.home, 'local', 'seen'))
    t.check('nor is another file of that name run', r.status == 0 and begun() == everyone and
            r.out.count('seen') == NODES, r)
    r = t.run('run', '-n', 1, '/proc/self/cwd/seen', data=b'x')
    t.check('with input', r.status == 0 and begun() == ['0'], r)
    r = t.run('run', '-n', 1, '--no-copy', '-D', '/', '/proc/self/cwd/seen')
    t.check('--no-copy: it is not', r.status in (126, 127) and begun() == [], r)
    r = t.run('run', '-n', 1, '--no-copy', '--copy', path)
    t.check('--no-copy and --copy', r.status == 2 and r.is_one_line('--no-copy'), r)
    r = t.run('run', '-N', NODES, '--input', 'one', '--fetch', 'one:seen-res', '/proc/self/cwd/seen')
    t.check('with files of its own', r.status == 0 and begun() == everyone and
            sorted(listed(t.path('seen-res'))) == everybody(), r)
    t.check('nothing is left', gone(t), folders(t))


def ended(t):
    script = 'mkdir -p locked/in; echo x > locked/in/x; chmod 0 locked; : > ready; exec sleep 1000'

    def ready(n):
        return lambda: any(os.path.exists(there(t, n, f'/jobs/{f}/ready')) for f in listed(there(t, n, '/jobs')))

    def begun(*more):
        p = t.start('run', '-N', NODES, *more, 'sh', '-c', script)
        return p, t.until(lambda: all(ready(n)() for n in everybody()))
    p, held = begun('--input', 'one')
    send(p.pid, signal.SIGKILL)
    t.finish(p)
    t.check('its command is killed: all goes', held and gone(t), folders(t))
    p, held = begun('--fetch', 'none')
    p.send_signal(signal.SIGINT)
    p.send_signal(signal.SIGINT)
    r = t.finish(p)
    t.check('it is interrupted', held and r.status == 128 + signal.SIGINT and gone(t), (r, folders(t)))
    p, held = begun('--input', 'one')
    old = manager(t, 'n1')
    send(old, signal.SIGKILL)
    back = t.until(lambda: manager(t, 'n1') not in (0, old))
    p.send_signal(signal.SIGTERM)
    r = t.finish(p)
    t.check('the manager of a node is started again meanwhile', held and back and gone(t), (r, folders(t)))
    for name in ('storm-pl n2', 'storm-pl'):
        pid = t.daemon(name)
        if pid:
            break
    if pid:
        p, held = begun('--input', 'one')
        send(manager(t, 'n2'), signal.SIGKILL)
        send(pid, signal.SIGKILL)
        r = t.finish(p)
        t.check('a whole node is', held and r.status != 0 and gone(t), (r, folders(t)))
    old = t.daemon('storm-mm')
    p, held = begun('--fetch', 'ready:mm')
    send(old, signal.SIGKILL)
    t.until(lambda: t.daemon('storm-mm') not in (None, old))
    for k in t.ours('sleep 1000'):
        send(k, signal.SIGKILL)
    r = t.finish(p)
    t.check('the machine manager is: files are fetched all the same', held and r.status == 128 + signal.SIGKILL and
            sorted(listed(t.path('mm'))) == everybody(), r)
    t.check('nothing is left', gone(t), folders(t))


def crowded(t):
    """More jobs with files at once than files may be under way."""
    r = t.run('up', '--cluster', 'many', '--local', 2, '--pes', 8)
    several = [t.start('run', '--cluster', 'many', '-N', 2, '--input', make(t, f'input{k}', 1 << 20, k),
                       '--fetch', f'input{k}:crowd', 'sha256sum', f'input{k}') for k in range(16)]
    results = [t.finish(p) for p in several]
    t.check('all have their files', r.status == 0 and all(
        r.status == 0 and r.out == f'{digest(t.path(f"input{k}"))}  input{k}\n' * 2 for k, r in enumerate(results)),
        [r for r in results if r.status != 0])
    t.check('and are here again', all(digest(t.path(f'crowd/{n}/input{k}')) == digest(t.path(f'input{k}'))
                                      for n in ('n0', 'n1') for k in range(16)))
    t.check('nothing is left', t.until(lambda: not any(listed(there(t, n, '/jobs', 'many')) for n in ('n0', 'n1')), 30))
    several = [t.run('run', '--cluster', 'many', '-w', 'n0', '--fetch', 'x:again', 'sh', '-c', 'echo x > x')
               for k in range(70)]
    t.check('one after the other, more than a node offers at once', all(r.status == 0 and r.err == '' for r in several),
            [r for r in several if r.status != 0][:1])
    t.run('down', '--cluster', 'many')


def on_the_way(t):
    """Ended while its files are on their way."""
    big = make(t, 'slow', 64 << 20)
    before = {n: partial(t, n) for n in everybody()}
    p = t.start('run', '-N', NODES, '--chunk', '16KiB', '--slots', 2, '--input', 'one', '--input', big, 'true')
    held = t.until(lambda: moving(t, 'n1', 1 << 20, before['n1']) or p.poll() is not None)
    send(p.pid, signal.SIGKILL)
    t.finish(p)
    t.check('the command is killed in the middle', held and gone(t), folders(t))
    r = t.sh('sha256sum < slow', '-N', NODES, '--input', big)
    t.check('the next one has all of it', r.status == 0 and r.out == f'{digest(big)}  -\n' * NODES, r)
    t.check('nothing is left', gone(t), folders(t))


play(put, mistakes, fetched, visible, ended, crowded, on_the_way, up=('--local', str(NODES), '--orphan', '2s'))
