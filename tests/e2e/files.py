#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Files to nodes: storm cp and storm run --copy, as users see them. Speaks TAP."""
import json
import os
import shutil
import signal
import time

from harness import NOBODY, play
from transfers import (NODES, digest, everybody, folder, have, healthy, make, mover, moving, nodes, partial, send, strays,
                       there, tree, without, Held)

SHAPES = ('chain', 'k-ary:2', 'binomial', 'flat', 'pair')


def tidy(t):
    """Movers take everything away that is on its way; they hear of the end after the command."""
    return t.until(lambda: not strays(t, everybody()), 10)


def plain(t):
    big = make(t, 'big', 5 << 20)
    r = t.run('cp', big, 'n3:/data/big')
    t.check('a file, to one node', r.status == 0 and r.out == r.err == '' and
            not have(t, '/data/big', ['n3'], big), r)
    t.check('and to no other', not without(t, '/data/big', nodes(0, 1, 2, 4)))
    r = t.run('cp', 'big', 'n[0-1,4]:/data/other name')
    t.check('to some, under that name', r.status == 0 and
            not have(t, '/data/other name', nodes(0, 1, 4), big) and
            not without(t, '/data/other name', nodes(2, 3)), r)
    r = t.run('cp', './big', 'all:/into//./it/')
    t.check('to all, into a folder', r.status == 0 and not have(t, '/into/it/big', everybody(), big), r)
    r = t.run('cp', 'big', 'all:/')
    t.check('into the root', r.status == 0 and not have(t, '/big', everybody(), big), r)
    t.write('empty', '')
    r = t.run('cp', 'empty', 'all:/empty')
    t.check('an empty one', r.status == 0 and not have(t, '/empty', everybody(), t.path('empty')), r)
    t.write('one', '1')
    r = t.run('cp', 'one', 'empty', 'big', 'n[1-2]:/many')
    t.check('several go into a folder', r.status == 0 and not any(
        have(t, f'/many/{n}', nodes(1, 2), t.path(n)) for n in ('one', 'empty', 'big')), r)
    name = 'Grüße, 世界 und $(true) "\'\\.txt'
    t.write(name, 'x' * 1000)
    r = t.run('cp', name, 'all:/Ordner mit Lücken/')
    t.check('names with spaces, quotes and more than ASCII', r.status == 0 and
            not have(t, '/Ordner mit Lücken/' + name, everybody(), t.path(name)), r)
    r = t.run('cp', '-v', 'one', 'n0:/one')
    t.check('-v says how', r.status == 0 and '1 nodes' in r.err, r)


def sparse(t):
    def holes(name, size, *spots):
        with open(t.path(name), 'wb') as f:
            f.truncate(size)
            for at in spots:
                f.seek(at)
                f.write(b'data' * 1024)
        return t.path(name)

    def blocks(node, path):
        return os.stat(there(t, node, path)).st_blocks * 512
    path = holes('holes', 64 << 20, 0, 20 << 20, (64 << 20) - 4096)
    r = t.run('cp', path, 'n[0-1]:/holes')
    t.check('holes stay holes', r.status == 0 and not have(t, '/holes', nodes(0, 1), path) and
            all(blocks(n, '/holes') < 4 << 20 for n in nodes(0, 1)), (r, blocks('n0', '/holes')))
    path = holes('hole', 10 << 20)
    r = t.run('cp', path, 'n[0-1]:/hole')
    t.check('nothing but a hole', r.status == 0 and blocks('n1', '/hole') == 0 and
            os.path.getsize(there(t, 'n1', '/hole')) == 10 << 20, r)
    size = (5 << 30) + 12345
    path = holes('huge', size, 3, (4 << 30) - 100, size - 4096)
    r = t.run('cp', path, 'n[2-4]:/huge')

    def ends(path):
        with open(path, 'rb') as f:
            return [(f.seek(at), f.read(8192))[1] for at in (0, (4 << 30) - 4096, size - 8192)]
    t.check('more than 4 GB', r.status == 0 and all(
        ends(there(t, n, '/huge')) == ends(path) and os.path.getsize(there(t, n, '/huge')) == size and
        blocks(n, '/huge') < 16 << 20 for n in nodes(2, 3, 4)), r)
    for n in nodes(2, 3, 4):
        os.unlink(there(t, n, '/huge'))


