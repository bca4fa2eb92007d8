#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""storm up --foreground, as systemd uses it: what it says, how it ends. Speaks TAP."""
import os
import signal
import socket

from harness import play


class Notices:
    """What a service manager hears."""
    def __init__(self, t, name):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.settimeout(180)
        self.name = name if name.startswith('@') else t.path(name)
        self.socket.bind(self.name.replace('@', '\0', 1) if name.startswith('@') else self.name)

    def next(self):
        return self.socket.recv(4096).decode()


def begin(t, name, notices):
    return t.start('up', '--foreground', '--local', '2', '--cluster', name, env={'NOTIFY_SOCKET': notices.name})


def runs(t, name):
    return t.run('run', '--cluster', name, '-N', '2', 'true').status == 0


def asked(t):
    """SIGTERM ends it as storm down does, jobs first."""
    for name, path in (('a', 'notices'), ('b', f'@storm-test-{os.getpid()}')):
        notices = Notices(t, path)
        p = begin(t, name, notices)
        t.check(f'{path[0]}: it is ready, and says so', notices.next() == 'READY=1')
        t.check('and it is', runs(t, name) and p.poll() is None)
        t.check('a job runs', t.run('submit', '--cluster', name, 'sleep', '1000').status == 0)
        p.send_signal(signal.SIGTERM)
        t.check('it is ending, and says so', notices.next() == 'STOPPING=1')
        r = t.finish(p)
        t.check('it ends well', r.status == 0 and 'is down' in r.out, r)
        r = t.run('ps', '--cluster', name)
        t.check('nothing runs any more', r.status == 125 and 'no cluster' in r.err, r)
    p = t.start('up', '--foreground', '--local', '1', '--cluster', 'c')
    t.check('nobody need be told', p.stdout.readline().startswith(b'storm: cluster c is up'))
    p.send_signal(signal.SIGINT)
    r = t.finish(p)
    t.check('SIGINT is as good', r.status == 0, r)


def from_elsewhere(t):
    """Somebody types storm down."""
    notices = Notices(t, 'elsewhere')
    p = begin(t, 'd', notices)
    notices.next()
    r = t.run('down', '--cluster', 'd')
    t.check('it is ended from elsewhere', r.status == 0, r)
    r = t.finish(p)
    t.check('that is a good end', r.status == 0, r)


def crash(t):
    notices = Notices(t, 'crash')
    p = begin(t, 'e', notices)
    notices.next()
    with open(f'{t.home}/e/cluster') as f:
        watcher = int(dict(line.rstrip('\n').split(' ', 1) for line in f)['watcher'])
    os.kill(watcher, signal.SIGKILL)
    r = t.finish(p)
    t.check('the watcher is killed: that is no good end', r.status == 125 and r.is_one_line('not in good order', 'log'), r)
    p = begin(t, 'e', notices)
    t.check('it can be brought up again', notices.next() == 'READY=1' and runs(t, 'e'))
    r = t.run('up', '--foreground', '--cluster', 'e')
    t.check('but not twice', r.status == 125 and r.is_one_line('runs already'), r)
    p.send_signal(signal.SIGTERM)
    t.check('until it ends', t.finish(p).status == 0)


def fails(t):
    """It cannot come up: nothing is left that nobody looks after."""
    p = t.start('up', '--foreground', '--local', '0x', '--cluster', 'f')
    r = t.finish(p)
    t.check('a mistake is a mistake', r.status == 2, r)
    t.check('and nothing runs', not os.path.exists(f'{t.home}/f/cluster'))


play(asked, from_elsewhere, crash, fails, up=None)
