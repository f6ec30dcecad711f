# SPDX-License-Identifier: LGPL-2.1-or-later

"""What the tests of tlobctl share: a private bus, a daemon on it, and tlobctl as a user runs it.

The scripts take the path of tlobctl, that of the daemon to test with, then unittest's arguments.
"""

import fcntl
import json
import os
import pathlib
import pty
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

TLOBCTL, DAEMON = sys.argv[1:3]
CLIENT = pathlib.Path(__file__).resolve().parents[2] / "client"
TIMEOUT = 60

BUS_CONFIG = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <listen>unix:path={directory}/bus</listen>
  <servicedir>{directory}/services</servicedir>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow user="*"/>
    <allow own="*"/>
    <allow send_destination="*"/>
    <allow receive_sender="*"/>
  </policy>
</busconfig>
"""


# What the bus starts when it is to start tlobd: a program that only leaves a mark.
SERVICE = """[D-BUS Service]
Name=org.tlob1
Exec=/bin/sh -c "touch {directory}/started; exit 1"
"""


class Bus:
    """A private dbus-daemon."""

    def __init__(self):
        self.directory = tempfile.TemporaryDirectory(prefix="tlobctl-")
        os.chmod(self.directory.name, 0o755)
        self.socket = os.path.join(self.directory.name, "bus")
        config = os.path.join(self.directory.name, "bus.conf")
        pathlib.Path(config).write_text(BUS_CONFIG.format(directory=self.directory.name))
        self.started = pathlib.Path(self.directory.name, "started")
        services = pathlib.Path(self.directory.name, "services")
        services.mkdir()
        (services / "org.tlob1.service").write_text(SERVICE.format(directory=self.directory.name))
        self.process = subprocess.Popen(
            ["dbus-daemon", "--nofork", "--print-address", f"--config-file={config}"],
            stdout=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().strip()
        assert self.address, "dbus-daemon did not start"

    def stop(self):
        self.process.terminate()
        self.process.wait(TIMEOUT)
        self.process.stdout.close()
        self.directory.cleanup()


class Daemon:
    """tlobd, or its stand-in. It tells by sd_notify() when it is ready.

    stop() demands a clean exit.
    """

    def __init__(self, bus):
        path = os.path.join(bus.directory.name, "notify")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
            notify.settimeout(TIMEOUT)
            notify.bind(path)
            directories = [os.path.join(bus.directory.name, name) for name in ("etc", "run")]
            env = environment(bus, NOTIFY_SOCKET=path,
                              TLOB_CONFIG_DIRECTORIES=":".join(directories))
            self.process = subprocess.Popen([DAEMON], env=env, stdin=subprocess.PIPE, text=True)
            while b"READY=1" not in notify.recv(4096).split(b"\n"):
                pass
        os.unlink(path)

    def send(self, command):
        """Has the stand-in do something."""
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()

    def stop(self):
        self.process.terminate()
        status = self.process.wait(TIMEOUT)
        self.process.stdin.close()
        assert status == 0, f"{DAEMON} ended with {status}"


def environment(bus, **more):
    env = {k: v for k, v in os.environ.items()
           if k not in ("NO_COLOR", "SYSTEMD_COLORS", "SYSTEMD_PAGER", "PAGER", "LESS",
                        "SUDO_UID", "PKEXEC_UID", "MALLOC_PERTURB_", "DEBUGINFOD_URLS")}
    env.update(LC_ALL="C.UTF-8", TZ="UTC", TERM="xterm")
    env["DBUS_SYSTEM_BUS_ADDRESS"] = bus.address if bus else "unix:path=/nonexistent/bus"
    env.update(more)
    return env


class Case(unittest.TestCase):
    bus = None

    def run_ctl(self, *args, env=None, **options):
        return subprocess.run([TLOBCTL, *args], env=environment(self.bus, **(env or {})),
                              capture_output=True, encoding="utf-8", timeout=TIMEOUT, **options)

    def ok(self, *args, **options):
        """Runs it, demands success and silence on stderr, and gives the output."""
        result = self.run_ctl(*args, **options)
        self.assertEqual((result.stderr, result.returncode), ("", 0), args)
        return result.stdout

    def json(self, *args):
        return json.loads(self.ok(*args, "--json=short"))

    def refused(self, status, pattern, *args, **options):
        """Runs it, demands that status, and one line that matches on stderr. Gives the output."""
        result = self.run_ctl(*args, **options)
        self.assertEqual(result.returncode, status, (args, result.stderr))
        self.assertRegex(result.stderr, pattern)
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        self.assertTrue(result.stderr.startswith("tlobctl: "), result.stderr)
        return result.stdout

    def complete(self, *words, env=None):
        """What the completion offers for the last of these words."""
        script = ('. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); '
                  'compopt() { :; }; _tlobctl; printf "%s\\n" "${COMPREPLY[@]}"')
        path = f"{os.path.dirname(os.path.abspath(TLOBCTL))}:{os.environ['PATH']}"
        result = subprocess.run(
            ["bash", "-c", script, "bash", CLIENT / "tlobctl.bash-completion", *words],
            env=environment(self.bus, PATH=path, **(env or {})), capture_output=True, text=True, timeout=TIMEOUT)
        self.assertEqual(result.stderr, "")
        return result.stdout.split()

    def on_terminal(self, *args, env=None, answer=None, program=TLOBCTL, uid=None):
        """Runs it on a terminal of 80 x 24 and gives what is seen there, and the exit status."""
        pid, fd = pty.fork()
        if pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
            if uid is not None:
                os.setuid(uid)
            os.execve(program, [program, *args], environment(self.bus, **(env or {})))
        seen = b""
        while select.select([fd], [], [], TIMEOUT)[0]:
            try:
                data = os.read(fd, 4096)
            except OSError:
                break
            if not data:
                break
            seen += data
            if answer and answer[0] in seen:
                os.write(fd, answer[1])
                answer = None
        _, status = os.waitpid(pid, 0)
        os.close(fd)
        return seen.decode(), os.waitstatus_to_exitcode(status)


class WithBus(Case):
    daemon = None

    @classmethod
    def setUpClass(cls):
        cls.bus = Bus()

    @classmethod
    def tearDownClass(cls):
        cls.bus.stop()

    def setUp(self):
        self.daemon = self.start_daemon()
        self.addCleanup(lambda: self.daemon.stop())

    def start_daemon(self):
        return Daemon(self.bus)


class Lines:
    """The lines of a pipe, each waited for."""

    def __init__(self, pipe):
        self.pipe = pipe
        self.data = b""

    def next(self):
        while b"\n" not in self.data:
            if not select.select([self.pipe], [], [], TIMEOUT)[0]:
                raise AssertionError(f"Nothing came after {self.data!r}")
            more = os.read(self.pipe.fileno(), 4096)
            if not more:
                raise AssertionError(f"The end came after {self.data!r}")
            self.data += more
        line, self.data = self.data.split(b"\n", 1)
        return line.decode()


class Monitor:
    """A running "tlobctl monitor", which has said on standard error that it is ready."""

    def __init__(self, case, *args, program=TLOBCTL, **options):
        self.process = subprocess.Popen([program, "monitor", *args], env=environment(case.bus),
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0,
                                        **options)
        case.addCleanup(self.stop)
        self.output = Lines(self.process.stdout)
        self.errors = Lines(self.process.stderr)
        self.first = self.errors.next()

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            self.process.wait(TIMEOUT)
        self.process.stdout.close()
        self.process.stderr.close()
        return self.process.returncode


class Terminal:
    """A program on a terminal that stays, is typed on, and changes its size.

    What it draws is a frame: everything from one way of the cursor to its home to the next.
    """

    HOME = b"\x1b[H"
    REST = b"\x1b[J"

    def __init__(self, case, *args, rows=24, columns=80, env=None, program=TLOBCTL):
        self.data = b""
        self.fd, inner = pty.openpty()
        self.resize(rows, columns)
        self.before = termios.tcgetattr(inner)
        self.inner = inner
        self.process = subprocess.Popen(
            [program, *args], env=environment(case.bus, **(env or {})), stdin=inner, stdout=inner, stderr=inner,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        case.addCleanup(self.close)

    def resize(self, rows, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, keys):
        os.write(self.fd, keys.encode())

    def read(self):
        """Reads what comes next. False: nothing comes any more."""
        if not select.select([self.fd], [], [], TIMEOUT)[0]:
            raise AssertionError(f"Nothing came after {self.data[-2000:]!r}")
        more = os.read(self.fd, 65536)
        self.data += more
        return more

    def read_until(self, text):
        """Reads up to that text, colours aside, and forgets it."""
        while text not in re.sub(rb"\x1b\[[0-9;?]*[a-zA-Z]", b"", self.data):
            self.read()
        self.data = b""

    def frames(self):
        """The frames that are complete, as text without colours."""
        whole = [part.split(self.REST)[0] for part in self.data.split(self.HOME) if self.REST in part]
        return [re.sub(r"\x1b\[[0-9;]*[a-zA-Z]", "", part.decode()).replace("\r", "") for part in whole]

    def wait_for(self, pattern):
        """The first frame from now on that matches; those before it are forgotten."""
        deadline = time.monotonic() + TIMEOUT
        while time.monotonic() < deadline:
            frames = self.frames()
            for frame in frames:
                if re.search(pattern, frame):
                    self.data = self.data[self.data.rindex(self.HOME):]
                    if self.REST in self.data:
                        self.data = b""
                    return frame
            self.read()
        raise AssertionError(f"{pattern} was not seen in {frames}")

    def end(self):
        """Waits for its end. Gives what it wrote from the last frame on, and its status."""
        status = self.process.wait(TIMEOUT)
        while select.select([self.fd], [], [], 0)[0]:
            self.data += os.read(self.fd, 65536)
        return self.data.decode(), status

    def attributes(self):
        return termios.tcgetattr(self.inner)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(TIMEOUT)
        os.close(self.inner)
        os.close(self.fd)


def main():
    unittest.main(module="__main__", argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
