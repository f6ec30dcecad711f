# SPDX-License-Identifier: LGPL-2.1-or-later

"""A tlobd to be measured, on the bus and with the directories of tools/private-bus."""

import contextlib
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading

BUILD = pathlib.Path(sys.argv[1])
DIRECTORIES = [pathlib.Path(path) for path in os.environ["TLOB_CONFIG_DIRECTORIES"].split(":")]
TIMEOUT = 60


def ctl(*arguments):
    """tlobctl, as a user runs it. Its output; fails when it does. What it only warns of is left out."""
    result = subprocess.run([BUILD / "client/tlobctl", *arguments], check=False,
                            capture_output=True, text=True, timeout=TIMEOUT)
    if result.returncode != 0:
        raise RuntimeError(result.stderr)
    return result.stdout


@contextlib.contextmanager
def journal():
    """Where there is no journald, one that takes all and keeps nothing: else tlobd waits for it to come."""
    path = pathlib.Path("/run/systemd/journal/socket")
    if path.exists():
        yield
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as taking:
        taking.bind(str(path))

        def take():
            with contextlib.suppress(OSError):
                while taking.recv(1 << 20):
                    pass

        threading.Thread(target=take, daemon=True).start()
        try:
            yield
        finally:
            path.unlink()


def configure(text):
    """What its next start finds in tlobd.conf."""
    (DIRECTORIES[0] / "tlobd.conf").write_text(text)


def forget_bindings():
    """Those that tlobctl has added, so that the next start finds none."""
    for path in DIRECTORIES[1].glob("bindings.d/*.conf"):
        path.unlink()


class Daemon:
    """It tells by sd_notify() when it is ready."""

    def __init__(self):
        with tempfile.TemporaryDirectory(prefix="tlob-bench-") as directory, \
                socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
            notify.settimeout(TIMEOUT)
            path = os.path.join(directory, "notify")
            notify.bind(path)
            self.process = subprocess.Popen([BUILD / "daemon/tlobd"], stderr=subprocess.DEVNULL,
                                            env={**os.environ, "NOTIFY_SOCKET": path})
            while b"READY=1" not in notify.recv(4096).split(b"\n"):
                pass
        self.pid = self.process.pid

    def stop(self):
        """Returns when all that it had in the kernel is gone."""
        self.process.terminate()
        if self.process.wait(TIMEOUT) != 0:
            raise RuntimeError(f"tlobd ended with {self.process.returncode}")
