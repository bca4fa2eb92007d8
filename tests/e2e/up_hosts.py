#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A cluster of many machines: storm up --hosts, add, remove, down, on machines in namespaces (tests/hosts). Speaks TAP."""
import json
import os
import shutil
import subprocess

from harness import play
from machines import Machines, no_machines

COUNT = 8
NAMES = [f'h{i}' for i in range(COUNT)]
# Whatever is called storm there, or has a file of ours open; the sshd and who looks are not.
LEFT = r"""
ls -A /tmp "$HOME" "$HOME/.cache" 2>/dev/null
for p in /proc/[0-9]*; do
    case $(readlink $p/exe) in */storm*|*/hop-*) echo "$p $(cat $p/comm)";; esac
done
"""

KILL = r"""
for p in /proc/[0-9]*; do
    case $(readlink $p/exe) in */storm*|*/hop-*) kill -9 ${p#/proc/};; esac
done
"""


def prepare(t):
    why = no_machines(t)
    if why is not None:
        t.skip('a cluster of machines', why)
        return
    t.machines = Machines(t, COUNT)
    t.before = {name: left(t, name) for name in NAMES}
    try:
        for scene in (comes_up, works, sends_files, talks, command_lines, takes_turns, second_up, added, removed, waits_for_jobs, reboots, goes_down, programs_gone, troubles, too_few, by_interface,
                      no_way_back, refused):
            only = os.environ.get('SCENE')
            if only is None or scene.__name__ in only.split(','):
                print('#', scene.__name__)
                scene(t, t.machines)
    finally:
        try:
            t.machines.storm('down')
        finally:
            t.machines.do('down')   # whatever happens: nobody else would


def left(t, name):
    return t.machines.on(name, 'sh', '-c', LEFT).out


def muster(t):
    with open(f'{t.home}/local/muster') as f:
        return f.read()


def nodes(m, *args):
    """Names and states, as the manager has them."""
    r = m.storm('nodes', '--json', *args)
    try:
        return {n['name']: n['state'] for n in json.loads(r.out)}
    except ValueError:
        return {}


def up(m, *args, hosts='h[0-5]'):
    return m.storm('up', '--hosts', hosts, '--pes', '1', '--connect-timeout', '60s', *args)


def clean(t, names=NAMES):
    """Nothing of ours is on these machines."""
    found = {name: left(t, name) for name in names}
    return {name: text for name, text in found.items() if text != t.before[name]}


# ---- one that is as it should be ----

def comes_up(t, m):
    r = up(m)
    t.check('six hosts come up', r.status == 0 and '6 nodes' in r.out and r.err == '', r)
    t.check('under their names', nodes(m) == {f'h{i}': 'up' for i in range(6)}, nodes(m))


def works(t, m):
    r = m.storm('run', '-N', '6', 'hostname')
    t.check('a program on all', sorted(r.out.split()) == [f'h{i}' for i in range(6)] and r.status == 0, r)
    r = m.storm('run', '-N', '2', '-w', 'h[3-4]', 'sh', '-c', 'echo $STORM_NODE $(hostname)')
    t.check('by name', sorted(r.out.splitlines()) == ['h3 h3', 'h4 h4'], r)
    p = m.start('desk', t.storm, 'run', '-N', '6', 'sleep', '600')
    t.check('jobs are seen', t.until(lambda: 'running' in m.storm('ps').out, 60), m.storm('ps'))
    job = json.loads(m.storm('ps', '--json').out)[0]
    t.check('with the hosts that they are on', job['node_list'] == 'h[0-5]', job)
    m.storm('kill', str(job['id']))
    t.finish(p)


def sends_files(t, m):
    t.write('letter', 'from the desk')
    r = m.storm('cp', t.path('letter'), 'all:/tmp/letter')
    found = [m.on(name, 'cat', '/tmp/letter').out for name in NAMES[:6]]
    t.check('files come to all', r.status == 0 and found == ['from the desk'] * 6, (r, found))
    for name in NAMES[:6]:
        m.on(name, 'rm', '/tmp/letter')
    t.write('program', '#!/bin/sh\necho sent to $(hostname)\n', 0o755)
    r = m.storm('run', '--copy', '-N', '6', t.path('program'))
    t.check('programs that are only at the desk too', sorted(r.out.splitlines()) == [f'sent to h{i}' for i in range(6)], r)


