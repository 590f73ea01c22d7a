"""Plays session scripts to a device over a real socket: README.md has their form.

    sessions.py --carillon PROGRAM FILE...

`Command` is `carillon device`. A device in another language is another class with the same methods, for which `play` is called.
"""

import argparse
import json
import os
import signal
import socket as sockets
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from websockets.exceptions import ConnectionClosed
from websockets.sync.server import serve

TOKEN = "ab" * 32
HANG_SECONDS = 120
WELCOME = {"type": "welcome", "session": "s", "now": 1_700_000_000_000, "pingSeconds": 30, "window": 32, "rememberSeconds": 2_592_000}
NOTIFY = {"type": "notify", "payload": {"aps": {"alert": "Hello"}}}


class Difference(Exception):
    """The device does something else than its script says."""


def until(what, value, wanted):
    """Waits until a value is as wanted: equal, or as the function says."""
    end = time.monotonic() + HANG_SECONDS
    is_wanted = wanted if callable(wanted) else lambda found: found == wanted
    while not is_wanted(found := value()):
        if time.monotonic() > end:
            expected = "" if callable(wanted) else f", and should be {json.dumps(wanted)}"
            raise Difference(f"{what} is {json.dumps(found)}{expected}")
        time.sleep(0.01)


def filled(value, names):
    """A value whose texts with a dollar are replaced by what they name."""
    if isinstance(value, dict):
        return {key: filled(each, names) for key, each in value.items()}
    if isinstance(value, list):
        return [filled(each, names) for each in value]
    if not isinstance(value, str) or "$" not in value:
        return value
    if value in names:
        return names[value]
    for name, text in names.items():
        value = value.replace(name, str(text))
    return value


def matches(pattern, value, names):
    """Whether a value has all that a pattern has. A text with a dollar gets the value if it has none yet."""
    if isinstance(pattern, dict):
        return isinstance(value, dict) and all(key in value and matches(each, value[key], names) for key, each in pattern.items())
    if isinstance(pattern, str) and pattern.startswith("$"):
        return names.setdefault(pattern, value) == value
    return pattern == value


class Session:
    """A connection of the device, and the frames that it has sent."""

    def __init__(self, socket):
        self.socket, self.hello, self.frames, self.acks = socket, None, [], []

    def run(self):
        try:
            for text in self.socket:
                frame = json.loads(text)
                if frame["type"] == "ack":
                    self.acks.append(frame)
                elif self.hello is None:
                    self.hello = frame
                else:
                    self.frames.append(frame)
        except ConnectionClosed:
            pass

    def acknowledged(self):
        """All acknowledgements of the session in one, without empty lists."""
        every = {
            "deliveries": sorted(each for ack in self.acks for each in ack.get("deliveries", [])),
            "updated": sorted(each for ack in self.acks for each in ack.get("updated", [])),
            "dropped": sorted((each for ack in self.acks for each in ack.get("dropped", [])), key=lambda each: each["delivery"]),
        }
        return {key: each for key, each in every.items() if each}


class Script:
    """A script while it is played. Each method below is a step."""

    def __init__(self, device, sessions):
        self.device, self.sessions = device, sessions
        self.number, self.ends, self.names = 0, 0, {}

    @property
    def session(self):
        return self.sessions[self.number - 1]

    # The cluster

    def hello(self, pattern):
        until("the number of connections", lambda: len(self.sessions), lambda found: found > self.number)
        self.number += 1
        until("the hello", lambda: self.session.hello, lambda found: found is not None)
        if not matches(pattern, self.session.hello, self.names):
            raise Difference(f"the hello is {json.dumps(self.session.hello)}")

    def welcome(self, members):
        self.send({**WELCOME, **members})

    def send(self, frame):
        self.text(json.dumps(filled(frame, self.names)))

    def notify(self, members):
        self.send({**NOTIFY, **members})

    def many(self, step):
        first, last = step["numbers"]
        for self.names["$n"] in range(first, last + 1):
            self.notify(step["notify"])

    def text(self, text):
        self.session.socket.send(text)

    def close(self, code):
        self.ends = len(self.device.waits())
        self.session.socket.close(code)

    def cut(self, _):
        self.ends = len(self.device.waits())
        self.session.socket.socket.shutdown(sockets.SHUT_RDWR)

    # What the device answers

    def acknowledged(self, wanted):
        until("acknowledged", self.session.acknowledged, wanted)

    def settled(self, numbers):
        def missing():
            acks = self.session.acknowledged()
            settled = {*acks.get("deliveries", []), *(each["delivery"] for each in acks.get("dropped", []))}
            return [number for number in range(numbers[0], numbers[1] + 1) if number not in settled]

        until("what is neither taken nor dropped", missing, [])

    def expect(self, pattern):
        until("the number of frames", lambda: len(self.session.frames), lambda found: found > 0)
        frame = self.session.frames.pop(0)
        if not matches(pattern, frame, self.names):
            raise Difference(f"the frame is {json.dumps(frame)}, and should have {json.dumps(filled(pattern, self.names))}")

    def nothing(self, kind):
        found = [frame for frame in self.session.frames if frame["type"] == kind]
        if found:
            raise Difference(f"there is {json.dumps(found[0])}")

    def waits(self, wanted):
        until("the number of ends", lambda: len(self.device.waits()), lambda found: found > self.ends)
        wait = self.device.waits()[-1]
        if not (wait is None if wanted is None else wait is not None and wanted[0] <= wait <= wanted[1]):
            raise Difference(f"the wait is {wait}, and should be {wanted}")

    # What the person sees and does

    def list(self, wanted):
        value = (lambda: len(self.device.list())) if isinstance(wanted, int) else self.device.list
        until("the list", value, wanted)

    def pending(self, wanted):
        until("what is pending", self.device.pending, wanted)

    def shown(self, wanted):
        until("what was shown", lambda: [identifier for identifier, _ in self.device.shown()], wanted)

    def person(self, command):
        self.device.do(command)

    def kill(self, _):
        self.device.kill()
        self.device.start()


