"""What Redis loses, and records that no worker survives: real processes, a real Redis with AOF, killed and put back.

  lost       FLUSHALL while requests come: the workers stop and say so, `carillon rebuild` (killed once in the middle) restores all of it
  older      Redis is killed and comes back as it was some requests ago: what it has forgotten is applied again
  midway     the same while a worker works off a backlog, more of which it has read than it may begin
  again      the same as lost, after the requests topic was deleted and made again
  at_once    the requests topic is deleted and made again before anybody can notice, and gets as many records as the former one had
  forgotten  the same, before anything of the new topic was worked on: only the journal tells then that there was another
  late       a worker stands still with what the journal does not have yet, and the requests topic is deleted and made again before it goes on
  backlog    a worker finds more requests for people than it works on at a time, and registrations behind them
  pill       a worker is killed whenever one certain record reaches Redis: the record ends in the dead letters, the others are delivered,
             and a rebuilding passes it over
"""
import argparse
import asyncio
import concurrent.futures
import contextlib
import copy
import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
import urllib.error
import urllib.request

import confluent_kafka
import confluent_kafka.admin

from clients import APPLICATION, HANG, Device, Failed, Producer, Reader, expect, quietly, run, say, until
from machine import free_port, has_stopped

PILL = b"the pill that no worker survives"
# A fan-out worker with these looks soon whether Redis has what it had.
SOON = ["--refresh", "5s"]


class Redis:
    def __init__(self, folder):
        self.folder, self.port, self.process = os.path.join(folder, "redis"), free_port(), None
        os.mkdir(self.folder)

    async def start(self):
        self.process = subprocess.Popen(
            ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--dir", self.folder, "--appendonly", "yes", "--appendfsync",
             "everysec", "--save", "", "--hash-max-listpack-value", "1024"], stdout=subprocess.DEVNULL)
        await until(lambda: self.cli("PING") == b"PONG", "Redis answers")

    def cli(self, *words):
        return subprocess.run(["redis-cli", "-p", str(self.port), *words], capture_output=True).stdout.strip()

    async def copied(self, copy):
        """Copies what it keeps into a folder; again where it has taken files away meanwhile, as it does after a rewrite."""
        self.cli("BGREWRITEAOF")
        await until(lambda: b"aof_rewrite_in_progress:0" in self.cli("INFO", "persistence"), "Redis has rewritten its file")

        def files():
            return sorted(name for _, _, names in os.walk(self.folder) for name in names)

        def is_whole():
            shutil.rmtree(copy, ignore_errors=True)
            before = files()
            with contextlib.suppress(OSError):
                shutil.copytree(self.folder, copy)
                return files() == before

        await until(is_whole, "the copy is whole")

    async def put_back(self, copy):
        """Is killed, and starts again with a copy in the place of what it has."""
        self.kill()
        shutil.rmtree(self.folder)
        shutil.move(copy, self.folder)
        await self.start()

    def kill(self):
        self.process.kill()
        self.process.wait()


class Cluster:
    """Workers on one Redis, perhaps by way of a proxy."""

    def __init__(self, arguments, folder, redis_port):
        self.binary = arguments.binary
        self.common = ["--kafka", arguments.kafka, "--redis", "127.0.0.1:%d" % redis_port, "--topic-prefix", arguments.prefix]
        self.group = ["--group", arguments.prefix + "transform"]
        self.log = open(os.path.join(folder, "workers.log"), "w")
        self.processes = []

    def start(self, role, *flags, admin="127.0.0.1:0"):
        process = subprocess.Popen(
            [self.binary, role, "--json", *self.common, "--admin", admin, *flags], stdout=subprocess.PIPE, stderr=self.log, text=True)
        self.processes.append(process)
        return process

    async def started(self, role, *flags, **more):
        process = self.start(role, *flags, **more)
        line = await asyncio.get_running_loop().run_in_executor(None, process.stdout.readline)
        expect(line, "%s becomes ready" % role)
        process.addresses = json.loads(line)
        return process

    def end(self):
        for process in self.processes:
            process.kill()
            process.wait()


def ready(process):
    """Whether a worker says that it is ready; None where it says nothing in time."""
    try:
        with urllib.request.urlopen(process.addresses["admin"] + "/readyz", timeout=5) as answer:
            return answer.status == 200
    except urllib.error.HTTPError:
        return False
    except OSError:
        return None


