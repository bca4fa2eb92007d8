#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A cluster whose links are sealed, and whose nodes find each other by asking the manager: what works elsewhere works here, and
who has no key, a wrong one or somebody else's gets nothing. Speaks TAP."""
import json
import os
import re
import shutil
import signal
import socket
import stat

from harness import NOBODY, play
from transfers import NODES, digest, everybody, have, listed, make, there

LINKS = ('--links', 'tls', '--tree', 'k-ary:2')


def own(t, path):
    if t.user:
        os.chown(path, NOBODY, NOBODY)


def cluster_file(t, home=None):
    with open(os.path.join(home or t.home, 'local', 'cluster')) as f:
        return dict(line.split(' ', 1) for line in f.read().splitlines())


def seat(t):
    host, port = re.fullmatch(r'tcp:(.*):(\d+)', cluster_file(t)['manager']).groups()
    return host, int(port)


def log(t):
    return t.read(os.path.join(t.home, 'local', 'log'))


def works(t):
    facts = cluster_file(t)
    t.check('it is what it was to be', facts.get('sealed') == 'yes' and facts['links'] == 'tcp', facts)
    for name in ('master.key', 'client.key'):
        at = os.stat(os.path.join(t.home, 'local', name))
        t.check(f'{name} is for its owner alone', stat.S_IMODE(at.st_mode) == 0o600 and at.st_uid == (NOBODY if t.user else 0))
    r = t.sh('echo $STORM_NODE', '-N', NODES)
    t.check('a job on all nodes', r.status == 0 and sorted(r.out.split()) == everybody(), r)
    r = t.run('run', '-n', 2, '--stdin', 'all', 'md5sum', data=b'x' * 3000000)
    t.check('input for all', r.status == 0 and len(set(r.out.split())) == 2, r)
    r = t.sh('head -c 5000000 /dev/zero', '-n', 3)
    t.check('much output', r.status == 0 and len(r.out) == 15000000, (r.status, len(r.out), r.err))


def files(t):
    big = make(t, 'big', 20 << 20)
    r = t.run('cp', big, 'all:/big')
    t.check('a file to all', r.status == 0 and have(t, '/big', everybody(), big) == [], r)
    r = t.run('cp', 'n1:/big', 'all:/again')
    t.check('from a node to all', r.status == 0 and have(t, '/again', everybody(), big) == [], r)
    r = t.run('cp', 'all:/big', 'gathered')
    t.check('from all to here', r.status == 0 and {digest(t.path(f'gathered/{n}/big')) for n in everybody()} == {digest(big)}, r)
    script = t.write('prog', '#!/bin/sh\nsha256sum < big; echo $STORM_RANK > out\n', 0o755)
    r = t.run('run', '-N', NODES, '--copy', '--input', big, '--fetch', 'out:res', script)
    t.check('a program and its input, and what it leaves', r.status == 0 and
            r.out == f'{digest(big)}  -\n' * NODES and sorted(listed(t.path('res'))) == everybody(), r)


def deaths(t):
    p = t.start('run', '-N', NODES, 'sh', '-c', 'echo $STORM_NODE; cat')
    t.check('a job that waits', t.until(lambda: running(t)))
    first = t.daemon('storm-mm')
    os.kill(first, signal.SIGKILL)
    t.check('the manager is another, and knows of it', t.until(lambda: t.daemon('storm-mm') not in (None, first) and running(t)))
    p.stdin.close()
    p.stdin = None
    r = t.finish(p)
    t.check('the job has noticed nothing', r.status == 0 and sorted(r.out.split()) == everybody(), r)
    big = make(t, 'next', 3 << 20)
    r = t.run('cp', big, 'all:/next')
    t.check('files go by keys of the new epoch', r.status == 0 and have(t, '/next', everybody(), big) == [], r)
    os.kill(t.daemon('storm-n1'), signal.SIGKILL)
    r = t.sh('echo $STORM_NODE', '-N', NODES)
    t.check('a node that was killed is back', r.status == 0 and sorted(r.out.split()) == everybody(), r)


def running(t):
    r = t.run('ps', '--json')
    return r.status == 0 and any(j.get('state') == 'running' for j in json.loads(r.out or '[]'))


def another_home(t, name):
    """The cluster's file, and the keys of another."""
    home = t.path(name)
    shutil.copytree(os.path.join(t.home, 'local'), os.path.join(home, 'local'),
                    ignore=lambda folder, names: [n for n in names if n not in ('cluster', 'client.key', 'local')])
    for where, folders, names in os.walk(home):
        for n in [''] + names:
            own(t, os.path.join(where, n))
    return home


