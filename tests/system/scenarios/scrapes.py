# SPDX-License-Identifier: LGPL-2.1-or-later

"""scrapes.py DIRECTORY BINDING...: scrapes "tlobctl metrics" from several processes at once, until DIRECTORY/end is there.

Each scrape must be whole and have all of these bindings, or say that tlobd is not there; its exit status and its sentence
must fit; and no counter that goes on over a restart may be less than in a scrape that was complete before this one began.
Prints what is wrong, and in the last line how many scrapes had what.
"""

import collections
import pathlib
import re
import subprocess
import sys
import threading

N_SCRAPERS = 4
WRONG_MAX = 20
GOES_ON = re.compile(r"tlob_(windows|violations|violations_suppressed|reports_lost|windows_ended|window_state_seconds|"
                     r"windows_without_traps)_total|tlob_window_seconds_(bucket|count|sum)")
SAMPLE = re.compile(r'((\w+)(?:\{((?:\w+="(?:[^"\\\n]|\\.)*",?)+)\})?) (-?[0-9.]+(?:e[+-]?\d+)?|\+Inf|NaN)')
OF_BINDING = ("tlob_binding_state", "tlob_windows_total", "tlob_violations_total", "tlob_window_seconds_count",
              "tlob_windows_ended_total", "tlob_window_state_seconds_total", "tlob_windows_open", "tlob_budget_seconds",
              "tlob_probes_seconds_total")


def read(text):
    """{series: value} of a text that is whole."""
    samples, families = {}, {}
    assert text.endswith("\n"), "it is cut"
    for line in text.splitlines():
        if line.startswith("# "):
            word, name, rest = line[2:].split(" ", 2)
            assert rest and word in ("HELP", "TYPE") and word not in families.setdefault(name, set()), line
            families[name].add(word)
            continue
        match = SAMPLE.fullmatch(line)
        assert match, f"no sample: {line}"
        series, name, _, value = match.groups()
        assert series not in samples, f"twice: {series}"
        family = name if name in families else re.sub("_(bucket|count|sum)$", "", name)
        assert families.get(family) == {"HELP", "TYPE"}, f"not announced: {name}"
        samples[series] = float(value)
    return samples


def check_bindings(samples, bindings):
    for binding in bindings:
        for name in OF_BINDING:
            assert any(series.startswith(f'{name}{{binding="{binding}",') for series in samples), f"no {name} of {binding}"
        of = next(series for series in samples if series.startswith(f'tlob_windows_total{{binding="{binding}",'))[18:-1]
        buckets = [value for series, value in samples.items() if series.startswith("tlob_window_seconds_bucket" + of)]
        assert len(buckets) == 28 and buckets == sorted(buckets), f"buckets of {binding}: {buckets}"
        assert buckets[-1] == samples[f"tlob_window_seconds_count{of}}}"], f"{binding}: the last bucket is not the count"


class Scrapes:
    def __init__(self, directory, bindings):
        self.directory, self.bindings = pathlib.Path(directory), bindings
        self.lock = threading.Lock()
        self.greatest, self.found, self.wrong = {}, collections.Counter(), []

    def check_whole(self, text, before):
        samples = read(text)
        if samples == {"tlob_up": 0}:
            return "without"
        assert samples.get("tlob_up") == 1, f"neither up nor down: {text[:200]}"
        check_bindings(samples, self.bindings)
        less = [f"{series}: {samples[series]:g} after {value:g}" for series, value in before.items()
                if samples.get(series, value) < value]
        assert not less, less[:3]
        missing = before.keys() - samples.keys()
        assert not missing, f"no longer there: {sorted(missing)[:3]}"
        with self.lock:
            for series, value in samples.items():
                if GOES_ON.match(series):
                    self.greatest[series] = max(value, self.greatest.get(series, 0))
        return "whole"

    def scrape(self, path):
        """To a file, or to standard output."""
        with self.lock:
            before = dict(self.greatest)
        command = ["tlobctl", "metrics"] + ([f"--output={path}"] if path else [])
        result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        text = path.read_text() if path else result.stdout
        if path:
            assert result.stdout == "", "it prints, too"
        elif result.returncode != 0:
            assert (result.returncode, text) == (1, ""), f"status {result.returncode} with: {text[:200]}"
            found = "without"
        if path or result.returncode == 0:
            found = self.check_whole(text, before)
            assert result.returncode == (0 if found == "whole" else 3), f"status {result.returncode}, {found}"
        said = result.stderr
        assert said == "" if found == "whole" else re.fullmatch("tlobctl: .+\n", said), f"{found}, and it says: {said}"
        return found

    def run(self, i):
        path = self.directory / f"{i}.prom" if i % 2 else None
        is_last = False
        while not is_last:
            is_last = (self.directory / "end").exists()
            try:
                found = self.scrape(path)
            except Exception as error:  # whatever is not understood
                found = "wrong"
                with self.lock:
                    self.wrong.append(f"{error!r:.1000}")
            with self.lock:
                self.found[found] += 1


def main():
    scrapes = Scrapes(sys.argv[1], sys.argv[2:])
    threads = [threading.Thread(target=scrapes.run, args=(i,)) for i in range(N_SCRAPERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for text in scrapes.wrong[:WRONG_MAX]:
        print(text)
    print("whole {whole}, without tlobd {without}, wrong {wrong}".format_map(
        collections.defaultdict(int, scrapes.found)))


main()
