# SPDX-License-Identifier: MIT
"""A program of a job that grows and shrinks by python/storm.py; for carmi.py. Each line is what was tried and `yes`, or what came
instead."""
import errno
import select
import signal
import sys

import storm
from storm import CarmiClass, CarmiKind

TAG = -7


def say(what, holds, why=''):
    print(f'{what}: {"yes" if holds else why or "no"}'.replace('\n', ' '), flush=True)


def raises(kind, call, *arguments, **more):
    """What is raised; None if it is not, or something else."""
    try:
        call(*arguments, **more)
    except kind as error:
        return error
    return None


def is_readable(carmi, seconds=None):
    return select.select([carmi], [], [], seconds)[0] == [carmi]


def classes(c):
    m = c.wait(c.define_class('any', tag=TAG))
    say('a class is defined', (m.kind, m.tag, m.success, m.last) == (CarmiKind.CLASS_DEFINED, TAG, True, True), m)
    c.wait(c.define_class('large', 'PROCESSORS>=1', 1))
    m = c.wait(c.get_class_definitions())
    say('classes have names', m.classes == (CarmiClass('any'), CarmiClass('large', 'PROCESSORS>=1', 1)), m)
    m = c.wait(c.remove_class('large'))
    say('one is removed', m.kind == CarmiKind.CLASS_REMOVED, m)


def grows(c):
    say('without a message it is not readable', c.next() is None and not is_readable(c, 0))
    request = c.addhosts('any', 3, 2, tag=TAG)
    groups = []
    while not groups or not groups[-1].last:
        is_readable(c)
        groups += filter(None, [c.next()])
    hosts = [h for m in groups for h in m.hosts]
    say('two hosts and one, by select', [len(m.hosts) for m in groups] == [2, 1] and len(set(hosts)) == 3, groups)
    say('numbers and tags', all((m.request, m.tag, m.kind) == (request, TAG, CarmiKind.HOSTS_ADDED) for m in groups), groups)
    m = c.wait(c.config())
    say('they are listed', sorted(m.hosts) == sorted(hosts), m)
    m = c.wait(c.get_host_info(hosts[0]))
    say('what one is like', m.attributes['CLASS'] == 'any' and m.attributes['STATE'] == 'running', m)
    return hosts


def spawns(c, hosts):
    started, ended = c.messages(c.host_spawn(['/bin/sh', '-c', 'echo "$0 $1"; exit 7', 'a word', 'ü'], hosts[1]))
    say('a process starts', (started.kind, started.hosts) == (CarmiKind.SPAWNED, (hosts[1],)) and started.process > 0, started)
    say('and ends', (ended.kind, ended.status, ended.process) == (CarmiKind.EXITED, 7, started.process), ended)
    say('with its time', ended.cpu_ns > 0, ended)
    request = c.class_spawn('true', 'any')
    say('a word alone', [m.status for m in c.messages(request)] == [0, 0])
    request = c.host_spawn(['sleep', '1000'], hosts[2])
    started = c.wait(request)
    m = c.wait(c.process_info())
    say('it is listed', [(p.id, p.host, p.executable) for p in m.processes] == [(started.process, hosts[2], 'sleep')], m)
    return request


def shrinks(c, hosts, sleeper):
    deleted = c.delhosts(hosts[1:])
    ended = c.wait(sleeper)
    say('what runs there ends', ended.kind == CarmiKind.EXITED and ended.last, ended)
    m = c.wait(deleted)
    say('hosts are given back', m.kind == CarmiKind.HOSTS_DELETED and sorted(m.hosts) == sorted(hosts[1:]), m)
    say('one stays', c.wait(c.config()).hosts == (hosts[0],))


def kept(c):
    """Messages of others, while one is waited for."""
    other = c.get_class_definitions()
    c.wait(c.config())
    say('what is kept is readable', is_readable(c, 0))
    m = c.next()
    say('it comes next', m and m.request == other, m)


def notices(c):
    lost = c.delete_notify()
    say('none in time', c.wait(lost, 0.01) is None and c.receive(0) is None)
    others = [c.add_notify('any'), c.suspend_notify([1]), c.resume_notify()]
    for request in [lost, *others]:
        m = c.wait(c.cancel_request(request))
        say('cancelled', m.kind == CarmiKind.CANCELLED, m)