def talks(t, m):
    """Two processes of a program send messages to each other, from machine to machine."""
    program = os.path.join(os.path.dirname(os.environ['STORM']), 'tests', 'carmi_talker')
    shutil.copy(program, t.path('talker'))
    r = m.storm('run', '--copy', '-N', '2', t.path('talker'), 'apart')
    said = [line.rpartition(': ') for line in r.out.splitlines()]
    t.check('processes on two machines talk', r.status == 0 and said[-1:] == [('the end', ': ', 'yes')], r)
    for what, _, holds in said:
        t.check(what, holds == 'yes', holds)


def command_lines(t, m):
    """The worker's program is only at the desk."""
    r = m.storm('work', 'echo {} $(hostname)', ':::', *(str(i) for i in range(60)))
    said = [line.split() for line in r.out.splitlines()]
    t.check('command lines, in order', r.status == 0 and [int(w[0]) for w in said] == list(range(60)), r)
    t.check('on several hosts', 1 < len({w[1] for w in said}) <= 6 and all(w[1][0] == 'h' for w in said), r)
    r = m.storm('work', 'test {} -lt 2', ':::', '1', '2')
    t.check('and what fails is told', r.status == 1 and r.is_one_line('1 of 2'), r)
    t.check('no worker stays', t.until(lambda: json.loads(m.storm('ps', '--json').out) == [], 60), m.storm('ps'))


def takes_turns(t, m):
    r = m.storm('policy', 'gang')
    t.check('gangs', r.status == 0, r)
    jobs = [m.start('desk', t.storm, 'run', '-N', '6', 'sh', '-c', 'while ! test -e /tmp/go; do :; done') for _ in range(2)]
    t.check('share the hosts', t.until(lambda: m.storm('ps').out.count(' running ') == 2, 60), m.storm('ps'))
    for name in NAMES[:6]:
        m.on(name, 'touch', '/tmp/go')
    said = [t.finish(job) for job in jobs]
    t.check('and end', [r.status for r in said] == [0, 0], said)
    for name in NAMES[:6]:
        m.on(name, 'rm', '/tmp/go')
    m.storm('policy', 'fcfs')


def second_up(t, m):
    r = up(m)
    t.check('a second one says that it runs', r.status == 0 and 'runs already' in r.out, r)


def added(t, m):
    r = m.storm('add', 'h[6-7]')
    t.check('two more', r.status == 0 and r.err == '', r)
    r = m.storm('run', '-N', '8', 'hostname')
    t.check('work as the others do', sorted(r.out.split()) == NAMES and r.status == 0, r)
    r = m.storm('add', 'h6')
    t.check('but not twice', r.status != 0 and r.is_one_line('h6', 'already'), r)


def removed(t, m):
    r = m.storm('remove', 'h1,h6')
    t.check('two less', r.status == 0 and r.err == '', r)
    t.check('nothing is left there', clean(t, ['h1', 'h6']) == {}, clean(t, ['h1', 'h6']))
    t.check('nobody knows them any more', 'h1' not in nodes(m) and 'h6' not in nodes(m), nodes(m))
    r = m.storm('remove', 'h1')
    t.check('so they cannot be removed', r.status != 0 and r.is_one_line('h1', 'no such host'), r)
    r = m.storm('add', 'h1,h6')
    t.check('they come again', r.status == 0 and t.until(lambda: nodes(m) == {n: 'up' for n in NAMES}, 60), (r, nodes(m)))
    r = m.storm('run', '-N', '8', 'hostname')
    t.check('as if nothing had been', sorted(r.out.split()) == NAMES, r)


