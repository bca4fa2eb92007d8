#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Nodes that differ: attributes, node files, --need, and what the scheduler makes of them. Speaks TAP."""
import json
import os
import signal

from harness import play

ATTRIBS = '''# as the Cplant paper has them
CPU  =, >=, <=  500MHZ 1GHZ 2GHZ
MEM  =, >=, <=  256MB 512MB 2GB
NIC  =          FAST   SLOW
'''
NODESPEC = '''0    4  CPU=500MHZ, MEM=512MB, NIC=SLOW
1    4  CPU=1GHZ,   MEM=512MB, NIC=SLOW
2    4  CPU=2GHZ,   MEM=1GB,   NIC=FAST
10   2  CPU=2GHZ,   MEM=2GB,   NIC=FAST
'''
WHERE = ('sh', '-c', 'echo $STORM_NODE')


def names(r):
    return [row['name'] for row in json.loads(r.out)] if r.status == 0 else r


def where(t, *args):
    r = t.run('run', *args, *WHERE)
    return sorted(set(r.out.split())) if r.status == 0 else r


def paper(t):
    attribs, spec = t.write('attribs', ATTRIBS), t.write('nodespec', NODESPEC)
    r = t.run('up', '--local', 12, '--attribs', attribs, '--nodespec', spec)
    t.check('the slip in the node file: where it is, and what was meant', r.status == 2 and
            'nodespec:3:25: MEM has no value "1GB"; it has 256MB, 512MB, 2GB; did you mean 2GB?' in r.err and
            r.err.splitlines()[2].rstrip().endswith('^~~'), r)
    spec = t.write('nodespec', NODESPEC.replace('1GB,   NIC=FAST', '2GB,   NIC=FAST'))
    r = t.run('up', '--local', 12, '--attribs', attribs, '--nodespec', spec)
    t.check('corrected, it comes up', r.status == 0 and '12 nodes, 22 processors' in r.out, r)
    r = t.run('run', '--size', '2:2', '--need', 'MEM=512MB, NI=SLOW', *WHERE)
    t.check('the slip in the example', r.status == 125 and '--need:12: there is no attribute "NI"; did you mean NIC?' in r.err and
            r.err.splitlines()[2] == '             ^~', r)
    t.check('two nodes of 512 MB and a slow network: 0 and 1', where(t, '--size', '2:2', '--need', 'MEM=512MB, NIC=SLOW') == ['n0', 'n1'])
    t.check('that is all there are', names(t.run('nodes', '--json', '--need', 'MEM=512MB, NIC=SLOW')) == ['n0', 'n1'])
    t.check('at least 512 MB: all four', names(t.run('nodes', '--json', '--need', 'MEM>=512MB')) == ['n0', 'n1', 'n2', 'n10'])
    t.check('two of them are given', len(where(t, '--size', '2:2', '--need', 'MEM>=512MB')) == 2)
    t.check('all of them', where(t, '--size', '4:2', '--need', 'MEM>=512MB') == ['n0', 'n1', 'n10', 'n2'])
    rows = {row['name']: row for row in json.loads(t.run('nodes', '--json').out)}
    r = t.run('nodes')
    table = [line.split() for line in r.out.splitlines()[1:]]
    t.check('nodes: apart by what is said of them', [row[0] for row in table] == ['n0', 'n1', 'n2', 'n[3-9,11]', 'n10'] and
            'CPU=500MHZ MEM=256MB NIC=FAST' in r.out and 'ARCH' not in r.out, r)
    r = t.run('nodes', '--need', 'CPU>=1GHZ')
    t.check('--need, folded', [line.split()[0] for line in r.out.splitlines()[1:]] == ['n1', 'n2', 'n10'], r)
    t.check('widths', [rows[n]['pes'] for n in ('n0', 'n10', 'n5')] == [4, 2, 1], rows)
    t.check('nodes that nobody speaks of have the first values', rows['n5']['attributes']['CPU'] == '500MHZ' and
            rows['n5']['attributes']['MEM'] == '256MB' and rows['n5']['attributes']['NIC'] == 'FAST', rows['n5'])