def unready(*processes):
    """Whether each of the workers says that it is not ready."""
    return all(ready(process) is False for process in processes)


async def stood_still(process):
    """Stops a process; returns when it stands still."""
    process.send_signal(signal.SIGSTOP)
    await until(lambda: has_stopped(process.pid), "the process stands still")


@functools.lru_cache(maxsize=None)
def asking(kafka, group):
    """A consumer that asks what a group has committed, and never joins it."""
    return confluent_kafka.Consumer({"bootstrap.servers": kafka, "group.id": group})


def committed(arguments, name="requests"):
    """The sum of the group's offsets in a topic; -1 where Kafka does not answer, for the machine may stand still. Whoever waits asks again."""
    consumer, topic = asking(arguments.kafka, arguments.prefix + "transform"), arguments.prefix + name
    with contextlib.suppress(confluent_kafka.KafkaException):
        partitions = consumer.list_topics(topic, 5).topics[topic].partitions
        wanted = [confluent_kafka.TopicPartition(topic, number) for number in partitions]
        return sum(max(0, each.offset) for each in consumer.committed(wanted, 5))
    return -1


def bodies(device):
    return [frame["payload"]["custom"]["body"] for frame in device.of("notify")]


@contextlib.asynccontextmanager
async def on_one_redis(arguments, folder, proxy=None):
    """A Redis, and workers on it, or on a proxy before it, that are to be started; all of them end with it."""
    redis = Redis(folder)
    await redis.start()
    cluster = Cluster(arguments, folder, await proxy.start(redis.port) if proxy else redis.port)
    try:
        yield redis, cluster
    finally:
        cluster.end()
        redis.kill()


async def two_devices(arguments, folder, work, *flags):
    """A Redis, a transform with flags, a fan-out, a device that stays and one that comes late; `work` is what happens meanwhile."""
    async with on_one_redis(arguments, folder) as (redis, cluster):
        transform = await cluster.started("transform", *flags, *cluster.group)
        fan_out = await cluster.started("fan-out", *SOON, "--listen", "127.0.0.1:0")
        url = fan_out.addresses["devices"]
        absent = Device(url, None, user="grace")
        async with Device(url, None, user="ada") as present:
            async with absent:
                pass
            await work(redis, cluster, transform, fan_out, url, present, absent.hello)


