#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Jobs that start after others, or not before a time; also when the manager is killed meanwhile. Speaks TAP."""
import json
import os
import signal

from harness import play


def submit(t, *args):
    """The number of the job, of the first of an array; None if it was refused."""
    r = t.run('submit', *args)
    return int(r.out.split('-')[0]) if r.status == 0 else None


def state(t, job):
    r = t.run('show', '--json', job)
    try:
        said = json.loads(r.out)
    except ValueError:
        return ''
    return (said[0] if isinstance(said, list) else said).get('state', '')


def gate(t, name):
    """A job that ends with the status that is in the file `name`, when there is one."""
    return submit(t, '--name', name, 'sh', '-c', f'while [ ! -s {name} ]; do sleep 0.05; done; exit $(cat {name})')


def opened(t, name, status):
    t.write(f'{name}.new', str(status))
    os.rename(t.path(f'{name}.new'), t.path(name))


def becomes(t, job, what):
    return t.until(lambda: state(t, job) == what)


def ends(t):
    well, badly = gate(t, 'well'), gate(t, 'badly')
    after = {kind: submit(t, f'--{kind}', well, 'true') for kind in ('after', 'after-any', 'after-ok', 'after-not-ok')}
    other = {kind: submit(t, f'--{kind}', badly, 'true') for kind in ('after', 'after-ok', 'after-not-ok')}
    both = submit(t, '--after-ok', f'{well}', '--after-not-ok', f'{badly}', 'true')
    chain = submit(t, '--after', other['after-ok'], 'true')
    waiting = [*after.values(), *other.values(), both, chain]
    t.check('nobody starts before', all(state(t, j) == 'queued' for j in waiting))
    r = t.run('why', after['after-ok'])
    t.check('why', f'waits for job {well} to end well' in r.out, r)
    opened(t, 'well', 0)
    t.check('one has ended well: who waited for that', all(
        becomes(t, after[k], 'done') for k in ('after', 'after-any', 'after-ok')))
    t.check('who waited for its failure is ended', becomes(t, after['after-not-ok'], 'killed'))
    t.check('who waits for another, too, goes on waiting', state(t, both) == 'queued')
    opened(t, 'badly', 3)
    t.check('one has failed: who waited for that', all(
        becomes(t, other[k], 'done') for k in ('after', 'after-not-ok')) and becomes(t, both, 'done'))
    t.check('who waited for its success is ended', becomes(t, other['after-ok'], 'killed'))
    t.check('and who waited for that one starts', becomes(t, chain, 'done'))
    r = t.run('submit', '--after-ok', badly, 'true')
    t.check('after one that has failed: refused, with the reason', r.status == 125 and r.is_one_line(
        f'job {badly} has not ended well'), r)
    t.check('after one that has ended: at once', becomes(t, submit(t, '--after', badly, 'true'), 'done'))


def arrays(t):
    first = submit(t, '--array', '1-3', 'sh', '-c', 'while [ ! -e all ]; do sleep 0.05; done; [ $STORM_ARRAY_INDEX != 2 ]')
    late = submit(t, '--array', '1-40', '--after', first, 'true')
    never = submit(t, '--array', '1-40', '--after-ok', first, 'true')
    t.check('an array waits for an array', all(state(t, late + k) == 'queued' for k in (0, 39)))
    r = t.run('kill', late + 39)
    t.check('one of it can be killed meanwhile', r.status == 0 and becomes(t, late + 39, 'killed'), r)
    t.write('all', '')
    t.check('it runs when all of the other are over', all(becomes(t, late + k, 'done') for k in range(39)))
    t.check('or never', all(becomes(t, never + k, 'killed') for k in range(40)))


def times(t):
    soon, late = submit(t, '--begin', '+2s', 'true'), submit(t, '--begin', '+1h', 'true')
    r = t.run('why', late)
    t.check('a time', state(t, soon) == 'queued' and 'may start at ' in r.out, r)
    t.check('comes', becomes(t, soon, 'done') and state(t, late) == 'queued')
    t.check('who waits for it can be killed', t.run('kill', late).status == 0 and becomes(t, late, 'killed'))


def manager(t):
    """What is waited for is known to the next life of the manager."""
    first = gate(t, 'over')
    ok, bad = submit(t, '--after-ok', first, 'true'), submit(t, '--after-not-ok', first, 'true')
    soon = submit(t, '--begin', '+3s', 'true')
    os.kill(t.daemon('storm-mm'), signal.SIGKILL)
    t.check('the manager is killed: they still wait', t.until(lambda: state(t, ok) == 'queued') and
            state(t, bad) == 'queued')
    opened(t, 'over', 0)
    t.check('and start', becomes(t, ok, 'done') and becomes(t, soon, 'done'))
    t.check('or do not', becomes(t, bad, 'killed'))


