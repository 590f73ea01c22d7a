#!/usr/bin/env python3
"""A few hundred devices as the protocol wants them, each with a memory that lasts and a log of its own.

They come and go, change networks without saying so, are slow, leave before they have acknowledged, dismiss, open and reply; some have
clocks that are wrong by hours, some belong to two people in turn. Commands come as JSON lines on standard input: {"settle": true} brings
them all back and keeps them connected, the end of the input ends them. Standard output has one line a second: how many are connected,
were ever welcomed, and how many responses wait to be accepted.
"""
import argparse
import asyncio
import json
import os
import random
import ssl
import sys
import time

import websockets

from common import APPLICATION, CATEGORIES, DISMISS, NEVER, OPEN, TAKEN_OVER, Log, is_fickle, token_of, users_of
from programs import Program, is_program

# What it shares with the other clients lies beside its folder.
sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Memory:
    """What a device remembers by the protocol, over all its connections: ids taken, the newest revision per identifier, its list."""

    def __init__(self):
        self.taken, self.newest, self.list = set(), {}, {}
        # The newest removal of all.
        self.floor = ""

    def take(self, frame, now):
        """What becomes of a notification: shown, updated, or why it is dropped."""
        identifier = frame["identifier"]
        if frame["id"] in self.taken:
            return "known"
        if frame["revision"] <= self.newest.get(identifier, ""):
            return "stale"
        if frame["revision"] < self.floor:
            return "below"
        if frame["expiration"] and frame["expiration"] <= now:
            return "expired"
        verdict = "updated" if identifier in self.list else "shown"
        self.taken.add(frame["id"])
        self.newest[identifier] = frame["revision"]
        self.list[identifier] = frame["id"]
        return verdict

    def remove(self, frame):
        """Takes identifiers away, or all that is older; gives those of which nothing newer is known."""
        if frame.get("all"):
            self.floor = max(self.floor, frame["revision"])
            gone = [identifier for identifier in self.list if self.newest[identifier] < frame["revision"]]
            for identifier in gone:
                del self.list[identifier]
            return gone
        gone = [identifier for identifier in frame["identifiers"] if frame["revision"] > self.newest.get(identifier, "")]
        for identifier in gone:
            self.newest[identifier] = frame["revision"]
            self.list.pop(identifier, None)
        return gone


class Device:
    def __init__(self, number, crowd):
        self.number, self.crowd = number, crowd
        self.token, self.users = token_of(number), users_of(number)
        self.dice = random.Random("device %d %d" % (crowd.arguments.seed, number))
        # A third are wrong by up to a day; it must not matter.
        self.skew = self.dice.uniform(-86400, 86400) if self.dice.random() < 0.3 else 0.0
        self.log = Log(os.path.join(crowd.arguments.folder, "%04d.log" % number), self.skew)
        self.memory, self.outbox, self.people, self.responses = Memory(), {}, {}, 0
        self.is_slow = self.dice.random() < 0.1
        # Some change what the application may send, and where they are.
        self.is_fickle, self.travels = is_fickle(number), number % 8 == 2
        self.connections, self.welcomed, self.welcomed_at, self.left_at, self.unanswered = 0, False, 0, 0, 0

    @property
    def is_settled(self):
        return self.crowd.is_settled

    async def run(self):
        failures = 0
        await asyncio.sleep(self.dice.uniform(0, 1))
        while True:
            stays = self.dice.choice([1, 3, 8, 8, 20, 60])
            session = Session(self, self.dice.choice(self.users))
            try:
                await session.run(stays)
                failures = 0
            except (OSError, websockets.exceptions.WebSocketException, asyncio.TimeoutError) as error:
                failures += 1
                code = getattr(getattr(error, "rcvd", None), "code", None)
                self.log.write("closed", why=code or type(error).__name__)
                if code == TAKEN_OVER and self.unanswered:
                    self.unanswered -= 1
                elif code in NEVER:
                    self.log.write("banished", code=code)
            if self.is_settled or failures:
                await asyncio.sleep(self.dice.uniform(0.1, 0.5) * min(failures + 1, 5))
            else:
                await self.crowd.away(self.dice.choice([0, 0.2, 1, 3, 8]) * self.dice.random())

    def respond(self, frame, user):
        """What the person does with what is shown: kept in the outbox until the cluster has accepted it."""
        if self.dice.random() > self.crowd.arguments.respond:
            return
        self.responses += 1
        action = self.dice.choice([OPEN, DISMISS, "reply"])
        response = {
            "type": "response", "response": "%d-%d" % (self.number, self.responses), "receipt": frame["receipt"],
            "identifier": frame["identifier"], "action": action, "at": int((time.time() + self.skew) * 1000)}
        if action == "reply":
            response["userText"] = "on my way %d ✓" % self.responses
        if self.memory.list.get(frame["identifier"]) == frame["id"] and action != "reply":
            del self.memory.list[frame["identifier"]]
        self.outbox[response["response"]] = response
        self.people[response["response"]] = user
        self.log.write("response", response=response["response"], id=frame["id"], action=action)