def waits_for_jobs(t, m):
    job = m.start('desk', t.storm, 'run', '-N', '1', '-w', 'h7', 'sh', '-c', 'while ! test -e /tmp/go; do sleep 0.05; done; rm /tmp/go')
    t.until(lambda: 'running' in m.storm('ps').out, 60)
    p = m.start('desk', t.storm, 'remove', 'h7')
    t.check('one that works is drained', t.until(lambda: nodes(m).get('h7') == 'drained', 60), nodes(m))
    t.check('and waited for', p.poll() is None)
    m.on('h7', 'touch', '/tmp/go')
    r = t.finish(job)
    t.check('its job ends well', r.status == 0, r)
    r = t.finish(p)
    t.check('then it goes', r.status == 0 and clean(t, ['h7']) == {}, (r, clean(t, ['h7'])))
    m.storm('add', 'h7')
    job = m.start('desk', t.storm, 'run', '-N', '1', '-w', 'h7', 'sleep', '600')
    t.until(lambda: 'running' in m.storm('ps').out, 60)
    r = m.storm('remove', 'h7', '--now')
    t.check('if that is wanted, at once', r.status == 0 and clean(t, ['h7']) == {}, (r, clean(t, ['h7'])))
    r = t.finish(job)
    t.check('its job is lost', r.status == 125, r)
    r = m.storm('add', 'h7')
    t.check('and it comes again', r.status == 0, r)


def reboots(t, m):
    """All processes are gone, /tmp is empty, and for a while nobody answers: as when a machine is started anew."""
    m.do('break', 'h2', 'hang')
    m.on('h2', 'sh', '-c', KILL + 'rm -rf /tmp/storm-0')
    t.check('one that is started anew is missed', t.until(lambda: nodes(m).get('h2') == 'down', 60), nodes(m))
    r = m.storm('run', '-N', '7', 'hostname')
    t.check('the others work', 'h2' not in r.out and r.status == 0, r)
    m.do('mend', 'h2')
    t.check('it comes back', t.until(lambda: nodes(m).get('h2') == 'up', 150), (nodes(m), muster(t)))
    r = m.storm('run', '-N', '8', 'hostname')
    t.check('and works', sorted(r.out.split()) == NAMES, r)


def goes_down(t, m):
    r = m.storm('down')
    t.check('down', r.status == 0 and r.err == '', r)
    t.check('nothing is left anywhere', clean(t) == {}, clean(t))
    names = os.listdir(f'{t.home}/local')
    t.check('nor here', not set(names) & {'muster', 'berths', 'tending', 'bin', 'cluster', 'ending', 'ended'}, names)


# ---- trouble ----

def programs_gone(t, m):
    """Whoever tidies up /tmp on a host takes what a node would end itself with."""
    r = up(m, hosts='h[0-1]')
    t.check('two come up', r.status == 0 and '2 nodes' in r.out, r)
    m.on('h1', 'rm', '-r', '/tmp/storm-0/local/bin')
    r = m.storm('down')
    t.check('who may still run is named', r.status == 1 and r.is_one_line('h1', 'removed the programs'), r)
    m.on('h1', 'sh', '-c', KILL + 'rm -rf /tmp/storm-0 ~/.cache')   # by hand
    r = m.storm('down')
    t.check('until there is nothing', r.status == 0 and clean(t, ['h0', 'h1']) == {}, (r, clean(t, ['h0', 'h1'])))


def troubles(t, m):
    m.do('break', 'h0', 'dead')
    m.do('break', 'h3', 'key')
    m.do('break', 'h5', 'full')
    r = up(m, hosts='h[0-7]')
    t.check('the others come up', r.status == 0 and '5 nodes' in r.out, r)
    for name, words in (('h0', ('no answer', 'No route')), ('h3', ('Permission denied',)), ('h5', ('No space',))):
        named = [line for line in r.err.splitlines() if line.startswith(f'storm: {name}: ')]
        t.check(f'{name} is named, with its reason', len(named) == 1 and any(w in named[0] for w in words), r.err)
    r = m.storm('run', '-N', '5', 'hostname')
    t.check('and work', sorted(r.out.split()) == ['h1', 'h2', 'h4', 'h6', 'h7'], r)
    for name in ('h0', 'h3', 'h5'):
        m.do('mend', name)
    t.check('those that are mended come by themselves', t.until(lambda: nodes(m) == {n: 'up' for n in NAMES}, 150), nodes(m))
    m.do('break', 'h4', 'dead')
    r = m.storm('down')
    t.check('who cannot be reached at the end is named', r.status == 1 and r.is_one_line('h4', 'could not be ended'), r)
    m.do('mend', 'h4')
    r = m.storm('down')
    t.check('and can be ended later', r.status == 0 and clean(t) == {}, (r, clean(t)))


