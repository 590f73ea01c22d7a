"""The requests: a seeded stream of all that producers send, and what Kafka says it has taken."""
import asyncio
import json
import random
import time
import uuid

import confluent_kafka
from common import APPLICATION, token_of, users_of

# Headers that break a rule (None: absent), or a value that does.
BAD = [
    ({"apns-id": "NOT-A-UUID"}, None), ({"apns-topic": None}, None), ({"apns-priority": "7"}, None),
    ({"apns-push-type": "carrier-pigeon"}, None), ({"apns-collapse-id": "x" * 65}, None), ({"apns-expiration": "soon"}, None),
    ({"target": "device:xyz"}, None), ({"target": "planet:mars"}, None), ({}, b'{"aps": {"alert": "cut'), ({}, b"[]"), ({}, b""),
    ({}, b'{"aps": {"badge": "three"}}'), ({}, b'{"aps": {"alert": "' + b"x" * 5000 + b'"}}'),
]


# Schedules that repeat beside each other; one more ends the oldest.
MOST_REPEATING = 30


class Request:
    """One request as it was meant. `kind` says what may become of it, see verdict.py."""

    __slots__ = ("number", "id", "target", "kind", "collapse", "expires", "first", "removes", "trigger", "is_taken")

    def __init__(self, number, target, kind):
        self.number, self.target, self.kind = number, target, kind
        self.id = self.collapse = self.expires = self.first = self.removes = self.trigger = None
        self.is_taken = False

    @property
    def identifier(self):
        """What devices call it by; None when Kafka's place decides it."""
        return self.collapse or self.id


class Plan:
    """Makes one request after the other from the seed; only expirations look at the clock."""

    def __init__(self, seed, devices):
        self.dice, self.devices = random.Random("requests %d" % seed), devices
        self.requests, self.recent = [], []
        # What was scheduled lately, and what repeats and was not ended yet.
        self.scheduled, self.repeating = [], []

    def target(self):
        number = self.dice.randrange(self.devices)
        return "user:" + self.dice.choice(users_of(number)) if self.dice.random() < 0.3 else "device:" + token_of(number)

    def next(self):
        """The next request, its headers and its value; and whether it is published twice in a row."""
        number, dice = len(self.requests), self.dice
        request = Request(number, self.target(), "must")
        request.id = str(uuid.UUID(int=dice.getrandbits(128)))
        roll, twice, changes, other = dice.random(), False, {}, None
        if roll < 0.42:
            request.collapse = "order-%d" % dice.randrange(4)
            if roll < 0.03:
                request.expires, request.kind = int(time.time()) + dice.randrange(2, 9), "may"
        elif roll < 0.44:
            # A producer that does not know whether the first try arrived: the same again, at once, for a device alone.
            request.target, request.collapse, twice = "device:" + token_of(dice.randrange(self.devices)), "twice-%d" % dice.randrange(3), True
        elif roll < 0.49 and self.recent:
            request.first = dice.choice(self.recent)
            request.id, request.target, request.kind = request.first.id, request.first.target, "repeat"
        elif roll < 0.55:
            request.expires, request.kind = int(time.time()) + dice.randrange(2, 9), "may"
        elif roll < 0.58:
            request.expires, request.kind = int(time.time()) - dice.randrange(1, 10_000), "never"
        elif roll < 0.60:
            request.expires, request.kind = 0, "may"
        elif roll < 0.63:
            request.id = None
        elif roll < 0.65:
            request.kind, request.collapse = "remove", "order-%d" % dice.randrange(4)
        elif roll < 0.66 and self.recent:
            request.removes = dice.choice(self.recent)
            request.kind, request.target = "remove", request.removes.target
        elif roll < 0.67:
            request.kind, request.target = "unregistered", "device:%064x" % dice.getrandbits(256)
        elif roll < 0.70:
            request.kind = "bad"
            changes, other = dice.choice(BAD)
        elif roll < 0.75:
            request.expires = int(time.time()) + 86_400
        elif roll < 0.79:
            self.later(request)
        elif roll < 0.792:
            request.kind, other = "clear", b'{"all": true}'
        if roll >= 0.792 and request.kind == "must":
            self.recent = self.recent[-199:] + [request]
        self.requests.append(request)
        return request, self.headers(request, changes), self.value(request) if other is None else other, twice

    def later(self, request):
        """Something that is due at a time; or that ends such a thing: a cancel, or a newer request of the same identifier."""
        dice, roll = self.dice, self.dice.random()
        if roll < 0.35 and self.scheduled or len(self.repeating) > MOST_REPEATING:
            former = self.repeating[0] if len(self.repeating) > MOST_REPEATING else self.scheduled.pop(dice.randrange(len(self.scheduled)))
            self.end(request, former, "cancel" if roll < 0.2 else "must")
            if roll < 0.28:
                return
        request.collapse = request.collapse or "later-%d" % request.number
        if dice.random() < 0.2:
            request.kind = "repeats"
            request.trigger = {"type": "calendar", "dateComponents": {"second": dice.randrange(60)}, "repeats": True}
            if dice.random() < 0.5:
                request.trigger["dateComponents"]["timeZone"] = "UTC"
            self.repeating.append(request)
        else:
            request.kind = "once"
            request.trigger = {"type": "timeInterval", "timeInterval": round(dice.uniform(0.2, 8), 3)}
        self.scheduled = self.scheduled[-49:] + [request]

    def end(self, request, former, kind):
        request.target, request.collapse, request.kind = former.target, former.collapse, kind
        self.repeating = [each for each in self.repeating if (each.target, each.collapse) != (former.target, former.collapse)]

    def last(self):
        """Cancels what repeats, one after the other, so that everything comes to its end; None when nothing does."""
        if not self.repeating:
            return None
        request = Request(len(self.requests), None, "cancel")
        request.id = str(uuid.UUID(int=self.dice.getrandbits(128)))
        self.end(request, self.repeating[0], "cancel")
        self.requests.append(request)
        return request, self.headers(request, {}), self.value(request), False

    def headers(self, request, changes):
        headers = {"target": request.target, "apns-topic": APPLICATION, "apns-id": request.id, "number": str(request.number)}
        headers["apns-collapse-id"] = request.collapse
        headers["apns-expiration"] = None if request.expires is None else str(request.expires)
        headers["operation"] = {"remove": "remove", "clear": "remove", "cancel": "cancel"}.get(request.kind)
        headers["trigger"] = json.dumps(request.trigger) if request.trigger else None
        headers.update(changes)
        return [(name, text.encode()) for name, text in headers.items() if text is not None]

    def value(self, request):
        if request.kind == "remove":
            # By the collapse id in the header, else by the name that the first one has.
            return json.dumps({"identifiers": [request.removes.id]}).encode() if request.removes else b""
        if request.kind == "cancel":
            return b""
        aps = {"alert": {"title": "Order %d" % request.number, "body": "It is on its way"}, "category": "reply"}
        # A repeat is what was published before.
        number = request.first.number if request.first else request.number
        return json.dumps({"aps": aps, "number": number, "target": request.target}).encode()


