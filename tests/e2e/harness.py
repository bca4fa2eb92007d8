# SPDX-License-Identifier: MIT
"""What the end-to-end tests in Python share: a cluster of their own, commands with a deadline, TAP.

With --user everything is done as an ordinary user without control groups, which needs root to
become one. The environment variable STORM is the path of the storm command."""
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

PATIENCE = 180  # seconds until a command counts as stuck; nothing is measured with it
NOBODY = 65534


class Result:
    def __init__(self, status, out, err):
        self.status, self.raw, self.err = status, out, err.decode(errors='replace')
        self.out = out.decode(errors='replace')

    def __repr__(self):
        return f'status {self.status}, out {self.out[:300]!r}, err {self.err[:300]!r}'

    def is_one_line(self, *words):
        """One complaint, in the usual form, that has these words."""
        return (self.err.count('\n') == 1 and self.err.startswith('storm: ') and
                all(w in self.err for w in words))


class Suite:
    def __init__(self):
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):   # ignored in the background, perhaps
            if signal.getsignal(number) == signal.SIG_IGN:
                signal.signal(number, signal.SIG_DFL)
        self.count = self.failed = 0
        self.user = '--user' in sys.argv
        storm = os.environ['STORM']
        if self.user and os.geteuid() != 0:
            print('1..0 # SKIP only root can become another user')
            sys.exit(0)
        self.scratch = tempfile.mkdtemp(prefix='storm-e2e-')
        self.work = os.path.join(self.scratch, 'work')
        os.mkdir(self.work)
        self.bin = os.path.join(self.scratch, 'bin')
        os.mkdir(self.bin)
        folder = os.path.dirname(storm)
        for name in ('storm', 'storm-mm', 'storm-pl', 'storm-nop', 'storm-mime', 'storm-fab', 'storm-hop',
                     'storm-topo', 'storm-wodi', 'storm-worker'):
            if os.path.exists(os.path.join(folder, name)):
                shutil.copy(os.path.join(folder, name), self.bin)
        self.storm = os.path.join(self.bin, 'storm')
        self.home = os.path.join(self.scratch, 'home')
        self.env = {k: v for k, v in os.environ.items() if k.startswith('STORM_TEST_') or not k.startswith('STORM')}
        self.env.update(STORM_HOME=self.home, HOME=self.work, TMPDIR=self.work, NO_COLOR='1',
                        ASAN_OPTIONS=os.environ.get('ASAN_OPTIONS', '') + ':detect_leaks=0')
        if self.user:
            for where, _, files in os.walk(self.scratch):
                for name in [''] + files:
                    os.chown(os.path.join(where, name), NOBODY, NOBODY)

    # ---- commands ----

    def words(self, args):
        become = ['setpriv', f'--reuid={NOBODY}', f'--regid={NOBODY}', '--clear-groups']
        return (become if self.user else []) + [str(a) for a in args]

    def spawn(self, *args, env=None, **more):
        """Any command, as the user of this suite, in the folder for work."""
        more.setdefault('cwd', self.work)
        return subprocess.Popen(self.words(args), env={**self.env, **(env or {})}, **more)

    def start(self, *args, **more):
        """A storm command that is left running; its streams are pipes unless said otherwise."""
        for name in ('stdin', 'stdout', 'stderr'):
            more.setdefault(name, subprocess.PIPE)
        return self.spawn(self.storm, *args, **more)

    def finish(self, p, data=None):
        try:
            out, err = p.communicate(data, timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            p.kill()
            out, err = p.communicate()
            return Result('stuck', out or b'', err or b'')
        return Result(p.returncode, out or b'', err or b'')

    def run(self, *args, data=None, **more):
        if data is None:
            more.setdefault('stdin', subprocess.DEVNULL)
        return self.finish(self.start(*args, **more), data)

    def sh(self, script, *args, **more):
        """storm run -- sh -c SCRIPT, with storm's options before."""
        return self.run('run', *args, '--', 'sh', '-c', script, **more)

    # ---- files and processes ----

    def path(self, name):
        return os.path.join(self.work, name)

    def write(self, name, text, mode=0o644):
        with open(self.path(name), 'w') as f:
            f.write(text)
        os.chmod(self.path(name), mode)
        if self.user:
            os.chown(self.path(name), NOBODY, NOBODY)
        return self.path(name)

    def read(self, name):
        try:
            with open(self.path(name), errors='replace') as f:
                return f.read()
        except FileNotFoundError:
            return ''

    def ours(self, mark):
        """Processes, not dead, that have the mark in their command line. The same suite may run as another
        user at the same time."""
        found = []
        uid = os.stat(self.home).st_uid
        for pid in filter(str.isdigit, os.listdir('/proc')):
            try:
                with open(f'/proc/{pid}/cmdline', 'rb') as f:
                    line = f.read().replace(b'\0', b' ').decode(errors='replace')
                with open(f'/proc/{pid}/stat') as f:
                    state = f.read().rpartition(')')[2].split()[0]
                owner = os.stat(f'/proc/{pid}').st_uid
            except (FileNotFoundError, ProcessLookupError):
                continue
            if mark in line and owner == uid and state not in 'ZX' and self.storm not in line:
                found.append(int(pid))
        return found

    def daemon(self, name, cluster='local'):
        """The process of that name below the watcher."""
        with open(os.path.join(self.home, cluster, 'cluster')) as f:
            watcher = dict(line.rstrip('\n').split(' ', 1) for line in f)['watcher']
        rows = subprocess.run(['ps', '-o', 'pid=,comm=', '--ppid', watcher], capture_output=True,
                              text=True).stdout
        for row in rows.splitlines():
            pid, comm = row.split(None, 1)
            if comm == name:
                return int(pid)
        return None

    # ---- verdicts ----

    def check(self, name, holds, why=''):
        self.count += 1
        if not holds:
            self.failed += 1
        print(f"{'ok' if holds else 'not ok'} {self.count} - {name}")
        if not holds:
            for line in str(why).splitlines()[:20]:
                print('#', line)
        sys.stdout.flush()
        return bool(holds)

    def skip(self, name, why):
        self.count += 1
        print(f'ok {self.count} - {name} # SKIP {why}')

    def running(self, program):
        """Processes of this one of our programs."""
        found = []
        for pid in filter(str.isdigit, os.listdir('/proc')):
            try:
                if os.readlink(f'/proc/{pid}/exe') == os.path.join(self.bin, program):
                    found.append(int(pid))
            except OSError:
                continue
        return sorted(found)

    def until(self, holds, seconds=PATIENCE):
        """Tries until it holds; not for ever, and not so often that others have to wait for that."""
        start = time.monotonic()
        while not holds():
            waited = time.monotonic() - start
            if waited > seconds:
                return False
            time.sleep(min(max(0.02, waited / 10), 0.25))
        return True

    def done(self):
        self.run('down')
        for name in os.listdir(self.home) if os.path.isdir(self.home) else []:
            self.run('down', '--cluster', name)
        shutil.rmtree(self.scratch, ignore_errors=True)
        print(f'1..{self.count}')
        sys.exit(1 if self.failed else 0)


def play(*scenes, up=('--local', '6', '--orphan', '2s')):
    """Brings a cluster up, plays the scenes on it, takes everything away."""
    t = Suite()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        if up is not None:
            r = t.run('up', *up)
            t.check('up', r.status == 0, r)
        only = os.environ.get('ONLY')
        for scene in scenes:
            if only is None or scene.__name__ in only.split(','):
                print('#', scene.__name__)
                scene(t)
    except Exception:   # what follows would not be missed otherwise
        t.check('the test itself', False, traceback.format_exc())
    finally:
        t.done()