def expressions(t):
    for need, who in (('mem >= 512mb && !(nic = fast)', ['n0', 'n1']), ('CPU=2GHZ or CPU=1GHZ', ['n1', 'n2', 'n10']),
                      ('CPU>=1GHZ and not MEM=2GB', ['n1']), ('(CPU == "2GHZ") && NIC==FAST', ['n2', 'n10'])):
        r = t.run('nodes', '--json', '--need', need)
        t.check(need, names(r) == who, r)
    arch = os.uname().machine
    r = t.run('nodes', '--json', '--need', f'(Arch == "{arch}" && OpSys == "Linux") && (Memory >= 32 && Dedicated == TRUE)')
    t.check('as CARMI spells it', len(names(r)) == 12, r)
    r = t.run('nodes', '--json', '--need', 'ROLE=compute, PROCESSORS>=1, MEMORY>1MB, NUMA>=1, GPUS>=0, SPEED>0, KERNEL>=2')
    t.check('what nodes find out by themselves', len(names(r)) == 12, r)
    for need, words in (('MEM>=banana', 'MEM has no value "banana"'), ('NIC>=FAST', 'NIC'), ('MEM>=', 'MEM'), ('(CPU=1GHZ', 'not closed'),
                        ('MEMORY>=two', 'MEMORY'), ('CPU=1GHZ,,MEM=2GB', ',')):
        r = t.run('nodes', '--json', '--need', need)
        t.check(f'{need}: refused, with its place', r.status == 125 and words in r.err and '^' in r.err, r)


def refused(t):
    r = t.run('run', '-N', 4, '--need', 'MEM>=2GB', 'true')
    t.check('never enough: the nearest miss', r.status == 125 and r.is_one_line('needs 4 nodes with MEM>=2GB; 2 have it'), r)
    r = t.run('submit', '-N', 2, '--need', 'CPU=1GHZ, NIC=FAST', 'true')
    t.check('of several conditions each is counted', r.is_one_line('none has it (CPU=1GHZ: 1, NIC=FAST: 10)'), r)
    r = t.run('run', '--size', '2:4', '--need', 'MEM=2GB', 'true')
    t.check('not wide enough', r.status == 125 and r.is_one_line('of those that have what it needs, 1 has so many'), r)
    r = t.run('run', '-w', 'n0', '--need', 'CPU=2GHZ', 'true')
    t.check('the nodes that were named do not have it', r.status == 125 and 'none has it' in r.err, r)
    r = t.run('run', '--need', 'x' * 2000, 'true')
    t.check('too long', r.status == 2 and r.is_one_line('too long'), r)


def sharing(t):
    t.check('a wide node is shared', where(t, '--size', '1:4', '-w', 'n0') == ['n0'])
    first = t.run('submit', '--size', '1:3', '-w', 'n0', 'sleep', 1000).out.strip()
    t.check('one processor is left', t.until(lambda: '"state": "running"' in t.run('show', first, '--json').out or
                                             '"state":"running"' in t.run('show', first, '--json').out) and
            where(t, '-w', 'n0') == ['n0'])
    second = t.run('submit', '--size', '1:2', '-w', 'n0', 'true').out.strip()
    r = t.run('why', second)
    t.check('two are not', 'waits for' in r.out, r)
    t.run('kill', first)
    t.check('until the other has ended', t.run('wait', second).status == 0)
    held = t.run('submit', '--exclusive', '-w', 'n1', 'sleep', 1000).out.strip()
    other = t.run('submit', '-w', 'n1', 'true').out.strip()
    t.until(lambda: 'running' in t.run('show', held).out)
    t.check('one that shares no node has all of it', 'waits for' in t.run('why', other).out)
    t.run('kill', held)
    t.check('and gives it back', t.run('wait', other).status == 0)


def memory(t):
    def there():
        return json.loads(t.run('nodes', '--json', 'n0').out)[0]['memory']
    t.check('how much there is', t.until(there))
    most = f'{there() * 3 // 4 >> 20}M'
    held = t.run('submit', '--mem', most, '-w', 'n0', 'sleep', 1000).out.strip()
    t.until(lambda: 'running' in t.run('show', held).out)
    t.check('those that say nothing of it find room', where(t, '-w', 'n0') == ['n0'])
    job = t.run('submit', '--mem', most, '-w', 'n0', 'true').out.strip()
    r = t.run('why', job)
    t.check('jobs share nodes by memory, too', 'memory on 1 more node' in r.out, r)
    t.run('kill', held)
    t.check('until the other has ended', t.run('wait', job).status == 0)
    r = t.run('run', '--size', '1:2', '--mem', most, '-w', 'n0', 'true')
    t.check('more than a node has', r.status == 125 and 'MiB of memory' in r.err, r)