def folders(t):
    top = t.path('tree')
    os.makedirs(os.path.join(top, 'a/b/c'))
    os.makedirs(os.path.join(top, 'leer'))
    for name, mode, size in (('plain', 0o644, 100), ('a/run', 0o755, 300000), ('a/b/secret', 0o600, 7),
                             ('a/b/c/read only', 0o444, 70000), ('a/ümläut', 0o640, 0), ('a/suid', 0o4711, 3)):
        path = make(t, os.path.join('tree', name), size)
        os.chmod(path, mode)
        os.utime(path, ns=(1, 1_500_000_000_123_456_789 + size))
    for target, name in (('plain', 'link'), ('../nowhere', 'a/dangling'), ('/etc/passwd', 'a/away'),
                         ('b', 'a/folder')):
        os.symlink(target, os.path.join(top, name))
        os.utime(os.path.join(top, name), ns=(1, 1_400_000_000_000_000_001), follow_symlinks=False)
    for name, mode in (('a/b/c', 0o750), ('a/b', 0o700), ('a', 0o775), ('leer', 0o555), ('', 0o755)):
        os.chmod(os.path.join(top, name), mode)
        os.utime(os.path.join(top, name), ns=(1, 1_300_000_000_000_000_000 + len(name)))
    if t.user:
        for where, names, files in os.walk(top):
            for name in [''] + names + files:
                os.chown(os.path.join(where, name), NOBODY, NOBODY, follow_symlinks=False)
        os.chmod(os.path.join(top, 'a/suid'), 0o4711)
    r = t.run('cp', top, 'all:/copy')
    want = tree(top)
    got = {n: tree(there(t, n, '/copy')) for n in everybody()}
    t.check('a folder: everything in it, links, modes, times', r.status == 0 and
            all(g == want for g in got.values()),
            (r, {k: (want.get(k), got['n0'].get(k)) for k in {**want, **got['n0']} if
                 want.get(k) != got['n0'].get(k)}))
    t.check('owners', all(os.lstat(there(t, 'n1', '/copy/' + k)).st_uid ==
                          os.lstat(os.path.join(top, k)).st_uid for k in want))
    r = t.run('cp', top + '/', 'n2:/in/')
    t.check('into a folder it keeps its name', r.status == 0 and tree(there(t, 'n2', '/in/tree')) == want, r)
    os.chmod(os.path.join(top, 'plain'), 0o600)
    t.write('tree/plain', 'new', 0o600)
    r = t.run('cp', top, 'all:/copy')
    t.check('again: merged, and what has changed is replaced', r.status == 0 and
            all(open(there(t, n, '/copy/plain')).read() == 'new' and
                os.stat(there(t, n, '/copy/plain')).st_mode & 0o777 == 0o600 for n in everybody()), r)
    r = t.run('cp', os.path.join(top, 'link'), 'n1:/through')
    t.check('a link that is named is followed', r.status == 0 and
            open(there(t, 'n1', '/through')).read() == 'new', r)


def told(t, *args):
    """What a copy says of itself, and its result."""
    r = t.run('cp', '--json', *args)
    return (json.loads(r.out) if r.status == 0 else {}), r


