# SPDX-License-Identifier: LGPL-2.1-or-later

"""From the values that the programs of the bench print to the rows of its table.

A program prints lines "SERIES ROUND VALUE". Samples are these as series -> round -> values. Here,
and nowhere else, they become figures; nothing here runs, prints or judges anything but numbers.
"""

import collections
import dataclasses
import math
import statistics
from typing import Callable, Union


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
    return sorted(values)[max(math.ceil(q * len(values)), 1) - 1]


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


def difference(series, base):
    """How much more than the base, in each round by itself."""
    def compute(samples):
        return over_rounds([statistics.median(values) - statistics.median(samples[base][number])
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
    reach: Union[float, Callable, None] = None  # what it should not be above, or how to find that
    needs: str = ""  # what not every kernel has

    def figure(self, samples):
        """None if nothing was measured, for want of what it needs."""
        series, compute = self.what
        return compute(samples) if series in samples else None

    def limit(self, samples):
        return self.reach(samples) if callable(self.reach) else self.reach


def tick(samples):
    """How long a tick of the scheduler is, as printed along with what was measured."""
    return samples["tick"][0][0]


WINDOW = "a window, unit filter on, against two empty probes"
BPFTRACE = "a window, unit filter on, against bpftrace"
PIPE = "a pipe ping-pong of our own"
MONITOR = "the kernel's monitor (stand-in)"
FLOOD = "200 threads in windows at once"


def lateness_rows():
    for mode, words in (("uprobe", "timer armed by the start"),
                        ("fentry", "timer armed through fentry"),
                        ("switch-tick", "timer and tick")):
        for way, state, reach in (("asleep", "asleep", (100, 1000)),
                                  ("waiting", "waiting", (None, None)),
                                  ("running", "running", (None, None)),
                                  ("long", "running, budget over a tick", (None, None))):
            for q, limit in zip((0.5, 0.99), reach):
                if (mode, way, q) == ("switch-tick", "running", 0.99):
                    limit = tick
                yield Row("lateness",
                          f"report after the deadline, {words}, {state}: p{q * 100:.0f}",
                          percentile(f"{mode}.{way}", q), "us", limit,
                          f"DeadlineMode={mode}")


def monitor_rows():
    for rate in (10, 1000):
        for q in (0.5, 0.99):
            yield Row("monitor",
                      f"{MONITOR}, from the violation to a D-Bus client that has the signal, {rate} a "
                      f"second: p{q * 100:.0f}",
                      percentile(f"monitor.signal.{rate}", q, 1 / 1000), "ms")
    yield Row("monitor", f"{MONITOR}, CPU time for 1000 violations, each signalled",
              median("monitor.cpu.told"), "ms")
    yield Row("monitor", f"{MONITOR}, CPU time for 1000 violations, above the rate limit",
              median("monitor.cpu.counted"), "ms")
    yield Row("monitor", "1000 violations recorded raw, for `trace-cmd restore` and `report`, CPU time",
              median("monitor.cpu.trace-cmd"), "ms")
    yield Row("monitor", f"{MONITOR}, events a second until some are lost",
              median("monitor.lossless"))
    yield Row("monitor", f"{MONITOR}, events lost beyond that, and counted",
              median("monitor.lost"))
    yield Row("monitor", f"{MONITOR}, events lost and not counted", worst("monitor.uncounted"), "", 0)


def storm_rows():
    for way, words in (("10", "10 violations a second"), ("1000", "about 1000 violations a second"),
                       ("most", "as many violations as a thread can have")):
        yield Row("storm", f"{words}: how many a second", median(f"storm.rate.{way}"))
        yield Row("storm", f"{words}: CPU time of tlobd", median(f"storm.cpu.{way}"), "% of a CPU")


def piece_rows():
    for piece, words in (("clock", "a look at the clock"),
                         ("cookie", "the cookie of the probe"),
                         ("call", "a call of another function"),
                         ("look_array", "a look into an array"),
                         ("look_per_cpu", "a look into an array of the CPU"),
                         ("look_nested", "a look into an array of the CPU in an array of maps"),
                         ("look_hash", "a look into a hash that has no such key"),
                         ("look_storage", "a look into the storage of a task"),
                         ("own_cgroup", "the cgroup of the task"),
                         ("ancestor", "a cgroup above that"),
                         ("user_read", "to read a word of the program's memory"),
                         ("kernel_read", "to read a word of the kernel's by bpf_probe_read_kernel()"),
                         ("store", "to write a word"),
                         ("locked_add", "to add to a word that others add to"),
                         ("exchange", "to exchange a word"),
                         ("compare", "to compare and exchange a word")):
        yield Row("pieces", f"a piece of a window: {words}",
                  difference(f"piece.{piece}", "piece.nothing"), "ns")


def scale_rows():
    for shape, words in (("one", "on one site, of as many cgroups"),
                         ("own", "on sites of their own")):
        for n in (10, 100):
            yield Row("scale", f"a window with {n} bindings {words}, against 1",
                      ratio(f"{shape}.{n}.window", f"{shape}.1.window"), "x", 1.05)
        for n in (1, 10, 100):
            yield Row("scale", f"to add {n} binding{'s' * (n > 1)} {words}",
                      median(f"{shape}.{n}.attach"), "ms")
        yield Row("scale", f"memory of the back end, 100 bindings {words}, less 1",
                  difference(f"{shape}.100.rss", f"{shape}.1.rss"), "kB")


ROWS = [
    Row("window", f"{WINDOW}: `push`", ratio("push.confined", "push.empty"), "x", 1.12),
    Row("window", f"{WINDOW}: `endbr64`, skipped",
        ratio("endbr64.confined", "endbr64.empty"), "x"),
    Row("window", f"{WINDOW}: `push`, of a function whose stack is protected",
        ratio("guard.confined", "guard.empty"), "x", 1.12),
    Row("window", f"{WINDOW}: the same, in time",
        difference("guard.confined", "guard.empty"), "ns"),
    Row("window", f"{WINDOW}: `push`, in time",
        difference("push.confined", "push.empty"), "ns"),
    Row("window", "a window, no unit filter, against two empty probes: `push`",
        ratio("push.window", "push.empty"), "x"),
    Row("window", "two empty probes: `push`", median("push.empty"), "ns"),

    *piece_rows(),

    Row("bpftrace", f"{BPFTRACE}: `endbr64`", ratio("endbr64.confined", "endbr64.bpftrace"), "x",
        0.33),
    Row("bpftrace", f"{BPFTRACE}: `push`", ratio("push.confined", "push.bpftrace"), "x", 0.7),
    Row("bpftrace", f"{BPFTRACE}: `push`, of a function whose stack is protected",
        ratio("guard.confined", "guard.bpftrace"), "x", 0.7),
    Row("bpftrace", "a window, no unit filter, against bpftrace: `push`",
        ratio("push.window", "push.bpftrace"), "x"),

    Row("threads", "a window, against two empty probes at the same places: one thread",
        ratio("threads.1.window", "threads.1.empty"), "x"),
    Row("threads", "the same, four threads at once on two CPUs",
        ratio("threads.4.window", "threads.4.empty"), "x"),
    Row("threads", "a window while four threads go through windows, against one thread",
        ratio("threads.4.window", "threads.1.window"), "x", 1.15),
    Row("threads", "two empty probes while four threads go through them, against one thread",
        ratio("threads.4.empty", "threads.1.empty"), "x"),

    Row("mark", "a mark to which nobody listens: begin and end",
        difference("mark.silent", "mark.bare"), "ns", 1),
    Row("mark", "a window of a mark, no unit filter, against two empty probes there",
        ratio("mark.window", "mark.empty"), "x"),
    Row("mark", "a window of a mark, unit filter on, against two empty probes there",
        ratio("mark.confined", "mark.empty"), "x"),
    Row("mark", "a window of a mark, unit filter on", median("mark.confined"), "ns"),
    Row("mark", "a window with a key, unit filter on, against one without",
        ratio("mark.keyed", "mark.confined"), "x"),
    Row("mark", "a window without traps", median("mark.joined"), "ns"),
    Row("mark", "a window without traps, more than two looks at the clock",
        difference("mark.joined", "mark.clock"), "ns", 25),
    Row("mark", "a window without traps, against two empty probes on a mark",
        ratio("mark.joined", "mark.empty"), "x", 1 / 12),
    Row("mark", "two looks at the clock", median("mark.clock"), "ns"),
    Row("mark", "two empty probes on a mark", median("mark.empty"), "ns"),

    Row("join", "a window without traps that is over its budget, more than the work in it",
        difference("join.over", "join.spin"), "ns"),
    Row("join", "from the first window of a process to the first without a trap",
        median("join.process", 1e-6), "ms"),
    Row("join", "the first window of a thread, after which they take no trap",
        median("join.thread", 1e-3), "us"),
    Row("join", "report after the deadline, a window without traps, asleep",
        median("join.late.asleep", 1e-3), "us"),
    Row("join", "report after the deadline, a window without traps, running",
        median("join.late.running", 1e-3), "us"),
    Row("join", "a pipe ping-pong of two threads that have lanes, against none",
        ratio("join.switch.lanes", "join.switch.strangers"), "x"),
    Row("join", "the same, both inside an open window, against none",
        ratio("join.switch.windows", "join.switch.strangers"), "x"),

    Row("call", "any system call, while another one is measured: longer by",
        difference("call.other", "call.bare"), "ns"),
    Row("call", "a system call that is measured in another unit: longer by",
        difference("call.elsewhere", "call.bare"), "ns"),
    Row("call", "a system call that is a window: longer by",
        difference("call.window", "call.bare"), "ns"),
    Row("call", "a function that is a window, on `push`, and makes that call: longer by",
        difference("call.function", "call.bare"), "ns"),
    Row("call", "a window of a system call against one of a function, all in all",
        ratio("call.window", "call.function"), "x"),
    Row("call", "any system call, while events of another one are measured: longer by",
        difference("call.other-events", "call.bare"), "ns"),
    Row("call", "a system call whose events are measured in another unit: longer by",
        difference("call.events-elsewhere", "call.bare"), "ns"),
    Row("call", "a system call between whose events is a window: longer by",
        difference("call.events", "call.bare"), "ns"),
    Row("call", "a system call without bindings", median("call.bare"), "ns"),

    Row("switch", "`perf bench sched pipe` with one idle binding, against none",
        ratio("perf.idle", "perf.none"), "x", 1.03),
    Row("switch", f"{PIPE} with empty programs in the places of three hooks, against none",
        ratio("switch.empty", "switch.none"), "x"),
    Row("switch", f"{PIPE} with one idle binding, against empty programs",
        ratio("switch.idle", "switch.empty"), "x"),
    Row("switch", f"{PIPE} with one idle binding, against none",
        ratio("switch.idle", "switch.none"), "x", 1.03),
    Row("switch", f"{PIPE}, both tasks inside an open window, against none",
        ratio("switch.window", "switch.none"), "x", 1.08),
    Row("switch", f"{PIPE} without bindings: a round trip", median("switch.none"), "ns"),

    *lateness_rows(),

    Row("signal", "from the deadline to a D-Bus client that has the signal, 10 a second: p50",
        percentile("signal", 0.5, 1 / 1000), "ms"),
    Row("signal", "from the deadline to a D-Bus client that has the signal, 10 a second: p99",
        percentile("signal", 0.99, 1 / 1000), "ms", 10),

    *monitor_rows(),

    *storm_rows(),

    *scale_rows(),

    Row("flood", f"{FLOOD}: windows a second", worst("flood.rate")),
    Row("flood", f"{FLOOD}: windows that began", worst("flood.starts")),
    Row("flood", f"{FLOOD}: windows that ended", worst("flood.ends")),
    Row("flood", f"{FLOOD}: windows missing in the books", worst("flood.missing"), "", 0),
    Row("flood", f"{FLOOD}: windows counted as over the limit", worst("flood.over_limit")),
    Row("flood", f"{FLOOD}: violations", worst("flood.violations")),
    Row("flood", f"{FLOOD}: reports lost while they are read", worst("flood.lost.read")),
    Row("flood", f"{FLOOD}: reports lost in 2 s when nobody reads, and counted",
        worst("flood.lost")),
    Row("flood", f"{FLOOD}: reports lost and not counted", worst("flood.uncounted"), "", 0),

    Row("daemon", "memory of tlobd, no bindings", median("daemon.0.rss", 1 / 1024), "MB", 5),
    Row("daemon", "memory of tlobd, 1 binding", median("daemon.1.rss", 1 / 1024), "MB", 7),
    Row("daemon", "memory of tlobd, 10 bindings", median("daemon.10.rss", 1 / 1024), "MB"),
    Row("daemon", "memory of tlobd, 100 bindings", median("daemon.100.rss", 1 / 1024), "MB"),
    Row("daemon", "wake-ups of tlobd in 10 s, no bindings", worst("daemon.0.wakeups")),
    Row("daemon", "wake-ups of tlobd in 10 s, 100 bindings", worst("daemon.100.wakeups")),
    Row("daemon", "tlobctl add-binding, the first, which loads the BPF programs",
        median("daemon.first"), "ms", 150),
    Row("daemon", "tlobctl add-binding, 99 more, each", median("daemon.more"), "ms", 2),
    Row("daemon", "stop with 100 bindings, all probes out of the kernel", median("daemon.stop"),
        "s"),
    Row("daemon", "memory of tlobd, 1000 bindings", median("daemon.many.rss", 1 / 1024), "MB", 12),
    Row("daemon", "start with 1000 bindings on sites of their own, less with 1",
        median("daemon.many"), "s", 1),
    Row("daemon", "a reload that takes 1000 bindings away, until no probe is left", median("daemon.many.away"), "s", 1),

    Row("client", "`tlobctl top` of 1000 bindings: CPU time of tlobctl in a second",
        median("client.top.tlobctl"), "ms"),
    Row("client", "`tlobctl top` of 1000 bindings: CPU time of tlobd in a second", median("client.top.tlobd"), "ms"),
    Row("client", "`tlobctl metrics` of 1000 bindings: CPU time of tlobctl", median("client.metrics.tlobctl"), "ms"),
    Row("client", "`tlobctl metrics` of 1000 bindings: CPU time of tlobd", median("client.metrics.tlobd"), "ms"),
    Row("client", "`tlobctl metrics` of 1000 bindings: time", median("client.metrics.time"), "ms"),
    Row("client", "`tlobctl metrics` of 1000 bindings: the file", median("client.metrics.size", 1 / 1000), "kB"),
    Row("client", "`tlobctl report`, 10000 violations: CPU time", median("client.report"), "ms"),
    Row("client", "`tlobctl report`, 10000 violations: the page", median("client.report.size", 1 / 1000), "kB"),
]
