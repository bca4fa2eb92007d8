#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A program that grows and shrinks, in Python: it asks for hosts, runs a command on each, and gives each host back when its
command has ended. The same as grow.c.

    PYTHONPATH=/usr/local/share/storm/python storm run python3 grow.py 4 hostname
"""
import enum
import sys

import storm


class Tag(enum.IntEnum):
    DEFINED, GROWN, COMMAND, SHRUNK = range(4)


def grow(carmi, count, command):
    """How many hosts did not come."""
    carmi.define_class('any', tag=Tag.DEFINED)
    carmi.addhosts('any', count, tag=Tag.GROWN)
    more, here = True, 0
    while more or here > 0:
        m = carmi.receive()
        if not m.success:
            print(f'grow: {m.text}', file=sys.stderr)
        if m.tag == Tag.GROWN:          # also if others will not come
            for host in m.hosts:
                carmi.host_spawn(command, host, tag=Tag.COMMAND)
            here += len(m.hosts)
            more = not m.last
        if m.tag == Tag.COMMAND and m.last:
            carmi.delhosts(m.hosts, tag=Tag.SHRUNK)
        if m.tag == Tag.SHRUNK:
            here -= 1
            count -= 1
    return count


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    try:
        with storm.Carmi() as carmi:
            sys.exit(grow(carmi, count, sys.argv[2:] or ['hostname']) > 0)
    except storm.CarmiError as error:
        sys.exit(f'grow: {error.strerror}')


main()