async def lost(arguments, folder):
    producer = Producer(arguments.kafka, arguments.prefix + "requests")

    async def work(redis, cluster, transform, fan_out, url, present, absent):
        for number in range(200):
            await producer.notify("user:grace", "waits %d" % number, **({"apns_collapse_id": "c"} if number % 2 else {}))
        await producer.notify("user:ada", "before")
        await producer.flush()
        await until(lambda: "before" in bodies(present), "what is published before arrives")
        await until(lambda: committed(arguments) >= 201, "the group has committed", lambda: committed(arguments))
        redis.cli("FLUSHALL")
        await producer.notify("user:ada", "after")
        await producer.notify("user:grace", "waits for ever", apns_collapse_id="c")
        await producer.flush()
        await until(lambda: unready(transform, fan_out), "both workers say that Redis has lost what it had")
        expect("after" not in bodies(present), "nothing is guessed while Redis is empty")
        rebuild = [arguments.binary, "rebuild", *cluster.common, *cluster.group, "--json"]
        for _ in range(5):
            first = subprocess.Popen(rebuild, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            await asyncio.get_running_loop().run_in_executor(None, first.stderr.readline)
            first.kill()
            first.wait()
            if first.returncode == -signal.SIGKILL and b"k{0}" not in redis.cli("KEYS", "k{*"):
                break
            # This process stood still, and the rebuilding came to its end.
            redis.cli("FLUSHALL")
            await until(lambda: unready(transform, fan_out), "both workers say that Redis has lost what it had")
        expect(b"k{0}" not in redis.cli("KEYS", "k{*"), "a rebuilding that was killed leaves no markers")
        redis.cli("DEL", "rebuild")  # what its lock does by itself after ten seconds
        second = await run(*rebuild)
        expect(second.returncode == 0, "Redis is rebuilt", second.stderr)
        say(rebuilt=json.loads(second.stdout))
        await until(lambda: ready(transform) and ready(fan_out), "the workers go on by themselves")
        await until(lambda: "after" in bodies(present), "what was published meanwhile arrives")
        again = await run(*rebuild)
        expect(again.returncode == 0 and "nothing to rebuild" in again.stderr, "there is nothing more to rebuild", again.stderr)
        async with Device(url, None, **{key: absent[key] for key in ("device", "user")}) as late:
            wanted = {"waits %d" % number for number in range(0, 200, 2)} | {"waits for ever"}
            # Hundred places in the mailbox: the oldest was evicted, before or after.
            await until(lambda: len(set(bodies(late)) & wanted) >= 100, "the late device finds its mailbox", lambda: len(bodies(late)))
            expect(set(bodies(late)) <= wanted, "and nothing that was collapsed", sorted(set(bodies(late)) - wanted)[:5])

    await two_devices(arguments, folder, work)


def incarnation(frame):
    return int(frame["revision"][16:20], 16)


async def make_again(arguments, log=None):
    """Deletes the requests topic, and makes it again; with a log when the workers know that it is gone."""
    admin, topic = confluent_kafka.admin.AdminClient({"bootstrap.servers": arguments.kafka}), arguments.prefix + "requests"
    loop = asyncio.get_running_loop()
    await loop.run_in_executor(None, admin.delete_topics([topic])[topic].result)
    if log:
        await until(lambda: "partition count changed" in open(log).read(), "the worker is told that the topic is gone")

    async def make():
        with contextlib.suppress(confluent_kafka.KafkaException):
            made = admin.create_topics([confluent_kafka.admin.NewTopic(topic, 4, config={"message.timestamp.type": "LogAppendTime"})])
            await loop.run_in_executor(None, made[topic].result)
            return True

    await until(make, "the topic can be made again")
    # A broker may learn of both a moment later than they were done, and takes records into the former log until then.
    latest = {confluent_kafka.TopicPartition(topic, number): confluent_kafka.admin.OffsetSpec.latest() for number in range(4)}

    def is_empty():
        with contextlib.suppress(confluent_kafka.KafkaException):
            return all(end.result().offset == 0 for end in admin.list_offsets(latest, request_timeout=20).values())

    await until(is_empty, "the new topic is empty")


async def emptied_and_rebuilt(redis, cluster, transform, fan_out):
    """Takes everything from Redis, and restores it when both workers have noticed."""
    redis.cli("FLUSHALL")
    await until(lambda: unready(transform, fan_out), "both workers say that Redis has lost what it had")
    done = await run(cluster.binary, "rebuild", *cluster.common, *cluster.group)
    expect(done.returncode == 0, "Redis is rebuilt", done.stderr)
    await until(lambda: ready(transform) and ready(fan_out), "the workers go on by themselves")


async def at_once(arguments, folder):
    """The topic is made again before anybody can notice that it is gone, and with as many records as it had."""
    async def work(redis, cluster, transform, fan_out, url, present, absent):
        for body in ("one", "two"):
            producer = Producer(arguments.kafka, arguments.prefix + "requests")
            await producer.notify("user:ada", body, apns_collapse_id="c")
            await producer.flush()
            await until(lambda: body in bodies(present), "what is published arrives", lambda: bodies(present))
            await until(lambda: committed(arguments) >= 1, "the group has committed")
            if body == "one":
                await make_again(arguments)
        expect(incarnation(present.of("notify")[-1]) == 1, "its revisions are of the next incarnation", present.of("notify")[-1]["revision"])

    await two_devices(arguments, folder, work)


async def again(arguments, folder):
    async def work(redis, cluster, transform, fan_out, url, present, absent):
        producer = Producer(arguments.kafka, arguments.prefix + "requests")
        await producer.notify("user:ada", "one", apns_collapse_id="c")
        await producer.flush()
        await until(lambda: "one" in bodies(present), "what is published before arrives")
        await until(lambda: committed(arguments) >= 1, "the group has committed")
        await make_again(arguments, os.path.join(folder, "workers.log"))
        producer = Producer(arguments.kafka, arguments.prefix + "requests")
        again = {key: absent[key] for key in ("device", "user")}
        async with Device(url, None, **again) as other:
            # The first makes the new topic as long as the former one was: its position alone does not show that it is another one.
            for body in ("two", "two and a half"):
                await producer.notify("user:ada", body, apns_collapse_id="c")
                await producer.notify("user:grace", "seen " + body)
                await producer.flush()
                await until(lambda: body in bodies(present), "what is published in the new topic arrives", lambda: bodies(present))
            await until(lambda: len(bodies(other)) == 2, "at the other device too")
        expect(incarnation(present.of("notify")[-1]) == 1, "its revisions are of the next incarnation", present.of("notify")[-1]["revision"])
        await producer.notify("user:grace", "waits")
        await producer.flush()
        await until(lambda: committed(arguments) >= 5, "the group has committed", lambda: committed(arguments))
        await emptied_and_rebuilt(redis, cluster, transform, fan_out)
        await producer.notify("user:ada", "three", apns_collapse_id="c")
        await producer.flush()
        await until(lambda: "three" in bodies(present), "an update after it arrives", lambda: bodies(present))
        expect(incarnation(present.of("notify")[-1]) == 1, "in the same incarnation", present.of("notify")[-1]["revision"])
        async with Device(url, None, **again) as late:
            await until(lambda: "waits" in bodies(late), "what has waited is there", lambda: bodies(late))
            await producer.notify("user:grace", "last")
            await producer.flush()
            await until(lambda: "last" in bodies(late), "and what comes then")
            expect(bodies(late) == ["waits", "last"], "what was delivered before is not sent again", bodies(late))

    await two_devices(arguments, folder, work)


async def forgotten(arguments, folder):
    producer = Producer(arguments.kafka, arguments.prefix + "requests")

    async def work(redis, cluster, transform, fan_out, url, present, absent):
        for body in ("one", "two", "three"):
            await producer.notify("user:ada", body, apns_collapse_id="c")
        await producer.flush()
        await until(lambda: "three" in bodies(present), "what is published before arrives")
        await until(lambda: committed(arguments) >= 3, "the group has committed")
        await make_again(arguments, os.path.join(folder, "workers.log"))
        await emptied_and_rebuilt(redis, cluster, transform, fan_out)
        await until(lambda: committed(arguments) == 0, "Kafka has forgotten what was committed", lambda: committed(arguments))
        later = Producer(arguments.kafka, arguments.prefix + "requests")
        await later.notify("user:ada", "four", apns_collapse_id="c")
        await later.flush()
        await until(lambda: "four" in bodies(present), "an update after it arrives", lambda: bodies(present))
        expect(incarnation(present.of("notify")[-1]) >= 1, "in the next incarnation", present.of("notify")[-1]["revision"])

    await two_devices(arguments, folder, work)


async def judged(arguments, folder):
    """A worker finds that the topic was made again, and stands still before it can say so: meanwhile another one finds and says it."""
    async def work(redis, cluster, transform, fan_out, url, present, absent):
        producer = Producer(arguments.kafka, arguments.prefix + "requests")
        await producer.notify("user:ada", "one")
        await producer.flush()
        await until(lambda: "one" in bodies(present), "what is published before arrives")
        await until(lambda: committed(arguments) >= 1, "the group has committed")
        log = os.path.join(folder, "workers.log")
        before = os.path.getsize(log)

        def said():
            with open(log, "rb") as file:
                file.seek(before)
                return file.read().decode()

        await make_again(arguments, log)
        # One that begins at what Redis has of the former topic, and has read nothing yet.
        transform.send_signal(signal.SIGTERM)
        await until(lambda: transform.poll() is not None, "the first worker ends")
        transform = await cluster.started("transform", *cluster.group)
        # In another partition, so that it is known to be at work.
        producer = Producer(arguments.kafka, arguments.prefix + "requests")
        beside = (int(present.of("notify")[-1]["revision"][20:24], 16) + 1) % 4
        producer.publish({"target": "user:grace", "apns-topic": APPLICATION}, b'{"aps": {"alert": "beside"}}', partition=beside)
        await producer.flush()
        await until(lambda: committed(arguments) >= 1, "the new worker works")
        await stood_still(redis.process)
        await producer.notify("user:ada", "two")
        await producer.flush()
        await until(lambda: "the topic was deleted and made again" in said(), "it finds that the topic is another one")
        await stood_still(transform)
        redis.process.send_signal(signal.SIGCONT)
        other = await cluster.started("transform", *cluster.group)
        await until(lambda: "two" in bodies(present), "the other worker works on the new topic")
        expect(incarnation(present.of("notify")[-1]) == 1, "in the next incarnation", present.of("notify")[-1]["revision"])
        transform.send_signal(signal.SIGCONT)
        await until(lambda: committed(arguments) >= 2, "the group has committed")
        other.send_signal(signal.SIGTERM)
        await until(lambda: other.poll() is not None, "the other worker ends")
        await producer.notify("user:ada", "three")
        await producer.flush()
        await until(lambda: "three" in bodies(present), "the first one goes on", lambda: bodies(present))
        expect(incarnation(present.of("notify")[-1]) == 1, "in the same incarnation", present.of("notify")[-1]["revision"])
        expect(said().count("the topic was deleted and made again") == 2, "which each has found once", said().count("the topic was deleted and made again"))

    await two_devices(arguments, folder, work)


async def configure(arguments, setting, value, *topics):
    """Gives topics another setting; without a value the default."""
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": arguments.kafka})
    operation = confluent_kafka.admin.AlterConfigOpType.DELETE if value is None else confluent_kafka.admin.AlterConfigOpType.SET
    for topic in topics:
        entry = confluent_kafka.admin.ConfigEntry(setting, value, incremental_operation=operation)
        resource = confluent_kafka.admin.ConfigResource(confluent_kafka.admin.ResourceType.TOPIC, topic, incremental_configs=[entry])
        await quietly(admin.incremental_alter_configs([resource])[resource].result)


async def late(arguments, folder):
    topic = arguments.prefix + "journal"
    # In the new topic more, so that each of its partitions goes on where the former one has ended.
    counts = {"former": 200, "new": 280, "last": 200}
    # A device that is slower than all of them are judged must lose none.
    roomy = ["--mailbox-bound", "10000"]

    async def publish(what):
        producer = Producer(arguments.kafka, arguments.prefix + "requests")
        for number in range(counts[what]):
            aps = json.dumps({"aps": {"alert": "x"}, "custom": {"body": "%s %d" % (what, number)}}).encode()
            producer.publish({"target": "user:ada", "apns-topic": APPLICATION}, aps, partition=number % 4)
        await producer.flush()

    async def work(redis, cluster, transform, fan_out, url, present, absent):
        other = await cluster.started("transform", *roomy, *cluster.group)

        async def arrived(what):
            wanted = {"%s %d" % (what, number) for number in range(counts[what])}
            await until(lambda: wanted <= set(bodies(present)), "all of the %s arrive" % what, lambda: sorted(wanted - set(bodies(present))))

        def begun():
            """The partitions of which something has arrived."""
            return {int(body.split()[1]) % 4 for body in bodies(present)}

        reader = Reader(arguments.kafka, [topic])
        task = asyncio.create_task(reader.run())

        def incarnations():
            told = {}
            for record in reader.records[topic]:
                told.setdefault(record.partition, []).append(int(record.headers["incarnation"]))
            return told

        # Both workers judge, and neither can write it down. What they have not begun by the first refusal they do not begin until it ends.
        await configure(arguments, "max.message.bytes", "10", topic)
        await publish("former")
        await until(lambda: len(begun()) == 4, "something of each partition arrives", begun)
        await stood_still(transform)
        await configure(arguments, "max.message.bytes", None, topic)
        await until(lambda: committed(arguments) >= counts["former"], "the other worker has finished them", lambda: committed(arguments))
        await arrived("former")
        await make_again(arguments, os.path.join(folder, "workers.log"))
        await publish("new")
        await arrived("new")
        shown = {incarnation(frame) for frame in present.of("notify") if frame["payload"]["custom"]["body"].startswith("new")}
        expect(shown == {1}, "they are of the next incarnation", shown)
        await until(lambda: len([told for told in incarnations().values() if 1 in told]) == 4, "the journal tells of the new topic")
        transform.send_signal(signal.SIGCONT)
        await until(lambda: any(told != sorted(told) for told in incarnations().values()), "the worker writes late", incarnations)
        await publish("last")
        await arrived("last")
        await until(lambda: committed(arguments) >= counts["new"] + counts["last"], "the group has committed", lambda: committed(arguments))
        expect(other.poll() is None and transform.poll() is None, "both workers go on")
        task.cancel()
        audit = await run(
            arguments.binary, "audit", "--kafka", arguments.kafka, "--topic-prefix", arguments.prefix, "--json", "--grace", "1s")
        expect(audit.returncode == 0, "an audit finds nothing amiss", audit.stdout[:1500] + audit.stderr[-500:])
        say(late=sum(told != sorted(told) for told in incarnations().values()), audit=json.loads(audit.stdout.splitlines()[-1]))

    await two_devices(arguments, folder, work, *roomy)


async def older(arguments, folder):
    producer = Producer(arguments.kafka, arguments.prefix + "requests")

    async def work(redis, cluster, transform, fan_out, url, present, absent):
        await producer.notify("user:grace", "first", apns_collapse_id="c")
        await producer.notify("user:ada", "first")
        await producer.flush()
        await until(lambda: "first" in bodies(present), "the first arrives")
        copy = os.path.join(folder, "copy")
        await redis.copied(copy)
        marker = redis.cli("HGETALL", "k{7}")
        await producer.notify("user:grace", "second", apns_collapse_id="c")
        await producer.notify("user:grace", "further")
        await producer.notify("user:ada", "second")
        await producer.flush()
        await until(lambda: "second" in bodies(present), "the second arrives")
        await until(lambda: redis.cli("HGETALL", "k{7}") != marker, "the markers are raised")
        await redis.put_back(copy)
        await producer.notify("user:ada", "third")
        await producer.flush()
        await until(lambda: "third" in bodies(present), "the third arrives")
        async with Device(url, None, **{key: absent[key] for key in ("device", "user")}) as late:
            await until(lambda: set(bodies(late)) == {"second", "further"}, "what Redis had forgotten is there", lambda: bodies(late))
        # Where its group has a new generation just then, it begins at the markers without a word of rewinding.
        returns = [line for line in open(os.path.join(folder, "workers.log")) if "rewinding" in line or "partitions lost" in line]
        expect(returns, "the worker has rewound")
        # The device remembers by its ids; that it was told again of one that it has is no fault of the cluster's.
        expect(len(bodies(present)) >= 3, "all were sent")

    await two_devices(arguments, folder, work)


WAITING = "local sum = 0 for _, box in ipairs(redis.call('KEYS', 'm{*')) do sum = sum + redis.call('HLEN', box) end return sum"


async def midway(arguments, folder):
    producer = Producer(arguments.kafka, arguments.prefix + "requests", linger=20)
    bound = ["--in-flight", "100", "--mailbox-bound", "10000"]
    count, devices = 40_000, []

    def waiting():
        return int(redis.cli("EVAL", WAITING, "0") or 0)

    async with on_one_redis(arguments, folder) as (redis, cluster):
        transform = await cluster.started("transform", *bound, *cluster.group)
        fan_out = await cluster.started("fan-out", "--listen", "127.0.0.1:0")
        for _ in range(8):
            async with Device(fan_out.addresses["devices"], None) as device:
                devices.append(device.token)
        await until(lambda: ready(transform), "the worker is ready")
        transform.kill()
        transform.wait()
        for number in range(count):
            await producer.notify("device:" + devices[number % 8], str(number))
        await producer.flush()
        await cluster.started("transform", *bound, *cluster.group)
        copy = os.path.join(folder, "copy")
        for goal in (count // 8, count // 2):
            await until(lambda: waiting() >= goal, "the worker works", waiting)
            await redis.copied(copy)
            since = waiting()
            await until(lambda: waiting() >= min(since + 500, count), "the worker goes on", waiting)
            await redis.put_back(copy)
        await until(lambda: waiting() == count, "all that was published waits in a mailbox", waiting)


async def backlog(arguments, folder):
    producer = Producer(arguments.kafka, arguments.prefix + "requests", linger=5)
    bound = ["--in-flight", "200", "--mailbox-bound", "5000"]
    async with on_one_redis(arguments, folder) as (redis, cluster):
        transform = await cluster.started("transform", *bound, *cluster.group)
        fan_out = await cluster.started("fan-out", "--listen", "127.0.0.1:0")
        async with Device(fan_out.addresses["devices"], None, user="ada") as device:
            await producer.notify("user:ada", "before")
            await producer.flush()
            await until(lambda: "before" in bodies(device), "what is published before arrives")
            transform.kill()
            transform.wait()
            for number in range(2000):
                await producer.notify("user:ada", "waits %d" % number)
            await producer.flush()
            for number in range(20):
                async with Device(fan_out.addresses["devices"], None, user="grace"):
                    pass
            await cluster.started("transform", *bound, *cluster.group)
            await until(lambda: len(set(bodies(device))) == 2001, "all that waited arrives", lambda: len(bodies(device)))


class DeadlyProxy:
    """Passes everything on to Redis; when the pill passes, the worker is killed before Redis has it."""

    def __init__(self):
        self.victim, self.deaths = None, 0

    async def start(self, port):
        self.port = port
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        return self.server.sockets[0].getsockname()[1]

    async def serve(self, reader, writer):
        upstream_reader, upstream = await asyncio.open_connection("127.0.0.1", self.port)
        answers = asyncio.create_task(self.pump(upstream_reader, writer))
        seen = b""
        with contextlib.suppress(ConnectionError):
            while chunk := await reader.read(65536):
                seen = seen[-len(PILL):] + chunk
                if PILL in seen and self.victim is not None:
                    victim, self.victim = self.victim, None
                    self.deaths += 1
                    victim.send_signal(signal.SIGKILL)
                    break
                upstream.write(chunk)
                await upstream.drain()
        upstream.close()
        answers.cancel()
        writer.close()

    async def pump(self, reader, writer):
        with contextlib.suppress(ConnectionError):
            while chunk := await reader.read(65536):
                writer.write(chunk)
                await writer.drain()


async def pill(arguments, folder):
    proxy = DeadlyProxy()
    producer = Producer(arguments.kafka, arguments.prefix + "requests")
    reader = Reader(arguments.kafka, [arguments.prefix + "dead-letters", arguments.prefix + "events"])
    task = asyncio.create_task(reader.run())
    names = []
    target = "device:" + "ab" * 32
    for number in range(20):
        names.append(await producer.notify(target, PILL.decode() if number == 10 else "good %d" % number))
        # What the other lane works on meanwhile ends with it.
        names.append(await producer.notify("device:" + "%02x" % number * 32, "another's"))
    poisoned = names[20]
    await producer.flush()

    async with on_one_redis(arguments, folder, proxy) as (redis, cluster):
        async def supervise():
            while True:
                # Fewer places than a group of suspects has records.
                worker = cluster.start("transform", "--session-timeout", "2s", "--in-flight", "7", "--lanes", "2", *cluster.group)
                proxy.victim = worker
                while worker.poll() is None:
                    await asyncio.sleep(0.02)

        supervisor = asyncio.create_task(supervise())
        try:
            letters = reader.records[arguments.prefix + "dead-letters"]
            await until(lambda: letters, "the pill lies in the dead letters", lambda: proxy.deaths)
            events = reader.records[arguments.prefix + "events"]

            def answered(kind):
                return {record.headers["ce_subject"] for record in events if record.type == kind}

            await until(lambda: answered("unregistered") >= set(names) - {poisoned}, "every other request has its answer")
            expect(answered("rejected") == {poisoned}, "and the pill has one of its own", answered("rejected"))
            # A worker that stood still before it had committed writes the letter again.
            places = {(letter.headers["carillon-dead-letter-partition"], letter.headers["carillon-dead-letter-offset"]) for letter in letters}
            expect(len(places) == 1, "one record in the dead letters", places)
            headers = letters[0].headers
            expect(headers["carillon-dead-letter-reason"] == "Poison" and headers["carillon-dead-letter-topic"] == arguments.prefix + "requests",
                   "it says why and from where", headers)
            expect(PILL in letters[0].value and headers["apns-id"] == poisoned, "the record is as it was", headers)
            say(deaths=proxy.deaths, tries=headers["carillon-dead-letter-tries"])
        finally:
            supervisor.cancel()
            task.cancel()
        cluster.end()
        redis.cli("FLUSHALL")
        rebuild = subprocess.Popen(
            [arguments.binary, "rebuild", *cluster.common, *cluster.group], stdout=subprocess.DEVNULL, stderr=cluster.log)
        proxy.victim, before = rebuild, proxy.deaths
        await until(lambda: rebuild.poll() is not None, "the rebuilding ends")
        expect(rebuild.returncode == 0 and proxy.deaths == before, "a rebuilding leaves the pill alone", rebuild.returncode)


PARTS = {part.__name__: part for part in (lost, again, at_once, forgotten, judged, late, older, midway, backlog, pill)}


class Shared:
    """The workers of the parts that can share them: one cluster for all of these. The first part that asks starts it; it ends with the process."""

    def __init__(self, arguments, folder):
        self.arguments, self.folder = arguments, folder
        self.stack, self.lock, self.found = contextlib.AsyncExitStack(), asyncio.Lock(), None

    @contextlib.asynccontextmanager
    async def workers(self):
        """Their Redis, themselves, and where devices connect to two of them."""
        async with self.lock:
            if self.found is None:
                redis, cluster = await self.stack.enter_async_context(on_one_redis(self.arguments, self.folder))
                await cluster.started("transform", *cluster.group)
                urls = [(await cluster.started("fan-out", "--listen", "127.0.0.1:0")).addresses["devices"] for _ in range(2)]
                self.found = redis, cluster, urls
        yield self.found


def shares(part):
    """A part that shares its workers with others: it names its own people and applications, and breaks nothing."""
    part.shares = True
    return part


async def own_topics(arguments, name):
    """Topics of a part's own, on the same Kafka."""
    own = copy.copy(arguments)
    own.prefix = "%s%s." % (arguments.prefix, name.replace("_", "-"))
    # An embedded broker makes a topic for whoever asks for it, and no other way.
    producer = confluent_kafka.Producer({"bootstrap.servers": own.kafka, "allow.auto.create.topics": True})
    if producer.list_topics(timeout=HANG).cluster_id.startswith("mockCluster"):
        for topic in ("requests", "deliveries", "devices", "events", "dead-letters", "applications"):
            await quietly(producer.list_topics, own.prefix + topic, HANG)
    done = await run(own.binary, "topics", "create", "--kafka", own.kafka, "--topic-prefix", own.prefix, "--partitions", "4")
    expect(done.returncode == 0, "there are topics for %s" % name, done.stderr)
    return own


async def run_parts(parts, arguments, folder):
    """Runs parts side by side, and says of each whether it held. Where one is broken, what its workers have logged is shown."""
    asyncio.get_running_loop().set_default_executor(concurrent.futures.ThreadPoolExecutor(64))
    names = arguments.part.split(",")
    shared, places = Shared(arguments, folder), asyncio.Semaphore(arguments.beside)
    # Who has the topics that were made for this process: those that share them, or else the first.
    owners = [name for name in names if hasattr(parts[name], "shares")] or names[:1]

    async def one(name):
        own, home = copy.copy(arguments), folder if name in owners else os.path.join(folder, name)
        async with places:
            try:
                if name not in owners:
                    os.mkdir(home)
                    own = await own_topics(arguments, name)
                await parts[name](own, home, *([shared] if hasattr(parts[name], "shares") else []))
                say(part=name, result="held")
                return True
            except Exception as error:  # noqa: BLE001 - each part is judged for itself
                log = os.path.join(home, "workers.log")
                if os.path.exists(log):
                    print(open(log).read()[-20_000:])
                why = str(error) if isinstance(error, Failed) else traceback.format_exc()
                say(part=name, result="broken", promise=why)

    try:
        return all(await asyncio.gather(*(one(name) for name in names)))
    finally:
        await shared.stack.aclose()


def run_part(documentation, parts, prefix, **options):
    """Runs the parts that the command line names, in folders of their own. An option is a text that says what must be given, a number that holds
    where nothing is, a pair of what holds then and what may be given, or None for what only some parts need."""
    parser = argparse.ArgumentParser(description=documentation, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kafka", required=True)
    parser.add_argument("--prefix", required=True)
    parser.add_argument("--binary", required=True, help="the program under test")
    for name, what in options.items():
        flag = "--" + name.replace("_", "-")
        if isinstance(what, tuple):
            parser.add_argument(flag, default=what[0], help=what[1])
        elif isinstance(what, int):
            parser.add_argument(flag, type=int, default=what, help="(%d)" % what)
        else:
            parser.add_argument(flag, required=what is not None, help=what)
    parser.add_argument("--part", required=True, help="one of %s, or several with commas between: they run side by side" % ", ".join(parts))
    parser.add_argument("--beside", type=int, default=4, help="how many parts run at the same time (4)")
    arguments = parser.parse_args()
    if unknown := set(arguments.part.split(",")) - set(parts):
        parser.error("--part: there is no %s" % ", ".join(sorted(unknown)))
    folder = tempfile.mkdtemp(prefix=prefix)
    try:
        held = asyncio.run(run_parts(parts, arguments, folder))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    # The threads of readers may be in the middle of a poll.
    sys.stdout.flush()
    os._exit(0 if held else 1)


if __name__ == "__main__":
    run_part(__doc__, PARTS, "carillon-healing-")
