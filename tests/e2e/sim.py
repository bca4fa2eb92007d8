#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""storm sim: traces, models, what it writes, what it refuses. Speaks TAP.

The tables of docs/policies.md are compared if STORM_TRACES names the folder with the traces, which are not ours
to hand on. The environment variable STORM is the path of the storm command."""
import csv
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
import xml.dom.minidom

STORM = os.environ['STORM']
TABLES = {
    'KTH-SP2-SC15filtered.swf.gz': {'fcfs': ('353776.409', '6814.9733'), 'easy': ('6836.872', '92.5765'),
                                    'conservative': ('7310.551', '88.9973'),
                                    'easy-sjbf': ('5904.077', '69.4054')},
    'SDSC-SP2-5K.swf.gz': {'fcfs': ('15711.537', '254.1311'), 'easy': ('3372.912', '17.1420'),
                           'conservative': ('3558.031', '16.6107')},
}
JOB = '{} {} -1 {} {} -1 -1 {} {} -1 1 1 1 1 1 1 -1 -1\n'   # number, submit, run, allocated, requested, time
TRACE = ('; MaxProcs: 4\n' + JOB.format(1, 0, 10, 2, 2, 10) + JOB.format(2, 1, 10, 4, 4, 10) +
         JOB.format(3, 2, 8, 2, 2, 8) + JOB.format(4, 3, 9, 2, 2, 9))
COLUMNS = ('job_id,workload_name,profile,submission_time,requested_number_of_resources,requested_time,success,'
           'final_state,starting_time,execution_time,finish_time,waiting_time,turnaround_time,stretch,'
           'allocated_resources,consumed_energy,metadata').split(',')
count = failed = 0


def check(name, holds, evidence=''):
    global count, failed
    count += 1
    if not holds:
        failed += 1
        print('\n'.join('# ' + line for line in str(evidence).splitlines()))
    print(f'{"ok" if holds else "not ok"} {count} - {name}')


def sim(*args, text=None):
    done = subprocess.run([STORM, 'sim', *map(str, args)], input=text, capture_output=True, text=True, timeout=200)
    return done.returncode, done.stdout, done.stderr


def one(*args, text=None):
    """The only JSON object."""
    status, out, err = sim(*args, '--json', text=text)
    return json.loads(out) if status == 0 else {'status': status, 'err': err}


def traces(folder):
    plain, packed = os.path.join(folder, 'small.swf'), os.path.join(folder, 'small.swf.gz')
    with open(plain, 'w') as f:
        f.write(TRACE)
    with gzip.open(packed, 'wt') as f:
        f.write(TRACE)
    a, b, c = one(plain), one(packed), one('-', text=TRACE)
    check('a plain trace', a.get('mean_waiting_time') == 6.5 and a.get('nb_computing_machines') == 4, a)
    for x in (a, b, c):
        x.pop('simulation_time', 0), x.pop('workload', 0)
    check('compressed and from standard input it is the same', a == b == c, (a, b, c))
    reversed_lines = '; MaxProcs: 4\n' + ''.join(reversed(TRACE.splitlines(True)[1:]))
    d = one('-', text=reversed_lines)
    d.pop('simulation_time', 0), d.pop('workload', 0)
    check('lines in another order', a == d, (a, d))
    return plain


def output(folder, trace):
    out = os.path.join(folder, 'out')
    status, shown, err = sim(trace, '--policy', 'easy', '--out', out)
    check('--out', status == 0 and sorted(os.listdir(out)) == ['jobs.csv', 'schedule.json', 'schedule.svg'], err)
    check('the summary on the terminal', re.search(r'^easy +6\.500 ', shown, re.M), shown)
    with open(os.path.join(out, 'jobs.csv'), newline='') as f:
        rows = list(csv.DictReader(f))
    check("jobs.csv has Batsim's columns", list(rows[0]) == COLUMNS, rows[0])
    got = {r['job_id']: (r['starting_time'], r['finish_time'], r['allocated_resources']) for r in rows}
    check('jobs.csv has the schedule', got == {'1': ('0', '10', '0-1'), '2': ('10', '20', '0-3'),
                                               '3': ('2', '10', '2-3'), '4': ('20', '29', '0-1')}, got)
    with open(os.path.join(out, 'schedule.json')) as f:
        summary = json.load(f)
    check('schedule.json', summary['makespan'] == 29 and summary['nb_jobs'] == 4, summary)
    check('and the words of this command', summary['jobs'] == 4 and summary['makespan_s'] == 29 and
          {'policy', 'mean_wait_s', 'mean_bounded_slowdown', 'utilisation'} <= set(summary), summary)
    picture = xml.dom.minidom.parse(os.path.join(out, 'schedule.svg'))
    check('schedule.svg has jobs in it', len(picture.getElementsByTagName('rect')) > 10)


def refused(folder, trace):
    bad = TRACE + 'garbage\n' + JOB.format(9, 30, 5, 1, 1, 5) + '1 2 3\n'
    status, out, err = sim('-', text=bad)
    check('malformed lines are reported and passed over',
          status == 0 and 'line 6' in err and 'line 8' in err and '5 jobs' in out, (status, out, err))
    status, out, err = sim('-', '--strict', text=bad)
    check('--strict refuses them', status == 2 and 'line 6' in err and err.count('\n') == 1, (status, err))
    with open(os.path.join(folder, 'cut.gz'), 'wb') as f:
        f.write(gzip.compress(TRACE.encode() * 50)[:90])
    for name, args, words in (
            ('a trace that there is not', ['nowhere.swf'], 'nowhere.swf'),
            ('a compressed trace that is cut off', [f.name], 'cut'),
            ('an empty trace', ['/dev/null'], 'no job'),
            ('no processors', ['-'], '--procs'),
            ('an unknown policy', [trace, '--policy', 'eazy'], 'easy'),
            ('a policy that is no object', [trace, '--policy', './nowhere.so'], 'nowhere.so'),
            ('a model without a machine', ['--lublin', 10], '--procs'),
            ('neither trace nor model', [], '--lublin'),
            ('a load that is none', ['--lublin', 10, '--procs', 4, '--load', 'much'], '--load'),
            ('a switch longer than a slice', [trace, '--quantum', '1ms', '--switch-cost', '1ms'], '--quantum')):
        status, out, err = sim(*args, text=JOB.format(1, 0, 1, 1, 1, 1))
        check(f'{name} is refused', status == 2 and words in err.splitlines()[-1] and out == '',
              (status, out, err))
    status, out, err = sim(trace, '--out', '/dev/null/x')
    check('a folder that cannot be made', status == 2 and '/dev/null/x' in err, (status, err))
    with open('/dev/full', 'w') as full:
        r = subprocess.run([STORM, 'sim', trace], stdout=full, stderr=subprocess.PIPE, text=True)
    check('output that cannot be written', r.returncode == 125, r)


def models():
    args = ['--lublin', 3000, '--procs', 256, '--load', 0.8, '--seed', 3]
    a, b = one(*args), one(*args)
    a.pop('simulation_time'), b.pop('simulation_time')
    check('a model: the same seed, the same schedule', a == b, (a, b))
    status, out, err = sim(*args, '--policy', 'all')
    rows = re.findall(r'^([a-z-]+) +[0-9.]+ ', out, re.M)
    check('all policies', status == 0 and rows == ['fcfs', 'easy', 'easy-sjbf', 'conservative', 'gang',
                                                   'gang-backfill', 'local'], out)
    check('the load is what was asked for', 0.7 < a['utilisation'] <= 0.81, a)
    fast = one(*args, '--policy', 'gang')
    slow = one(*args, '--policy', 'gang', '--quantum', '1ms', '--switch-cost', '0.2ms')
    check('switching costs time', slow['mean_turnaround_time'] > fast['mean_turnaround_time'], (fast, slow))


def loaded(trace):
    example = os.path.join(os.path.dirname(STORM), 'sjf-aging.so')
    if not os.path.exists(example):
        check('a policy from a shared object # SKIP the example is not built', True)
        return
    status, out, err = sim(trace, '--policy', f'fcfs,{example}')
    check('a policy from a shared object', status == 0 and re.search('^sjf-aging ', out, re.M), (out, err))


def tables():
    folder = os.environ.get('STORM_TRACES', '')
    for name, policies in TABLES.items():
        path = os.path.join(folder, name)
        if not folder or not os.path.exists(path):
            check(f'{name} # SKIP set STORM_TRACES to the folder that it is in', True)
            continue
        status, out, err = sim(path, '--policy', ','.join(policies), '--json')
        for row in map(json.loads, out.splitlines()):
            got = f'{row["mean_waiting_time"]:.3f}', f'{row["bounded_slowdown"]["mean"]:.4f}'
            check(f'{name} under {row["policy"]}', got == policies[row['policy']], got)


with tempfile.TemporaryDirectory() as scratch:
    small = traces(scratch)
    output(scratch, small)
    refused(scratch, small)
    models()
    loaded(small)
    tables()
print(f'1..{count}')
sys.exit(failed > 0)
