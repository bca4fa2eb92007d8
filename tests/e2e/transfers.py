# SPDX-License-Identifier: MIT
"""What the tests of file transfers share: where nodes keep files, who moves them, how to be in the middle."""
import hashlib
import os
import random
import signal
import stat
import time

NODES = 5


def folder(t, node, *more, cluster='local'):
    return os.path.join(t.home, cluster, node, *more)


def there(t, node, path, cluster='local'):
    """A path of a node, as others see it."""
    return folder(t, node, 'root', path.lstrip('/'), cluster=cluster)


def digest(path):
    h = hashlib.sha256()
    try:
        with open(path, 'rb') as f:
            while chunk := f.read(1 << 20):
                h.update(chunk)
    except OSError as e:
        return f'{path}: {e}'
    return h.hexdigest()


def nodes(*numbers):
    return [f'n{k}' for k in numbers]


def everybody():
    return nodes(*range(NODES))


def have(t, path, where, source, cluster='local'):
    """Nodes of these where the file is not as its source; none if all is well."""
    right = digest(source)
    return [n for n in where if digest(there(t, n, path, cluster)) != right]


def without(t, path, where, cluster='local'):
    """Nodes of these where there is something under that name."""
    return [n for n in where if os.path.lexists(there(t, n, path, cluster))]


def make(t, name, size, seed=0):
    """A file that cannot be compressed, and has no piece in common with that of another seed."""
    path = t.path(name)
    r = random.Random(f'{name} {seed}')
    with open(path, 'wb') as f:
        while size > 0:
            n = min(size, 1 << 20)
            f.write(r.randbytes(n))
            size -= n
    if t.user:
        os.chown(path, 65534, 65534)
    return path


def tree(path):
    """All that is below a folder: kinds, modes, times, contents."""
    rows = {}
    for where, folders, files in os.walk(path):
        for name in folders + files + ['.']:
            full = os.path.join(where, name)
            s = os.lstat(full)
            what = (os.readlink(full) if stat.S_ISLNK(s.st_mode) else
                    digest(full) if stat.S_ISREG(s.st_mode) else '')
            mode = 0 if stat.S_ISLNK(s.st_mode) else stat.S_IMODE(s.st_mode)
            rows[os.path.relpath(full, path)] = (stat.S_IFMT(s.st_mode), mode, s.st_mtime_ns, what)
    return rows


# ---- processes ----

def children(parent):
    """Names and numbers of the processes of a parent."""
    found = {}
    for task in listed(f'/proc/{parent}/task'):
        for pid in text(f'/proc/{parent}/task/{task}/children').split():
            found[text(f'/proc/{pid}/comm').rstrip('\n')] = int(pid)
    return found


def listed(path):
    try:
        return os.listdir(path)
    except OSError:
        return []


def text(path):
    try:
        with open(path, errors='replace') as f:
            return f.read()
    except OSError:
        return ''


def manager(t, node, cluster='local'):
    """The process of a node's manager; 0 if there is none."""
    rows = dict(line.split(' ', 1) for line in
                text(os.path.join(t.home, cluster, 'cluster')).splitlines() if ' ' in line)
    return children(rows['watcher']).get(f'storm-{node}', 0) if 'watcher' in rows else 0


def mover(t, node, cluster='local'):
    pid = manager(t, node, cluster)
    return children(pid).get(f'storm-fm {node}', 0) if pid else 0


def send(pid, number):
    """A signal to a process that may not be there any more; 0: it never was."""
    try:
        if pid > 0:
            os.kill(pid, number)
    except ProcessLookupError:
        pass


# ---- what is on its way ----

def partial(t, node, cluster='local'):
    """Files of transfers that are not over, with their sizes on the disk."""
    found = {}
    top = folder(t, node, 'spool', 'partial', cluster=cluster)
    for where, _, files in os.walk(top):
        for name in files:
            path = os.path.join(where, name)
            try:
                found[os.path.relpath(path, top)] = os.lstat(path).st_blocks * 512
            except OSError:
                pass
    return found


def hidden(t, node, cluster='local'):
    """Temporary files beside destinations."""
    return [os.path.join(where, name) for where, _, files in
            os.walk(folder(t, node, 'root', cluster=cluster)) for name in files
            if name.startswith('.storm-')]


def moving(t, node, at_least=1, but=(), cluster='local'):
    """Is a node in the middle of it: so many bytes of contents are there, apart from those in these files?"""
    return sum(size for name, size in partial(t, node, cluster).items()
               if os.path.basename(name)[0] == 'f' and name not in but) >= at_least


def strays(t, where, cluster='local'):
    return [(n, what) for n in where
            for what in list(partial(t, n, cluster)) + hidden(t, n, cluster)]


class Held:
    """A copy that is stopped in the middle, so that something can be done to it."""

    def __init__(self, t, *args, near, at_least=1 << 20, **more):
        self.t = t
        before = {n: partial(t, n) for n in near}
        self.p = t.start('cp', '-q', *args, **more)
        end = time.monotonic() + 30
        self.held = False
        while not self.held and self.p.poll() is None and time.monotonic() < end:
            self.held = all(moving(t, n, at_least, before[n]) for n in near)
        if self.held:
            send(self.p.pid, signal.SIGSTOP)   # and what is under way has not been the rest
            self.held = self.p.poll() is None and all(moving(t, n, at_least, before[n]) for n in near)

    def go(self):
        send(self.p.pid, signal.SIGCONT)

    def finish(self):
        self.go()
        return self.t.finish(self.p)


def healthy(t, count=NODES, cluster='local'):
    r = t.run('run', '--cluster', cluster, '-N', count, 'true')
    return r.status == 0
