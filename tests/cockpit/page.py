# SPDX-License-Identifier: LGPL-2.1-or-later

"""What the tests of the Cockpit page share: Cockpit with the page, and a browser in which it is used.

Bus and daemon are those of tests/client/ctl.py. cockpit-ws runs without a login, its bridge as a child, with
the page of this source tree. All of it runs in a network namespace with nothing but a loopback device: a page
that wants more than Cockpit gives it has no network to get it from.

The scripts take the path of tlobctl, that of the daemon to test with, then unittest's arguments.
TLOB_SCREENSHOTS names a directory that pictures of the page are written to. TLOB_COCKPIT_SUITE names a
release of Debian whose Cockpit is used instead of this machine's own.
"""

import contextlib
import fcntl
import json
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PAGE = ROOT / "client/cockpit"
PORT = 9090
WS = "/usr/lib/cockpit/cockpit-ws"
BRIDGE = "/usr/bin/cockpit-bridge"
CHROMIUM = "/usr/bin/chromium"
DRIVER = "/usr/bin/chromedriver"
UNSHARED = "TLOB_COCKPIT_UNSHARED"
# A page that takes longer than that is a failure.
WAIT = 30
# Goes on in another root, which has what this machine's kernel and this test give it. Nobody else sees the mounts.
IN_ROOT = """root=$1; shift
for directory in /proc /dev "${TMPDIR:-/tmp}"; do
        mkdir -p "$root$directory"
        mount --rbind "$directory" "$root$directory"
done
exec chroot "$root" "$@\""""
FIND = """return [...document.querySelectorAll(arguments[0])].find(element =>
    element.checkVisibility() && (arguments[1] === null || element.innerText.includes(arguments[1]))) ?? null"""


