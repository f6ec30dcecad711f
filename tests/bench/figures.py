# SPDX-License-Identifier: LGPL-2.1-or-later

"""From the values that the programs of the bench print to the rows of its table.

A program prints lines "SERIES ROUND VALUE". Samples are these as series -> round -> values. Here, and
nowhere else, they become figures; nothing here runs, prints or judges anything but numbers.
"""

import collections
import dataclasses
import statistics
from typing import Callable, Optional


def read_samples(lines):
    samples = collections.defaultdict(lambda: collections.defaultdict(list))
    for line in lines:
        series, number, value = line.split()
        samples[series][int(number)].append(float(value))
    return samples


@dataclasses.dataclass
class Figure:
    value: float
    low: float
    high: float


def over_rounds(values):
    """The median of one value a round; the spread is the middle half of them."""
    if len(values) == 1:
        return Figure(values[0], values[0], values[0])
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return Figure(middle, low, high)


def quantile(values, q):
    """The smallest value that at least that part of them do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -int(-q * len(ordered) // 1) - 1)]


def median(series, scale=1):
    def compute(samples):
        return over_rounds([statistics.median(values) * scale
                            for values in samples[series].values()])
    return series, compute


def ratio(series, base):
    """How many times the base, in each round by itself."""
    def compute(samples):
        return over_rounds([statistics.median(values) / statistics.median(samples[base][number])
                            for number, values in samples[series].items()])
    return series, compute


def percentile(series, q, scale=1):
    """Of all values, whatever their round; the spread is from the best round to the worst."""
    def compute(samples):
        rounds = samples[series].values()
        each = [quantile(values, q) * scale for values in rounds]
        return Figure(quantile([value for values in rounds for value in values], q) * scale,
                      min(each), max(each))
    return series, compute


def worst(series):
    """The greatest of all: for what should not happen in any round."""
    def compute(samples):
        values = [value for values in samples[series].values() for value in values]
        return Figure(max(values), min(values), max(values))
    return series, compute


@dataclasses.dataclass
class Row:
    group: str
    text: str
    what: tuple  # a series that must be there, and what makes a figure of the samples
    unit: str = ""
    needs: Optional[str] = None  # what a kernel may lack
    reach: Optional[float] = None  # the figure should not be above
    reach_from: Optional[Callable] = None  # the same, from the samples

    def figure(self, samples):
        """None if nothing was measured: not possible on this kernel."""
        series, compute = self.what
        return compute(samples) if series in samples else None

    def limit(self, samples):
        return self.reach_from(samples) if self.reach_from else self.reach


def tick(samples):
    """How long a tick of the scheduler is, as printed along with what was measured."""
    return samples["tick"][0][0]


def lateness_rows():
    for mode, words in (("uprobe", "timer armed by the start"),
                        ("fentry", "timer armed through fentry"),
                        ("switch-tick", "timer and tick")):
        for way, state in (("asleep", "asleep"), ("waiting", "waiting"), ("running", "running"),
                           ("long", "running, budget over a tick")):
            for q, asleep in ((0.5, 100), (0.99, 1000)):
                row = Row("lateness", f"report after the deadline, {words}, {state}, p{q * 100:.0f}",
                          percentile(f"{mode}.{way}", q), "us")
                if way == "asleep":
                    row.reach = asleep
                if (mode, way, q) == ("switch-tick", "running", 0.99):
                    row.reach_from = tick
                yield row


def scale_rows():
    for shape, words in (("one", "on one site, of as many cgroups"),
                         ("own", "on sites of their own")):
        for n in (10, 100):
            yield Row("scale", f"a window with {n} bindings {words}, against 1",
                      ratio(f"{shape}.{n}.window", f"{shape}.1.window"), "x", 1.2)
        for n in (1, 10, 100):
            yield Row("scale", f"to add {n} binding{'s' * (n > 1)} {words}", median(f"{shape}.{n}.attach"), "ms")


ROWS = [
    Row("window", "a window, unit filter on, against two empty probes: `push`",
        ratio("push.confined", "push.empty"), "x", 1.15),
    Row("window", "the same: 5-byte nop", ratio("nop5.confined", "nop5.empty"), "x", 1.15),
    Row("window", "the same: `endbr64`, which both skip",
        ratio("endbr64.confined", "endbr64.empty"), "x"),
    Row("window", "without unit filter: `push`", ratio("push.window", "push.empty"), "x"),
    Row("window", "without unit filter: 5-byte nop", ratio("nop5.window", "nop5.empty"), "x"),
    Row("window", "two empty probes: `push`", median("push.empty"), "ns"),
    Row("window", "a window, unit filter on: `push`", median("push.confined"), "ns"),
    Row("window", "two empty probes: 5-byte nop", median("nop5.empty"), "ns"),
    Row("window", "a window, unit filter on: 5-byte nop", median("nop5.confined"), "ns"),

    Row("bpftrace", "a window, unit filter on, against bpftrace: `endbr64`",
        ratio("endbr64.confined", "endbr64.bpftrace"), "x", 0.33),
    Row("bpftrace", "the same: `push`", ratio("push.confined", "push.bpftrace"), "x", 0.8),
    Row("bpftrace", "without unit filter: `push`", ratio("push.window", "push.bpftrace"), "x"),

    Row("switch", "`perf bench sched pipe` with one idle binding against none",
        ratio("perf.idle", "perf.none"), "x", 1.05),
    Row("switch", "a pipe ping-pong of our own with one idle binding against none",
        ratio("switch.idle", "switch.none"), "x", 1.05),
    Row("switch", "the same, both tasks inside an open window",
        ratio("switch.window", "switch.none"), "x", 1.15),
    Row("switch", "a round trip of it without bindings", median("switch.none"), "ns"),
    Row("switch", "a round trip inside open windows", median("switch.window"), "ns"),

    *lateness_rows(),

    Row("signal", "from the deadline to a D-Bus client that has the signal, 10 a second, p50",
        percentile("signal", 0.5, 1 / 1000), "ms"),
    Row("signal", "from the deadline to a D-Bus client that has the signal, 10 a second, p99",
        percentile("signal", 0.99, 1 / 1000), "ms", 10),

    *scale_rows(),

    Row("daemon", "memory of the idle daemon, no bindings", median("daemon.0.rss", 1 / 1024), "MB"),
    Row("daemon", "memory with 1 binding", median("daemon.1.rss", 1 / 1024), "MB"),
    Row("daemon", "memory with 10", median("daemon.10.rss", 1 / 1024), "MB"),
    Row("daemon", "memory with 100", median("daemon.100.rss", 1 / 1024), "MB"),
    Row("daemon", "wake-ups in 10 s, no bindings", worst("daemon.0.wakeups"), ""),
    Row("daemon", "wake-ups in 10 s, 100 bindings", worst("daemon.100.wakeups"), ""),
    Row("daemon", "tlobctl add-binding, the first, which loads the BPF programs",
        median("daemon.first"), "ms"),
    Row("daemon", "tlobctl add-binding, of 99 more", percentile("daemon.more", 0.5), "ms"),
    Row("daemon", "stop with 100 bindings, all probes out of the kernel", median("daemon.stop"),
        "s"),
]
