#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Commands and managers of different versions of the protocol: forged by hand, both ways; what the user and the log are told.
Speaks TAP."""
import json
import os
import re
import socket
import struct
import threading

from harness import play

# magic, version, lane, type, zero, length, sequence, epoch (the release), node, life, zero: see src/wire/header.h
HEADER = struct.Struct('<HBBHHIIIIII')
MAGIC = 0x5753
NO_NODE = 0xffffffff


def about(t):
    """Release and protocol of this storm."""
    said = json.loads(t.run('version', '--json').out)
    return said['version'], said['protocol']


def fields(t, name='local'):
    with open(f'{t.home}/{name}/cluster') as f:
        return dict(line.rstrip('\n').split(' ', 1) for line in f)


def packed(release):
    major, minor, patch = (int(n) for n in release.split('.'))
    return major << 16 | minor << 8 | patch


def forged_hello(t):
    """A command of another version knocks."""
    release, protocol = about(t)
    s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    s.settimeout(60)
    s.connect(re.sub('^unix:', '', fields(t)['manager']))
    s.send(HEADER.pack(MAGIC, protocol + 2, 0, 77, 0, 50, 1, packed('9.5.2'), NO_NODE, 1, 0) + b'x' * 50)
    answer = HEADER.unpack(s.recv(HEADER.size, socket.MSG_WAITALL))
    t.check('it hears which version is spoken here', answer[0] == MAGIC and answer[1] == protocol, answer)
    t.check('and of which release we are', answer[7] == packed(release) and answer[5] == 0, answer)
    try:
        rest = s.recv(1)
    except ConnectionResetError:
        rest = b''
    t.check('that is all', rest == b'')
    s.close()
    words = f'it is STORM 9.5.2 (protocol {protocol + 2}), this is {release} (protocol {protocol})'
    log = f'{t.home}/local/log'
    t.check('the log says so', t.until(lambda: words in open(log).read()), open(log).read()[-500:])
    t.check('others are served', t.run('run', 'true').status == 0)


class Manager(threading.Thread):
    """Answers whoever comes as a manager of another version does."""
    def __init__(self, path, protocol, release):
        super().__init__(daemon=True)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.bind(path)
        self.socket.listen(16)
        self.header = HEADER.pack(MAGIC, protocol, 0, 22, 0, 0, 1, packed(release), 4, 3, 0)
        self.start()

    def run(self):
        while True:
            s, _ = self.socket.accept()
            try:
                s.recv(4096)
                s.send(self.header)
            except OSError:     # it has heard the same on its other connection, and gone
                pass
            s.close()


def forged_manager(t):
    """Our commands come to a cluster of another version."""
    release, protocol = about(t)
    os.makedirs(f'{t.home}/far', mode=0o700)
    path = f'{t.home}/far/manager'
    Manager(path, protocol + 3, '0.3.0')
    with open(f'{t.home}/far/cluster', 'w') as f:
        f.write(f'name far\nnodes 4\nroot 4\nkey {"0" * 31}1\nmanager unix:{path}\nversion 0.3.0\nwatcher {os.getpid()}\n'
                'later than all of us\n')
    words = (f'the cluster runs STORM 0.3.0 (protocol {protocol + 3})', f'this command is {release} (protocol {protocol})',
             "use the cluster's own")
    for args in (['ps'], ['run', 'true'], ['submit', 'true'], ['wait', '1'], ['nodes'], ['kill', '1'], ['alloc', 'true'],
                 ['drain', 'n0', '--reason', 'x']):
        r = t.run(*args[:1], '--cluster', 'far', *args[1:])
        t.check(f'storm {args[0]}', r.status == 125 and r.is_one_line(*words), r)


def newer_file(t):
    """A cluster's file that means something else by now."""
    os.makedirs(f'{t.home}/new', mode=0o700)
    with open(f'{t.home}/new/cluster', 'w') as f:
        f.write('format 2\nname by other means\n')
    r = t.run('ps', '--cluster', 'new')
    t.check('it is told', r.status == 125 and r.is_one_line('new/cluster', 'written by a newer STORM'), r)


play(forged_hello, forged_manager, newer_file, up=('--local', '2'))
