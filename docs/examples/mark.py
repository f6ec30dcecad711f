#!/usr/bin/env python3
# SPDX-License-Identifier: MIT

"""The same in Python. What waits for others has a key, because they take turns on one thread.

For each number in a line of its standard input, it handles so many requests one after the other, and
then as many jobs at a time. In a drop-in of it:

    [X-Tlob request]
    Executable=/usr/lib/example/marks.so
    Mark=request
    BudgetSec=20ms

python3 -m tlob -o /usr/lib/example/marks.so request job:key
usage: mark.py /usr/lib/example/marks.so
"""

import asyncio
import sys
import time

import tlob


@tlob.mark("request")
def handle_request(number):
    time.sleep(0.05 if number % 10 == 0 else 0.001)
    if number % 10 == 0:
        raise ValueError("it was a long one")


async def do_job(number):
    with tlob.mark("job", key=number):
        await asyncio.sleep(0.05 if number % 10 == 0 else 0.001)


async def do_jobs(n):
    await asyncio.gather(*map(do_job, range(1, n + 1)))


def main():
    tlob.load(sys.argv[1])
    for line in sys.stdin:
        n = int(line)
        for number in range(1, n + 1):
            try:
                handle_request(number)
            except ValueError as error:
                print(f"Request {number}: {error}")
        asyncio.run(do_jobs(n))
        print(f"Did {n}.", flush=True)


if __name__ == "__main__":
    main()
