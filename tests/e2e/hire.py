#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A master that hires its workers (docs/wodi.md): it grows and shrinks, hosts, workers, the server and the whole program are killed, and each result
comes once. Speaks TAP."""
import errno
import json
import os
import shutil
import signal
import subprocess
import sys

from harness import play

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, '..', '..')
BUILT = os.path.dirname(os.path.abspath(os.environ['STORM']))
PYTHON = next(p for p in ('/usr/bin/python3', sys.executable) if os.path.exists(p))     # that any user may execute
SUM = 'cycle 3: 229524022577525000'


def jobs(t):
    return json.loads(t.run('ps', '--json').out)


def hosts(t):
    """Those that are there, as numbers of jobs."""
    return [j['id'] for j in jobs(t) if j['name'].startswith('wodi-') and j['state'] == 'running']


def servers(t):
    return t.running('storm-wodi')


def worker_on(t, host):
    """Its process; the number that it knows itself by may be another, in a namespace."""
    for pid in t.ours('hirer.py worker'):
        with open(f'/proc/{pid}/environ', 'rb') as f:
            if f'STORM_WODI_HOST={host}'.encode() in f.read().split(b'\0'):
                return pid
    return None


def nothing_left(t):
    t.check('nothing is left', t.until(lambda: not jobs(t) and not servers(t) and not t.ours('hirer.py')), jobs(t))
    t.check('no folder either', not [n for n in os.listdir(t.work) if n.startswith('storm-wodi-')], os.listdir(t.work))


class Master:
    """A job with a plan; its files are in the folder for work, which is empty before."""

    def __init__(self, t, *cycles, run=(), fresh=True, env=None, **options):
        self.t = t
        for name in os.listdir(t.work) if fresh else []:
            path = t.path(name)
            shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)
        program = t.write('hirer.py', open(os.path.join(HERE, 'hirer.py')).read())
        t.write('storm.py', open(os.path.join(ROOT, 'python', 'storm.py')).read())
        plan = json.dumps({'options': options, 'cycles': cycles})
        self.p = t.start('run', *run, PYTHON, program, plan, env={**surroundings(t), **(env or {})})

    def began(self):
        return [line.split() for line in self.t.read('began').splitlines()]

    def hosts_are(self, count):
        self.t.check(f'{count} hosts', self.t.until(lambda: len(hosts(self.t)) == count), jobs(self.t))

    def steps_begin(self, count):
        self.t.check(f'{count} steps begin', self.t.until(lambda: len(self.began()) >= count), self.began())

    def open(self, *gates):
        for gate in gates:
            self.t.write(gate, '')

    def ends(self, *lines):
        r = self.t.finish(self.p)
        self.t.check('results, each once', r.status == 0 and r.out.splitlines() == [*lines, 'done'], r)
        nothing_left(self.t)
        return r


def surroundings(t):
    """For Python. The library is copied to where any user may read it; the server is beside it, with the other programs."""
    library = os.path.join(t.bin, 'libstorm.so')
    if not os.path.exists(library):
        shutil.copy(os.path.join(BUILT, 'libstorm.so'), library)
    return {'STORM_LIB': library, 'PYTHONDONTWRITEBYTECODE': '1', 'PYTHONPATH': t.work}


def loads(t):
    """Python loads the library; one that is instrumented it cannot."""
    path = os.path.join(BUILT, 'libstorm.so')
    symbols = subprocess.run(['nm', path], capture_output=True).stdout
    if os.path.exists(path) and b'__asan' not in symbols:
        return True
    t.skip('in Python', 'this build is instrumented')
    return False


def example(t):
    program = os.path.join(t.bin, 'wodi')
    shutil.copy(os.path.join(BUILT, 'wodi'), program)
    r = t.run('run', program)
    t.check('it needs nothing but itself', r.status == 0 and SUM in r.out.splitlines(), r)
    nothing_left(t)
    r = t.finish(t.spawn(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
    t.check('outside of a job there is no server', r.status == 1 and 'No such file' in r.err, r)
    if not loads(t):
        return
    script = t.write('example.py', open(os.path.join(ROOT, 'examples', 'wodi.py')).read())
    t.write('storm.py', open(os.path.join(ROOT, 'python', 'storm.py')).read())
    r = t.run('run', PYTHON, script, env=surroundings(t))
    t.check('nor does it in Python', r.status == 0 and SUM in r.out.splitlines(), r)
    nothing_left(t)


def by_hand(t):
    """The server as a program of its own, with two classes."""
    server = os.path.join(t.bin, 'storm-wodi')
    worker = t.write('worker.sh', '#!/bin/sh\necho "$STORM_WODI_CLASS ${STORM_WODI%%:*}" >>hired\nsleep 1000\n', 0o755)
    p = t.start('run', server, '--folder', t.path('by-hand'), '--hire', '1:1:0:', '--hire', '2:3:1:PROCESSORS>=1', '--', worker)
    t.check('the least of each', t.until(lambda: sorted(t.read('hired').splitlines()) == ['0 tcp', '1 tcp', '1 tcp']), t.read('hired'))
    p.send_signal(signal.SIGTERM)
    t.finish(p)
    nothing_left(t)
    for wrong in (['--hire', '2:1:0:', '--', worker], ['--hire', '1:1:', '--', worker], ['--hire', '1:1:1:'], ['--', worker]):
        r = t.finish(t.spawn(server, '--folder', t.path('by-hand'), *wrong, stderr=subprocess.PIPE))
        t.check(f'{wrong[:2]} is refused', r.status == 2 and 'usage' in r.err, r)
    r = t.finish(t.spawn(server, '--folder', t.path('by-hand'), '--hire', '1:1:1:', '--', worker, stderr=subprocess.PIPE))
    t.check('outside of a job nobody is hired', r.status == 3 and 'only a process of a job' in r.err, r)


def grows_and_shrinks(t):
    m = Master(t, ['a'] * 4, ['b'], ['c'] * 3, workers=4)
    m.hosts_are(4)
    m.steps_begin(4)
    t.check('each on a host of its own', len({b[1] for b in m.began()}) == 4, m.began())
    m.open('a')
    m.steps_begin(5)
    m.hosts_are(1)
    m.open('b')
    m.hosts_are(3)
    m.open('c')
    m.ends('cycle 1: [1, 2, 3, 4]', 'cycle 2: [1]', 'cycle 3: [1, 2, 3]')


def within_bounds(t):
    m = Master(t, ['a'] * 9, ['b'], workers=3, least=2)
    m.hosts_are(3)
    m.open('a')
    m.steps_begin(10)
    m.hosts_are(2)
    m.open('b')
    m.ends(f'cycle 1: {list(range(1, 10))}', 'cycle 2: [1]')


def takes_what_there_is(t):
    m = Master(t, ['a'] * 20)
    m.hosts_are(5)
    m.open('a')
    m.ends(f'cycle 1: {list(range(1, 21))}')


def no_more_than_it_has_places_for(t):
    """A server has room for so many workers, whatever its master says: it does not ask for hosts that it would only give back."""
    server = t.write(os.path.join(t.bin, 'few'), f'#!/bin/sh\nexec {os.path.join(t.bin, "storm-wodi")} --workers 2 "$@"\n', 0o755)
    m = Master(t, ['a'] * 4, env={'STORM_WODI_SERVER': server}, workers=4)
    m.hosts_are(2)
    m.steps_begin(2)
    t.check('nor are more asked for', t.until(lambda: len(jobs(t)) == 5), jobs(t))
    first = min(j['id'] for j in jobs(t))
    m.open('a')
    m.ends('cycle 1: [1, 2, 3, 4]')
    after = int(t.run('submit', 'true').out)
    t.check('nor were they', after == first + 5, (first, after))


def messages_are_the_programs(t):
    """Its server is of the same job, and asks for hosts: it takes nothing that is sent to the program."""
    program = t.write('both.py', BOTH)
    t.write('storm.py', open(os.path.join(ROOT, 'python', 'storm.py')).read())
    r = t.run('run', '-n', '2', PYTHON, program, env=surroundings(t))
    t.check('it is the program that hears them', r.status == 0 and r.out.splitlines() == ["b'hello'"], r)
    nothing_left(t)


BOTH = '''
import os, sys, time
import storm
if sys.argv[1:] == ['worker']:
    storm.wodi_worker(bytes.upper)
elif os.environ['STORM_RANK'] == '0':
    with storm.Carmi() as carmi, storm.WodiMaster(worker=[sys.executable, os.path.abspath(__file__), 'worker']) as master:
        list(master.map([b'a']))
        open('up', 'w').close()
        m = carmi.receive(timeout=30)
        print(m and m.data)
else:
    with storm.Carmi() as carmi:
        while not os.path.exists('up'):
            time.sleep(0.01)
        carmi.wait(carmi.send(int(os.environ['STORM_JOB_ID']), b'hello'))
'''


def host_is_lost(t):
    m = Master(t, ['a'] * 3, workers=3)
    m.steps_begin(3)
    host = m.began()[0][1]
    r = t.run('kill', host)
    t.check('one is taken away', r.status == 0, r)
    m.steps_begin(4)
    t.check('another has come', host not in (b[1] for b in m.began()[3:]), m.began())
    m.hosts_are(3)
    m.open('a')
    m.ends('cycle 1: [1, 2, 3]')


def hosts_are_lost(t):
    """So many, and so early, that workers which end for nothing would have been given up."""
    m = Master(t, ['a'] * 4, workers=4)
    for total in (4, 8, 12):
        m.steps_begin(total)
        if total < 12:
            t.run('kill', *{b[1] for b in m.began()[-4:]})
    m.open('a')
    m.ends('cycle 1: [1, 2, 3, 4]')


def worker_dies(t):
    m = Master(t, ['a'] * 2, workers=2)
    m.steps_begin(2)
    host = m.began()[0][1]
    os.kill(worker_on(t, host), signal.SIGKILL)
    m.steps_begin(3)
    t.check('it is started again where it was', m.began()[2][1] == host, m.began())
    m.open('a')
    m.ends('cycle 1: [1, 2]')


def host_is_suspended(t):
    m = Master(t, ['a'], ['b'], workers=2, least=2)
    m.steps_begin(1)
    m.hosts_are(2)
    host = m.began()[0][1]
    r = t.run('suspend', host)
    t.check('it stands still', r.status == 0, r)
    m.steps_begin(2)
    t.check('another does its step', m.began()[1][1] != host, m.began())
    m.open('a')
    m.steps_begin(3)
    t.check('its result counts', m.began()[2][1] != host, m.began())
    r = t.run('resume', host)
    t.check('it goes on', r.status == 0, r)
    m.open('b')
    m.ends('cycle 1: [1]', 'cycle 2: [1]')


def server_is_killed(t):
    m = Master(t, ['a'] * 3, workers=3)
    m.steps_begin(3)
    before = {b[1] for b in m.began()}
    server, = servers(t)
    os.kill(server, signal.SIGKILL)
    m.steps_begin(6)
    t.check('it has new hosts', not before & {b[1] for b in m.began()[3:]}, m.began())
    m.hosts_are(3)
    m.open('a')
    m.ends('cycle 1: [1, 2, 3]')


def server_is_killed_at_once(t):
    """Before it has said where it is; twice, then always."""
    server = os.path.join(t.bin, 'short-lived')
    for deaths, lines in (('mkdir one || mkdir two', ['cycle 1: [1]']), ('echo >>lives', [f'error {errno.EIO}'])):
        with open(server, 'w') as f:
            f.write(f'#!/bin/sh\nif {{ {deaths}; }} 2>/dev/null; then kill -9 $$; fi\nexec {t.bin}/storm-wodi "$@"\n')
        os.chmod(server, 0o755)
        m = Master(t, ['a'], env={'STORM_WODI_SERVER': server})
        m.open('a')
        m.ends(*lines)
    t.check('twenty times again, no more', t.read('lives').count('\n') == 21, t.read('lives'))


def program_is_killed(t):
    folder = t.path('kept')
    m = Master(t, ['a'], ['b'] * 2, workers=2, folder=folder)
    m.open('a')
    m.steps_begin(3)
    job = next(j['id'] for j in jobs(t) if not j['name'].startswith('wodi-'))
    t.run('kill', job)
    t.finish(m.p)
    nothing_left(t)
    m = Master(t, ['a'], ['b'] * 2, fresh=False, workers=2, folder=folder)
    m.open('b')
    m.ends('cycle 1: again', 'cycle 2: [1, 2]')


def workers_that_end_at_once(t):
    m = Master(t, ['a'], worker=['/bin/false'], workers=2)
    r = m.ends(f'error {errno.ECHILD}')
    t.check('it is told', 'workers end as soon as they start, the last with status 1' in r.err, r)
    m = Master(t, ['a'], worker=['./nowhere'])
    r = m.ends(f'error {errno.ECHILD}')
    t.check('which could not be executed', './nowhere' in r.err and 'No such file' in r.err, r)


def no_such_hosts(t):
    m = Master(t, ['a'], expression='MEMORY>=900TB')
    r = m.ends(f'error {errno.ECHILD}')
    t.check('no node is like that', 'MEMORY>=900TB' in r.err, r)
    m = Master(t, ['a'], expression='MEMORY>>')
    r = m.ends(f'error {errno.ECHILD}')
    t.check('nor like nonsense', 'MEMORY>>' in r.err, r)


SCENES = (grows_and_shrinks, within_bounds, takes_what_there_is, no_more_than_it_has_places_for, messages_are_the_programs, host_is_lost,
          hosts_are_lost, worker_dies, host_is_suspended, server_is_killed, server_is_killed_at_once, program_is_killed,
          workers_that_end_at_once, no_such_hosts)


def in_python(scene):
    def guarded(t):
        if loads(t):
            scene(t)
    guarded.__name__ = scene.__name__
    return guarded


play(example, by_hand, *map(in_python, SCENES))