def errors(c, hosts):
    e = raises(storm.CarmiError, c.wait, c.addhosts('what', 1, tag=TAG))
    say('an unknown class', e and e.errno == errno.EINVAL and 'no such class' in str(e) and e.message.tag == TAG, repr(e))
    e = raises(storm.CarmiError, c.wait, c.delhosts([hosts[0], hosts[1]]))
    say('in part', e and e.message.hosts == (hosts[0],), repr(e))
    e = raises(storm.CarmiError, c.wait, 12345)
    say('an unknown request', e and e.errno == errno.ESRCH and e.message is None, repr(e))
    request = c.addhosts('what', 1)
    m = c.receive()
    say('as a message it is not raised', (m.request, m.success, m.error) == (request, False, errno.EINVAL), m)
    host = c.wait(c.addhosts('any', 1)).hosts[0]
    e = raises(storm.CarmiError, list, c.messages(c.host_spawn('/nowhere/to/be/found', host)))
    say('a program that is not there', e and e.errno == errno.ENOENT, repr(e))


def messages(c):
    """With itself, and with a process that it spawns: this program, as a child."""
    say('who it is', c.self_id > 0 and c.parent == 0)
    sent = c.wait(c.send(c.self_id, b'a\0b', tag=TAG))
    say('it is sent', (sent.kind, sent.process, sent.count) == (CarmiKind.SENT, c.self_id, 1), sent)
    m = c.receive()
    say('it comes', (m.kind, m.process, m.tag, m.data, m.request) == (CarmiKind.DATA, c.self_id, TAG, b'a\0b', 0), m)
    host = c.wait(c.addhosts('any', 1)).hosts[0]
    life = c.host_spawn([sys.executable, __file__, 'child'], host)
    child = c.wait(life).process
    c.wait(c.send(child, b'word', tag=3))
    m = c.receive()
    say('a child echoes, and knows its parent', (m.process, m.tag, m.data) == (child, 3, f'word {c.self_id}'.encode()), m)
    say('both are listed', {p.id for p in c.wait(c.peers()).processes} == {c.self_id, child})
    m = c.wait(c.broadcast(b'', 'any', tag=4))
    say('a class is told', (m.kind, m.count) == (CarmiKind.SENT, 1), m)
    say('the child ends', c.wait(life).status == 0)
    e = raises(storm.CarmiError, c.wait, c.send(child, b'word'))
    say('then there is none', e and e.errno == errno.ESRCH, repr(e))
    e = raises(storm.CarmiError, c.send, child, bytes((16 << 20) + 1))
    say('none is so large', e and e.errno == errno.EMSGSIZE, repr(e))


def child():
    with storm.Carmi() as c:
        while (m := c.receive()).tag != 4 or m.kind != CarmiKind.DATA:
            if m.kind == CarmiKind.DATA:
                c.send(m.process, m.data + f' {c.parent}'.encode(), tag=m.tag)


def mistakes(c):
    say('a number that does not fit', raises(OverflowError, c.addhosts, 'any', 2**32 + 1))
    say('nor does a tag', raises(OverflowError, c.config, tag=2**31))
    say('a host that does not fit', raises(OverflowError, c.delhosts, [-1]))
    say('a NUL within', raises(ValueError, c.addhosts, 'any\0', 1))
    say('no words', raises(ValueError, c.class_spawn, [], 'any'))
    say('nothing was asked', c.next() is None)


def interrupted(c):
    """Python hears of a signal while it waits for ever."""
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
    e = raises(KeyboardInterrupt, c.receive)
    signal.setitimer(signal.ITIMER_REAL, 0)
    say('a signal', e is not None)


def main():
    with storm.Carmi() as c:
        classes(c)
        hosts = grows(c)
        shrinks(c, hosts, spawns(c, hosts))
        kept(c)
        notices(c)
        errors(c, hosts)
        messages(c)
        mistakes(c)
        interrupted(c)
    say('closed', raises(ValueError, c.fileno) and c.close() is None)
    print('the end: yes')


sys.exit(child() if 'child' in sys.argv else main())
