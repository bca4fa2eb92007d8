#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Permanent installations: tools/install into a folder, a Debian package, what is in them, units; and a cluster from each.
Speaks TAP."""
import glob
import gzip
import hashlib
import json
import os
import re
import shutil
import stat
import subprocess

from harness import play

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..')
BUILD = os.path.dirname(os.environ['STORM'])
UNITS = ('storm-mm@.service',)
PROGRAMS = ('storm-mm', 'storm-pl', 'storm-hop', 'storm-each', 'storm-nop', 'storm-mime', 'storm-sim',
            'storm-wodi', 'storm-worker')


def tool(name, *args):
    return subprocess.run([os.path.join(TOP, 'tools', name), *args], capture_output=True, text=True)


def option(name):
    out = subprocess.run(['meson', 'introspect', BUILD, '--buildoptions'], capture_output=True, text=True).stdout
    return next(o['value'] for o in json.loads(out) if o['name'] == name)


def files(root):
    """Everything below a folder that is no folder, as paths from there."""
    return sorted(os.path.relpath(os.path.join(where, name), root) for where, _, names in os.walk(root) for name in names)


def wrong_modes(root):
    """What others cannot read, or may write to, or is executable and should not be."""
    found = []
    for where, folders, names in os.walk(root):
        for name in folders + names:
            path = os.path.join(where, name)
            info = os.lstat(path)
            program = '/bin/' in path or '/libexec/' in path
            wanted = 0o755 if stat.S_ISDIR(info.st_mode) or program else 0o644
            if not stat.S_ISLNK(info.st_mode) and stat.S_IMODE(info.st_mode) != wanted:
                found.append((path, oct(info.st_mode)))
            if info.st_uid != os.geteuid():
                found.append((path, info.st_uid))
    return found


def cluster(t, where, storm):
    """What is there works: the command finds the daemons, their helpers, and the simulator."""
    before, t.storm = t.storm, storm
    t.env['PATH'], path = os.path.dirname(storm) + ':' + t.env['PATH'], t.env['PATH']
    name = f'from-{where}'
    r = t.run('up', '--local', '2', '--cluster', name)
    t.check(f'{where}: a cluster comes up', r.status == 0 and '2 nodes' in r.out, r)
    r = t.run('run', '--cluster', name, '-N', '2', '-l', 'sh', '-c', 'echo $STORM_NODE')
    t.check(f'{where}: runs programs', r.status == 0 and sorted(r.out.split()) == ['0:', '1:', 'n0', 'n1'], r)
    with open(f'{t.home}/{name}/cluster') as f:
        watcher = dict(line.rstrip('\n').split(' ', 1) for line in f)['watcher']
    manager = os.readlink(f'/proc/{t.daemon("storm-mm", name)}/exe')
    t.check(f'{where}: by its own daemons', manager.startswith(os.path.dirname(os.path.dirname(storm))), (manager, watcher))
    r = t.run('work', '--cluster', name, 'echo', ':::', 'a', 'b')
    t.check(f'{where}: runs command lines', r.status == 0 and r.out == 'a\nb\n', r)
    r = t.run('ps', '-a', '--json', '--cluster', name)
    t.check(f'{where}: remembers them', r.status == 0 and json.loads(r.out)[0]['state'] == 'done', r)
    r = t.run('down', '--cluster', name)
    t.check(f'{where}: and goes', r.status == 0, r)
    r = t.run('exec', '-w', 'h[0-2]', '--connector', 'sh -c %c', '-N', 'echo here')
    t.check(f'{where}: commands on hosts', r.status == 0 and r.out == 'here\n' * 3, r)
    t.storm, t.env['PATH'] = before, path


def whole(t, where, root, prefix, compressed=''):
    """Everything is where it belongs."""
    have = set(files(root))
    p = prefix.lstrip('/')
    wanted = {f'{p}/bin/storm', 'etc/storm/environment', f'{p}/share/bash-completion/completions/storm'}
    wanted |= {f'{p}/libexec/storm/{name}' for name in PROGRAMS} | {f'{p}/share/storm/python/storm.py'}
    wanted |= {f'{p}/lib/systemd/system/{name}' for name in UNITS}
    wanted |= {f'{p}/share/man/man1/{os.path.basename(page)}{compressed}' for page in glob.glob(f'{TOP}/docs/man/*.1')}
    wanted |= {f'{p}/include/storm/{os.path.basename(h)}' for h in glob.glob(f'{TOP}/include/storm/*.h')}
    t.check(f'{where}: nothing is missing', wanted <= have, sorted(wanted - have))
    for link in ('resume', 'undrain'):
        path = f'{root}/{p}/share/man/man1/storm-{link}.1{compressed}'
        t.check(f'{where}: {link} has a page', os.path.islink(path) and os.path.exists(path))
    links = [os.readlink(f'{root}/{p}/bin/{name}') for name in ('yod', 'pingd')]
    t.check(f'{where}: Cplant\'s names', links == ['storm', 'storm'], links)
    t.check(f'{where}: modes and owners', not wrong_modes(root), wrong_modes(root)[:5])
    for unit in UNITS:
        with open(f'{root}/{p}/lib/systemd/system/{unit}') as f:
            text = f.read()
        t.check(f'{where}: {unit} starts what was installed', f'\nExecStart={prefix}/bin/storm ' in text and '@' not in
                text.replace('storm-mm@NAME', ''), text)


def folder(t):
    root = t.path('dest')
    r = tool('install', BUILD, root)
    t.check('it is installed', r.returncode == 0, r)
    whole(t, 'folder', root, '/usr/local')
    t.check('nothing else is there', {f.split('/')[0] for f in files(root)} == {'usr', 'etc'}, files(root))
    cluster(t, 'folder', f'{root}/usr/local/bin/storm')
    with open(f'{root}/etc/storm/environment', 'a') as f:
        f.write('STORM_UP_OPTIONS=--local 2\n')
    other = f'{root}/usr/local/share/man/man1/other.1'
    with open(other, 'w') as f:
        f.write('not ours\n')
    r = tool('install', BUILD, root)
    t.check('again, over itself', r.returncode == 0, r)
    with open(f'{root}/etc/storm/environment') as f:
        t.check('settings stay as they are', f.read().endswith('--local 2\n'))
    r = tool('install', '--uninstall', BUILD, root)
    t.check('it goes, but for what is not ours or was changed', r.returncode == 0 and
            files(root) == ['etc/storm/environment', 'usr/local/share/man/man1/other.1'], (r, files(root)))


def units(t):
    """systemd has no fault to find, with the programs at their place."""
    prefix = t.path('opt')
    r = tool('install', BUILD, t.path('none'), '/opt')
    shutil.rmtree(prefix, ignore_errors=True)
    os.rename(t.path('none/opt'), prefix)
    t.check('under another prefix', r.returncode == 0, r)
    for unit in UNITS:
        path = f'{prefix}/lib/systemd/system/{unit}'
        with open(path) as f:
            text = f.read()
        t.check(f'{unit}: the prefix is known to it', 'ExecStart=/opt/bin/storm ' in text, text)
        instance = path.replace('@.', '@test.')
        with open(instance, 'w') as f:
            f.write(text.replace('ExecStart=/opt/', f'ExecStart={prefix}/'))
        if shutil.which('systemd-analyze') is None:
            t.skip(f'{unit}: systemd finds no fault', 'systemd-analyze is not installed')
            continue
        r = subprocess.run(['systemd-analyze', 'verify', '--man=no', '--recursive-errors=no', instance], capture_output=True,
                           text=True)
        t.check(f'{unit}: systemd finds no fault', r.returncode == 0 and unit.split('@')[0] not in r.stderr, r)


def package(t):
    if option('b_sanitize') != 'none':
        t.skip('a package', 'programs with sanitizers are not packed')
        return
    if shutil.which('dpkg-deb') is None or shutil.which('dpkg-shlibdeps') is None:
        t.skip('a package', 'dpkg-deb or dpkg-shlibdeps is not installed')
        return
    r = tool('deb', BUILD, t.work)
    deb = r.stdout.strip()
    t.check('a package is made', r.returncode == 0 and re.search(r'/storm_[0-9.]+_\w+\.deb$', deb), r)
    info = subprocess.run(['dpkg-deb', '--field', deb], capture_output=True, text=True).stdout
    fields = dict(re.findall(r'^([\w-]+): (.*)$', info, re.M))
    t.check('it says what it needs', 'libc6 (>= ' in fields.get('Depends', '') and 'libsqlite3-0' in fields['Depends'] and
            'libfabric' not in fields['Depends'] and int(fields['Installed-Size']) > 1000, info)
    rows = subprocess.run(['dpkg-deb', '--contents', deb], capture_output=True, text=True).stdout.splitlines()
    owners = {row.split()[1] for row in rows}
    t.check('all of it is root\'s', owners == {'root/root'}, owners)
    t.check('again, it is the same', same_again(t, deb), deb)
    root, control = t.path('extracted'), t.path('control')
    for flag, to in (('-x', root), ('-e', control)):
        t.check(f'dpkg-deb {flag}', subprocess.run(['dpkg-deb', flag, deb, to]).returncode == 0)
    whole(t, 'package', root, '/usr', '.gz')
    scripts(t, control)
    with open(f'{control}/conffiles') as f:
        t.check('settings are the administrator\'s', f.read() == '/etc/storm/environment\n')
    with open(f'{control}/md5sums') as f:
        sums = dict(reversed(line.rstrip('\n').split('  ')) for line in f)
    t.check('sums of all files', set(sums) == {n for n in files(root) if n.startswith('usr/') and
                                              not os.path.islink(f'{root}/{n}')} and
            all(sums[n] == hashlib.md5(open(f'{root}/{n}', 'rb').read()).hexdigest() for n in list(sums)[:20]))
    with gzip.open(f'{root}/usr/share/doc/storm/changelog.gz', 'rt') as f:
        t.check('a changelog and a copyright', f.read().startswith(f'storm ({fields["Version"]}) ') and 'MIT' in
                open(f'{root}/usr/share/doc/storm/copyright').read())
    names = subprocess.run(['nm', f'{root}/usr/bin/storm'], capture_output=True, text=True).stdout
    t.check('debuggers find what they look for, and no other name is left', {'MPIR_proctable', 'MPIR_Breakpoint'} <=
            set(names.split()) and names.count('\n') == names.count(' MPIR_'), names[:500])
    cluster(t, 'package', f'{root}/usr/bin/storm')
    lint(t, deb)


def same_again(t, deb):
    os.mkdir(t.path('again'))
    again = tool('deb', BUILD, t.path('again')).stdout.strip()
    with open(deb, 'rb') as a, open(again, 'rb') as b:
        return a.read() == b.read()


def scripts(t, control):
    """They do nothing where there is no systemd, and never start anything."""
    for name in ('postinst', 'prerm', 'postrm'):
        path = f'{control}/{name}'
        with open(path) as f:
            text = f.read()
        t.check(f'{name} is a script', os.access(path, os.X_OK) and subprocess.run(['sh', '-n', path]).returncode == 0)
        t.check(f'{name} starts nothing', not re.search(r'systemctl.*\b(start|enable|restart)\b', text), text)


def lint(t, deb):
    if shutil.which('lintian') is None:
        t.skip('lintian finds no error', 'lintian is not installed')
        return
    r = subprocess.run(['lintian', '--allow-root', '--fail-on', 'error', deb], capture_output=True, text=True)
    t.check('lintian finds no error', r.returncode == 0, r.stdout + r.stderr)


play(folder, units, package, up=None)
