# SPDX-License-Identifier: MIT
"""Machines in namespaces (tests/hosts) for the end-to-end tests in Python."""
import os
import shutil
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))


def no_machines(t):
    """Why there can be none here."""
    if t.user or os.geteuid() != 0:
        return 'only root can make machines'
    for need in ('/usr/sbin/sshd', 'ssh', 'unshare', 'nsenter', 'ip'):
        if shutil.which(need) is None:
            return f'{need} is not installed; tools/setup hosts does so'
    if subprocess.run(['unshare', '--net', '--mount', '--pid', '--fork', 'true'], capture_output=True).returncode != 0:
        return 'no namespaces can be made here'
    return None


class Machines:
    """h0, h1, ... and a desk, on which storm is what is tested."""

    def __init__(self, t, count):
        self.t, self.tool, self.bed = t, os.path.join(HERE, '..', 'hosts'), os.path.join(t.scratch, 'bed')
        self.do('up', str(count), '--hide', t.scratch)

    def do(self, verb, *args):
        r = subprocess.run([self.tool, verb, self.bed, *args], stdin=subprocess.DEVNULL, capture_output=True, text=True)
        self.t.check(' '.join((verb,) + args[:2]), r.returncode == 0, r)

    def start(self, host, *command, stdin=subprocess.DEVNULL, **more):
        """Any command on one of them."""
        env = {k: v for k, v in self.t.env.items() if k not in ('STORM_CONNECTOR', 'HOME')}
        env.update(more)
        return subprocess.Popen([self.tool, 'run', self.bed, host, *command], env=env, stdin=stdin,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def on(self, host, *command, **more):
        return self.t.finish(self.start(host, *command, **more))

    def storm(self, *args, **more):
        return self.on('desk', self.t.storm, *args, **more)
