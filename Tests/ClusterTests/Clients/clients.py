"""What the clients of these tests share: a device, a producer, a reader of topics, and the contract's schemas.

Written against the contract alone: confluent-kafka, websockets and jsonschema, nothing of Carillon's.
"""
import asyncio
import inspect
import json
import subprocess
import time
import uuid

import confluent_kafka
import jsonschema
import websockets

APPLICATION = "com.example.shop"
# It only ends a hang, and says nothing of how fast anything is: a machine may stand still for a minute.
HANG = 300


class Failed(Exception):
    """A promise that was not kept."""


def say(**members):
    print(json.dumps(members), flush=True)


def expect(condition, promise, seen=None):
    if not condition:
        raise Failed("%s%s" % (promise, "" if seen is None else ": " + json.dumps(seen, default=repr)[:1500]))


async def until(found, promise, seen=lambda: None):
    """Waits for what `found` gives, at once or as a coroutine, when it is true of it. All clients wait here."""
    deadline = time.monotonic() + HANG
    while not (result := await answer if inspect.isawaitable(answer := found()) else answer):
        expect(time.monotonic() < deadline, "never came true: %s" % promise, seen())
        await asyncio.sleep(0.02)
    return result


async def quietly(work, *arguments, **more):
    """Runs what blocks while devices and proxies go on."""
    return await asyncio.get_running_loop().run_in_executor(None, lambda: work(*arguments, **more))


async def run(*line):
    """Runs a program while devices and proxies go on, and gives how it has ended and what it said."""
    return await quietly(subprocess.run, line, capture_output=True, text=True, timeout=HANG)


async def asked(*line):
    """Like `run`, of a tool that may be repeated: where the broker has stood still for longer than the tool waits, it is typed again."""
    for _ in range(20):
        done = await run(*line)
        if done.returncode != 3 or "Kafka does not answer" not in done.stderr:
            break
    return done


class Contract:
    """The AsyncAPI document's schemas, and everything that was held against them."""

    def __init__(self, path):
        with open(path) as file:
            self.document = json.load(file)
        self.schemas = self.document["components"]["schemas"]
        self.validators = {}
        self.held = {}
        self.broken = []

    def hold(self, schema, value):
        self.held[schema] = self.held.get(schema, 0) + 1
        if schema not in self.schemas:
            self.broken.append({"schema": schema, "problem": "there is no such schema", "value": value})
            return
        if schema not in self.validators:
            whole = {"$ref": "#/components/schemas/" + schema, "components": self.document["components"]}
            self.validators[schema] = jsonschema.Draft202012Validator(whole)
        for error in self.validators[schema].iter_errors(value):
            where = "/".join(map(str, error.absolute_path))
            self.broken.append({"schema": schema, "at": where, "problem": error.message[:300], "value": json.dumps(value)[:600]})


class Record:
    """A consumed record: value as bytes, headers as text."""

    def __init__(self, message):
        self.topic, self.partition, self.offset = message.topic(), message.partition(), message.offset()
        self.key, self.value = message.key(), message.value()
        self.pairs = message.headers() or []
        self.headers = {name: (value or b"").decode("utf-8", "replace") for name, value in self.pairs}
        self.timestamp = message.timestamp()[1]

    @property
    def type(self):
        return self.headers.get("ce_type", "").removeprefix("carillon.").removesuffix(".v1")

    @property
    def json(self):
        return json.loads(self.value)


class Reader:
    """Reads whole topics, from their beginning, into lists."""

    def __init__(self, kafka, topics):
        self.consumer = confluent_kafka.Consumer(
            {"bootstrap.servers": kafka, "group.id": "reader-%s" % uuid.uuid4(), "enable.auto.commit": False, "fetch.wait.max.ms": 50,
             "fetch.message.max.bytes": 4 << 20, "queued.min.messages": 2000})
        self.records = {topic: [] for topic in topics}
        assignment = []
        for topic in topics:
            partitions = self.consumer.list_topics(topic, 20).topics[topic].partitions
            assignment += [confluent_kafka.TopicPartition(topic, number, 0) for number in partitions]
        self.consumer.assign(assignment)

    async def run(self):
        loop = asyncio.get_running_loop()
        while True:
            for message in await loop.run_in_executor(None, self.consumer.consume, 500, 0.05):
                if message.error() is None:
                    self.records[message.topic()].append(Record(message))