def replaced(t):
    a = make(t, 'version', 8 << 20)
    t.run('cp', a, 'all:/version')
    before = os.stat(there(t, 'n1', '/version')).st_ino
    held = open(there(t, 'n1', '/version'), 'rb')
    first = held.read(100)
    with open(a, 'r+b') as f:
        f.seek(4 << 20)
        f.write(b'changed')
    r = t.run('cp', a, 'all:/version')
    t.check('an existing file is replaced', r.status == 0 and not have(t, '/version', everybody(), a), r)
    t.check('by another: who reads the old one is not disturbed',
            os.stat(there(t, 'n1', '/version')).st_ino != before and held.seek(0) == 0 and held.read(100) == first)
    held.close()
    how, r = told(t, a, 'all:/version')
    t.check('the same once more, and what it says of itself', r.status == 0 and how['nodes'] == NODES and
            8 << 20 <= how['bytes'] < (8 << 20) + 4096 and how['given'] <= how['bytes'] and
            not have(t, '/version', everybody(), a), (r, how))
    os.unlink(there(t, 'n2', '/version'))
    os.symlink('/etc/passwd', there(t, 'n2', '/version'))
    r = t.run('cp', a, 'all:/version')
    t.check('a link in its place is replaced, not followed', r.status == 0 and
            not os.path.islink(there(t, 'n2', '/version')) and not have(t, '/version', ['n2'], a), r)
    t.check('nothing is left on the way', tidy(t), strays(t, everybody()))


def mistakes(t):
    t.write('good', 'good')
    for what, args, status, *words in (
            ('nothing', [], 2, 'from where to where'),
            ('one argument', ['good'], 2, 'from where to where'),
            ('no nodes', ['good', '/data'], 2, '/data', 'begin it with the nodes'),
            ('a path that is not absolute', ['good', 'n1:data'], 2, 'n1:data', 'slash'),
            ('no path', ['good', 'n1:'], 2, 'n1:', 'slash'),
            ('two dots', ['good', 'n1:/a/../b'], 2, '..'),
            ('no such node', ['good', 'n99:/data'], 2, 'n99', 'storm nodes'),
            ('a list that is none', ['good', 'n[1:/data'], 2, 'n[1'),
            ('no such shape', ['--tree', 'oak', 'good', 'n1:/x'], 2, 'oak', 'chain'),
            ('a chunk too small', ['--chunk', '1KiB', 'good', 'n1:/x'], 2, '1KiB', '4KiB'),
            ('a chunk too large', ['--chunk', '3MiB', 'good', 'n1:/x'], 2, '3MiB', '2MiB'),
            ('no size at all', ['--chunk', 'much', 'good', 'n1:/x'], 2, 'much'),
            ('too few slots', ['--slots', '1', 'good', 'n1:/x'], 2, '--slots'),
            ('too many slots', ['--slots', '100000', 'good', 'n1:/x'], 2, '--slots'),
            ('an unknown option', ['--fast', 'good', 'n1:/x'], 2, '--fast'),
            ('a missing file', ['missing', 'n1:/x'], 1, 'missing', 'No such file'),
            ('one of several is missing', ['good', 'missing', 'n1:/x'], 1, 'missing', 'No such file'),
            ('twice the same name', ['good', './good', 'n1:/x'], 1, 'good'),
            ('no such cluster', ['--cluster', 'nowhere', 'good', 'n1:/x'], 125, 'nowhere')):
        r = t.run('cp', *args)
        t.check(f'{what}: one line that says so', r.status == status and r.is_one_line(*words), r)
    r = t.run('cp', 'good', 'n1:/x', env={'STORM_HOME': t.path('nothing')})
    t.check('no cluster: what to type is said', r.status == 125 and r.is_one_line('storm up'), r)
    os.mkfifo(t.path('pipe'))
    if t.user:
        os.chown(t.path('pipe'), NOBODY, NOBODY)
    r = t.run('cp', 'pipe', 'n1:/x')
    t.check('a fifo is not waited for', r.status == 1 and r.is_one_line('pipe'), r)
    os.mkdir(t.path('withpipe'))
    os.mkfifo(t.path('withpipe/p'))
    r = t.run('cp', 'withpipe', 'n1:/x')
    t.check('nor one in a folder', r.status == 1 and r.is_one_line('p'), r)
    if t.user:
        t.write('closed', 'secret', 0)
        r = t.run('cp', 'closed', 'n1:/x')
        t.check('a file that may not be read', r.status == 1 and r.is_one_line('closed', 'Permission'), r)
    t.check('none of these has left anything', not without(t, '/x', everybody()) and tidy(t), strays(t, everybody()))


