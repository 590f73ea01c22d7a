#!/usr/bin/env python3
"""A crowd of devices and a producer, written against the contract alone: confluent-kafka and websockets, nothing of Carillon's.

It publishes requests by a seeded plan, connects devices that leave and come back, works out from what Kafka has taken what every device
should show at the end, and compares. Standard output has one JSON object per line: progress, then the result. Exits 0 when every device
ended as it should.
"""
import argparse
import asyncio
import collections
import contextlib
import json
import random
import sys
import time
import uuid

import clients
import confluent_kafka
import websockets

APPLICATION = "com.example.shop"


def say(**members):
    print(json.dumps(members), flush=True)


class Device:
    """What a device must remember by the protocol, and the connection that comes and goes."""

    def __init__(self, token, user, urls, seed):
        self.token, self.user, self.urls = token, user, urls
        self.random = random.Random(seed)
        self.taken = {}  # apns-id -> how often it was shown
        self.newest = {}  # identifier -> revision
        self.shown = {}  # identifier -> apns-id
        self.late = []
        self.dropped = collections.Counter()
        self.closes = collections.Counter()
        self.skew = 0.0
        self.wanted = True
        self.welcomed = 0
        self.gaps = 0

    async def run(self):
        attempt = 0
        while self.wanted:
            try:
                url = self.random.choice(self.urls)
                async with websockets.connect(url, subprotocols=["carillon.v1"], open_timeout=5, close_timeout=2, max_size=1 << 20) as socket:
                    await self.session(socket)
                    attempt = 0
            except (OSError, websockets.exceptions.WebSocketException, asyncio.TimeoutError) as error:
                code = getattr(getattr(error, "rcvd", None), "code", None)
                self.closes[str(code or type(error).__name__)] += 1
                attempt += 1
            if self.wanted:
                await asyncio.sleep(self.random.uniform(0.05, 0.3) * min(attempt + 1, 5))

    async def session(self, socket):
        hello = {"type": "hello", "device": self.token, "application": APPLICATION, "user": self.user}
        await socket.send(json.dumps(hello))
        # Some stay for long, some leave soon and are away for a while.
        leave_at = time.monotonic() + self.random.choice([1.5, 4, 9, 60])
        while self.wanted:
            wait = leave_at - time.monotonic()
            try:
                text = await asyncio.wait_for(socket.recv(), max(0.01, wait))
            except asyncio.TimeoutError:
                await socket.close()
                await asyncio.sleep(self.random.uniform(0, 1.5))
                return
            frame = json.loads(text)
            kind = frame["type"]
            if kind == "welcome":
                self.skew = frame["now"] / 1000 - time.time()
                self.welcomed += 1
            elif kind == "notify":
                await socket.send(json.dumps(self.take(frame)))
            elif kind == "remove":
                await socket.send(json.dumps({"type": "ack", "deliveries": [frame["delivery"]]}))
            elif kind == "gap":
                self.gaps += 1

    def take(self, frame):
        def drop(reason):
            self.dropped[reason] += 1
            return {"type": "ack", "deliveries": [], "dropped": [{"delivery": frame["delivery"], "reason": reason}]}

        identifier = frame["identifier"]
        now = time.time() + self.skew
        if frame["id"] in self.taken:
            return drop("known")
        if frame["revision"] <= self.newest.get(identifier, ""):
            return drop("stale")
        if frame["expiration"] and frame["expiration"] < now - 1:
            self.late.append(frame["id"])
            return drop("expired")
        updated = identifier in self.shown
        self.taken[frame["id"]] = self.taken.get(frame["id"], 0) + 1
        self.newest[identifier] = frame["revision"]
        self.shown[identifier] = frame["id"]
        ack = {"type": "ack", "deliveries": [frame["delivery"]]}
        if updated:
            ack["updated"] = [frame["delivery"]]
        return ack


BAD = [
    ({"apns-id": "NOT-A-UUID"}, None),
    ({"apns-topic": None}, None),
    ({"apns-priority": "7"}, None),
    ({"apns-push-type": "carrier-pigeon"}, None),
    ({"apns-collapse-id": "x" * 65}, None),
    ({"apns-expiration": "soon"}, None),
    ({"target": "device:xyz"}, None),
    ({"target": "planet:mars"}, None),
    ({}, b'{"aps": {"alert": "cut'),
    ({}, b"[]"),
    ({}, b""),
    ({}, b'{"aps": {"badge": "three"}}'),
    ({}, b'{"aps": {"alert": "' + b"x" * 5000 + b'"}}'),
]


