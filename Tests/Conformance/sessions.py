"""Plays session scripts to a device over a real socket: README.md has their form.

    sessions.py --carillon PROGRAM FILE...

`Command` is `carillon device`. A device in another language is another class with the same methods, for which `play` is called.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile

from websockets.asyncio.server import serve
from websockets.exceptions import ConnectionClosed

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../ClusterTests/Clients"))
import clients

TOKEN = "ab" * 32
WELCOME = {"type": "welcome", "session": "s", "now": 1_700_000_000_000, "pingSeconds": 30, "window": 32, "rememberSeconds": 2_592_000}
NOTIFY = {"type": "notify", "payload": {"aps": {"alert": "Hello"}}}


async def until(what, value, wanted):
    """Waits until a value is as wanted: equal, or as the function says."""
    is_wanted = wanted if callable(wanted) else lambda found: found == wanted
    found = None

    async def holds():
        nonlocal found
        found = await answer if asyncio.iscoroutine(answer := value()) else answer
        return is_wanted(found)

    await clients.until(holds, what, lambda: found)


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

    async def run(self):
        try:
            async for text in self.socket:
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

    def __init__(self, device, url, sessions):
        self.device, self.url, self.sessions = device, url, sessions
        self.number, self.ends, self.names = 0, 0, {}

    @property
    def session(self):
        return self.sessions[self.number - 1]

    # The cluster

    async def hello(self, pattern):
        await until("the number of connections", lambda: len(self.sessions), lambda found: found > self.number)
        self.number += 1
        await until("the hello", lambda: self.session.hello, lambda found: found is not None)
        clients.expect(matches(pattern, self.session.hello, self.names), "the hello is as expected", self.session.hello)

    async def welcome(self, members):
        await self.send({**WELCOME, **members})

    async def send(self, frame):
        await self.text(json.dumps(filled(frame, self.names)))

    async def notify(self, members):
        await self.send({**NOTIFY, **members})

    async def many(self, step):
        first, last = step["numbers"]
        for self.names["$n"] in range(first, last + 1):
            await self.notify(step["notify"])

    async def text(self, text):
        await self.session.socket.send(text)

    async def close(self, code):
        self.ends = len(self.device.waits())
        await self.session.socket.close(code)

    async def cut(self, _):
        self.ends = len(self.device.waits())
        self.session.socket.transport.abort()

    # What the device answers

    async def acknowledged(self, wanted):
        await until("acknowledged", self.session.acknowledged, wanted)

    async def settled(self, numbers):
        def missing():
            acks = self.session.acknowledged()
            settled = {*acks.get("deliveries", []), *(each["delivery"] for each in acks.get("dropped", []))}
            return [number for number in range(numbers[0], numbers[1] + 1) if number not in settled]

        await until("what is neither taken nor dropped", missing, [])

    async def expect(self, pattern):
        await until("the number of frames", lambda: len(self.session.frames), lambda found: found > 0)
        frame = self.session.frames.pop(0)
        clients.expect(matches(pattern, frame, self.names), "the frame is as expected", frame)

    async def nothing(self, kind):
        clients.expect(all(frame["type"] != kind for frame in self.session.frames), "there is none", self.session.frames)

    async def waits(self, wanted):
        await until("the number of ends", lambda: len(self.device.waits()), lambda found: found > self.ends)
        wait = self.device.waits()[-1]
        is_wanted = wait is None if wanted is None else wait is not None and wanted[0] <= wait <= wanted[1]
        clients.expect(is_wanted, "the wait is as expected", wait)

    # What the person sees and does

    async def list(self, wanted):
        await until("the list", self.device.list, (lambda found: len(found) == wanted) if isinstance(wanted, int) else wanted)

    async def pending(self, wanted):
        await until("what is pending", self.device.pending, wanted)

    async def shown(self, wanted):
        await until("what was shown", lambda: [identifier for identifier, _ in self.device.shown()], wanted)

    async def person(self, command):
        await self.device.do(command)

    async def kill(self, _):
        await self.device.kill()
        await self.device.start(self.url)


async def play(script, device):
    """Plays a script to a device: `device.start(url)` starts it."""
    sessions = []

    async def handle(socket):
        sessions.append(session := Session(socket))
        await session.run()

    async with serve(handle, "127.0.0.1", 0, subprotocols=["carillon.v1"], ping_interval=None, close_timeout=1) as server:
        played = Script(device, f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1/device", sessions)
        await device.start(played.url)
        try:
            for number, step in enumerate(script["steps"]):
                [(name, value)] = step.items()
                try:
                    await getattr(played, name)(value)
                except Exception as error:
                    raise clients.Failed(f"step {number + 1}, {json.dumps(step)}: {error}") from error
            ids = [id for _, id in device.shown()]
            clients.expect(len(ids) == len(set(ids)), "nothing is shown twice", ids)
        finally:
            await device.end()


class Command:
    """`carillon device`."""

    def __init__(self, program, folder):
        self.events, self.process, self.reading = [], None, None
        self.words = [program, "device", "--json", "--token", TOKEN, "--app", "com.example.shop", "--user", "ada"]
        self.words += ["--state", os.path.join(folder, "state")]

    async def start(self, url):
        words = [*self.words, "--devices", url]
        self.process = await asyncio.create_subprocess_exec(*words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, limit=1 << 20)
        self.reading = asyncio.create_task(self.read(self.process.stdout))

    async def read(self, output):
        async for line in output:
            # A killed process may leave a part of a line.
            if line.endswith(b"\n"):
                self.events.append(json.loads(line))

    async def kill(self):
        self.process.kill()
        await self.reading
        await self.process.wait()

    async def end(self):
        if self.process.returncode is None:
            self.process.terminate()
        await self.reading
        await self.process.wait()

    async def do(self, command):
        """Does what the person does. What is done outlives the process."""
        event = await self.answer(command, "done", "error")
        clients.expect(event["event"] == "done", "the device takes a command", event)

    async def answer(self, command, *kinds):
        before = len(self.of(*kinds))
        self.process.stdin.write(json.dumps(command).encode() + b"\n")
        await until("the number of answers to a command", lambda: len(self.of(*kinds)), lambda found: found > before)
        return self.of(*kinds)[-1]

    def of(self, *kinds):
        return [event for event in self.events if event.get("event") in kinds]

    async def list(self):
        """The identifiers in the list, the newest first."""
        return [each["identifier"] for each in (await self.answer({"command": "list"}, "list"))["delivered"]]

    async def pending(self):
        """The identifiers of those that wait, the oldest first."""
        return [each["identifier"] for each in (await self.answer({"command": "list"}, "list"))["pending"]]

    def shown(self):
        """The identifier and the id of each notification when it was shown, from the first start on."""
        return [(event["identifier"], event["id"]) for event in self.of("shown", "updated")]

    def waits(self):
        """The milliseconds until the next attempt, for each connection that has ended; None if the device does not reconnect."""
        return [event["reconnectAfterMs"] for event in self.of("closed")]


async def failure(program, path):
    """Plays the script of a file to the command; returns what went wrong."""
    with open(path, encoding="utf-8") as file:
        script = json.load(file)
    with tempfile.TemporaryDirectory() as folder:
        try:
            await play(script, Command(program, folder))
        except clients.Failed as error:
            return f"{path}: {script['rule']}: {error}"
    return None


async def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--carillon", required=True, metavar="PROGRAM", help="the program")
    parser.add_argument("files", nargs="+", metavar="FILE", help="a session script")
    arguments = parser.parse_args()
    # Most of a script's time is the device's waits.
    played = await asyncio.gather(*(failure(arguments.carillon, path) for path in arguments.files))
    failures = [each for each in played if each]
    print(*failures, f"{len(played)} scripts, {len(failures)} failed", sep="\n")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    asyncio.run(main())
