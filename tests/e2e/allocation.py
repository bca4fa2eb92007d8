#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""storm up inside an allocation: of Slurm, of PBS, or a plain list of hosts in STORM_HOSTS.

All hosts are this machine: several nodes live on it, each with a folder and ports of its own. Slurm is a real one
(tests/peers/slurm.sh), if it is installed; elsewhere the connector stays here. Speaks TAP."""
import json
import os
import shutil
import signal
import subprocess

from harness import NOBODY, play

HERE = os.path.dirname(os.path.abspath(__file__))
SLURM = os.path.join(HERE, '..', 'peers', 'slurm.sh')
CONNECTOR = """#!/bin/sh
cd {work} || exit 1
if [ -e "broken-$1" ]; then cat "broken-$1" >&2; exit 1; fi
if [ -e "slow-$1" ]; then : >"asked-$1"; exec cat "slow-$1"; fi
HOME={work}/homes/$1
export HOME
unset XDG_CACHE_HOME SHELL
mkdir -p "$HOME"
cd "$HOME" && exec sh -c "$2"
"""
HOSTS = ['a', 'b', 'c', 'd']
STRANGER = 65533


def prepare(t):
    os.makedirs(t.home, exist_ok=True)   # whose owner is looked at
    os.mkdir(t.path('homes'))
    t.write('connector', CONNECTOR.format(work=t.work), 0o755)
    t.folder = t.path('nodes')
    if t.user:
        for path in (t.home, t.path('homes')):
            os.chown(path, NOBODY, NOBODY)


def up(t, *args, **env):
    """The nodes live in the test's own folder; the manager is called at an address that is always there."""
    return t.run('up', '--interface', '127.0.0.1', '--node-folder', t.folder, '--connect-timeout', '60s', *args,
                 env={'STORM_CONNECTOR': t.path('connector'), **env})


def names(t):
    try:
        return sorted(n['name'] for n in json.loads(t.run('nodes', '--json').out) if n['state'] == 'up')
    except ValueError:
        return []


def left(t):
    """What the nodes have left in their folder, and helpers in homes."""
    found = os.listdir(t.folder) if os.path.isdir(t.folder) else []
    for host in os.listdir(t.path('homes')):
        found += [f'{host}: {name}' for name in os.listdir(t.path(f'homes/{host}'))]
    return found


def over(t, name, quietly=True):
    r = t.run('down')
    t.check(f'{name}: down', r.status == 0 and (r.err == '' or not quietly), r)
    t.check(f'{name}: nothing is left', left(t) == [], (left(t), [x for x in os.walk(t.path('homes'))]))


def plain_list(t):
    r = up(t, STORM_HOSTS='a,b,c,d')
    t.check('STORM_HOSTS', r.status == 0 and '4 nodes' in r.out, r)
    t.check('all of them', names(t) == HOSTS, names(t))
    r = t.run('run', '-N', '4', 'sh', '-c', 'echo $STORM_NODE')
    t.check('they work', sorted(r.out.split()) == HOSTS and r.status == 0, r)
    r = up(t, STORM_HOSTS='a,b,c,d')
    t.check('it runs already', r.status == 0 and 'runs already' in r.out, r)
    r = up(t, STORM_HOSTS='a,b,e')
    t.check('but not with others', r.status == 125 and r.is_one_line('without e', 'storm add'), r)
    r = t.run('up', '--local', '4')
    t.check('nor with virtual nodes', r.status == 125 and r.is_one_line('runs already'), r)
    over(t, 'STORM_HOSTS')


def pbs(t):
    t.write('nodefile', 'a\na\nb\nb\n')
    r = up(t, PBS_NODEFILE=t.path('nodefile'))
    t.check('PBS', r.status == 0 and '2 nodes' in r.out and names(t) == ['a', 'b'], r)
    over(t, 'PBS')
    r = t.run('up', '--local', '1', env={'PBS_NODEFILE': t.path('nodefile')})
    t.check('virtual nodes all the same, if one says so', r.status == 0 and '1 node,' in r.out, r)
    r = up(t, STORM_HOSTS='a')
    t.check('which are no hosts', r.status == 125 and r.is_one_line('virtual nodes'), r)
    t.run('down')


def crash(t):
    with open(os.path.join(t.home, 'local', 'lock')) as f:
        sweeper, watcher = f.read().split()
    subprocess.run(['kill', '-9', sweeper, watcher], check=True)
    t.until(lambda: not os.path.exists(f'/proc/{watcher}'), 60)


