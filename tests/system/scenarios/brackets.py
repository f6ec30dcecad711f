# SPDX-License-Identifier: LGPL-2.1-or-later
"""brackets.py MARK TRACE SHOWN ENDED

Compares the windows of a mark with their partners in a trace of the kernel. SHOWN is what "tlobctl show -j" prints,
ENDED the entries of violations that have ended.

A window begins after MARK_outer_begin and before MARK_inner_begin, and ends after MARK_inner_end and before
MARK_outer_end, on the same thread. So its length lies between two others that are known, whatever the uprobes
cost, and whatever comes in between. The trace has microseconds, which are rounded.
"""

import bisect
import json
import re
import sys

ROUNDED_NS = 500
EVENT = re.compile(r"-(\d+) +\[\d+\] \S+ +(\d+)\.(\d{6}): (\w+)_(outer|inner)_(begin|end):")


class Window:
    """What the trace knows of one: when it began and ended, at the earliest and at the latest."""

    def __init__(self, outer_begin, inner_begin):
        self.began = (outer_begin - ROUNDED_NS, inner_begin + ROUNDED_NS)
        self.ended = None

    def end(self, inner_end, outer_end):
        self.ended = (inner_end - ROUNDED_NS, outer_end + ROUNDED_NS)

    def shortest(self):
        return max(self.ended[0] - self.began[1], 0)

    def longest(self):
        return self.ended[1] - self.began[0]

    def can_be(self, began, ended):
        return self.began[0] <= began <= self.began[1] and self.ended[0] <= ended <= self.ended[1]


def read_trace(path, mark):
    """Returns the windows, and how many begins and ends made none, as tlob-mark(3) counts them."""
    windows, nested, unmatched = [], 0, 0
    window, last = {}, {}
    with open(path, encoding="utf-8") as lines:
        for tid, seconds, microseconds, name, side, what in EVENT.findall(lines.read()):
            if name != mark:
                continue
            now = (int(seconds) * 1000000 + int(microseconds)) * 1000
            before, then = last.get(tid, ("", 0))
            last[tid] = (side + what, now)
            # The inner function is called by others, too.
            match before, last[tid][0]:
                case "outerbegin", "innerbegin":
                    nested += tid in window
                    window.setdefault(tid, Window(then, now))
                case "innerend", "outerend" if tid in window:
                    window[tid].end(then, now)
                    windows.append(window.pop(tid))
                case "innerend", "outerend":
                    unmatched += 1
    assert not window, "a window has not ended"
    return windows, nested, unmatched


def compare_histogram(windows, histogram):
    """No more windows are up to that long than could be, and no fewer, for each bound."""
    shortest, longest = sorted(w.shortest() for w in windows), sorted(w.longest() for w in windows)
    so_far = 0
    for bound, n in histogram:
        so_far += n
        least, most = bisect.bisect(longest, bound), bisect.bisect(shortest, bound)
        assert least <= so_far <= most, f"up to {bound} ns: {so_far} windows, not {least} to {most}"
    assert so_far == len(windows)


def compare_violations(windows, entries, budget_ns):
    """Each has a partner of its own, and none is missing."""
    left = [w for w in windows if w.longest() > budget_ns]
    for entry in entries:
        ended, elapsed = int(entry["TLOB_TIME_NS"]), int(entry["TLOB_ELAPSED_NS"])
        partners = [w for w in left if w.can_be(ended - elapsed, ended)]
        assert partners, f"no window in the trace ended at {ended} after {elapsed} ns"
        left.remove(partners[0])
    missing = [w for w in left if w.shortest() > budget_ns]
    assert not missing, f"{len(missing)} windows of {missing[0].shortest()} ns and more are no violations"


def main():
    mark, trace, shown, ended = sys.argv[1:]
    with open(shown, encoding="utf-8") as f:
        binding = json.load(f)[0]
    with open(ended, encoding="utf-8") as f:
        entries = [json.loads(line) for line in f]
    windows, nested, unmatched = read_trace(trace, mark)
    counters = binding["Counters"]
    least, most = sum(w.shortest() for w in windows), sum(w.longest() for w in windows)
    print(f"{len(windows)} windows, {len(entries)} of them violations, {nested} nested;",
          f"{binding['ElapsedNSec'] / 1e6:.1f} ms, of {least / 1e6:.1f} to {most / 1e6:.1f}")
    assert counters["starts"] == counters["in-budget"] + counters["violated"] == len(windows), counters
    assert (counters["nested"], counters["unmatched"]) == (nested, unmatched), counters
    assert binding["Violations"] == counters["violated"] == len(entries), counters
    assert least <= binding["ElapsedNSec"] <= most
    assert max(w.shortest() for w in windows) <= binding["MaxNSec"] <= max(w.longest() for w in windows)
    compare_histogram(windows, binding["Histogram"])
    compare_violations(windows, entries, int(binding["BudgetNSec"]))


main()