class Session:
    """One connection of a device."""

    def __init__(self, device, user):
        self.device, self.user, self.dice, self.log = device, user, device.dice, device.log
        self.sent, self.now, self.is_left, self.welcomed_at = {}, None, False, None
        self.doubt = 0

    async def run(self, stays):
        device = self.device
        self.socket = await websockets.connect(
            self.dice.choice(device.crowd.arguments.url), subprotocols=["carillon.v1"], open_timeout=5, close_timeout=1, max_size=1 << 20,
            compression=None, ping_interval=5, ping_timeout=6, ssl=device.crowd.tls)
        began = time.monotonic()
        device.connections += 1
        try:
            await self.socket.send(json.dumps({
                "type": "hello", "device": device.token, "application": APPLICATION, "user": self.user, "categories": CATEGORIES,
                **self.changes()}))
            try:
                await self.talk(began, stays)
            finally:
                device.unanswered += self.now is None and self.socket.close_code not in NEVER
        except BaseException:
            self.socket.transport.abort()
            raise
        finally:
            device.connections -= 1
            if self.welcomed_at == device.welcomed_at:
                device.left_at = time.monotonic()

    def changes(self):
        """What this device says of its settings and its place, differently from session to session."""
        told = {}
        if self.device.is_fickle:
            status = "authorized" if self.device.is_settled else self.dice.choice(["authorized", "denied", "provisional"])
            told["authorization"] = {"status": status}
        if self.device.travels:
            told["timeZone"] = self.dice.choice(["Europe/Rome", "America/New_York", "Asia/Kathmandu", "UTC"])
        return told

    async def set_quiet(self):
        """The person's quiet hours begin or end: what is shown is shown quietly."""
        hour = self.dice.randrange(24)
        quiet = {"from": "%02d:00" % hour, "to": "%02d:30" % ((hour + 8) % 24), "timeZone": "Europe/Rome"} if self.dice.random() < 0.7 else {}
        await self.socket.send(json.dumps({"type": "settings", "request": "quiet", "quiet": quiet}))

    async def talk(self, began, stays):
        while True:
            left = began + stays - time.monotonic()
            if left <= 0 and not self.device.is_settled and not self.is_left:
                return await self.leave()
            try:
                frame = json.loads(await asyncio.wait_for(self.socket.recv(), 1 if self.device.is_settled else max(0.05, min(left, 1))))
            except asyncio.TimeoutError:
                await self.resend()
                continue
            kind = frame["type"]
            if kind == "welcome":
                # Never behind the cluster's clock, so that nothing is shown late however long the way was; ahead by no more than it took.
                self.now = (lambda base: lambda: base + time.monotonic())(frame["now"] / 1000 - began)
                self.doubt = time.monotonic() - began
                self.device.welcomed, self.device.welcomed_at = True, time.monotonic()
                self.welcomed_at = self.device.welcomed_at
                self.log.write("welcome", user=self.user, session=frame["session"])
                if self.device.is_fickle and self.dice.random() < 0.3:
                    await self.set_quiet()
                await self.resend()
            elif kind == "notify":
                await self.notified(frame)
            elif kind == "remove":
                gone = self.device.memory.remove(frame)
                self.log.write("removed", identifiers=frame["identifiers"], revision=frame["revision"], gone=gone)
                await self.socket.send(json.dumps({"type": "ack", "deliveries": [frame["delivery"]]}))
            elif kind in ("accepted", "refused") and "response" in frame:
                if self.device.outbox.pop(frame["response"], None):
                    # What the device's former user was sent is not for the next one to answer.
                    is_of_another = self.device.people[frame["response"]] != self.user and frame.get("reason") == "NotForThisDevice"
                    self.log.write("withdrawn" if is_of_another else kind, response=frame["response"], reason=frame.get("reason"))
            elif kind == "gap":
                self.log.write("gap", since=frame["from"], to=frame["to"])
            elif kind == "goaway" and not self.device.is_settled:
                await asyncio.sleep(min(frame["reconnectAfterMs"] / 1000, 3) * self.dice.random())

    async def notified(self, frame):
        device = self.device
        # When it is judged. A machine that stands still may write the log later.
        at, latest, end = time.time(), self.now(), frame["expiration"]
        if self.doubt > 1 and end and latest - self.doubt < end <= latest:
            # To show it might be late, to drop it early: the next hello tells.
            self.log.write("doubt", id=frame["id"], of=round(self.doubt, 3))
            self.socket.transport.abort()
            return
        verdict = device.memory.take(frame, latest)
        self.log.write(
            verdict, at=at, id=frame["id"], identifier=frame["identifier"], revision=frame["revision"], expiration=frame["expiration"],
            number=frame["payload"].get("number"), user=self.user)
        ack = {"type": "ack", "deliveries": [frame["delivery"]]}
        if verdict == "updated":
            ack["updated"] = [frame["delivery"]]
        if verdict in ("known", "stale", "below", "expired"):
            reason = "canceled" if verdict == "below" else verdict
            ack = {"type": "ack", "deliveries": [], "dropped": [{"delivery": frame["delivery"], "reason": reason}]}
        else:
            device.respond(frame, self.user)
        if not device.is_settled:
            if device.is_slow:
                await asyncio.sleep(self.dice.uniform(0.05, 0.6))
            if self.dice.random() < 0.01:
                # It has shown it, and the cluster does not hear of it.
                self.socket.transport.abort()
                return
            if time.monotonic() < device.crowd.holes and self.dice.random() < 0.1:
                # It goes on without an acknowledgement of this one: the next session brings it again.
                self.log.write("hole", id=frame["id"])
                return
        await self.socket.send(json.dumps(ack))
        if device.outbox:
            await self.resend()

    async def resend(self):
        """Sends what waits in the outbox: what is new, and again what has not been answered for a while; a bounded number at a time."""
        now = time.monotonic()
        if self.now is None:
            return
        for name, response in list(self.device.outbox.items())[:16]:
            if now - self.sent.get(name, -60) > 8:
                self.sent[name] = now
                await self.socket.send(json.dumps(response))

    async def leave(self):
        """In order, at once, or to another network: then the cluster does not know that nobody uses this connection any more."""
        way = self.dice.random()
        if way < 0.5:
            await self.socket.close()
        elif way < 0.8:
            self.socket.transport.abort()
        elif way < 0.9 or len(self.device.users) > 1:
            self.socket.transport.pause_reading()
            asyncio.get_running_loop().call_later(12, self.socket.transport.abort)
        else:
            self.device.crowd.keep(self.linger())

    async def linger(self):
        """Goes on beside the device's next session until the cluster ends it."""
        self.is_left = True
        try:
            await asyncio.wait_for(self.talk(time.monotonic(), 60), 40)
            is_open = False
        except websockets.exceptions.ConnectionClosed:
            is_open = False
        except asyncio.TimeoutError:
            is_open = self.socket.close_code is None
        # Only a later session can end this one, and as long as it lives: a Redis that comes back older may know of this one alone.
        device = self.device
        is_last = device.welcomed_at == self.welcomed_at
        until = device.left_at if device.left_at > device.welcomed_at else time.monotonic()
        after = 0 if is_last else until - device.welcomed_at
        self.log.write("lingered", code=self.socket.close_code, open=is_open, after=after)
        self.socket.transport.abort()


