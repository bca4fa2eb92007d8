# SPDX-License-Identifier: MIT
"""A master, or a worker of it, that hires its workers; for hire.py.

    hirer.py '{"options": {"workers": 4}, "cycles": [["gate", ...], ...]}'

A step waits until the file it names is there; before that it writes down that it has begun: gate, host. The master writes the steps of
each cycle whose results it has received, `again` if a former life has ended the cycle, and at last `done`."""
import json
import os
import sys
import time

import storm


def work(data):
    gate = data.decode()
    with open('began', 'a') as f:
        f.write(f'{gate} {os.environ["STORM_WODI_HOST"]}\n')
    while not os.path.exists(gate):
        time.sleep(0.01)
    return data


def cycle(master, number, gates):
    if master.begin_cycle(number, steps=len(gates)):
        return print(f'cycle {number}: again', flush=True)
    for step, gate in enumerate(gates, 1):
        master.send(step, gate.encode())
    steps = sorted(r.step for r in master.results() if r.status == 0)
    master.end_cycle(number)
    print(f'cycle {number}: {steps}', flush=True)


def main():
    if sys.argv[1] == 'worker':
        return storm.wodi_worker(work)
    plan = json.loads(sys.argv[1])
    options = {'worker': [sys.executable, os.path.abspath(__file__), 'worker'], **plan['options']}
    try:
        with storm.WodiMaster(**options) as master:
            for number, gates in enumerate(plan['cycles'], 1):
                cycle(master, number, gates)
    except storm.WodiError as error:
        print('error', error.errno, flush=True)
    print('done', flush=True)


main()