def known(t):
    """Where something may be left, as the desk has it."""
    try:
        with open(f'{t.home}/local/berths') as f:
            return [line.split()[1] for line in f if line.strip() and line[0] != '#']
    except FileNotFoundError:
        return []


def impatient(t):
    """After a crash, storm down does the tender's work; whoever does not wait for it has not done it."""
    t.check('up', up(t, STORM_HOSTS='a,b').status == 0)
    crash(t)
    os.mkfifo(t.path('slow-a'))
    os.chmod(t.path('slow-a'), 0o666)
    p = t.start('down')
    t.check('a host that does not answer', t.until(lambda: os.path.exists(t.path('asked-a')), 60))
    p.send_signal(signal.SIGINT)
    r = t.finish(p)
    t.check('is not waited for', r.status == 1 and 'not waited for' in r.err, r)
    t.check('and stays known', 'a' in known(t), known(t))
    os.unlink(t.path('slow-a'))
    os.unlink(t.path('asked-a'))
    with open(f'{t.home}/local/tending', 'rb+') as f:
        words = f.read()
        f.truncate(0)
    r = t.run('down')
    t.check('so it does if the way to it cannot be read', r.status == 1 and 'cannot be read' in r.err and 'a' in known(t), r)
    with open(f'{t.home}/local/tending', 'wb') as f:
        f.write(words)
    over(t, 'an impatient end')


def left_behind(t):
    """A cluster without hosts, where one with hosts has left some."""
    t.check('up', up(t, STORM_HOSTS='a,b').status == 0)
    t.write('broken-a', 'not today')
    t.check('one is left', t.run('down').status == 1 and known(t) == ['a'], known(t))
    r = t.run('up', '--local', '1')
    t.check('virtual nodes', r.status == 0, r)
    r = t.run('down')
    t.check('their end names it', r.status == 1 and 'storm: a: it could not be ended' in r.err and known(t) == ['a'], r)
    os.unlink(t.path('broken-a'))
    t.run('up', '--local', '1')
    over(t, 'one that was left behind')


def desk_dies(t):
    """The watcher is killed, and its sweeper: nobody is left who knows the hosts but a file."""
    r = up(t, STORM_HOSTS='a,b')
    t.check('two hosts', r.status == 0, r)
    with open(os.path.join(t.home, 'local', 'lock')) as f:
        sweeper, watcher = f.read().split()
    subprocess.run(['kill', '-9', sweeper, watcher], check=True)
    t.check('their nodes are there', len(os.listdir(os.path.join(t.folder, 'local'))) == 3, left(t))
    over(t, 'a crash', quietly=False)   # it may still be dying


def former_life(t):
    r = up(t, STORM_HOSTS='a,b')
    with open(os.path.join(t.home, 'local', 'lock')) as f:
        sweeper, watcher = f.read().split()
    subprocess.run(['kill', '-9', sweeper, watcher], check=True)
    t.until(lambda: not os.path.exists(f'/proc/{watcher}'), 60)
    r = up(t, STORM_HOSTS='b,c')
    t.check('after a crash it comes up with others', r.status == 0 and names(t) == ['b', 'c'], (r, names(t)))
    t.check('what was left of a is ended', t.until(lambda: 'a: .cache' not in left(t), 60), left(t))
    over(t, 'a former life')


def tender_dies(t):
    t.check('up', up(t, STORM_HOSTS='a,b').status == 0)
    before = t.daemon('storm-tender')
    os.kill(before, 9)
    t.check('another tender comes', t.until(lambda: t.daemon('storm-tender') not in (None, before), 60))
    t.write('broken-c', 'not today')
    r = t.run('add', 'c')
    t.check('it has work to do', r.status == 1 and r.is_one_line('c', 'not today'), r)
    os.unlink(t.path('broken-c'))
    t.check('and does it until it is done', t.until(lambda: names(t) == ['a', 'b', 'c'], 90), names(t))
    r = t.run('remove', 'a')
    t.check('also for those who were there before it', r.status == 0 and names(t) == ['b', 'c'], r)
    over(t, 'a dead tender')


