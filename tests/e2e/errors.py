#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What cannot be run, and what programs find around them: errors before the start, exit statuses, the
environment. Speaks TAP."""
import json
import os
import resource

from harness import play


def nothing_left(t):
    return t.run('ps', '--json').out.strip() == '[]'


def programs(t):
    def refuse(name, status, *words, args):
        for command in ('run', 'submit'):
            r = t.run(command, *args)
            t.check(f'{command}: {name}', r.status == status and r.is_one_line(*words) and
                    r.out == '', r)
    refuse('a program that there is not', 127, 'no-such-thing', args=['no-such-thing'])
    refuse('a path that there is not', 127, './no/such/thing', args=['./no/such/thing'])
    t.write('plain', 'echo hello\n')
    refuse('a file that cannot be executed', 126, './plain', args=['./plain'])
    refuse('a folder', 126, t.work, args=[t.work])
    t.write('badshell', '#!/no/such/interpreter\n', 0o755)
    refuse('an interpreter that there is not', 126, './badshell', '/no/such/interpreter',
           args=['./badshell'])
    refuse('a directory that there is not', 125, 'nowhere', args=['-D', 'nowhere', 'true'])
    refuse('a file instead of a directory', 125, 'plain', args=['-D', 'plain', 'true'])
    t.check('nothing is left behind', nothing_left(t), t.run('ps'))


def sizes(t):
    for command in ('run', 'submit'):
        for name, words, args in (
                ('too many processes', ['7'], ['-n', 7]),
                ('too many nodes', ['7'], ['-N', 7]),
                ('too many on a node', [], ['-N', 2, '-n', 4]),
                ('an unknown node', ['n9'], ['-w', 'n9']),
                ('an unknown node to exclude', ['x3'], ['-x', 'x3']),
                ('a size that contradicts itself', ['4', '5'], ['--size', '2:2:5']),
                ('sizes that contradict each other', [], ['--size', '2:1:2', '-N', 3]),
                ('more nodes than were named', [], ['-w', 'n[0-1]', '-N', 3])):
            r = t.run(command, *args, 'true')
            t.check(f'{command}: {name}', r.status == 125 and r.is_one_line(*words), r)
        for name, args in (('no size at all', ['--size', 'a:b']), ('none', ['-n', 0]),
                           ('a number that is none', ['-N', '3x']),
                           ('an unknown option', ['--frobnicate']), ('no program', None)):
            r = t.run(command, *(args + ['true'] if args else []))
            t.check(f'{command}: {name}', r.status == 2 and r.is_one_line(), r)
    for size, want in (('2:1:2', 2), ('3', 3), (':1:4', 4), ('2::', 2), ('::5', 5)):
        r = t.sh('echo $STORM_SIZE', '--size', size)
        t.check(f'--size {size}', r.out == f'{want}\n' * want, r)
    t.check('nothing is left behind', nothing_left(t), t.run('ps'))


def statuses(t):
    for script, status in (('exit 0', 0), ('exit 1', 1), ('exit 42', 42), ('exit 255', 255),
                           ('kill -TERM $$', 143), ('kill -9 $$', 137)):
        r = t.sh(script)
        t.check(f'run: {script}', r.status == status, r)
        r = t.run('submit', 'sh', '-c', script)
        r = t.run('wait', r.out.strip())
        t.check(f'wait: {script}', r.status == status, r)
    job = t.run('submit', '-t', '1', 'sleep', '60').out.strip()
    t.check('wait: time limit', t.run('wait', job).status == 124)
    r = t.run('wait', 4711)
    t.check('wait: no such job', r.status == 125 and r.is_one_line('4711'), r)
    r = t.run('wait', 'x')
    t.check('wait: no number', r.status == 2 and r.is_one_line(), r)
    t.write('vanish', '#!/bin/sh\n', 0o755)
    job = t.run('submit', '-N', 6, 'sleep', '1').out.strip()
    late = t.run('submit', './vanish').out.strip()
    os.unlink(t.path('vanish'))
    r = t.run('wait', late)
    t.check('a program that goes before it is started', r.status == 127 and 'storm: ' in r.err, r)
    t.check('its file tells it too', t.until(lambda: 'vanish' in t.read(f'storm-{late}.out'), 10),
            t.read(f'storm-{late}.out'))
    t.run('wait', job)


def surroundings(t):
    r = t.sh('echo $STORM_JOB_ID/$STORM_RANK/$STORM_SIZE/$STORM_NODE/$STORM_NODE_ID/$STORM_NODES/'
             '$STORM_LOCAL_RANK/$STORM_LOCAL_SIZE', '-w', 'n[1,3]', '-N', 2)
    job = json.loads(t.run('ps', '-a', '--json').out)[-1]['id']
    t.check('STORM_ variables', sorted(r.out.splitlines()) ==
            [f'{job}/0/2/n1/0/n[1,3]/0/1', f'{job}/1/2/n3/1/n[1,3]/0/1'], r)
    env = {'COLOUR': 'red', 'SHAPE': 'round'}
    for name, args, want in (('as here', [], 'red round '),
                             ('--env', ['--env', 'COLOUR=blue', '--env', 'SIZE=big'], 'blue round big'),
                             ('--export none', ['--export', 'none'], '  '),
                             ('--export a list', ['--export', 'COLOUR,PATH'], 'red  '),
                             ('--export none --env', ['--export', 'none', '--env', 'SIZE=a=b c'], '  a=b c')):
        r = t.run('run', *args, '/bin/sh', '-c', 'echo "$COLOUR $SHAPE $SIZE"', env=env)
        t.check(f'environment: {name}', r.out == want + '\n', r)
    os.mkdir(t.path('sub'))
    if t.user:
        os.chown(t.path('sub'), 65534, 65534)
    r = t.sh('pwd')
    t.check('the folder is ours', r.out.strip() == os.path.realpath(t.work), r)
    r = t.sh('pwd', '-D', 'sub')
    t.check('--chdir', r.out.strip() == os.path.realpath(t.path('sub')), r)
    r = t.spawn('sh', '-c', f'umask 027; ulimit -n 77; exec {t.storm} run sh -c "umask; ulimit -n"',
                stdout=-1, stdin=-3)
    out = r.communicate(timeout=30)[0].decode().split()
    t.check('umask and limits are ours', out == ['0027', '77'], out)
    r = t.sh('grep -E "^Sig(Ign|Blk)" /proc/self/status')
    t.check('no signal is ignored or blocked', all(
        int(line.split()[1], 16) == 0 for line in r.out.splitlines()) and r.out, r)
    r = t.sh('echo $STORM_PETITION; ls /proc/self/fd')
    bell, *have = r.out.split()
    t.check('no descriptor but the three and the bell (and the one of ls)', len(have) == 5 and set(have) > {'0', '1', '2', bell}, r)


def scripts(t):
    t.write('script', '#!/bin/sh\n#STORM -N 3\n#STORM --name from-script --time 1:00\n'
            'echo "script on $STORM_NODE rank $STORM_RANK of $STORM_SIZE in $STORM_JOB_ID"\n'
            f'{t.storm} run -w "$STORM_NODES" sh -c \'echo "step $STORM_RANK $STORM_NODE $STORM_JOB_ID"\'\n', 0o755)
    r = t.run('submit', './script')
    job = r.out.strip()
    r = t.run('wait', job)
    t.until(lambda: t.read(f'storm-{job}.out').count('step') == 3, 10)
    lines = t.read(f'storm-{job}.out').splitlines()
    t.check('a script runs once, on the first node', r.status == 0 and
            sum(line.startswith('script on n0') for line in lines) == 1, (r, lines))
    t.check('storm run inside stays in its nodes', sorted(
        line.split()[2] for line in lines if line.startswith('step')) == ['n0', 'n1', 'n2'], lines)
    row = json.loads(t.run('show', job, '--json').out)
    t.check('#STORM lines are options', row['name'] == 'from-script' and row['nodes'] == 3, row)
    r = t.run('submit', '-N', 2, '--name', 'mine', './script')
    job = r.out.strip()
    t.run('wait', job)
    row = json.loads(t.run('show', job, '--json').out)
    t.check('the command line wins', row['name'] == 'mine' and row['nodes'] == 2, row)
    t.write('badscript', '#!/bin/sh\n#STORM --frobnicate\necho no\n', 0o755)
    r = t.run('submit', './badscript')
    t.check('a wrong #STORM line', r.status == 2 and r.is_one_line('frobnicate'), r)
    r = t.run('submit', '--array', '2-4', 'sh', '-c', 'exit $STORM_ARRAY_INDEX')
    first = r.out.strip().split('-')[0]
    r = t.run('wait', first, str(int(first) + 1), str(int(first) + 2))
    t.check('an array: each has its index', r.status == 4, r)


def allocations(t):
    r = t.run('alloc', '-N', 3, 'sh', '-c',
              f'echo $STORM_JOB_ID; {t.storm} run -N 3 sh -c "echo \\$STORM_NODE";'
              f'{t.storm} run -N 1 echo one; {t.storm} ps --json')
    lines = r.out.splitlines()
    t.check('alloc runs a command', r.status == 0 and len(lines) >= 5, r)
    t.check('storm run inside uses its nodes', sorted(lines[1:4]) == ['n0', 'n1', 'n2'] and
            lines[4] == 'one', lines)
    rows = json.loads(lines[-1])
    t.check('the allocation is a job that runs', [row['state'] for row in rows] == ['running'] and
            str(rows[0]['id']) == lines[0], rows)
    t.check('and is over afterwards', nothing_left(t))
    r = t.run('alloc', '-N', 2, 'sh', '-c', f'{t.storm} run -N 3 true; echo $?')
    t.check('more than it holds is refused', r.out == '125\n' and 'the allocation has 2' in r.err, r)
    r = t.run('alloc', '-N', 2, 'sh', '-c', 'exit 9')
    t.check('the status is that of the command', r.status == 9, r)
    p = t.start('alloc', '-N', 6, 'sh', '-c', '>held; exec sleep 60')
    t.until(lambda: os.path.exists(t.path('held')))
    job = t.run('submit', 'true').out.strip()
    r = t.run('why', job)
    t.check('others wait meanwhile, and why is said', 'waits' in r.out, r)
    holder = json.loads(t.run('ps', '--json').out)[0]['id']
    t.run('kill', holder)
    r = t.finish(p)
    t.check('an allocation that is killed', r.status != 0 and f'job {holder} is over' in r.err, r)
    t.check('lets the next in', t.run('wait', job).status == 0)
    p = t.start('alloc', '-N', 6, 'sh', '-c', 'trap "" HUP; >deaf; until [ -e heard ]; do sleep 0.02; done')
    t.until(lambda: os.path.exists(t.path('deaf')))
    t.run('kill', json.loads(t.run('ps', '--json').out)[0]['id'])
    t.run('run', '-N', 6, 'true')
    open(t.path('heard'), 'w').close()
    r = t.finish(p)
    t.check('the status says so though the command ends well', r.status != 0 and 'is over' in r.err, r)


def without(t):
    lost = {'STORM_HOME': t.path('other-home')}
    r = t.run('run', 'true', env=lost)
    t.check('no cluster: what to type is said', r.status == 125 and r.is_one_line('storm up'), r)
    for command in (['ps'], ['nodes'], ['submit', 'true'], ['wait', '1'], ['kill', '1'], ['alloc']):
        r = t.run(*command, env=lost)
        t.check(f'no cluster: {command[0]}', r.status == 125 and r.is_one_line('storm up'), r)
    r = t.run('run', '--auto', 'echo', 'hello', env=lost)
    t.check('--auto brings one up', r.status == 0 and r.out == 'hello\n', r)
    r = t.run('run', '--auto', 'echo', 'again', env=lost)
    t.check('and uses it the next time', r.status == 0 and r.out == 'again\n', r)
    r = t.run('down', env=lost)
    t.check('until it is taken down', r.status == 0, r)
    r = t.run('up', '--local', '6')
    t.check('a second up', r.status == 0 and 'runs already' in r.out, r)
    r = t.run('version')
    t.check('version', r.status == 0 and r.out.startswith('storm '), r)
    r = t.run('doctor')
    t.check('doctor', r.status == 0, r)


play(programs, sizes, statuses, surroundings, scripts, allocations, without)