def play(script, start):
    """Plays a script; `start(url)` returns the device, which is started."""
    sessions = []

    def handle(socket):
        sessions.append(session := Session(socket))
        session.run()

    with serve(handle, "127.0.0.1", 0, subprotocols=["carillon.v1"], ping_interval=None, close_timeout=1) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        device = start(f"ws://127.0.0.1:{server.socket.getsockname()[1]}/v1/device")
        played = Script(device, sessions)
        try:
            for number, step in enumerate(script["steps"]):
                [(name, value)] = step.items()
                try:
                    getattr(played, name)(value)
                except Exception as error:
                    raise Difference(f"step {number + 1}, {json.dumps(step)}: {error!r}") from error
            ids = [id for _, id in device.shown()]
            if len(ids) != len(set(ids)):
                raise Difference(f"something was shown twice: {ids}")
        finally:
            device.end()
            for session in sessions:
                session.socket.socket.close()


class Command:
    """`carillon device`."""

    def __init__(self, program, folder, url):
        self.events, self.process = [], None
        self.words = [program, "device", "--json", "--devices", url, "--token", TOKEN, "--app", "com.example.shop", "--user", "ada"]
        self.words += ["--state", os.path.join(folder, "state")]
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        threading.Thread(target=self.read, args=[self.process.stdout], daemon=True).start()

    def read(self, output):
        for line in output:
            # A killed process may leave a part of a line.
            if line.endswith(b"\n"):
                self.events.append(json.loads(line))

    def kill(self):
        self.process.kill()
        self.process.wait()

    def end(self):
        self.process.terminate()
        self.process.wait()

    def do(self, command):
        """Does what the person does. What is done outlives the process."""
        event = self.answer(command, "done", "error")
        if event["event"] == "error":
            raise Difference(event["message"])

    def answer(self, command, *kinds):
        before = len(self.of(*kinds))
        self.process.stdin.write(json.dumps(command).encode() + b"\n")
        self.process.stdin.flush()
        until("the number of answers to a command", lambda: len(self.of(*kinds)), lambda found: found > before)
        return self.of(*kinds)[-1]

    def of(self, *kinds):
        return [event for event in self.events if event.get("event") in kinds]

    def lists(self, name):
        return [each["identifier"] for each in self.answer({"command": "list"}, "list")[name]]

    def list(self):
        """The identifiers in the list, the newest first."""
        return self.lists("delivered")

    def pending(self):
        """The identifiers of those that wait, the oldest first."""
        return self.lists("pending")

    def shown(self):
        """The identifier and the id of each notification when it was shown, from the first start on."""
        return [(event["identifier"], event["id"]) for event in self.of("shown", "updated")]

    def waits(self):
        """The milliseconds until the next attempt, for each connection that has ended; None if the device does not reconnect."""
        return [event["reconnectAfterMs"] for event in self.of("closed")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--carillon", required=True, metavar="PROGRAM", help="the program")
    parser.add_argument("files", nargs="+", metavar="FILE", help="a session script")
    arguments = parser.parse_args()
    # Whatever ends this ends its devices.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))

    def failure(path):
        with open(path, encoding="utf-8") as file:
            script = json.load(file)
        with tempfile.TemporaryDirectory() as folder:
            try:
                play(script, lambda url: Command(arguments.carillon, folder, url))
            except Exception as error:
                return f"{path}: {script['rule']}: {error}"
        return None

    # Most of a script's time is the device's waits.
    with ThreadPoolExecutor(8) as threads:
        failures = [each for each in threads.map(failure, arguments.files) if each]
    print(*failures, f"{len(arguments.files)} scripts, {len(failures)} failed", sep="\n")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