def too_few(t, m):
    m.do('break', 'h0', 'key')
    r = up(m, '--min-nodes', '2', hosts='h[0-1]')
    t.check('too few are a failure', r.status == 125 and 'only 1 of 2' in r.err, r)
    m.do('mend', 'h0')
    r = m.storm('down')
    t.check('that can be ended', r.status == 0 and clean(t, ['h0', 'h1']) == {}, (r, clean(t, ['h0', 'h1'])))


def by_interface(t, m):
    """By IPv6, at other ports, elsewhere; who is in the way is passed over."""
    taken = m.start('h1', 'python3', '-c', 'import socket, sys; s = socket.create_server(("::", 31000), family=socket.AF_INET6); '
                    'print("here", flush=True); sys.stdin.read()', stdin=subprocess.PIPE)
    taken.stdout.readline()
    r = up(m, '--interface', 'fd77::1', '--ports', '31000-31009', '--node-folder', '/run/nodes', hosts='h[0-2]')
    t.check('by IPv6', r.status == 0 and '3 nodes' in r.out, r)
    with open(f'{t.home}/local/cluster') as f:
        t.check('as its file says', 'manager tcp:[fd77::1]:31000' in f.read())
    r = m.storm('run', '-N', '3', 'hostname')
    t.check('it works', sorted(r.out.split()) == ['h0', 'h1', 'h2'], r)
    t.check('where it was told to', m.on('h1', 'ls', '/run/nodes/local').status == 0)
    r = m.storm('down')
    t.check('down', r.status == 0 and m.on('h1', 'ls', '/run/nodes/local').status != 0, r)
    t.finish(taken)


def no_way_back(t, m):
    """Hosts that are reached and cannot reach the manager: it listens where nobody else can come."""
    r = up(m, '--interface', '127.0.0.1', hosts='h[0-1]')
    t.check('who does not get through is named', r.status == 125 and
            all(f'storm: h{i}: it runs, but the manager does not hear of it' in r.err for i in range(2)), r)
    r = m.storm('down')
    t.check('and ends all the same', r.status == 0 and clean(t, ['h0', 'h1']) == {}, (r, clean(t, ['h0', 'h1'])))


def refused(t, m):
    for args, words in ((('--hosts', 'h[0-'), 'h[0-'), (('--hosts', 'h0', '--local', '2'), '--local'),
                        (('--hosts', 'h0', '--ports', '7'), '--ports'), (('--hosts', 'h0', '--max-nodes', '0-'), '--max-nodes'),
                        (('--hosts', 'h0', '--interface', 'nowhere'), '--interface'), (('--hosts', 'h0', '--min-nodes', '2'), '--min-nodes'),
                        (('--hosts', 'h0', '--node-folder', 'here'), '--node-folder'),
                        (('--hosts', 'h0', '--node-folder', '/tmp/a;b'), '--node-folder /tmp/a;b')):
        r = m.storm('up', *args)
        t.check(f'refused: {words}', r.status == 2 and r.is_one_line(words), r)
    m.on('h0', 'sh', '-c', 'mkdir -p /tmp/storm-0/local/bin && printf "#!/bin/sh\\ntouch /tmp/trapped\\n" >/tmp/storm-0/local/bin/storm && '
         'chmod 755 /tmp/storm-0/local/bin/storm && chown -R 65534 /tmp/storm-0')
    r = up(m, hosts='h[0-1]')
    t.check("somebody else's folder is not used", r.status == 0 and 'storm: h0: /tmp/storm-0' in r.err and "somebody else's" in r.err, r)
    r = m.storm('down')
    t.check('nor run, when all ends', r.status == 0 and m.on('h0', 'ls', '/tmp/trapped').status != 0, r)
    t.check('nor removed', m.on('h0', 'ls', '/tmp/storm-0/local/bin/storm').status == 0)
    m.on('h0', 'rm', '-r', '/tmp/storm-0')
    t.check('and nothing is left', clean(t, ['h0', 'h1']) == {}, clean(t, ['h0', 'h1']))


if __name__ == '__main__':
    play(prepare, up=None)
