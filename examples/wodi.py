#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Master and workers by WoDi, in Python: sums of squares, in cycles. The same as wodi.c; they even work for each other.

    storm run python3 wodi.py                           # it asks for hosts, and its workers run there

Or by hand, on any machine:

    storm-wodi --folder /tmp/wodi &                     # prints STORM_WODI=...: export it
    python3 wodi.py worker & python3 wodi.py worker & python3 wodi.py

Kill any of them, the server too, and start it again: the sums stay the same.
"""
import os
import struct
import sys

import storm

CYCLES, STEPS = 3, 100
NUMBER = struct.Struct('=Q')


def work(data):
    n, = NUMBER.unpack(data)
    return NUMBER.pack(sum(i * i for i in range(1, n + 1)) % 2**64)


def cycle(master, number):
    if master.begin_cycle(number, steps=STEPS):
        return          # a former life of this program has done it
    for step in range(1, STEPS + 1):
        master.send(step, NUMBER.pack(number * 1000 * step))
    total = sum(NUMBER.unpack(r.data)[0] for r in master.results()) % 2**64
    master.end_cycle(number)
    print(f'cycle {number}: {total}')


def main():
    if sys.argv[1:] == ['worker']:
        storm.wodi_worker(work)
    elif sys.argv[1:] in ([], ['master']):
        worker = [sys.executable, os.path.abspath(__file__), 'worker']
        with storm.WodiMaster(worker=worker, workers=4, fewest=True) as master:
            for number in range(1, CYCLES + 1):
                cycle(master, number)
    else:
        sys.exit('usage: wodi.py [master|worker]')


main()
