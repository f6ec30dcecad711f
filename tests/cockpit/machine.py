# SPDX-License-Identifier: LGPL-2.1-or-later

"""A booted machine with Cockpit, in which people log in: a container of the system suite, with the root of "root".

The script that imports this runs twice: first to boot the machine, then in the machine's network, where it has the
machine's first process in its environment. So the browser is this machine's, and the rest is the other's.
"""

import contextlib
import io
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
SYSTEM = HERE.parent / "system"
INIT = "TLOB_COCKPIT_INIT"
# Booting, too, on a busy machine.
WAIT = 120

# Runs in the machine, as its last step of booting.
MAIN = """#!/bin/bash
set -eu
cd "${BASH_SOURCE[0]%/*}"
for user in administrator ordinary; do
        useradd --create-home --shell=/bin/bash $user
        echo "$user:secret" | chpasswd
done
usermod --append --groups=sudo administrator
tar -C install -c . | tar -C / -x --keep-directory-symlink --no-overwrite-dir
ldconfig
systemctl daemon-reload
busctl --quiet call org.freedesktop.DBus /org/freedesktop/DBus org.freedesktop.DBus ReloadConfig
systemctl start systemd-logind polkit tlobd cockpit.socket
echo "### up"
sleep infinity
"""


def first_process(name):
    """Of the container of that name."""
    mounts = pathlib.Path("/proc/self/mounts").read_text().splitlines()
    cgroups = next(mount.split()[1] for mount in mounts if mount.split()[2] == "cgroup2")
    return pathlib.Path(cgroups, name, "init.scope/cgroup.procs").read_text().split()[0]


def add_text(archive, name, text, mode):
    member = tarfile.TarInfo(name)
    member.size, member.mode = len(text), mode
    archive.addfile(member, io.BytesIO(text.encode()))


def make_payload(path, build):
    """What was built, with a program to measure."""
    with tempfile.TemporaryDirectory() as tree:
        subprocess.run(["meson", "install", "-C", build, "--no-rebuild", "--quiet", "--destdir", tree], check=True)
        os.chmod(tree, 0o755)
        with tarfile.open(path, "w") as archive:
            def owned_by_root(member):
                member.uid = member.gid = 0
                member.uname = member.gname = "root"
                return member

            add_text(archive, "main", MAIN, 0o755)
            archive.add(tree, "install", filter=owned_by_root)
            # tlobd loads the one that it was built for.
            for library in pathlib.Path("/usr/lib").glob("*/libcapstone.so.[0-9]*"):
                archive.add(library.resolve(), f"install/usr/local/lib/{library.name}", filter=owned_by_root)
            archive.add(os.environ["TLOB_TEST_WORKER"], "install/usr/libexec/tlob-tests/worker", filter=owned_by_root)


@contextlib.contextmanager
def booted(suite):
    """The number of its first process."""
    root = subprocess.run([HERE / "root", suite], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    with tempfile.TemporaryDirectory(prefix="tlob-cockpit-machine-") as name:
        directory = pathlib.Path(name)
        make_payload(directory / "payload.tar", os.environ["TLOB_TEST_BUILD"])
        report = directory / "report"
        report.touch()
        container = subprocess.Popen([SYSTEM / "container", root, directory / "payload.tar", directory])
        try:
            deadline = time.monotonic() + WAIT
            while "### up" not in report.read_text():
                if container.poll() is not None or "### end" in report.read_text() or time.monotonic() > deadline:
                    sys.exit(f"The machine did not boot: {report.read_text()}\n"
                             f"{(directory / 'console.log').read_text(errors='replace')}")
                time.sleep(0.1)
            yield first_process(directory.name)
        finally:
            container.terminate()
            container.wait()


def enter():
    """Returns in the machine's network only."""
    if INIT in os.environ:
        return
    if os.geteuid() != 0:
        sys.exit("The tests of the Cockpit page require root.")
    with booted(os.environ["TLOB_COCKPIT_SUITE"]) as init:
        command = ["nsenter", f"--net=/proc/{init}/ns/net", sys.executable, *sys.argv]
        env = dict(os.environ, TLOB_COCKPIT_UNSHARED="1", **{INIT: init})
        del env["TLOB_COCKPIT_SUITE"]
        status = subprocess.run(command, env=env, check=False).returncode
    sys.exit(status)


def run(*command, **options):
    """Runs a command in the machine, as root, and returns what it prints."""
    enter_all = ["nsenter", "--all", f"--target={os.environ[INIT]}", "env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin"]
    result = subprocess.run([*enter_all, *command], capture_output=True, text=True, timeout=60, check=False, **options)
    if result.returncode != 0:
        raise AssertionError(f"{' '.join(command)}: {result.stderr}")
    return result.stdout
