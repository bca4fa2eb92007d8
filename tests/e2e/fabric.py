#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Files to nodes by a fabric: what goes by it, what does not, and what happens when it breaks. Speaks TAP."""
import json
import os
import shutil
import signal
import sys

import transfers
from harness import play
from transfers import children, everybody, have, healthy, make, mover, nodes, send, strays, Held

transfers.NODES = NODES = 7
PROVIDERS = ('tcp', 'shm')
SLOWLY = ('--chunk', '16KiB', '--slots', '4')   # so that there is a middle

# Position 0 gives, 1 to 7 are n0 to n6; in a tree of two arms each.
SIZE = 5 << 20


def copy(t, path, to, *args):
    """Copies to all nodes and returns the result and what each mover says it gave and got."""
    r = t.run('cp', '--json', *args, path, to)
    try:
        said = json.loads(r.out)
    except ValueError:
        said = {}
    return r, said, {m['name']: m for m in said.get('movers', [])}


def helpers(t, node):
    """storm-fab of a node's mover; 0: none."""
    pid = mover(t, node)
    return children(pid).get('storm-fab', 0) if pid else 0


def as_planned(shape, movers):
    """What each has given, if nobody was so late that those below it went to another."""
    given = sorted(m['put_fabric'] for m in movers.values())
    if shape == 'k-ary:2':   # inner nodes: the size times their children
        return given == sorted(SIZE * c for c in (1, 2, 2, 2, 0, 0, 0, 0))
    if shape == 'chain':     # all but the last give it once
        return given == [0] + NODES * [SIZE]
    return shape != 'flat' or movers['here']['put_fabric'] == NODES * SIZE


def counted(t):
    for provider in PROVIDERS:
        for shape in ('k-ary:2', 'chain', 'flat', 'pair'):
            to = f'/{provider}-{shape.replace(":", "")}'
            for attempt in range(5):   # a machine that is busy with something else may make a node late
                path = make(t, 'file', SIZE, f'{to}{attempt}')
                r, said, movers = copy(t, path, f'all:{to}', '--fabric', f'ofi:{provider}', '--tree', shape)
                if r.status != 0 or len(movers) != NODES + 1 or as_planned(shape, movers):
                    break
            t.check(f'{provider}, {shape}: all have it', r.status == 0 and not have(t, to, everybody(), path), r)
            t.check('every mover has counted', len(movers) == NODES + 1 and
                    not any(m['silent'] or m['why'] for m in movers.values()), movers)
            t.check('the streams carried none of it', movers and all(
                m['put_stream'] == m['came_stream'] == 0 for m in movers.values()), movers)
            t.check('each node got it once', movers and all(
                movers[n]['came_fabric'] == SIZE for n in everybody()), movers)
            given = sorted(m['put_fabric'] for m in movers.values())
            t.check('what was given is what was got', sum(given) == NODES * SIZE, given)
            t.check('each the size times its children', movers and as_planned(shape, movers), given)


def streams(t):
    path = make(t, 'file', SIZE, 'streams')
    r, said, movers = copy(t, path, 'all:/streams', '--fabric', 'streams', '--tree', 'k-ary:2')
    t.check('by streams: the fabric carried none of it', r.status == 0 and len(movers) == NODES + 1 and
            sum(m['put_stream'] for m in movers.values()) == NODES * SIZE and
            not any(m['put_fabric'] or m['came_fabric'] for m in movers.values()), (r, movers))
    r, said, movers = copy(t, path, 'all:/auto')
    t.check('of itself it goes by streams here', r.status == 0 and said.get('fabric') == 'streams' and
            not any(helpers(t, n) for n in everybody()), (r, said))
    r = t.run('cp', '-v', path, 'n0:/verbose')
    t.check('-v says so', r.status == 0 and 'by streams' in r.err, r)


def other_ways(t):
    r = t.run('run', '--copy', '--fabric', 'ofi:tcp', '-N', NODES, '/bin/echo', 'here')
    t.check('a program', r.status == 0 and r.out == NODES * 'here\n' and helpers(t, 'n0'), r)
    path = make(t, 'file', SIZE, 'between')
    t.run('cp', path, 'n3:/have')
    r, said, movers = copy(t, 'n3:/have', 'n[0-2,4-6]:/have', '--fabric', 'ofi:tcp', '--tree', 'chain')
    t.check('from a node to others', r.status == 0 and not have(t, '/have', everybody(), path) and
            sum(m['put_fabric'] for m in movers.values()) == 6 * SIZE and
            not any(m['put_stream'] for m in movers.values()), (r, movers))
    os.mkdir(t.path('back'))
    if t.user:
        os.chown(t.path('back'), 65534, 65534)
    r = t.run('cp', '--fabric', 'ofi:tcp', 'all:/have', 'back')
    t.check('from nodes to here', r.status == 0 and all(
        transfers.digest(t.path(f'back/{n}/have')) == transfers.digest(path) for n in everybody()), r)
    t.write('empty', '')
    t.write('one', '1')
    r = t.run('cp', '--fabric', 'ofi:tcp', 'empty', 'one', path, 'all:/three/')
    t.check('an empty one, a small one', r.status == 0 and not any(
        have(t, f'/three/{n}', everybody(), t.path(n)) for n in ('empty', 'one', 'file')), r)