def clashes(t):
    t.write('good', 'good')
    os.makedirs(t.path('goods/inner'), exist_ok=True)
    for n in nodes(1, 3):
        os.makedirs(there(t, n, '/clash'))
        if t.user:
            os.chown(there(t, n, '/clash'), NOBODY, NOBODY)
    r = t.run('cp', 'good', 'all:/clash')
    lines = r.err.splitlines()
    t.check('a folder has that name on two nodes: these are named, and why', r.status == 1 and len(lines) == 2 and
            ('n1: /clash: a folder is in the way' in lines[0] or 'n3: /clash: a folder' in lines[0]) and
            'n[1,3]' in lines[1], r)
    t.check('the others have it', not have(t, '/clash', nodes(0, 2, 4), t.path('good')))
    r = t.run('cp', 'goods', 'n0:/clash')
    t.check('a file where a folder shall be', r.status == 1 and r.is_one_line('n0', '/clash', 'folder'), r)
    r = t.run('cp', 'good', 'n0:/clash/below')
    t.check('a file where a way leads through', r.status == 1 and r.is_one_line('n0', '/clash/below'), r)
    os.symlink('/tmp', there(t, 'n0', '/door'))
    r = t.run('cp', 'good', 'n0:/door/good-storm-test')
    t.check('links are no way out of a node', r.status == 1 and r.is_one_line('n0', 'link') and
            not os.path.exists('/tmp/good-storm-test'), r)
    t.check('nothing is left on the way', tidy(t), strays(t, everybody()))


def shapes(t):
    path = make(t, 'shaped', 3 << 20)
    for shape in SHAPES + ('auto',):
        r = t.run('cp', '--tree', shape, path, f'all:/shapes/{shape}')
        t.check(f'--tree {shape}', r.status == 0 and not have(t, f'/shapes/{shape}', everybody(), path), r)
    for chunk, slots in (('4KiB', 2), ('2MiB', 32)):
        path = make(t, 'cut', 2 << 20, chunk)
        r = t.run('cp', '--chunk', chunk, '--slots', slots, path, f'all:/shapes/{chunk}')
        t.check(f'--chunk {chunk} --slots {slots}', r.status == 0 and
                not have(t, f'/shapes/{chunk}', everybody(), path), r)


def objects(t, node, name, cluster='local'):
    """Files of that name in a node's cache."""
    top = folder(t, node, 'spool', 'objects', cluster=cluster)
    return [os.path.join(where, name) for where, _, files in os.walk(top) if name in files]


def program(t, name, code, size=0):
    """A program of our own, that no node has; of some size, because its last bytes are not looked at."""
    path = t.path(name)
    with open(path, 'w') as f:
        f.write('#!/bin/sh\n' + code + '\nexit\n')
    with open(path, 'ab') as f:
        f.write(os.urandom(size))
    os.chmod(path, 0o755)
    if t.user:
        os.chown(path, NOBODY, NOBODY)
    return path


SENDS = ('sendfile', 'mmap-all', 'one-map', 'multi-map', 'read')


def sends(t):
    """All send types give the same, and none dies of a file that is cut short while it is mapped."""
    for how in SENDS:
        paths = [make(t, f'sent{size}', size, how) for size in (20 << 20, 5 << 20, 1000, 2000)]
        r = t.run('cp', '--send', how, *paths, f'all:/{how}/')
        t.check(f'--send {how}', r.status == 0 and not any(
            have(t, f'/{how}/{os.path.basename(p)}', everybody(), p) for p in paths), r)
        h = Held(t, '--send', how, '--chunk', '16KiB', '--slots', '4', make(t, 'cut', 48 << 20, how), 'all:/cut',
                 near=['n0'])
        os.truncate(t.path('cut'), 1 << 20)
        r = h.finish()
        t.check(f'--send {how}: a source that shrinks is named', h.held and r.status == 1 and 'cut: it ' in r.err and
                'meanwhile' in r.err and not without(t, '/cut', everybody()), r)
    r = t.run('cp', '--send', 'pigeon', 'cut', 'all:/cut')
    t.check('--send: what is none', r.status == 2 and 'pigeon' in r.err and 'mmap-all' in r.err, r)