def comes_again(t):
    """One that could not be ended when it was to leave, and comes again."""
    t.check('up', up(t, STORM_HOSTS='a,b,c').status == 0)
    t.write('broken-b', 'not today')
    r = t.run('remove', 'b')
    t.check('one that cannot be ended is named', r.status == 1 and 'storm: b: not today' in r.err and names(t) == ['a', 'c'], r)
    os.unlink(t.path('broken-b'))
    t.check('another goes', t.run('remove', 'a').status == 0)
    r = t.run('add', 'b')
    t.check('it comes again', r.status == 0 and t.until(lambda: names(t) == ['b', 'c'], 60), (r, names(t)))
    found = sorted(os.listdir(os.path.join(t.folder, 'local')))
    t.check('what it was before is ended', found == ['1', '2', 'bin'], found)
    over(t, 'one that came again')


def forsaken(t):
    """One that could not be ended is not forgotten, whoever comes after it."""
    t.check('up', up(t, STORM_HOSTS='a,b').status == 0)
    t.write('broken-b', 'not today')
    t.check('one cannot be ended', t.run('remove', 'b').status == 1)
    r = t.run('add', 'c')
    t.check('another comes', r.status == 0 and t.until(lambda: names(t) == ['a', 'c'], 60), r)
    with open(f'{t.home}/local/berths') as f:
        lines = f.read().split('\n')
    t.check('under another number', '1 b' in lines and '2 c' in lines, lines)
    r = t.run('down')
    t.check('it is named at the end', r.status == 1 and 'storm: b: it could not be ended: not today' in r.err, r)
    os.unlink(t.path('broken-b'))
    over(t, 'one that was forsaken')


def old_news(t):
    """What became of a host before it was added or removed says nothing of now."""
    t.check('up', up(t, STORM_HOSTS='a').status == 0)
    t.write('broken-b', 'not today')
    r = t.run('add', 'b')
    t.check('one that cannot be reached', r.status == 1 and r.is_one_line('b', 'not today'), r)
    r = t.run('remove', 'b')
    t.check('leaves, as nothing of ours is there', r.status == 0 and r.err == '', r)
    t.write('broken-b', 'nor tomorrow')
    r = t.run('add', 'b')
    t.check('it is tried anew when it is added again', r.status == 1 and r.is_one_line('b', 'nor tomorrow'), r)
    t.run('remove', 'b')
    os.unlink(t.path('broken-b'))
    over(t, 'old news')


def elsewhere(t):
    """What is left was in another folder, or had a number that there is no more: it is ended first, or nothing is begun."""
    t.check('up', up(t, '--max-nodes', '9', STORM_HOSTS='a,b,c').status == 0)
    t.write('broken-c', 'not today')
    t.check('one is left', t.run('down').status == 1 and known(t) == ['c'], known(t))
    r = up(t, '--max-nodes', '1', STORM_HOSTS='a')
    t.check('it must be ended before there is no such number', r.status == 125 and 'storm: c: ' in r.err and known(t) == ['c'], r)
    before, t.folder = t.folder, t.path('others')
    r = up(t, STORM_HOSTS='a')
    t.check('and before all is elsewhere', r.status == 125 and 'storm: c: ' in r.err and known(t) == ['c'], r)
    os.unlink(t.path('broken-c'))
    r = up(t, STORM_HOSTS='a')
    t.check('which it is then', r.status == 0 and not os.path.exists(os.path.join(before, 'local')), r)
    over(t, 'elsewhere')
    t.folder = before


def described(t):
    t.write('spec', 'a,b switch=s1\nc switch=s2\n')
    r = up(t, '--nodespec', t.path('spec'), STORM_HOSTS='a,b,c')
    t.check('hosts are described by their names', r.status == 0 and '3 nodes' in r.out, r)
    over(t, 'a node file')
    r = up(t, '--launchers', 'process', STORM_HOSTS='a')
    t.check('no launchers of processes', r.status == 2 and r.is_one_line('--launchers process'), r)


def no_programs(t):
    t.check('up', up(t, STORM_HOSTS='a').status == 0)
    program = f'{t.home}/local/bin/storm'
    os.rename(program, program + '.away')
    r = t.run('add', 'b')
    t.check('what cannot be sent is said', r.status == 1 and r.is_one_line('b', 'cannot be had'), r)
    os.rename(program + '.away', program)
    t.check('and tried again', t.until(lambda: names(t) == ['a', 'b'], 90), names(t))
    over(t, 'no programs')