class Plan:
    """The requests, and what Kafka made of them."""

    def __init__(self, arguments, devices):
        self.random = random.Random(arguments.seed)
        self.devices = devices
        self.records = []  # dicts: id, tokens, identifier, collapse, kind, at (timestamp, partition, offset)
        self.plain_ids = []

    def next(self, number):
        pick = self.random.random
        person = self.random.choice(self.devices).user
        token = self.random.choice(self.devices).token
        to_user = pick() < 0.3
        target = "user:" + person if to_user else "device:" + token
        tokens = [device.token for device in self.devices if device.user == person] if to_user else [token]
        record = {"id": str(uuid.UUID(int=self.random.getrandbits(128))), "tokens": tokens, "target": target, "kind": "good", "collapse": None}
        headers = {"apns-topic": APPLICATION, "target": target}
        roll = pick()
        if roll < 0.35:
            record["collapse"] = "order-%d" % self.random.randrange(4)
            headers["apns-collapse-id"] = record["collapse"]
        elif roll < 0.42 and self.plain_ids:
            # The same request published twice: the same id and target.
            first = self.random.choice(self.plain_ids)
            record.update(id=first["id"], tokens=first["tokens"], target=first["target"], kind="duplicate")
            headers["target"] = first["target"]
        elif roll < 0.47:
            record["kind"] = "expired"
            headers["apns-expiration"] = str(int(time.time()) - self.random.randrange(1, 10_000))
        elif roll < 0.50:
            record["kind"] = "once"
            headers["apns-expiration"] = "0"
        elif roll < 0.55:
            headers["apns-expiration"] = str(int(time.time()) + 3600)
        value = json.dumps({"aps": {"alert": {"title": "Order %d" % number, "body": "It is on its way"}}, "number": number}).encode()
        headers["apns-id"] = record["id"]
        if roll >= 0.95:
            record["kind"] = "bad"
            changes, other = self.random.choice(BAD)
            headers.update(changes)
            value = value if other is None else other
        elif record["kind"] == "good" and record["collapse"] is None:
            self.plain_ids.append(record)
        self.records.append(record)
        return record, {name: text for name, text in headers.items() if text is not None}, value

    def last(self):
        """A request for each device and each person."""
        targets = {"device:" + device.token: [device.token] for device in self.devices}
        for device in self.devices:
            targets.setdefault("user:" + device.user, []).append(device.token)
        requests = []
        for target, tokens in targets.items():
            record = {"id": str(uuid.UUID(int=self.random.getrandbits(128))), "tokens": tokens, "target": target, "kind": "good", "collapse": None}
            self.records.append(record)
            requests.append((record, {"apns-topic": APPLICATION, "target": target, "apns-id": record["id"]}, b'{"aps": {"alert": "The last"}}'))
        return requests

    def expectation(self):
        """Per token: ids that must be shown once, ids that may be, and the newest id per collapse id."""
        once = collections.defaultdict(set)
        maybe = collections.defaultdict(set)
        newest = collections.defaultdict(dict)
        collapsing = collections.defaultdict(set)
        for record in self.records:
            for token in record["tokens"]:
                if record["kind"] == "once":
                    maybe[token].add(record["id"])
                elif record["kind"] in ("good", "duplicate") and record["collapse"] is None:
                    once[token].add(record["id"])
                elif record["kind"] == "good":
                    collapsing[token].add(record["id"])
                    best = newest[token].get(record["collapse"])
                    if best is None or best["at"] < record["at"]:
                        newest[token][record["collapse"]] = record
        return once, maybe, newest, collapsing