def waits(t):
    held = t.run('submit', '-N', 2, '--exclusive', '--need', 'MEM=2GB', 'sleep', 1000).out.strip()
    job = t.run('submit', '--need', 'MEM=2GB, NIC=FAST', 'true').out.strip()
    r = t.run('why', job)
    t.check('why it waits', 'MEM=2GB && NIC=FAST' in r.out, r)
    manager = t.daemon('storm-mm')
    os.kill(manager, signal.SIGKILL)
    t.until(lambda: t.daemon('storm-mm') not in (None, manager))
    t.check('a manager that comes anew knows what jobs need', t.until(lambda: 'MEM=2GB && NIC=FAST' in t.run('why', job).out),
            t.run('why', job))
    rows = {row['name']: row for row in json.loads(t.run('nodes', '--json').out)}
    t.check('and what nodes are like', rows['n10']['pes'] == 2 and rows['n10']['attributes']['CPU'] == '2GHZ', rows['n10'])
    t.run('kill', held)
    t.check('it runs when it can', t.run('wait', job).status == 0)


def reload(t):
    attribs, spec = ATTRIBS + 'DISK = NO YES\n', NODESPEC.replace('1GB,   NIC=FAST', '2GB,   NIC=FAST')
    bad = t.write('bad', spec.replace('MEM=2GB', 'MEM=3GB', 1))
    r = t.run('reload', '--nodespec', bad)
    t.check('what cannot be read changes nothing', r.status == 125 and 'MEM has no value "3GB"' in r.err and
            names(t.run('nodes', '--json', '--need', 'MEM=2GB')) == ['n2', 'n10'], r)
    r = t.run('reload', '--attribs', t.write('attribs2', attribs))
    t.check('attributes that the node file does not speak of', r.status == 125 and 'DISK' in r.err, r)
    job = t.run('submit', '--size', '1:3', '-w', 'n0', 'sleep', 1000).out.strip()
    t.until(lambda: 'running' in t.run('show', job).out)
    lines = [line + (', DISK=YES' if i == 0 else ', DISK=NO') for i, line in enumerate(spec.splitlines())]
    lines[0] = lines[0].replace('0    4', '0    1')
    lines[3] = lines[3].replace('10   2', '10   3')
    r = t.run('reload', '--attribs', t.path('attribs2'), '--nodespec', t.write('nodespec2', '\n'.join(lines) + '\n'))
    t.check('both at once', r.status == 0, r)
    t.check('what is new is known', names(t.run('nodes', '--json', '--need', 'DISK=YES')) == ['n0'])
    rows = {row['name']: row for row in json.loads(t.run('nodes', '--json').out)}
    t.check('idle nodes have their new width', rows['n10']['pes'] == 3, rows['n10'])
    t.check('busy ones when they are idle', rows['n0']['pes'] == 4, rows['n0'])
    t.run('kill', job)
    t.check('now', t.until(lambda: json.loads(t.run('nodes', '--json', 'n0').out)[0]['pes'] == 1))
    t.check('it is used', where(t, '-w', 'n0', '--need', 'DISK=YES') == ['n0'])
    queued = t.run('submit', '--need', 'DISK=YES', '-w', 'n0', '--begin', '+1h', 'true').out.strip()
    r = t.run('reload', '--attribs', t.write('attribs', ATTRIBS), '--nodespec', t.write('nodespec', spec))
    t.check('taken back', r.status == 0 and t.run('nodes', '--json', '--need', 'DISK=YES').status == 125, r)
    t.check('a job that needs what is gone is not lost', t.run('show', queued).status == 0)
    t.run('kill', queued)
    r = t.run('reload')
    t.check('nothing to do', r.status == 2 and r.is_one_line('--attribs FILE'), r)


def shrunk(t):
    attribs, spec = t.write('attribs', ATTRIBS), NODESPEC.replace('1GB,   NIC=FAST', '2GB,   NIC=FAST')
    narrow = t.write('narrow', spec.replace('0    4', '0    2', 1))
    job = t.run('submit', '--size', '1:3', '-w', 'n0', 'sleep', 1000).out.strip()
    t.until(lambda: 'running' in t.run('show', job).out)
    waits = t.run('submit', '--size', '1:4', '-w', 'n0', 'true').out.strip()
    t.check('narrower than what runs there', t.run('reload', '--nodespec', narrow).status == 0)
    r = t.run('why', waits)
    t.check('why a job waits for it', 'another number of processors' in r.out, r)
    manager = t.daemon('storm-mm')
    os.kill(manager, signal.SIGKILL)
    t.until(lambda: t.daemon('storm-mm') not in (None, manager) and t.run('show', job).status == 0)
    small = t.run('submit', '-w', 'n0', 'true').out.strip()
    row = json.loads(t.run('nodes', '--json', 'n0').out)[0]
    t.check('after a restart its processors are still its own', row['used'] == 3 and row['jobs'] == [int(job)], row)
    t.run('kill', job)
    t.check('then others run there', t.run('wait', small).status == 0)
    t.check('one that is too wide now waits', 'more than the cluster has' in t.run('why', waits).out, t.run('why', waits))
    t.check('as wide as before', t.run('reload', '--attribs', attribs, '--nodespec', t.write('nodespec', spec)).status == 0)
    t.check('it runs', t.run('wait', waits).status == 0)
    r = t.run('nodes', '--json', '--need', 'PROCESSORS>=4')
    t.check('processors are those that were said', names(r) == ['n0', 'n1', 'n2'], r)
    r = t.run('run', '-n', 20, 'true')
    t.check('more processes than nodes: on wider ones, if they are', r.status == 125 and 'processors' in r.err, r)