def run_copied(t):
    name = 'a tool'
    shutil.copy('/bin/sh', t.path(name))
    comm = 'read name </proc/self/comm; echo "$name"; '
    tell = 'read a b c d e path </proc/self/maps; echo "$path"; ' + comm + 'echo "$0 $1"; exit 7'
    r = t.run('run', '-N', NODES, '--copy', f'./{name}', '-c', tell, 'zero', 'one')
    lines = r.out.splitlines()
    homes = sorted(os.path.relpath(line, os.path.join(t.home, 'local')).split('/')[:3:2]
                   for line in lines if line.startswith('/'))
    t.check('--copy: each runs from the cache of its node', homes == [[n, 'objects'] for n in everybody()], r)
    t.check('under its name, with its arguments and its status', r.status == 7 and
            lines.count(name) == NODES and lines.count('zero one') == NODES, r)
    os.rename(t.path(name), t.path('elsewhere'))
    shutil.copy2(t.path('elsewhere'), t.path(name))
    r = t.run('run', '-N', NODES, '--copy', t.path(name), '-c', 'exit 0')
    t.check('again, from another folder', r.status == 0, r)
    os.utime(t.path(name), ns=(1, 1_000_000_000_000_000_001))
    r = t.run('run', '-N', NODES, '--copy', t.path(name), '-c', 'exit 3')
    t.check('again, with another date', r.status == 3, r)
    r = t.run('run', '-N', NODES, '--copy', t.path('elsewhere'), '-c', comm)
    t.check('the same under another name', r.status == 0 and r.out == 'elsewhere\n' * NODES, r)
    r = t.run('run', '-N', 1, '--copy', 'missing')
    t.check('a program that there is not', r.status in (126, 127) and r.is_one_line('missing'), r)
    r = t.run('run', '-N', 1, '--copy', t.write('data', 'no program', 0o644))
    t.check('one that cannot be run', r.status == 126 and 'data' in r.err, r)
    r = t.run('run', '-N', 1, '--copy', t.write('odd', '#!/no/such/interpreter\n', 0o755))
    t.check('one whose interpreter is missing', r.status in (126, 127) and 'odd' in r.err, r)
    t.check('the cluster is well', healthy(t))