class Producer:
    """Publishes requests; batches for as long as it is told."""

    def __init__(self, kafka, topic, linger=0, application=APPLICATION):
        self.topic, self.application = topic, application
        self.producer = confluent_kafka.Producer(
            {"bootstrap.servers": kafka, "linger.ms": linger, "enable.idempotence": True, "message.max.bytes": 2_000_000,
             "batch.size": 500_000})
        self.failed = []

    def publish(self, headers, value, key=None, reported=None, partition=-1):
        def report(error, message):
            if error:
                self.failed.append(str(error))
            elif reported:
                reported(message)

        pairs = headers if isinstance(headers, list) else list(headers.items())
        pairs = [(name, text.encode() if isinstance(text, str) else text) for name, text in pairs]
        while True:
            try:
                self.producer.produce(self.topic, key=key, value=value, headers=pairs, partition=partition, on_delivery=report)
                break
            except BufferError:
                self.producer.poll(0.05)
        self.producer.poll(0)

    async def flush(self):
        left = await asyncio.get_running_loop().run_in_executor(None, self.producer.flush, HANG)
        expect(not left and not self.failed, "Kafka takes all requests", self.failed or left)

    async def notify(self, target, body="hello", **more):
        """Publishes one alert and gives its apns-id."""
        name, key = more.pop("id", None) or str(uuid.uuid4()), more.pop("key", target)
        aps = {"alert": {"title": "Order", "body": body}, **more.pop("aps", {})}
        headers = {"target": target, "apns-topic": self.application, "apns-id": name}
        headers.update({key.replace("_", "-"): value for key, value in more.items()})
        self.publish(headers, json.dumps({"aps": aps, "custom": {"body": body}}).encode(), key=key)
        return name


class Device:
    """A connection of a device; what it is sent lies in `frames`."""

    def __init__(self, url, contract, **hello):
        self.url, self.contract = url, contract
        self.hello = {"type": "hello", "device": uuid.uuid4().hex * 2, "application": APPLICATION, **hello}
        self.token = self.hello["device"]
        self.frames = []
        self.acknowledges = True
        self.closed = None

    async def __aenter__(self):
        self.socket = await websockets.connect(
            self.url, subprotocols=["carillon.v1"], max_size=1 << 21, open_timeout=HANG, close_timeout=2, ping_interval=None)
        self.task = asyncio.create_task(self.read())
        await self.send(self.hello)
        # Who travels tries again elsewhere as soon as its connection has ended.
        await until(lambda: self.of("welcome") or self.closed, "a welcome or a close", lambda: self.frames)
        expect(self.of("welcome"), "it is welcomed", self.closed)
        return self

    async def __aexit__(self, *_):
        await self.socket.close()
        await self.task

    async def send(self, frame):
        if self.contract:
            self.contract.hold("frame." + frame["type"], frame)
        await self.socket.send(json.dumps(frame))

    async def read(self):
        try:
            async for text in self.socket:
                frame = json.loads(text)
                if self.contract:
                    self.contract.hold("frame." + frame["type"], frame)
                self.frames.append(frame)
                if frame["type"] in ("notify", "remove") and self.acknowledges:
                    await self.send({"type": "ack", "deliveries": [frame["delivery"]]})
        except websockets.exceptions.ConnectionClosed:
            pass
        self.closed = (self.socket.close_code, self.socket.close_reason)

    async def frame(self, kind, **members):
        """Waits for a frame of this type with these members."""
        def found():
            return next((f for f in self.frames if f["type"] == kind and all(f.get(k) == v for k, v in members.items())), None)

        return await until(found, "%s with %s" % (kind, members), lambda: [self.closed, self.frames[-5:]])

    def of(self, kind):
        return [frame for frame in self.frames if frame["type"] == kind]