def strangers(t):
    home = another_home(t, 'other')
    key = os.path.join(home, 'local', 'client.key')
    os.chmod(key, 0o640)
    r = t.run('ps', env={'STORM_HOME': home})
    t.check('a key that others may read is refused', r.status not in (0, 'stuck') and '0600' in r.err, r)
    os.chmod(key, 0o600)
    r = t.run('ps', env={'STORM_HOME': home})
    t.check('a copy of the key is as good as the key', r.status == 0, r)
    with open(key) as f:
        text = f.read()
    wrong = re.sub(r'(?m)^key .*$', 'key ' + '0' * 64, text)
    with open(key, 'w') as f:
        f.write(wrong)
    r = t.run('ps', env={'STORM_HOME': home})
    t.check('a wrong key is refused', r.status == 125 and r.is_one_line('does not know our key', 'storm login'), r)
    t.check('and the log tells', t.until(lambda: re.search(r'refused tcp:127\.', log(t))), log(t)[-500:])
    with open(os.path.join(t.home, 'local', 'master.key')) as f:
        wrong = f.read()
    with open(key, 'w') as f:
        f.write(wrong)
    r = t.run('ps', env={'STORM_HOME': home})
    t.check('a key of another kind is none', r.status not in (0, 'stuck') and r.err != '', r)
    os.unlink(key)
    r = t.run('ps', env={'STORM_HOME': home})
    t.check('no key: which file is missing', r.status not in (0, 'stuck') and 'client.key' in r.err, r)
    for words in (b'GET / HTTP/1.0\r\n\r\n', b'\x16\x03\x01' + b'\xff' * 600, b'', os.urandom(5000)):
        with socket.create_connection(seat(t)) as s:
            try:
                s.sendall(words)
                s.shutdown(socket.SHUT_WR)
                s.settimeout(30)
                while s.recv(4096):
                    pass
            except OSError:
                pass
    r = t.sh('true', '-N', NODES)
    t.check('whoever talks something else gets nothing, and nothing else happens', r.status == 0, r)
    r = t.run('nodes')
    t.check('all nodes are there', r.status == 0 and f'n[0-{NODES - 1}]' in r.out, r)


def login(t):
    shell = t.write('shell', '#!/bin/sh\ntest "$1" = ada@desk && exec sh -c "$2"\necho no way to $1 >&2\nexit 255\n', 0o755)
    home = t.path('elsewhere')
    there = f'env STORM_HOME={t.home} {t.storm}'
    r = t.run('login', 'ada@desk', '--connector', shell, '--command', there, env={'STORM_HOME': home})
    t.check('a key of our own', r.status == 0 and 'can be used from here' in r.out, r)
    at = os.stat(os.path.join(home, 'local', 'client.key'))
    t.check('which nobody else can read', stat.S_IMODE(at.st_mode) == 0o600)
    with open(os.path.join(home, 'local', 'client.key')) as f:
        t.check('and is nobody else\'s', 'number 2\n' in f.read())
    r = t.run('run', '-N', NODES, 'hostname', env={'STORM_HOME': home})
    t.check('commands work from there', r.status == 0 and len(r.out.split()) == NODES, r)
    big = make(t, 'theirs', 3 << 20)
    r = t.run('cp', big, 'all:/theirs', env={'STORM_HOME': home})
    t.check('files, too', r.status == 0 and have(t, '/theirs', everybody(), big) == [], r)
    r = t.run('down', env={'STORM_HOME': home})
    t.check('it is not ended from there', r.status == 125 and r.is_one_line('another machine') and
            t.run('run', 'true', env={'STORM_HOME': home}).status == 0, r)
    r = t.run('up', '--local', 2, env={'STORM_HOME': home})
    t.check('nor overwritten', r.status not in (0, 'stuck') and r.is_one_line('another machine') and
            t.run('run', 'true', env={'STORM_HOME': home}).status == 0, r)
    r = t.run('login', 'bob@desk', '--connector', shell, '--command', there, env={'STORM_HOME': t.path('bobs')})
    t.check('no way to the machine', r.status == 125 and 'no key' in r.err and not os.path.exists(t.path('bobs/local')), r)
    r = t.run('login', 'ada@desk', '--connector', shell, '--command', there)
    t.check('what was brought up here is not overwritten', r.status != 0 and 'on this machine' in r.err, r)
    r = t.run('login', 'ada@desk', '--connector', shell, '--command', 'echo', env={'STORM_HOME': t.path('bobs')})
    t.check('something else answers', r.status != 0 and r.is_one_line('is no cluster'), r)
    r = t.run('login')
    t.check('where to?', r.status == 2 and r.is_one_line('storm login HOST'), r)


def turns(t):
    r = t.run('policy', 'gang', '--quantum', '20ms')
    several = [t.start('run', '-N', NODES, 'sleep', 600) for k in range(2)]
    t.check('two jobs have all nodes', r.status == 0 and t.until(lambda: t.run('ps').out.count('running') == 2), t.run('ps'))
    r = t.run('nodes', '--json')
    t.check('gangs take turns', r.status == 0 and t.run('policy').out.count('gang') > 0, r)
    t.run('kill', *[j['id'] for j in json.loads(t.run('ps', '--json').out)])
    t.check('and end when they are to', all(t.finish(p).status == 128 + signal.SIGTERM for p in several))
    t.run('policy', 'fcfs')


play(works, files, deaths, strangers, login, turns, up=('--local', str(NODES), '--orphan', '2s') + LINKS)