def find_root():
    """That of another release of Debian, made when it is not there. None: this machine's own is used."""
    suite = os.environ.get("TLOB_COCKPIT_SUITE")
    if not suite:
        return None
    return subprocess.run([HERE / "root", suite], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def isolate():
    """Goes on in a network namespace of its own, as a new process."""
    if UNSHARED not in os.environ:
        if os.geteuid() != 0:
            sys.exit("The tests of the Cockpit page require root.")
        for program in (CHROMIUM, DRIVER) if ROOT_DIRECTORY else (WS, BRIDGE, CHROMIUM, DRIVER):
            if not os.access(program, os.X_OK):
                sys.exit(f"{program} is missing: tools/packages cockpit")
        os.execvpe("unshare", ["unshare", "--net", sys.executable, *sys.argv], dict(os.environ, **{UNSHARED: "1"}))
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        del os.environ[name]
    with socket.socket() as any_socket:
        request = bytearray(struct.pack("16sH14x", b"lo", 0))
        fcntl.ioctl(any_socket, 0x8913, request)  # SIOCGIFFLAGS
        flags = struct.unpack_from("H", request, 16)[0] | 1  # IFF_UP
        fcntl.ioctl(any_socket, 0x8914, struct.pack("16sH14x", b"lo", flags))


ROOT_DIRECTORY = find_root()
isolate()
sys.path.insert(0, str(HERE.parent / "client"))

import ctl  # noqa: E402
from selenium import webdriver  # noqa: E402
from selenium.common.exceptions import NoSuchElementException, StaleElementReferenceException  # noqa: E402
from selenium.webdriver.chrome.options import Options  # noqa: E402
from selenium.webdriver.chrome.service import Service  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402, F401


class Cockpit:
    """cockpit-ws with a bridge on that bus, as that user."""

    def __init__(self, bus, user=None):
        self.directory = tempfile.TemporaryDirectory(prefix="tlob-cockpit-")
        os.chmod(self.directory.name, 0o755)
        data = pathlib.Path(self.directory.name, "share/cockpit")
        data.mkdir(parents=True)
        # Whoever it runs as may not be able to look at where this was built.
        shutil.copytree(PAGE, data / "tlob")
        shutil.copy(ctl.TLOBCTL, self.directory.name)
        env = ctl.environment(bus, HOME=self.directory.name, XDG_DATA_DIRS=f"{data.parent}:/usr/share",
                              XDG_DATA_HOME=self.directory.name, XDG_CONFIG_DIRS=self.directory.name,
                              PATH=f"{self.directory.name}:{os.environ['PATH']}")
        env.pop("DBUS_SESSION_BUS_ADDRESS", None)
        self.log = tempfile.TemporaryFile("w+")
        command = [WS, f"--port={PORT}", "--address=127.0.0.1", f"--local-session={BRIDGE}"]
        if user:
            command = ["setpriv", f"--reuid={user}", "--clear-groups", *command]
        if ROOT_DIRECTORY:
            command = ["unshare", "--mount", "sh", "-ec", IN_ROOT, "sh", ROOT_DIRECTORY, *command]
        self.process = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=self.log,
                                        stderr=self.log)
        self.wait()

    def wait(self):
        deadline = time.monotonic() + WAIT
        while time.monotonic() < deadline:
            with contextlib.suppress(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", PORT)).close()
                return
            if self.process.poll() is not None:
                break
            time.sleep(0.05)
        raise AssertionError(f"cockpit-ws did not start: {self.read_log()}")

    def read_log(self):
        self.log.seek(0)
        return self.log.read()

    def stop(self):
        self.process.terminate()
        self.process.wait(ctl.TIMEOUT)
        self.log.close()
        self.directory.cleanup()


class Browser:
    """Chromium without a screen."""

    def __init__(self):
        self.directory = tempfile.TemporaryDirectory(prefix="tlob-chromium-", ignore_cleanup_errors=True)
        options = Options()
        options.binary_location = CHROMIUM
        for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                         "--no-first-run", "--no-proxy-server", "--disable-background-networking",
                         "--disable-component-update", "--hide-scrollbars",
                         f"--user-data-dir={self.directory.name}"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        home = dict(os.environ, HOME=self.directory.name)
        self.driver = webdriver.Chrome(service=Service(DRIVER, env=home), options=options)
        self.resize(1280, 900)

    def stop(self):
        self.driver.quit()
        self.directory.cleanup()

    def resize(self, width, height):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})

    def open(self, path="/cockpit/@localhost/tlob/index.html"):
        self.driver.get(f"http://127.0.0.1:{PORT}{path}")

    def set_dark(self, dark):
        """As the shell does for all of its pages."""
        style = "dark" if dark else "light"
        self.script("localStorage.setItem('shell:style', arguments[0]); window.dispatchEvent("
                    "new CustomEvent('cockpit-style', { detail: { style: arguments[0] } }));", style)

    def script(self, text, *arguments):
        return self.driver.execute_script(text, *arguments)

    def find(self, selector, text=None):
        """The first visible element with that selector and text. None: there is none."""
        return self.script(FIND, selector, text)

    def wait_for(self, condition, what):
        deadline = time.monotonic() + WAIT
        while time.monotonic() < deadline:
            with contextlib.suppress(StaleElementReferenceException, NoSuchElementException):
                value = condition()
                if value:
                    return value
            time.sleep(0.05)
        raise AssertionError(f"{what} was not seen in:\n{self.text()}\n{self.errors()}")

    def see(self, selector, text=None):
        return self.wait_for(lambda: self.find(selector, text), f"{selector} {text or ''}")

    def see_gone(self, selector, text=None):
        self.wait_for(lambda: not self.find(selector, text), f"the end of {selector} {text or ''}")

    def click(self, selector, text=None):
        element = self.see(selector, text)
        self.wait_for(element.is_enabled, f"{selector} {text or ''}, enabled,")
        element.click()
        return element

    def write(self, selector, text):
        field = self.see(selector)
        field.clear()
        field.send_keys(text)

    def focused(self):
        return self.driver.switch_to.active_element

    def text(self):
        return self.script("return document.body.innerText")

    def errors(self):
        """What the browser has complained about since it was asked last."""
        return [entry["message"] for entry in self.driver.get_log("browser")
                if entry["level"] in ("SEVERE", "WARNING")]

    def picture(self, name):
        directory = os.environ.get("TLOB_SCREENSHOTS")
        if directory:
            pathlib.Path(directory).mkdir(parents=True, exist_ok=True)
            self.driver.save_screenshot(os.path.join(directory, f"{name}.png"))


class Case(ctl.WithBus):
    """A bus with a daemon, Cockpit and a browser that has the page open."""

    user = None

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.addClassCleanup(super().tearDownClass)
        cls.cockpit = Cockpit(cls.bus, cls.user)
        cls.addClassCleanup(cls.cockpit.stop)
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.stop)

    @classmethod
    def tearDownClass(cls):
        """The clean-ups of the class do it all."""

    def busctl(self, *args):
        """What another client sees."""
        result = subprocess.run(["busctl", f"--address={self.bus.address}", "--json=short", *args],
                                capture_output=True, text=True, timeout=ctl.TIMEOUT)
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout) if result.stdout else None

    def no_complaints(self):
        self.assertEqual(self.browser.errors(), [])


main = ctl.main
