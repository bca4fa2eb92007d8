# SPDX-License-Identifier: MIT
"""What end-to-end tests need to sit at a terminal."""
import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time


class Terminal:
    """A command at a terminal of its own."""

    def __init__(self, t, *args, size=(33, 77), shell=False, **more):
        self.main, end = pty.openpty()
        fcntl.ioctl(self.main, termios.TIOCSWINSZ, struct.pack('HHHH', *size, 0, 0))

        def own():
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        begin = t.spawn if shell else t.start
        self.p = begin(*args, stdin=end, stdout=end, stderr=end, preexec_fn=own, **more)
        os.close(end)
        self.text = ''

    def expect(self, words, seconds=20):
        end = time.monotonic() + seconds
        while words not in self.text:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.main], [], [], left)[0]:
                return False
            try:
                got = os.read(self.main, 65536)
            except OSError:
                got = b''
            if not got:
                return words in self.text
            self.text += got.decode(errors='replace')
        return True

    def type(self, keys):
        os.write(self.main, keys)

    def resize(self, rows, columns):
        fcntl.ioctl(self.main, termios.TIOCSWINSZ, struct.pack('HHHH', rows, columns, 0, 0))

    def wait(self):
        try:
            return self.p.wait(20)
        except subprocess.TimeoutExpired:
            self.p.kill()
            return 'stuck'

    def close(self):
        os.close(self.main)
