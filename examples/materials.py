#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The shape of a materials science program (the CARMI paper, section 4): cycles of 31 steps that take very different times,
and each cycle needs all results of the one before.

    storm-wodi --folder /tmp/wodi &                     # prints STORM_WODI=...: export it
    python3 materials.py worker & python3 materials.py worker & python3 materials.py master

A chain of atoms: each step finds how many electrons there are below the Fermi level on its part of the waves, with as many
points as that part is hard; the master then moves the level until there are as many as there should be. The level of each
cycle goes to all workers before its steps. Lengths of steps are remembered: from the second cycle on the longest goes first.
"""
import math
import struct
import sys

import storm

STEPS, CYCLES, ELECTRONS = 31, 35, 0.3
LEVEL, PART, COUNT = struct.Struct('=d'), struct.Struct('=II'), struct.Struct('=d')
level = 0.0


def begin(buffer):
    global level
    level, = LEVEL.unpack(buffer)


def work(data):
    """Of this part of the waves, those below the level; smeared a little."""
    part, points = PART.unpack(data)
    total = 0.0
    for i in range(points):
        wave = math.pi * (part + (i + 0.5) / points) / STEPS
        total += 1 / (1 + math.exp(min((-2 * math.cos(wave) - level) / 0.02, 700)))
    return COUNT.pack(total / points / STEPS)


def points_of(part):
    """Some are twenty times as hard as others; one of the last is the hardest."""
    return 8000 if part == 27 else 400 + 200 * (part * 7 % 32)


def main():
    if sys.argv[1:] == ['worker']:
        storm.wodi_worker(work, cycle_start=begin)
    elif sys.argv[1:] == ['master']:
        search()
    else:
        sys.exit('usage: materials.py master|worker')


def search():
    low, high = -2.5, 2.5
    with storm.WodiMaster(name='materials') as master:
        for cycle in range(1, CYCLES + 1):
            middle = (low + high) / 2
            if master.begin_cycle(cycle, LEVEL.pack(middle), STEPS):
                sys.exit('a former life has done some cycles: this example keeps nothing of them; take a new folder')
            for part in range(STEPS):
                master.send(part + 1, PART.pack(part, points_of(part)))
            electrons = math.fsum(COUNT.unpack(r.data)[0] for r in master.results())
            master.end_cycle(cycle)
            low, high = (middle, high) if electrons < ELECTRONS else (low, middle)
        print(f'Fermi level {(low + high) / 2:.6f}')


main()