def cached(t):
    path = program(t, 'cached', 'echo hello', 3 << 20)
    r = t.run('run', '-N', NODES, '--copy', path)
    t.check('a program of our own', r.status == 0 and r.out == 'hello\n' * NODES, r)
    t.check('is in the cache of each', all(len(objects(t, n, 'cached')) == 1 for n in everybody()))
    for n in everybody():
        send(mover(t, n), signal.SIGKILL)
    t.until(lambda: not any(mover(t, n) for n in everybody()))
    r = t.run('run', '-N', NODES, '--copy', path)
    t.check('the second time nobody moves anything', r.status == 0 and
            r.out == 'hello\n' * NODES and not any(mover(t, n) for n in everybody()), r)
    os.unlink(objects(t, 'n1', 'cached')[0])
    r = t.run('run', '-w', 'n1', '--copy', path)
    t.check('one that was removed is sent again', r.status == 0 and r.out == 'hello\n', r)
    shutil.rmtree(folder(t, 'n2', 'spool', 'objects'))
    r = t.run('run', '-w', 'n2', '--copy', path)
    t.check('also when the whole cache is gone', r.status == 0 and r.out == 'hello\n', r)

    def damage(node, restore):
        name = objects(t, node, 'cached')[0]
        s = os.stat(name)
        os.chmod(name, 0o755)
        with open(name, 'r+b') as f:
            f.seek(15)
            f.write(b'H')
        if restore:
            os.chmod(name, s.st_mode & 0o777)
            os.utime(name, ns=(s.st_atime_ns, s.st_mtime_ns))
    for restore in (False, True):
        words = 'and made to look as before' if restore else 'by a byte'
        damage('n0', restore)
        r = t.run('run', '-w', 'n0', '--copy', path)
        t.check(f'one that was changed {words} is not run, but sent again', r.status == 0 and
                r.out == 'hello\n', r)
        damage('n1', restore)
        damage('n4', restore)
        r = t.run('run', '-l', '-N', NODES, '--copy', path)
        t.check('nor on some of many nodes, and everybody runs once', r.status == 0 and
                [f'{k}: hello' for k in range(NODES)] == sorted(r.out.splitlines()), r)
        t.check('and is right everywhere', all(digest(objects(t, n, 'cached')[0]) == digest(path)
                                               for n in everybody()))
    damage('n3', True)
    os.kill(t.daemon('storm-mm'), signal.SIGKILL)
    r = t.run('run', '-N', NODES, '--copy', path)
    t.check('also by a manager who does not know what nodes have', r.status == 0 and
            r.out == 'hello\n' * NODES, r)


def together(t):
    path = program(t, 'twins', 'echo $STORM_NODE', 6 << 20)
    both = [t.start('run', '-N', NODES, '--copy', path) for _ in range(2)]
    both.append(t.start('cp', path, 'all:/twins'))
    results = [t.finish(p) for p in both]
    t.check('two jobs with one program, and a copy, at once', all(r.status == 0 for r in results) and
            all(sorted(r.out.split()) == everybody() for r in results[:2]) and
            not have(t, '/twins', everybody(), path), results)
    many = [t.start('cp', make(t, f'many{k}', 300000 + k), 'all:/many/') for k in range(12)]
    results = [t.finish(p) for p in many]
    t.check('more than fit at once: done, or told to come again', all(
        r.status == 0 and not have(t, f'/many/many{k}', everybody(), t.path(f'many{k}')) or
        r.status == 125 and r.is_one_line('try again') for k, r in enumerate(results)), results)
    t.check('nothing is left on the way', tidy(t), strays(t, everybody()))


def sockets(t, cluster='local'):
    return [name for name in os.listdir(os.path.join(t.home, cluster)) if name[0] == 'c' and
            name.endswith('.sock')]


def folders_of(t):
    """Folders of transfers that were interrupted: of one that is not tried again there is one a node."""
    return {(n, os.path.dirname(name)) for n in everybody() for name in partial(t, n)}


def interrupted(t):
    for number, name in ((signal.SIGTERM, 'SIGTERM'), (signal.SIGINT, 'Ctrl-C')):
        path = make(t, 'long', 96 << 20, name)
        h = Held(t, '--chunk', '16KiB', path, 'all:/long', near=['n1'])
        t.check(f'{name}: in the middle of it', h.held)
        h.p.send_signal(number)
        began = time.monotonic()
        r = h.finish()
        took = time.monotonic() - began
        t.check('it ends within a second, and says what to do', r.status == 128 + number and took < 1 and
                r.is_one_line('goes on where'), (r, took))
        t.check('no socket is left', not sockets(t), sockets(t))
        t.check('nobody has it', not without(t, '/long', everybody()))
    r = t.run('cp', '--chunk', '16KiB', path, 'all:/long')
    t.check('the same once more is done', r.status == 0 and not have(t, '/long', everybody(), path), r)
    t.check('from where it was: nothing is left of it', t.until(lambda: len(folders_of(t)) == NODES, 10),
            strays(t, everybody()))
    path = program(t, 'heavy', 'echo no', 96 << 20)
    before = partial(t, 'n1')
    p = t.start('run', '-N', NODES, '--copy', '--chunk', '16KiB', path)
    t.until(lambda: moving(t, 'n1', 1, before) or p.poll() is not None)
    began = time.monotonic()
    p.send_signal(signal.SIGINT)
    r = t.finish(p)
    t.check('Ctrl-C while a program is copied', r.status == 130 and r.out == '' and
            time.monotonic() - began < 1.5, (r, time.monotonic() - began))
    t.check('no socket is left of that either', not sockets(t), sockets(t))
    t.check('the cluster is well', healthy(t))
    h = Held(t, '--chunk', '16KiB', make(t, 'lost', 96 << 20), 'all:/lost', near=['n1'])
    h.p.kill()
    h.p.wait()
    t.check('a command that is killed: nobody has it', h.held and not without(t, '/lost', everybody()))
    r = t.run('cp', 'long', 'n1:/after')
    t.check('the next is done, and takes its socket away', r.status == 0 and not sockets(t), (r, sockets(t)))


