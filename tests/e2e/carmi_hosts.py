#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""CARMI on machines that do not share files (tests/hosts): a program that a host lacks comes there. Speaks TAP."""
import subprocess

from harness import play
from machines import Machines, no_machines
from teller import Teller

SCRIPT = '#!/bin/sh\necho "$(hostname) $0 $1"\nexit 3\n'
MOVERS = 'for p in /proc/[0-9]*; do grep -qs "^storm-fm" $p/comm && echo ${p#/proc/}; done'


def prepare(t):
    why = no_machines(t)
    if why is not None:
        t.skip('hosts that lack a program', why)
        return
    m = Machines(t, 3)
    try:
        r = m.storm('up', '--hosts', 'h[0-2]', '--pes', '1', '--connect-timeout', '60s')
        t.check('three hosts come up', r.status == 0, r)
        ships(t, m)
    finally:
        try:
            m.storm('down')
        finally:
            m.do('down')


def spawned(p, host, *command):
    """What is said of a process: the words of each message, and what it has written meanwhile."""
    number = p.ask('on', host, *command)
    said = [p.hear(number)]
    while said[-1] and said[-1][-1] != 'last':
        said.append(p.hear(number))
    out = [line for line in p.kept if not line.split()[:1][0].isdigit()]
    p.kept = [line for line in p.kept if line not in out]
    return said, out


def ran(t, what, told, where):
    """It is told as ever, and comes out of the cache of that machine."""
    said, out = told
    t.check(what, [words[0] for words in said] == ['spawned', 'exited'] and said[0][3] == said[1][3] and
            'status 3' in ' '.join(said[1]) and len(out) == 1 and out[0].startswith(where + ' ') and '/objects/' in out[0] and
            out[0].endswith('/only-here word'), told)


def movers(m, host):
    return m.on(host, 'sh', '-c', MOVERS).out.split()


def ships(t, m):
    r = m.on('h0', 'sh', '-c', 'printf %s "$1" >/tmp/only-here && chmod 755 /tmp/only-here && ln -s only-here /tmp/by-link && '
             'cp /tmp/only-here /tmp/no-program && chmod 644 /tmp/no-program', 'sh', SCRIPT)
    t.check('a program that only one has', r.status == 0, r)
    p = Teller(t, '--copy', '-w', 'h0', '--chdir', '/tmp', start=lambda *command: m.start(
        'desk', t.storm, *command, stdin=subprocess.PIPE, PATH='/nowhere:/usr/bin:/bin:/tmp'))
    p.does('define', 'any')
    hosts = p.grows('any', 2, 2)
    where = {h: next(w[5:] for w in p.does('info', h) if w.startswith('NAME=')) for h in hosts}
    t.check('two hosts', sorted(where.values()) == ['h1', 'h2'], where)
    one, two = hosts
    ran(t, 'it comes to one', spawned(p, one, '/tmp/only-here', 'word'), where[one])
    t.check('by its mover', movers(m, where[one]) != [])
    for number in movers(m, where[one]):
        m.on(where[one], 'kill', '-9', number)
    t.check('whose mover ends', t.until(lambda: movers(m, where[one]) == []), movers(m, where[one]))
    ran(t, 'from its folder, the second time', spawned(p, one, './only-here', 'word'), where[one])
    t.check('nothing has moved', movers(m, where[one]) == [])
    ran(t, 'by PATH', spawned(p, one, 'only-here', 'word'), where[one])
    ran(t, 'by a link', spawned(p, one, '/tmp/by-link', 'word'), where[one])
    many = [p.ask('on', two, '/tmp/only-here', 'word') for _ in range(12)]
    said = [[p.hear(number), p.hear(number)] for number in many]
    t.check('many at once on the other', all([s[0][0], s[1][0]] == ['spawned', 'exited'] and 'status 3' in ' '.join(s[1]) for s in said), said)
    for name in ('/tmp/nowhere', 'nowhere', '/tmp/no-program'):
        said, out = spawned(p, one, name)
        t.check(f'{name} is nowhere', said[-1][1:5] == ['failed', 'No', 'such', 'file'], said)
    m.on(where[one], 'sh', '-c', 'printf "#!/bin/sh\nexit 5\n" >/tmp/only-here && chmod 755 /tmp/only-here')
    said, out = spawned(p, one, '/tmp/only-here', 'word')
    t.check('a host that has one runs that', 'status 5' in ' '.join(said[-1]), said)
    t.check('the end', p.end())


play(prepare, up=None)
