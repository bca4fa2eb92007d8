#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""storm replay and storm ps --swf: workload files and traces on a real cluster, what ran as a trace, and that a policy decides
there as it does under storm sim. Speaks TAP."""
import csv
import gzip
import json
import os
import re
import signal

from harness import play

JOB = '{} {} -1 {} {} -1 -1 {} {} -1 1 1 1 1 1 1 -1 -1\n'   # number, arrival, run, size twice, requested time
FIELDS = ('job', 'submit', 'wait', 'run', 'allocated', 'cpu', 'memory', 'procs', 'time', 'memory_asked', 'status', 'user',
          'group', 'program', 'queue', 'partition', 'before', 'think')

# Four processors. Under each of the policies arrivals, ends and the estimates that a decision turns on are at least five units
# apart, and no two policies start the jobs in the same order.
SCALE = 20   # twenty units are a second here: five are a quarter of one
ARRIVALS = ((0, 2, 140, 175), (20, 1, 130, 165), (40, 1, 80, 205), (50, 3, 140, 155), (70, 2, 80, 205), (90, 2, 50, 115),
            (100, 1, 90, 215), (110, 1, 110, 125))   # arrival, size, run, estimate
ORDERS = {'fcfs': [1, 2, 3, 4, 5, 6, 7, 8], 'easy': [1, 2, 3, 4, 7, 8, 5, 6], 'easy-sjbf': [1, 2, 3, 4, 8, 7, 5, 6],
          'conservative': [1, 2, 3, 4, 8, 5, 6, 7]}
APART = 5
LATE = 1           # of what a job does: where nothing is later, a chain of three keeps its order
SCALE_MIN = 5      # that takes a minute


def trace(jobs, header='; MaxProcs: 4\n'):
    return header + ''.join(JOB.format(i + 1, a, run, size, size, asked) for i, (a, size, run, asked) in enumerate(jobs))


def swf(text):
    """The rows of a trace, as numbers by name."""
    rows = [line.split() for line in text.splitlines() if not line.startswith(';')]
    return [dict(zip(FIELDS, map(int, r))) for r in rows] if all(len(r) == 18 for r in rows) else []


def last_job(t):
    rows = json.loads(t.run('ps', '-a', '--json').out or '[]')
    return rows[-1]['id'] if rows else 0


def words(t):
    """A file of our own format."""
    before = last_job(t)
    t.write('jobs', '# first come the times\n'
                    '0      -n 2 --time 1m --name one -o one.%r sh -c "echo $STORM_RANK \'a  b\'"\n'
                    '\n'
                    '+0.5   --name "number two" sh -c \'printf "%s|" "$@" >two\' sh "x y" z\n'
                    '0.2    --array 3-4 true   \t\n'
                    '1.5    --name late sh -c "[ -e two ] && touch late"\n')
    r = t.run('replay', 'jobs')
    rows = {row['id'] - before: row for row in json.loads(t.run('ps', '-a', '--json').out)}
    t.check('a workload file runs', r.status == 0 and f'5 jobs, numbers {before + 1}-{before + 5}\n' in r.out, r)
    t.check('and its summary is in the words of storm sim', re.search(r'^fcfs +0\.000 ', r.out, re.M), r)
    t.check('quotes keep words together', t.read('two') == 'x y|z|' and t.until(lambda: t.read('one.0') == '0 a  b\n'))
    t.check('jobs are submitted in the order of arrivals',
            [rows[i]['name'] for i in range(1, 6)] == ['one', 'true', 'true', 'number two', 'late'], rows)
    begins = [round(rows[i]['begin_time'] - rows[1]['begin_time'], 3) for i in range(1, 6)]
    t.check('each begins at its time', begins == [0, 0.2, 0.2, 0.5, 1.5] and
            all(rows[i]['start_time'] >= rows[i]['begin_time'] for i in range(1, 6)), begins)
    t.check('not before', os.path.exists(t.path('late')))
    t.write('jobs.late', '3600 touch hour\n')
    r = t.run('replay', 'jobs.late', '--scale', '3600')
    t.check('time can be scaled', r.status == 0 and os.path.exists(t.path('hour')), r)


def mistakes(t):
    before = last_job(t)
    t.write('four', '0 true\n' * 4)
    t.write('wrong', '0 -o x true\n0 --bogus true\nsoon true\n0 nosuchprogram\n0 --begin noon true\n0 -n 99 true\n0 --wait true\n'
                     '0 -N 2\n0 "true\n5\n0 --copy true\n')
    r = t.run('replay', 'wrong', '--strict')
    t.check('--strict refuses the file for its first malformed line', r.status == 2 and r.is_one_line('line 3', 'soon'), r)
    r = t.run('replay', 'wrong', '--dry-run')
    for line, why in ((2, 'bogus'), (4, 'line'), (5, '--begin'), (6, 'line'), (7, '--wait'), (8, 'program'), (11, 'files')):
        t.check(f'line {line} is told of', re.search(f'wrong:{line}: .*{why}', r.err), r)
    for line, why in ((3, 'time'), (9, 'quote'), (10, 'nothing')):
        t.check(f'line {line} is told of', re.search(f'line {line}: .*{why}', r.err), r)
    t.check('and the rest is shown', r.status == 1 and r.out.count('\n') == 2 and 'true' in r.out, r)
    t.write('strict', '0 true\n0 --bogus true\n')
    r = t.run('replay', 'strict', '--strict')
    t.check('--strict: nothing is submitted if a job will not do', r.status == 2 and 'nothing was submitted' in r.err, r)
    t.write('large.swf', trace([(0, 9, 10, 10)]))
    for name, args, status, why in (
            ('a file that there is not', ['nowhere'], 2, 'nowhere'),
            ('a file without jobs', ['/dev/null'], 2, 'no job'),
            ('no file', [], 2, 'workload file'),
            ('a scale that is none', ['four', '--scale', '0'], 2, '--scale'),
            ('a share that is none', ['four', '--busy', '101'], 2, '--busy'),
            ('jobs behind the last', ['four', '--jobs', '9..12'], 2, 'only 4 jobs'),
            ('--fit of a file of ours', ['four', '--fit'], 2, '--fit'),
            ('another cluster', ['four', '--cluster', 'other'], 125, 'other'),
            ('a time that is none', ['four', '--begin', 'whenever'], 2, '--begin'),
            ('--strict: a trace for a larger machine', ['large.swf', '--strict'], 2, '--fit')):
        r = t.run('replay', *args)
        t.check(f'{name} is refused', r.status == status and r.is_one_line(why) and r.out == '', r)
    t.check('nothing was submitted', last_job(t) == before)
    r = t.run('replay', '-', '--dry-run', data=b'0 true\n')
    t.check('standard input', r.status == 0 and 'true' in r.out, r)


def traces(t):
    text = trace([(1000, 2, 100, 200), (1010, 8, 50, 50), (1020, 1, 50, 60), (99000, 1, 50, 60)], '; MaxProcs: 8\n')
    t.write('trace.swf', text)
    with gzip.open(t.path('trace.swf.gz'), 'wt') as f:
        f.write(text)
    if t.user:
        os.chmod(t.path('trace.swf.gz'), 0o644)
    shown = t.run('replay', 'trace.swf', '--dry-run', '--scale', '100', '--fit')
    sizes = re.findall(r'^ *([0-9.]+) +(swf-\d+) +(\d+) +\d+ +(\S+ \S+) .*storm-mime (\S+)', shown.out, re.M)
    t.check('a trace, scaled and made to fit', [s[:3] + s[4:] for s in sizes] == [
        ('0.000', 'swf-1', '1', '1.000000'), ('0.100', 'swf-2', '4', '0.500000'), ('0.200', 'swf-3', '1', '0.500000'),
        ('980.000', 'swf-4', '1', '0.500000')], shown)
    t.check('its limits have a grace', [s[3] for s in sizes] == ['3 s', '1.5 s', '1.6 s', '1.6 s'], shown)
    r = t.run('replay', 'trace.swf', '--dry-run', '--jobs', '2..3')
    t.check('a part of it begins with its first job', re.findall(r'^ *(\S+) +(swf-\d)', r.out, re.M) == [
        ('0.000', 'swf-2'), ('10.000', 'swf-3')] and '1 jobs want more' in r.err, r)
    before = last_job(t)
    r = t.run('replay', 'trace.swf.gz', '--jobs', '3', '--scale', '100', '--fit', '--json')
    said = json.loads(r.out) if r.status == 0 else {}
    t.check('a compressed trace runs', said.get('jobs') == 3 and said['policy'] == 'fcfs' and
            said['nb_computing_machines'] == 4 and said['makespan_s'] >= 150, r)
    exported = t.run('ps', '--swf', f'{before + 1}-{before + 3}', '--scale', '100')
    rows = swf(exported.out)
    t.check('what ran, as a trace', [row['job'] - before for row in rows] == [1, 2, 3] and
            [row['submit'] for row in rows] == [0, 10, 20] and [row['procs'] for row in rows] == [1, 4, 1] and
            [row['time'] for row in rows] == [300, 150, 160] and all(row['status'] == 1 for row in rows) and
            all(row['run'] >= n for row, n in zip(rows, (100, 50, 50))) and rows[1]['wait'] >= 80, exported)
    for line in ('; Version: 2.2', '; MaxNodes: 4', '; MaxProcs: 4', '; MaxJobs: 3', r'; UnixStartTime: \d+', '; Note: times are 100'):
        t.check(f'its header has {line}', re.search(f'^{line}', exported.out, re.M), exported)
    t.write('ran.swf', exported.out)
    r = t.run('sim', 'ran.swf', '--strict', '--json')
    t.check('storm sim reads it', r.status == 0 and json.loads(r.out)['nb_jobs'] == 3, r)


def ends(t):
    """How jobs ended, and those that have not."""
    first = last_job(t) + 1
    t.write('ends', '0 --name well -o x true\n0 --name badly -o x false\n0 -t 0.3 -o x sleep 60\n0 --name stays -o x sleep 60\n'
                    '0 -n 4 --priority -1 -o x true\n')
    r = t.run('replay', 'ends', '--detach')
    t.check('--detach does not wait', r.status == 0 and r.out == f'5 jobs, numbers {first}-{first + 4}\n', r)
    t.until(lambda: len(swf(t.run('ps', '--swf', f'{first}-{first + 4}').out)) == 3)
    r = t.run('ps', '-a', '--swf', f'{first}-{first + 4}')
    t.check('a job that is not over is left out', 'not over are left out: 2' in r.out, r)
    t.run('kill', first + 4)
    t.run('kill', first + 3)
    t.until(lambda: len(swf(t.run('ps', '--swf', f'{first}-{first + 4}').out)) == 5)
    rows = {row['job'] - first: row for row in swf(t.run('ps', '--swf').out)}
    t.check('ends of all kinds', [rows[i]['status'] for i in range(5)] == [1, 0, 0, 5, 5], rows)
    t.check('one that never ran', rows[4]['run'] == -1 and rows[4]['allocated'] == -1 and rows[4]['procs'] == 4, rows)
    for args, why in ((('--scale', '2'), '--swf'), (('--swf', '--scale', 'x'), '--scale'), (('--swf', '--json'), '--json')):
        r = t.run('ps', *args)
        t.check(f'ps {" ".join(args)} is refused', r.status == 2 and r.is_one_line(why), r)


def alone(t):
    """The manager goes on with a workload when whoever has brought it is gone, and so does its next life."""
    first = last_job(t) + 1
    t.write('many', ''.join(f'{i * 0.02:.2f} -o /dev/null true\n' for i in range(100)))
    r = t.run('replay', 'many', '--begin', '+3s', '--detach')
    t.check('a workload for later', r.status == 0, r)
    os.kill(t.daemon('storm-mm'), signal.SIGKILL)
    t.check('runs though the manager is killed', t.until(
        lambda: len(swf(t.run('ps', '--swf', f'{first}-{first + 99}').out)) == 100))
    rows = swf(t.run('ps', '--swf', f'{first}-{first + 99}', '--scale', '50').out)
    t.check('each job at its time, and once', [row['submit'] for row in rows] == list(range(100)) and
            [row['job'] for row in rows] == list(range(first, first + 100)), rows[:5])
    first = last_job(t) + 1
    t.write('more.swf', trace([(i, 1, 10, 20) for i in range(3000)]))
    r = t.run('replay', 'more.swf', '--begin', '+1d', '--detach')
    t.check('thousands of jobs', r.status == 0 and '3000 jobs' in r.out, r)
    t.run('kill', f'{first}-{first + 2999}')
    t.check('can be taken back', t.until(lambda: t.run('ps').out == 'no jobs\n'))


def decisions(t):
    """The same policy, on the cluster and in the simulator, on the same arrivals: the same order of starts, the same nodes. What
    the simulator is given is what was seen on the cluster. Where the machine stood still meanwhile, other decisions are right:
    again, slower."""
    t.write('decide.swf', trace(ARRIVALS))
    wanted, scale = list(ORDERS), SCALE
    while wanted:
        seen = dict(zip(wanted, attempt(t, wanted, scale)))
        late = [p for p in wanted if seen[p][1] and scale > SCALE_MIN and not all(holds for _, holds, _ in seen[p][0])]
        for policy in wanted:
            for verdict in seen[policy][0] if policy not in late else []:
                t.check(*verdict)
        wanted, scale = late, scale / 2


def attempt(t, policies, scale):
    """All at once, on new clusters. For each: what was checked, and whether the machine was late."""
    replays = []
    for policy in policies:
        cluster = f'{policy}-at-{scale:.0f}'
        r = t.run('up', '--cluster', cluster, '--local', '4', '--pes', '1', '--policy', policy)
        t.check(f'a cluster under {policy}', r.status == 0, r)
        replays.append((cluster, t.start('replay', 'decide.swf', '--scale', scale, '--grace', '0', '--cluster', cluster)))
    for policy, (cluster, replay) in zip(policies, replays):
        r = t.finish(replay)
        ran = f'a replay under {policy}', r.status == 0 and re.search(f'^{policy} ', r.out, re.M), r
        verdicts, late = compare(t, policy, cluster, scale)
        yield [ran, *verdicts], late
        t.run('down', '--cluster', cluster)


def compare(t, policy, cluster, scale):
    exported = t.run('ps', '--swf', '--scale', scale, '--cluster', cluster).out
    t.write(f'{cluster}.swf', exported)
    r = t.run('sim', f'{cluster}.swf', '--policy', policy, '--strict', '--out', t.path(cluster))
    with open(t.path(f'{cluster}/jobs.csv'), newline='') as f:
        said = {int(row['job_id']): row for row in csv.DictReader(f)}
    ran = {row['job']: row for row in swf(exported)}
    there = {n: ran[n]['submit'] + ran[n]['wait'] for n in ran}
    here = {n: float(said[n]['starting_time']) for n in said}
    evidence = f'cluster {there}\nsimulator {here}'
    apart = [(a, b) for a in here for b in here if here[b] - here[a] >= APART]
    rows = json.loads(t.run('ps', '-a', '--json', '--cluster', cluster).out)
    nodes = {row['id']: row['node_list'] for row in rows}
    wanted = {n: folded(said[n]['allocated_resources']) for n in said}
    late = any(row['submit'] - ARRIVALS[n - 1][0] > LATE or row['run'] - ARRIVALS[n - 1][2] > LATE for n, row in ran.items())
    return [(f'{policy}: the order of starts is that of the simulator', r.status == 0 and here.keys() == there.keys() and
             all(there[a] < there[b] for a, b in apart), evidence),
            (f'{policy}: and what was reckoned beforehand', sorted(there, key=lambda n: (there[n], n)) == ORDERS[policy], evidence),
            (f'{policy}: on the same nodes', nodes == wanted, f'cluster {nodes}\nsimulator {wanted}')], late


def folded(runs):
    """"0-1 3" as the cluster has it: n[0-1,3]."""
    return 'n' + runs if runs.isdigit() else 'n[' + runs.replace(' ', ',') + ']'


play(words, mistakes, traces, ends, alone, decisions, up=('--local', '4', '--pes', '1', '--policy', 'fcfs'))