def tcp(t):
    r = t.run('up', '--local', NODES, '--links', 'tcp', '--cluster', 'tcp')
    t.check('a cluster with TCP', r.status == 0, r)
    path = make(t, 'bytcp', 20 << 20)
    for shape in SHAPES:
        r = t.run('cp', '--cluster', 'tcp', '--tree', shape, path, f'all:/{shape}')
        t.check(f'a copy, {shape}', r.status == 0 and not have(t, f'/{shape}', everybody(), path, 'tcp'), r)
    path = program(t, 'tcptool', 'echo $STORM_NODE', 1 << 20)
    r = t.run('run', '--cluster', 'tcp', '-N', NODES, '--copy', path)
    t.check('a program', r.status == 0 and sorted(r.out.split()) == everybody(), r)
    t.run('down', '--cluster', 'tcp')
    left = [name for n in everybody() for name in os.listdir(os.path.join(t.home, 'tcp', n))]
    t.check('its nodes are empty then', not {'root', 'spool'} & set(left), left)


def switches(t):
    """Three switches of three nodes in disorder: data crosses from one to another as seldom as it can."""
    on = {f'n{i}': f's{i % 3}' for i in range(9)}
    t.write('spec', '# node file\n' + ''.join(f'n{i},n{i + 3},n{i + 6} switch=s{i}\n' for i in range(3)))
    r = t.run('up', '--local', '9', '--cluster', 'switched', '--nodespec', 'spec')
    t.check('a cluster with a node file', r.status == 0, r)
    r = t.run('nodes', '--cluster', 'switched', '--json')
    t.check('nodes: on which switch', {n['name']: n.get('switch') for n in json.loads(r.out)} == on, r)
    r = t.run('nodes', '--cluster', 'switched', 'n4')
    t.check('for people too', 'SWITCH' in r.out and ' s1 ' in r.out, r)
    diaries = {n: folder(t, n, 'spool', 'diary', cluster='switched') for n in on}
    for path in diaries.values():
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        open(path, 'w').close()
        if t.user:
            for p in (path, os.path.dirname(path)):
                os.chown(p, 65534, 65534)

    def links():
        """Who took from whom, as movers have noted; a command is no node."""
        found = {}
        for node, path in diaries.items():
            with open(path) as f:
                found[node] = [f'n{row[3]}' for row in map(str.split, f) if row[0] == 'link']
            os.truncate(path, 0)
        return found
    path = make(t, 'switched', 2 << 20)
    for shape in ('chain', 'k-ary:2', 'binomial'):
        r = t.run('cp', '--cluster', 'switched', '--json', '--tree', shape, path, f'all:/{shape}')
        told = json.loads(r.out)
        t.check(f'{shape}: three switches, entered once each', r.status == 0 and told['switches'] == 3 and
                told['crossed'] == 3 and not have(t, f'/{shape}', list(on), path, 'switched'), r)
        found = links()
        crossed = [(n, g) for n in found for g in found[n] if on.get(g) != on[n]]
        t.check(f'{shape}: and so it went', all(found.values()) and len(crossed) == 3, found)
    r = t.run('cp', '--cluster', 'switched', '--json', '--tree', 'chain', 'n4:/chain', 'all:/again')
    found = links()
    crossed = [(n, g) for n in found for g in found[n] if on.get(g) != on[n]]
    t.check('from a node: one fewer', r.status == 0 and json.loads(r.out)['crossed'] == 2 and len(crossed) == 2,
            (r, found))
    r = t.run('cp', '--cluster', 'switched', '-v', path, 'all:/told')
    t.check('-v says so', r.status == 0 and '3 switches' in r.err, r)
    t.run('down', '--cluster', 'switched')
    r = t.run('up', '--local', '2', '--cluster', 'switched')
    t.check('the next cluster has none', r.status == 0 and 'SWITCH' not in t.run('nodes', '--cluster', 'switched').out, r)
    t.run('down', '--cluster', 'switched')
    t.write('spec', 'n0 switch=s1\nn[1-2] swich=s2\n')
    r = t.run('up', '--local', '3', '--cluster', 'switched', '--nodespec', 'spec')
    t.check('a mistake in it: line and word', r.status == 2 and 'spec:2:8: ' in r.err and '"swich"' in r.err, r)
    r = t.run('up', '--local', '3', '--cluster', 'switched', '--nodespec', 'nowhere')
    t.check('a file that is not there', r.status == 2 and 'nowhere: No such file' in r.err, r)
    t.check('then there is no cluster', t.run('nodes', '--cluster', 'switched').status == 125)