def steps(t):
    r = t.run('alloc', '-N', 2, '--need', 'MEM=2GB', '--', t.storm, 'run', '-N', 2, *WHERE)
    t.check('an allocation of such nodes', sorted(r.out.split()) == ['n10', 'n2'], r)
    r = t.run('alloc', '-N', 2, '--need', 'MEM=2GB', '--', t.storm, 'run', '--need', 'CPU=2GHZ, PROCESSORS=2', *WHERE)
    t.check('a step that needs one of them', r.out == 'n10\n', r)
    r = t.run('alloc', '-N', 2, '--need', 'MEM=2GB', '--', t.storm, 'run', '--need', 'CPU=500MHZ', *WHERE)
    t.check('none of them has it', r.status == 125 and "of the allocation's 0 have it" in r.err, r)
    r = t.run('alloc', '-N', 1, '--', t.storm, 'run', '--need', 'NONSENSE((', *WHERE)
    t.check('a step that needs nonsense', r.status == 125 and 'NONSENSE' in r.err, r)
    spec = NODESPEC.replace('1GB,   NIC=FAST', '2GB,   NIC=FAST')
    narrow = t.write('narrow', spec.replace('0    4', '0    2', 1))
    r = t.run('alloc', '--size', '1:2', '-w', 'n0', '--', 'sh', '-c',
              f'{t.storm} reload --nodespec {narrow} && {t.storm} run --size 1:2 hostname | wc -l')
    t.check('steps go on while their node is to become narrower', r.out.strip() == '2', r)
    t.run('reload', '--nodespec', t.write('nodespec', spec))


def gpus(t):
    t.run('down')
    say = ('sh', '-c', 'echo ${CUDA_VISIBLE_DEVICES-none}')
    r = t.run('up', '--local', 2, '--pes', 4, env={'STORM_GPUS': '4'})
    t.check('nodes with GPUs', r.status == 0 and len(names(t.run('nodes', '--json', '--need', 'GPUS>=4'))) == 2, r)
    def shares(*args):
        r = t.run('run', '-l', *args, *say, env={'CUDA_VISIBLE_DEVICES': '7'})
        return [line.split(': ')[1] for line in sorted(r.out.splitlines())] if r.status == 0 else r
    t.check('each its own', shares('--size', '1:2', '--need', 'GPUS>=4') == ['0,1', '2,3'])
    t.check('on each node', shares('--size', '2:4', '--need', 'GPUS>=1') == ['0', '1', '2', '3'] * 2)
    t.check('who does not ask for any keeps what it says', shares('-n', 1) == ['7'])
    t.check('as one of several programs', shares('-n', 1, 'true', ':', '-N', 1, '--need', 'GPUS>=4') == ['0,1,2,3'])
    held = t.run('submit', '--need', 'GPUS>=4', '-w', 'n0', 'sleep', 1000).out.strip()
    t.until(lambda: 'running' in t.run('show', held).out)
    t.check('nobody shares a node with it', where(t) == ['n1'])
    t.run('kill', held)


def alone(t):
    t.run('down')
    r = t.run('up', '--local', 2, '--pes', 4, '--share', 'nodes')
    t.check('a cluster where a node serves one job at a time', r.status == 0, r)
    first = t.run('submit', '-w', 'n0', 'sleep', 1000).out.strip()
    t.until(lambda: 'running' in t.run('show', first).out)
    t.check('others go elsewhere', where(t) == ['n1'])
    other = t.run('submit', '-w', 'n0', 'true').out.strip()
    t.check('or wait', 'waits for' in t.run('why', other).out)
    t.run('kill', first)
    t.check('for its end', t.run('wait', other).status == 0)
    r = t.run('up', '--cluster', 'x', '--local', 1, '--share', 'some')
    t.check('a rule that there is not', r.status == 2 and r.is_one_line('give pes or nodes'), r)


play(paper, expressions, refused, sharing, memory, waits, reload, shrunk, steps, gpus, alone, up=None)