def problems(plan, devices):
    places = {record["id"]: record["at"] for record in plan.records}
    once, maybe, newest, collapsing = plan.expectation()
    found = []
    for device in devices:
        shown = set(device.taken)
        for missing in once[device.token] - shown:
            found.append({"device": device.token[-6:], "lost": missing})
        for strange in shown - once[device.token] - maybe[device.token] - collapsing[device.token]:
            found.append({"device": device.token[-6:], "unexpected": strange})
        for name, count in device.taken.items():
            if count > 1:
                found.append({"device": device.token[-6:], "twice": name})
        for collapse, record in newest[device.token].items():
            if device.shown.get(collapse) != record["id"]:
                shown = device.shown.get(collapse)
                found.append({
                    "device": device.token[-6:], "stale": collapse, "shown": shown, "at": places.get(shown), "newest": record["id"],
                    "newest_at": record["at"], "was_shown": record["id"] in device.taken, "revision": device.newest.get(collapse)})
        for name in device.late:
            found.append({"device": device.token[-6:], "late": name})
    return found


async def publish(arguments, requests):
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": arguments.kafka, "linger.ms": 5, "enable.idempotence": True, "message.timeout.ms": 120000}
    )

    def reported(record):
        def report(error, message):
            if error:
                say(failed=str(error))
                record["failed"] = True
            else:
                record["place"] = (message.partition(), message.offset())

        return report

    began = time.monotonic()
    count = len(requests)
    for number in range(count):
        record, headers, value = requests[number]() if callable(requests[number]) else requests[number]
        while True:
            try:
                producer.produce(
                    arguments.prefix + "requests", key=headers.get("target", "none"), value=value,
                    headers=[(name, text.encode()) for name, text in headers.items()], on_delivery=reported(record))
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)
        for share in (25, 50, 75):
            if number == count * share // 100:
                producer.flush(clients.HANG)
                say(published=number, percent=share)
        ahead = number / arguments.rate - (time.monotonic() - began)
        if ahead > 0.02 or number % 50 == 0:
            await asyncio.sleep(max(0, ahead))
    await asyncio.get_running_loop().run_in_executor(None, producer.flush, clients.HANG)
    say(published=count, percent=100)


async def read_times(arguments, plan):
    """The times that Kafka has given the requests, read back: not every broker tells them to the producer."""
    topic = arguments.prefix + "requests"
    reader = clients.Reader(arguments.kafka, [topic])
    reading = asyncio.create_task(reader.run())
    try:
        def times():
            found = {(record.partition, record.offset): record.timestamp for record in reader.records[topic]}
            return found if all(record["place"] in found for record in plan.records) else None

        found = await clients.until(times, "all requests are read back")
    finally:
        reading.cancel()
    for record in plan.records:
        record["at"] = (found[record["place"]], *record["place"])


async def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kafka", required=True)
    parser.add_argument("--devices-url", action="append", required=True)
    parser.add_argument("--prefix", default="notifications.")
    parser.add_argument("--devices", type=int, default=200)
    parser.add_argument("--requests", type=int, default=5000)
    parser.add_argument("--rate", type=float, default=400)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    devices = [
        Device("%064x" % (0xC0FFEE0000 + number), "person-%d" % (number // 2), arguments.devices_url, arguments.seed * 1000 + number)
        for number in range(arguments.devices)
    ]
    tasks = [asyncio.create_task(device.run()) for device in devices]
    await clients.until(lambda: all(device.welcomed for device in devices), "all devices are welcomed",
                        lambda: sum((device.closes for device in devices), collections.Counter()))
    say(connected=len(devices))
    plan = Plan(arguments, devices)
    # Behind all others lies one for each target: what would be shown twice or too late comes before it.
    for requests in (lambda: [lambda number=number: plan.next(number) for number in range(arguments.requests)]), plan.last:
        await publish(arguments, requests())
        plan.records = [record for record in plan.records if "place" in record]
        await read_times(arguments, plan)
        with contextlib.suppress(clients.Failed):
            await clients.until(lambda: not problems(plan, devices), "each device ends as it should")
    found = problems(plan, devices)
    for device in devices:
        device.wanted = False
    kinds = collections.Counter(record["kind"] for record in plan.records)
    say(
        result="failed" if found else "passed", problems=len(found), first=found[:20], requests=len(plan.records), kinds=kinds,
        shown=sum(len(device.taken) for device in devices), dropped=sum((device.dropped for device in devices), collections.Counter()),
        sessions=sum(device.welcomed for device in devices), closes=sum((device.closes for device in devices), collections.Counter()),
        gaps=sum(device.gaps for device in devices))
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return 1 if found else 0


sys.exit(asyncio.run(main()))
