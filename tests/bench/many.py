# SPDX-License-Identifier: LGPL-2.1-or-later

"""Many bindings, on as many functions of a library."""

import json
import re
import subprocess

import tlobd

SPARE = 20  # some may be refused
SIZE_MIN = 32  # shorter ones may have nothing between their start and stop


def path_of_library(name):
    cache = subprocess.run(["ldconfig", "-p"], check=True, capture_output=True, text=True).stdout
    return re.search(rf"{re.escape(name)} .*=> (.*)", cache).group(1)


def write_bindings(file, names):
    path = tlobd.DIRECTORIES[1] / "bindings.d/many.conf"
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(
        f"[Binding b{i}]\nExecutable={file}\nFunction={name}\nBudgetSec=1h\n" for i, name in enumerate(names)))


def active():
    bindings = json.loads(tlobd.ctl("list-bindings", "--json=short"))
    return [binding["Name"] for binding in bindings if binding["State"] == "active"]


def symbols(file, n):
    """Functions of that library, each at a place of its own."""
    table = subprocess.run(["objdump", "-T", file], check=True, capture_output=True,
                           text=True).stdout
    found = re.findall(r"^(\S+) .* DF \.text\s(\S+) .* (\w{1,60})$", table, re.MULTILINE)
    places = {address: name for address, size, name in found if int(size, 16) >= SIZE_MIN}
    tlobd.forget_bindings()
    wanted = list(places.values())[:n + SPARE]
    write_bindings(file, wanted)
    daemon = tlobd.Daemon()
    chosen = [wanted[int(binding[1:])] for binding in active()[:n]]
    daemon.stop()
    assert len(chosen) == n, f"{len(chosen)} of {n} functions of {file} can be bound"
    return chosen