class Crowd:
    def __init__(self, arguments):
        self.arguments, self.is_settled, self.settled, self.kept = arguments, False, asyncio.Event(), set()
        # Until when devices leave out acknowledgements.
        self.holes = 0.0
        self.tls = ssl.create_default_context(cafile=arguments.ca) if arguments.ca else None
        self.web, web = None, {}
        if arguments.pages:
            # It needs a browser and its driver.
            from web import Web, are_web

            self.web = Web(self, are_web(arguments.pages, arguments.devices, lambda number: is_program(number, arguments.programs)))
            web = self.web.all
        self.devices = [
            web.get(number) or (Program if is_program(number, arguments.programs) else Device)(number, self)
            for number in range(arguments.devices)]

    async def away(self, seconds):
        """Away for so long, or until all are called back."""
        try:
            await asyncio.wait_for(self.settled.wait(), seconds)
        except asyncio.TimeoutError:
            pass

    def keep(self, work):
        task = asyncio.create_task(work)
        self.kept.add(task)
        task.add_done_callback(self.kept.discard)

    def settle(self):
        self.is_settled = True
        self.settled.set()

    async def report(self):
        while True:
            print(json.dumps({
                "connected": sum(device.connections > 0 for device in self.devices),
                "welcomed": sum(device.welcomed for device in self.devices),
                "outbox": sum(len(device.outbox) for device in self.devices),
                "programs": sum(isinstance(device, Program) for device in self.devices),
                "kills": sum(device.kills for device in self.devices if isinstance(device, Program))}), flush=True)
            await asyncio.sleep(0.5)

    async def run(self):
        tasks = [asyncio.create_task(device.run()) for device in self.devices] + [asyncio.create_task(self.report())]
        if self.web:
            tasks.append(asyncio.create_task(self.web.run()))
        reader = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        watching = asyncio.create_task(self.obey(reader))
        done, _ = await asyncio.wait(tasks + [watching], return_when=asyncio.FIRST_COMPLETED)
        if watching not in done:
            # A device that ends has met what it does not understand: that is a finding.
            for task in done:
                task.result()
            raise RuntimeError("a device has ended")
        if self.web:
            self.web.browser.end()
        os._exit(0)

    async def obey(self, reader):
        while line := await reader.readline():
            command = json.loads(line)
            if command.get("settle"):
                self.settle()
            self.holes = max(self.holes, time.monotonic() + command.get("holes", 0))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", action="append", required=True)
    parser.add_argument("--ca", help="the certificate that the workers' must have been signed by")
    parser.add_argument("--devices", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", required=True)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--programs", type=int, default=0, help="how many of a hundred are processes of the program's own")
    parser.add_argument("--pages", type=int, default=0, help="how many of the others are one page in a browser")
    parser.add_argument("--web-port", type=int, default=0, help="where that page is")
    parser.add_argument("--respond", type=float, default=0.15, help="the share of what is shown that the person answers")
    asyncio.run(Crowd(parser.parse_args()).run())


if __name__ == "__main__":
    main()