def files(t):
    """Whoever has waited for a job has its output: it is in its file, all of it, however short the job was."""
    wrong = []
    for i in range(20):
        r = t.run('submit', '--wait', '-N', 2, '-o', f'whole-{i}.%n', 'sh', '-c', 'echo from $STORM_NODE')
        names = [name for name in os.listdir(t.work) if name.startswith(f'whole-{i}.')]
        if r.status != 0 or len(names) != 2 or any(t.read(name) != f'from {name.split(".")[1]}\n' for name in names):
            wrong.append((i, r.status, names))
    t.check('submit --wait: the files are whole', wrong == [], wrong)
    job = submit(t, '-o', 'large', 'head', '-c', '3000000', '/dev/zero')
    r = t.run('wait', job)
    t.check('wait: so are large ones', r.status == 0 and len(t.read('large')) == 3000000, r)
    jobs = t.run('submit', '--array', '1-10', '-o', 'of-%j', 'sh', '-c', 'echo $STORM_ARRAY_INDEX').out.strip()
    r = t.run('wait', jobs)
    t.check('and those of an array', r.status == 0 and len([n for n in os.listdir(t.work) if n.startswith('of-') and t.read(n) != '']) == 10, r)


def silent(t):
    """What ends badly without a word is written down once: the end of another job comes later, and nothing is as new."""
    job = submit(t, '-o', 'silent', 'sleep', '1000')
    t.run('kill', job)
    t.check('its file says how it ended', t.until(lambda: 'killed' in t.read('silent')))
    tallies = os.path.join(t.home, 'local', 'scribe')
    t.check('and is done with', t.until(lambda: os.listdir(tallies) == []), os.listdir(tallies))
    before = os.stat(t.path('silent')).st_mtime_ns
    seen = set()
    for i in range(5):
        t.run('submit', '--wait', '-o', f'loud-{i}', 'echo', 'loud')
        seen.update(os.listdir(tallies))
    t.check('once', os.stat(t.path('silent')).st_mtime_ns == before and job not in seen, seen)


def spoilt(t):
    """Output that cannot be written is told to whoever waits."""
    where = t.path('nowhere/out')

    def says(r, job, file):
        """A command that came late, as the machine was busy, is told to look into the log."""
        why = 'No such file' if file in r.err else 'log of the cluster'
        return r.is_one_line(f'job {job}: ', 'could not be written', why)
    r = t.run('submit', '--wait', '-o', where, 'sh', '-c', 'echo lost; exit 3')
    job = r.out.strip()
    t.check('submit --wait: which file, and why; the status is the job\'s', r.status == 3 and says(r, job, where), r)
    r = t.run('wait', job)
    t.check('wait, afterwards', r.status == 3 and r.is_one_line(f'job {job}: ', 'could not be written', 'log of the cluster'), r)
    with open(os.path.join(t.home, 'local', 'log')) as f:
        t.check('which has it', f'{where}: No such file' in f.read())
    r = t.run('submit', '--wait', '-N', 2, '-o', 'nowhere/%n', 'sh', '-c', 'echo lost')
    t.check('of several files the first', r.status == 0 and says(r, r.out.strip(), 'nowhere/n'), r)
    r = t.run('submit', '--wait', '-o', where, 'true')
    t.check('what writes nothing loses nothing', r.status == 0 and r.err == '', r)
    r = t.run('submit', '--wait', '--array', '1-5', '-o', where, 'echo', 'lost')
    t.check('an array: one line, and one for all others', r.status == 0 and len(r.err.splitlines()) == 2 and
            'could not be written' in r.err.splitlines()[0] and 'of 4 more jobs' in r.err, r)
    r = t.run('submit', '--wait', '-o', 'good', 'echo', 'kept')
    t.check('the next is written as ever', r.status == 0 and r.err == '' and t.read('good') == 'kept\n', r)


def mistakes(t):
    for args, words in ((('--after', 'x'), '--after'), (('--after', '99999'), 'job 99999'), (('--begin', 'soon'), '--begin'),
                        (('--after-ok', ''), '--after-ok'), (('--begin', '2026-02-30'), 'no time')):
        r = t.run('submit', *args, 'true')
        t.check(f'{" ".join(args)!r} is refused', r.status != 0 and r.is_one_line(words), r)


play(ends, arrays, times, manager, files, silent, spoilt, mistakes, up=('--local', '4'))
