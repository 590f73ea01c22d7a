"""Devices that are `carillon device`: processes with a database, killed at any moment and started again on the same database.

Each has a log like that of the other devices. A process that is killed between two writes may not have said what it has done. So after each
kill one without a network lists what the database has: a notification in the list was shown, and one that is missing was removed.
"""
import asyncio
import json
import os
import random
import signal
import time

from common import APPLICATION, CATEGORIES, NEVER, Log, is_fickle, token_of, users_of

# A response that a process does not send again so many seconds after its welcome was accepted, and the one that was killed has not said so.
ACCEPTED = 20
NOBODY = "ws://127.0.0.1:1/v1/device"


def is_program(number, share):
    """Whether a device is a program: of those with one person and lasting settings so many in a hundred."""
    return number * 37 % 100 < share and len(users_of(number)) == 1 and not is_fickle(number)


class Program:
    def __init__(self, number, crowd):
        self.number, self.crowd, self.user = number, crowd, users_of(number)[0]
        self.dice = random.Random("program %d %d" % (crowd.arguments.seed, number))
        folder = crowd.arguments.folder
        self.log = Log(os.path.join(folder, "%04d.log" % number), 0.0)
        self.state, self.categories = (os.path.join(folder, "%04d.%s" % (number, end)) for end in ("sqlite", "json"))
        with open(self.categories, "w") as file:
            json.dump(CATEGORIES, file)
        # Ids of what was shown, the list by identifier, and responses with the number of the process that has sent them last.
        self.taken, self.list, self.outbox, self.accepted = set(), {}, {}, set()
        self.welcomed, self.connected_since, self.process, self.starts, self.kills = False, None, None, 0, 0

    @property
    def connections(self):
        return int(self.connected_since is not None)

    async def run(self):
        await asyncio.sleep(self.dice.uniform(0, 3))
        while True:
            end = time.monotonic() + self.dice.choice([2, 5, 10, 30])
            reading = await self.start(*self.crowd.arguments.url)
            while not reading.done():
                self.infer()
                if not self.crowd.is_settled and time.monotonic() > end:
                    self.kill(signal.SIGKILL if self.dice.random() < 0.8 else signal.SIGTERM)
                await asyncio.wait({reading}, timeout=0.2)
            await self.ended(reading)
            await self.look()
            if not self.crowd.is_settled:
                await self.crowd.away(self.dice.choice([0, 0.2, 1, 3, 8]) * self.dice.random())

    async def start(self, *urls):
        line = [self.crowd.arguments.binary, "device", "--json", "--until-eof", "--state", self.state, "--token", token_of(self.number), "--app",
                APPLICATION, "--user", self.user, "--categories", self.categories]
        for url in urls:
            line += ["--devices", url]
        if self.crowd.arguments.ca:
            line += ["--ca", self.crowd.arguments.ca]
        self.starts += 1
        self.wanted_end, self.found = False, None
        self.process = await asyncio.create_subprocess_exec(
            *line, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL, limit=1 << 20)
        return asyncio.create_task(self.read(self.process.stdout))

    async def ended(self, reading):
        await reading
        code = await self.process.wait()
        self.connected_since = None
        if not self.wanted_end:
            raise RuntimeError("device %d has ended by itself with %d" % (self.number, code))

    def kill(self, how):
        if not self.wanted_end and self.process.returncode is None:
            self.wanted_end = True
            self.kills += 1
            self.process.send_signal(how)

    async def look(self):
        """Lists what the database has, with a process that reaches no cluster."""
        reading = await self.start(NOBODY)
        self.command("list")
        self.command("quit")
        self.wanted_end = True
        await self.ended(reading)
        for notification in self.found:
            if notification["id"] not in self.taken:
                self.took("shown", notification)
        kept = {notification["identifier"] for notification in self.found}
        gone = [identifier for identifier in self.list if identifier not in kept]
        if gone:
            self.removed(gone)

    def command(self, name, **members):
        if self.process.returncode is None and not self.process.stdin.is_closing():
            self.process.stdin.write(json.dumps({"command": name, **members}).encode() + b"\n")

    async def read(self, output):
        while line := await output.readline():
            if line.endswith(b"\n"):
                self.took_line(json.loads(line))

    def took_line(self, line):
        event = line.get("event")
        if event is None:
            frame = line.get("frame")
            if line.get("direction") == "out" and isinstance(frame, dict) and frame.get("type") == "response":
                self.responded(frame)
        elif event == "connected":
            self.welcomed, self.connected_since = True, time.monotonic()
            self.log.write("welcome", user=self.user, session=line["session"])
        elif event in ("closed", "unreachable"):
            self.connected_since = None
            if event == "closed":
                self.log.write("closed", why=line["code"])
                if line["code"] in NEVER and line.get("reconnectAfterMs") is None:
                    self.log.write("banished", code=line["code"])
        elif event in ("shown", "updated", "silent"):
            self.took(event, line)
            if not self.crowd.is_settled:
                if self.dice.random() < 0.02:
                    self.kill(signal.SIGKILL)
                elif self.dice.random() < self.crowd.arguments.respond:
                    self.respond(line["identifier"])
        elif event == "removed":
            self.removed(sorted({*line["identifiers"], *line["wereListed"]}))
        elif event == "accepted" and "response" in line:
            self.answered("accepted", line["response"])
        elif event == "refused" and "response" in line:
            self.answered("refused", line["response"], line["reason"])
        elif event == "gap":
            self.log.write("gap", since=line["from"], to=line["to"])
        elif event == "list":
            self.found = line["delivered"]
        elif event in ("dropped", "failed", "badFrame"):
            self.log.write(event, line=line)

    def took(self, event, notification):
        self.taken.add(notification["id"])
        self.list[notification["identifier"]] = notification["id"]
        self.log.write(
            "updated" if event == "updated" else "shown", at=notification["at"] / 1000, id=notification["id"],
            identifier=notification["identifier"], revision=notification["revision"], expiration=notification["expiration"],
            number=notification["payload"].get("number"), user=self.user)

    def removed(self, identifiers):
        for identifier in identifiers:
            self.list.pop(identifier, None)
        self.log.write("removed", identifiers=identifiers, gone=identifiers)

    def respond(self, identifier):
        way = self.dice.choice(["open", "dismiss", "reply"])
        self.command(way, identifier=identifier, **({"userText": "on my way ✓"} if way == "reply" else {}))
        if way != "reply":
            self.list.pop(identifier, None)

    def responded(self, frame):
        name = frame["response"]
        if name in self.accepted:
            return
        if name not in self.outbox:
            self.log.write("response", response=name, action=frame["action"])
        self.outbox[name] = self.starts

    def answered(self, how, response, reason=None):
        if self.outbox.pop(response, None) is not None:
            self.accepted.add(response)
            self.log.write(how, response=response, reason=reason)

    def infer(self):
        """Takes for accepted what the present process would have sent again; its event has to show that."""
        if self.connected_since is not None and time.monotonic() - self.connected_since > ACCEPTED:
            for name in [name for name, start in self.outbox.items() if start < self.starts]:
                self.answered("accepted", name)