class Producer:
    """Publishes the plan at a steady rate, with clocks that are wrong by up to days; the topic takes the broker's time."""

    def __init__(self, kafka, topic, plan, rate):
        self.kafka, self.topic, self.plan, self.rate = kafka, topic, plan, rate
        self.taken, self.refused, self.is_paused, self.is_resting = 0, [], False, False
        self.renew()

    def renew(self):
        """Forgets what it knows of the topic."""
        self.producer = confluent_kafka.Producer({
            "bootstrap.servers": self.kafka, "linger.ms": 5, "enable.idempotence": True, "message.timeout.ms": 280_000,
            "queue.buffering.max.messages": 20_000, "reconnect.backoff.max.ms": 1000, "logger": None, "log_level": 0})

    def report(self, request):
        def reported(error, _):
            if error:
                self.refused.append(str(error))
            else:
                self.taken += 1
                request.is_taken = True

        return reported

    async def run(self, count):
        began, dice = time.monotonic(), random.Random("clocks")
        number = 0
        while number < count:
            if self.is_paused:
                paused, self.is_resting = time.monotonic(), True
                while self.is_paused:
                    await asyncio.sleep(0.05)
                self.is_resting = False
                began += time.monotonic() - paused
            request, headers, value, twice = self.plan.next()
            number += 1
            when = time.time() + (dice.uniform(-3 * 86_400, 1800) if dice.random() < 0.3 else 0)
            for _ in range(2 if twice else 1):
                await self.produce(request, headers, value, int(when * 1000))
            ahead = began + number / self.rate - time.monotonic()
            if ahead > 0.02 or number % 64 == 0:
                self.producer.poll(0)
                await asyncio.sleep(max(0, ahead))
        while last := self.plan.last():
            await self.produce(*last[:3], int(time.time() * 1000))
        self.is_resting = True
        await self.flush()

    async def pause(self):
        """Publishes nothing more until `is_paused` is taken back, and answers when Kafka has all that was."""
        self.is_paused = True
        while not self.is_resting:
            await asyncio.sleep(0.05)
        await self.flush()

    async def produce(self, request, headers, value, timestamp):
        while True:
            try:
                return self.producer.produce(
                    self.topic, key=request.target, value=value, headers=headers, timestamp=timestamp, on_delivery=self.report(request))
            except BufferError:
                self.producer.poll(0)
                await asyncio.sleep(0.05)

    def transact(self, devices, partitions, aborts, seconds):
        """Ends a transaction on both topics, some seconds after its beginning: only on `devices` there is something to be read of it.

        A registration that nobody has is taken back there; what is aborted on the requests topic breaks a rule, so that it would show."""
        producer = confluent_kafka.Producer({
            "bootstrap.servers": self.kafka, "transactional.id": "nemesis-%s" % uuid.uuid4(), "transaction.timeout.ms": 60_000,
            "reconnect.backoff.max.ms": 1000, "logger": None, "log_level": 0})
        producer.init_transactions(120)
        producer.begin_transaction()
        for partition in range(partitions):
            producer.produce(devices, partition=partition, key=b"%064x" % random.getrandbits(256), value=None)
            if aborts:
                producer.produce(self.topic, partition=partition, key=b"device:nobody", value=b"aborted", headers={"number": b"0"})
        producer.flush(120)
        time.sleep(seconds)
        (producer.abort_transaction if aborts else producer.commit_transaction)(120)

    def bomb(self, partition):
        """Publishes what no client decompresses, and answers where it lies: its partition and offset."""
        places = []

        def reported(error, message):
            places.append((partition, -1 if error else message.offset()))

        producer = confluent_kafka.Producer({
            "bootstrap.servers": self.kafka, "compression.type": "zstd", "message.max.bytes": 400_000_000, "enable.idempotence": True,
            "message.timeout.ms": 280_000, "reconnect.backoff.max.ms": 1000, "logger": None, "log_level": 0})
        producer.produce(self.topic, partition=partition, value=bytes(150_000_000), on_delivery=reported)
        while len(producer):
            producer.poll(1)
        return places[0]

    async def flush(self):
        """Waits until Kafka has all that was published."""
        while len(self.producer):
            self.producer.poll(0)
            await asyncio.sleep(0.05)
