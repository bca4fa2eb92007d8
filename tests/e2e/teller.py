# SPDX-License-Identifier: MIT
"""A job whose program does what it is told: tests/carmi_teller.c."""
import os
import queue
import shutil
import subprocess
import threading

from harness import PATIENCE


def program(t):
    to = os.path.join(t.bin, 'carmi_teller')
    if not os.path.exists(to):
        shutil.copy(os.path.join(os.path.dirname(os.environ['STORM']), 'tests', 'carmi_teller'), to)
    return to


class Teller:
    """A job whose program does what it is told."""

    def __init__(self, t, *options, start=None):
        self.t = t
        start = start or (lambda *command: t.start(*command, stderr=subprocess.DEVNULL))
        self.p = start('run', *(options or ('-w', 'n0')), program(t))
        self.lines = queue.Queue()
        self.kept = []
        threading.Thread(target=self.listen, daemon=True).start()
        t.check('it begins', self.line() == 'ready')

    def listen(self):
        for line in self.p.stdout:
            self.lines.put(line.decode().rstrip('\n'))

    def line(self):
        try:
            return self.lines.get(timeout=PATIENCE)
        except queue.Empty:
            return ''

    def ask(self, *words):
        """The number of the request."""
        self.p.stdin.write((' '.join(str(w) for w in words) + '\n').encode())
        self.p.stdin.flush()
        while True:
            line = self.line()
            if line == '' or line.startswith(('request', 'refused')):
                return line.split()[-1] if line.startswith('request') else line
            self.kept.append(line)

    def hear(self, number):
        """The next message of a request, as words behind its number."""
        for i, line in enumerate(self.kept):
            if line.split()[0] == number:
                return self.kept.pop(i).split()[1:]
        while True:
            line = self.line()
            if line == '' or line.split()[0] == number:
                return line.split()[1:]
            self.kept.append(line)

    def does(self, *words):
        return self.hear(self.ask(*words))

    def grows(self, name, count=1, increment=1):
        """Hosts, when all are there."""
        number, hosts = self.ask('add', name, count, increment), []
        while True:
            said = self.hear(number)
            hosts += [w for w in said[1:] if w.isdigit()]
            if not said or said[-1] == 'last':
                return hosts

    def end(self):
        self.p.stdin.close()
        return self.p.wait(timeout=PATIENCE) == 0