def deaf(t):
    """A node that stands still, though its watcher lives, is not waited for for ever."""
    t.check('up', up(t, STORM_HOSTS='a,b').status == 0)
    with open(os.path.join(t.folder, 'local', '0', 'cluster')) as f:
        watcher = dict(line.rstrip('\n').split(' ', 1) for line in f)['watcher']
    pids = subprocess.run(['ps', '-o', 'pid=,comm=', '--ppid', watcher], capture_output=True, text=True).stdout.split('\n')
    node = next(int(line.split()[0]) for line in pids if line and line.split()[1] == 'storm-n0')
    os.kill(node, signal.SIGSTOP)
    t.check('it is missed', t.until(lambda: names(t) == ['b'], 60), names(t))
    t.check('and started anew', t.until(lambda: names(t) == ['a', 'b'], 150), names(t))
    over(t, 'one that was deaf')


def told_meanwhile(t):
    """Whoever stays with a cluster hears that it is to end also before it is up."""
    os.mkfifo(t.path('slow-a'))
    os.chmod(t.path('slow-a'), 0o666)
    p = t.start('up', '--foreground', '--interface', '127.0.0.1', '--node-folder', t.folder, '--connect-timeout', '60s',
                env={'STORM_CONNECTOR': t.path('connector'), 'STORM_HOSTS': 'a,b'})
    t.check('it waits', t.until(lambda: os.path.exists(t.path('asked-a')), 60))
    p.send_signal(signal.SIGTERM)
    os.unlink(t.path('slow-a'))
    r = t.finish(p)
    t.check('it is told to end', r.status == 125 and 'told to end' in r.err and not os.path.exists(f'{t.home}/local/lock'), r)
    over(t, 'told meanwhile')


def trap(t):
    """Somebody else was there before, with a program of the name of ours: it is never run, nor is anything of his removed."""
    if os.geteuid() != 0:
        t.skip("somebody else's folder", 'only root can make one')
        return
    theirs = os.path.join(t.folder, 'local', 'bin')
    os.makedirs(theirs)
    with open(os.path.join(theirs, 'storm'), 'w') as f:
        f.write(f'#!/bin/sh\ntouch {t.home}/trapped\n')
    os.chmod(os.path.join(theirs, 'storm'), 0o755)
    for path in (theirs, os.path.dirname(theirs), t.folder):
        os.chown(path, STRANGER, STRANGER)
    r = up(t, STORM_HOSTS='a')
    t.check("somebody else's folder is not used", r.status == 125 and "somebody else's" in r.err, r)
    r = t.run('add', 'b')
    t.check('not for those who come later either', r.status == 1 and "somebody else's" in r.err, r)
    r = t.run('remove', 'b')
    t.check('who leave again', r.status == 0, r)
    r = t.run('down')
    t.check('down', r.status == 0 and r.err == '', r)
    t.check('their program was not run', not os.path.exists(f'{t.home}/trapped'))
    r = t.run('berth', '--end', os.path.join(t.folder, 'local', '0'))
    t.check('a node is not ended there', r.status == 1 and "somebody else's" in r.err, r)
    t.check('nor anything removed', os.path.exists(os.path.join(theirs, 'storm')))
    shutil.rmtree(t.folder)
    t.check('and nothing is left', left(t) == [], left(t))


def slurm(t):
    if t.user:
        t.skip('Slurm', 'it is started as root')
        return
    t.write('inside', f"""#!/bin/sh
{t.storm} up --interface 127.0.0.1 --node-folder {t.folder} --connect-timeout 60s &&
{t.storm} run -N 4 sh -c 'echo $STORM_NODE' && {t.storm} nodes --json >{t.work}/seen && {t.storm} down
""", 0o755)
    env = {**t.env, 'PEERS_PORT': str(23000 + os.getpid() % 100 * 10)}
    p = subprocess.Popen([SLURM, '-n', '4', 'salloc', '-Q', '-N', '4', t.path('inside')], env=env, cwd=t.work,
                         stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    r = t.finish(p)
    if r.status == 77:
        t.skip('Slurm', r.err.strip())
        return
    t.check('inside an allocation of Slurm', r.status == 0 and '4 nodes' in r.out and 'is down' in r.out, r)
    t.check('a program on all of its nodes', sorted(line for line in r.out.splitlines() if len(line) == 2) ==
            ['p1', 'p2', 'p3', 'p4'], r)
    seen = json.loads(t.read('seen') or '[]')
    t.check('with as many processors as it has', {n['pes'] for n in seen} == {1}, seen)
    t.check('nothing is left', left(t) == [], left(t))


if __name__ == '__main__':
    play(prepare, plain_list, pbs, desk_dies, impatient, left_behind, former_life, tender_dies, comes_again, forsaken, old_news, elsewhere, described, no_programs, deaf, told_meanwhile, trap, slurm, up=None)