def mistakes(t):
    path = make(t, 'file', 1 << 20, 'mistakes')
    r = t.run('cp', '--fabric', 'ofi:nosuch', path, 'all:/x')
    t.check('a provider that is not there', r.status != 0 and r.is_one_line('ofi:nosuch', 'no provider'), r)
    for word in ('ofi:', 'tcp', 'ofi:a b'):
        r = t.run('cp', '--fabric', word, path, 'all:/x')
        t.check(f'--fabric {word!r} is refused', r.status == 2 and r.is_one_line('--fabric', 'streams'), r)
    r = t.run('up', '--cluster', 'other', '--fabric', 'quick')
    t.check('up too', r.status == 2 and r.is_one_line('--fabric', 'ofi'), r)


def fab(t, there):
    """Takes the program away, or brings it back."""
    here, away = os.path.join(t.bin, 'storm-fab'), os.path.join(t.scratch, 'storm-fab')
    shutil.move(away if there else here, here if there else away)


def without_it(t):
    fab(t, False)
    path = make(t, 'file', SIZE, 'without')
    r = t.run('cp', '--fabric', 'ofi:tcp', path, 'all:/without')
    t.check('no storm-fab: it says what is missing', r.status != 0 and
            r.is_one_line('storm-fab', 'libfabric'), r)
    r = t.run('cp', path, 'all:/without')
    t.check('all else works', r.status == 0 and not have(t, '/without', everybody(), path), r)
    fab(t, True)


def broken(t):
    """One that does not start on nodes, though it does for us."""
    real, fake = os.path.join(t.bin, 'storm-fab'), os.path.join(t.bin, 'storm-fab.real')
    os.rename(real, fake)
    # The first to come is the command itself; movers come after it.
    t.write('first', '')
    with open(real, 'w') as f:
        f.write(f'#!/bin/sh\nrm {t.path("first")} 2>/dev/null && exec {fake} "$@"\nexit 1\n')
    os.chmod(real, 0o755)
    t.until(lambda: not any(mover(t, n) for n in everybody()), 30)
    path = make(t, 'file', SIZE, 'broken')
    r, said, movers = copy(t, path, 'all:/broken', '--fabric', 'ofi:tcp', '--tree', 'k-ary:2')
    t.check('nodes without a fabric take it by streams', r.status == 0 and
            not have(t, '/broken', everybody(), path) and all(
                movers[n]['came_stream'] == SIZE and movers[n]['came_fabric'] == 0 and movers[n]['why']
                for n in everybody()), (r, movers))
    os.rename(fake, real)
    t.until(lambda: not any(mover(t, n) for n in everybody()), 30)


def killed(t):
    for provider in PROVIDERS:
        for what in ('mover', 'storm-fab'):
            to = f'/{provider}-{what}'
            path = make(t, 'file', 48 << 20, to)
            h = Held(t, '--fabric', f'ofi:{provider}', *SLOWLY, '--tree', 'chain', path, f'all:{to}', near=['n2'])
            victim = mover(t, 'n2') if what == 'mover' else helpers(t, 'n2')
            send(victim, signal.SIGKILL)
            r = h.finish()
            others = nodes(0, 1, 3, 4, 5, 6)
            t.check(f'{provider}: the {what} of a node is killed in the middle', h.held and victim, (h.held, victim, r))
            t.check('the others have it', not have(t, to, others, path), (r, have(t, to, others, path)))
            if what == 'mover':
                t.check('that node is named', r.status == 1 and r.err.startswith('storm: cp: n2: '), r)
            else:
                t.check('that node has it too', r.status == 0 and not have(t, to, ['n2'], path), r)
            r = t.run('cp', '--fabric', f'ofi:{provider}', *SLOWLY, path, f'all:{to}')
            t.check('the same again is done', r.status == 0 and not have(t, to, everybody(), path), r)
            t.check('nothing is left on the way', t.until(lambda: not strays(t, everybody()), 20),
                    strays(t, everybody()))
            t.check('the cluster is well', t.until(lambda: healthy(t, NODES), 30))


def usual(t):
    """A cluster that is brought up with a fabric."""
    t.run('down')
    r = t.run('up', '--local', 3, '--links', 'tcp', '--fabric', 'ofi:tcp')
    path = make(t, 'file', SIZE, 'usual')
    r, said, movers = copy(t, path, 'all:/usual', '--tree', 'chain')
    t.check('what the cluster was brought up with, links of TCP', r.status == 0 and
            said.get('fabric') == 'ofi:tcp' and sum(m['put_fabric'] for m in movers.values()) == 3 * SIZE, (r, movers))
    r, said, movers = copy(t, path, 'all:/unusual', '--tree', 'chain', '--fabric', 'streams')
    t.check('unless the command says otherwise', r.status == 0 and not any(
        m['put_fabric'] for m in movers.values()), (r, movers))


if not os.path.exists(os.path.join(os.path.dirname(os.environ['STORM']), 'storm-fab')):
    print('1..0 # SKIP built without libfabric')
    sys.exit(0)
play(streams, counted, other_ways, mistakes, without_it, broken, killed, usual, up=('--local', str(NODES), '--orphan', '2s'))