def left_behind(t):
    def remains():
        names = set(os.listdir(os.path.join(t.home, 'local')))
        return [n for n in names if n.endswith('.sock')] + [
            f'{n}/{x}' for n in names for x in ('root', 'spool') if os.path.exists(folder(t, n, x))]
    path = make(t, 'stays', 1 << 20)
    t.check('there is something', t.run('cp', path, 'all:/stays').status == 0 and remains())
    t.run('down')
    t.check('down takes everything away', not remains(), remains())
    t.run('up', '--local', NODES)
    r = t.run('run', '-N', NODES, 'true')
    t.check('up: all nodes are empty', r.status == 0 and not without(t, '/stays', everybody()), remains())
    t.run('cp', path, 'all:/stays')
    with open(os.path.join(t.home, 'local', 'cluster')) as f:
        rows = dict(line.rstrip('\n').split(' ', 1) for line in f)
    watcher = int(rows['watcher'])
    with open(f'/proc/{watcher}/stat') as f:
        sweeper = int(f.read().rpartition(')')[2].split()[1])
    send(watcher, signal.SIGKILL)
    t.check('the watcher is killed: all goes', t.until(lambda: not remains() and
                                                      not os.path.exists(f'/proc/{sweeper}'), 20), remains())
    t.run('up', '--local', NODES)
    t.run('cp', path, 'all:/stays')
    with open(os.path.join(t.home, 'local', 'cluster')) as f:
        watcher = int(dict(line.rstrip('\n').split(' ', 1) for line in f)['watcher'])
    with open(f'/proc/{watcher}/stat') as f:
        sweeper = int(f.read().rpartition(')')[2].split()[1])
    send(sweeper, signal.SIGKILL)
    send(watcher, signal.SIGKILL)
    t.check('even the sweeper is killed: something is left', t.until(
        lambda: not os.path.exists(f'/proc/{watcher}')) and remains())
    r = t.run('down')
    t.check('until down', r.status == 0 and t.until(lambda: not remains(), 10), (r, remains()))
    r = t.run('up', '--local', NODES)
    t.check('and up brings empty nodes', r.status == 0 and not without(t, '/stays', everybody()), r)


play(plain, sparse, folders, replaced, mistakes, clashes, shapes, sends, run_copied, cached, together, interrupted, tcp,
     switches, left_behind, up=('--local', str(NODES), '--orphan', '2s'))
