"""A dependency that is gone for a while: Kafka or Redis is killed, hangs, takes no writes, or Redis refuses a command, and comes back.

Both workers must say that they are not ready, the device must stay connected, what is published meanwhile must arrive afterwards, and the
worker processes must be the same ones all along. While Kafka is away no response is accepted, and no mailbox forgets what was acknowledged.
When it goes away once more, workers that are told to end do so in the time that they have for it, with work under way that cannot be done.
"""
import argparse
import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time

import confluent_kafka
import confluent_kafka.admin

from clients import Device, Failed, Producer, expect, say, until
from healing import Cluster, Redis, bodies, ready, unready
from machine import kafka_script


# What --drain gives the workers, and what they may take besides, in seconds.
DRAIN, GRACE = 10, 8


class Kafka:
    """A broker of this test's own."""

    def __init__(self, script, folder):
        self.script, self.folder = script, folder

    def start(self, *settings):
        for attempt in range(3):
            try:
                return self.do("start", self.folder, *settings)
            except Failed:
                # Somebody else has taken a port meanwhile.
                subprocess.run([self.script, "kill", self.folder], capture_output=True)
                if attempt == 2:
                    raise
                shutil.rmtree(self.folder, ignore_errors=True)

    def kill(self):
        """At once: no program that is started for it gives anybody time to end."""
        with open(os.path.join(self.folder, "1", "pid")) as file:
            os.kill(int(file.read()), signal.SIGKILL)

    async def restart(self, address):
        """Starts it again, and waits until the leader of each partition answers: metadata names it before it knows."""
        await asyncio.to_thread(self.do, "restart", self.folder, "1")
        admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": address})

        def answers():
            try:
                topics = admin.list_topics(timeout=5).topics.values()
                partitions = [confluent_kafka.TopicPartition(topic.topic, number) for topic in topics for number in topic.partitions]
                ends = admin.list_offsets({each: confluent_kafka.admin.OffsetSpec.latest() for each in partitions}, request_timeout=5)
                return [end.result() for end in ends.values()]
            except confluent_kafka.KafkaException:
                return None

        await until(answers, "each partition answers again", 60)

    def each(self, word, *brokers):
        for broker in brokers:
            self.do(word, self.folder, broker)

    def do(self, *words):
        done = subprocess.run([self.script, *words], capture_output=True, text=True, timeout=120)
        expect(done.returncode == 0, "kafka %s works" % words[0], done.stderr[-500:])
        return done.stdout.strip()


@contextlib.asynccontextmanager
async def own_kafka(arguments, folder, *settings):
    """A broker with topics of this test's own, which the arguments name while it is there."""
    kafka, loop = Kafka(kafka_script(arguments.kafka_folder), os.path.join(folder, "kafka")), asyncio.get_running_loop()
    try:
        arguments.kafka = await loop.run_in_executor(None, lambda: kafka.start(*settings))
        subprocess.run(
            [arguments.binary, "topics", "create", "--kafka", arguments.kafka, "--topic-prefix", arguments.prefix, "--partitions", "4"],
            check=True, capture_output=True)
        yield kafka
    finally:
        subprocess.run([kafka.script, "stop", kafka.folder], capture_output=True)


class Stillness:
    """How long this process, and so most likely the machine, stood still, in seconds: what a task that does nothing has overslept."""

    def __init__(self):
        self.lost = 0.0

    async def run(self):
        while True:
            began = time.monotonic()
            await asyncio.sleep(0.1)
            self.lost += max(0, time.monotonic() - began - 0.4)


async def ends(worker, name, stillness):
    """A worker that is told to end does it in its time, whatever is gone."""
    worker.send_signal(signal.SIGTERM)
    began, before = asyncio.get_running_loop().time(), stillness.lost
    await until(lambda: worker.poll() is not None, "the %s worker ends" % name, DRAIN + 30)
    took = asyncio.get_running_loop().time() - began
    expect(worker.returncode == 0, "the %s worker ends in order" % name, worker.returncode)
    # The other task has its turn first.
    await asyncio.sleep(0.2)
    lost = stillness.lost - before
    expect(took - lost < DRAIN + GRACE, "the %s worker ends in its time" % name, "%.1f s, of which nothing ran for %.1f s" % (took, lost))


async def run(arguments, folder):
    stillness = Stillness()
    sampling = asyncio.create_task(stillness.run())
    kafka = Kafka(kafka_script(arguments.kafka_folder), os.path.join(folder, "kafka"))
    redis = Redis(folder)
    # With two of three brokers away no topic has the two copies in step that min.insync.replicas asks for.
    brokers = ["--brokers", "3", "--heap", "256m"] if arguments.part == "kafka-too-few" else []
    arguments.kafka = kafka.start(*brokers, "--config", "group.min.session.timeout.ms=1000")
    arguments.prefix = "away."
    cluster = None
    try:
        subprocess.run(
            [arguments.binary, "topics", "create", "--kafka", arguments.kafka, "--topic-prefix", arguments.prefix, "--partitions", "4"],
            check=True, capture_output=True)
        await redis.start()
        cluster = Cluster(arguments, folder, redis.port)
        transform = await cluster.started("transform", *cluster.group, "--drain", "%ds" % DRAIN)
        fan_out = await cluster.started("fan-out", "--listen", "127.0.0.1:0", "--drain", "%ds" % DRAIN)
        producer = Producer(arguments.kafka, arguments.prefix + "requests")
        take, give = {
            "kafka-killed": (lambda: kafka.do("kill", kafka.folder, "1"), lambda: kafka.do("restart", kafka.folder, "1")),
            "kafka-too-few": (lambda: kafka.each("kill", "2", "3"), lambda: kafka.each("restart", "2", "3")),
            "kafka-hangs": (lambda: kafka.do("freeze", kafka.folder, "1"), lambda: kafka.do("thaw", kafka.folder, "1")),
            "redis-killed": (redis.kill, None),
            "redis-full": (lambda: redis.cli("CONFIG", "SET", "maxmemory", "1"), lambda: redis.cli("CONFIG", "SET", "maxmemory", "0")),
            "redis-refuses": (lambda: redis.cli("ACL", "SETUSER", "default", "-hmget"), lambda: redis.cli("ACL", "SETUSER", "default", "+hmget")),
            "redis-hangs": (lambda: redis.process.send_signal(signal.SIGSTOP), lambda: redis.process.send_signal(signal.SIGCONT)),
        }[arguments.part]
        loop = asyncio.get_running_loop()
        async with Device(fan_out.addresses["devices"], None, user="ada") as device:
            await producer.notify("user:ada", "before")
            await producer.flush()
            await until(lambda: "before" in bodies(device), "what is published before arrives")
            device.acknowledges = not arguments.part.startswith("kafka")
            await producer.notify("user:ada", "held")
            await producer.flush()
            held = await until(lambda: next((f for f in device.of("notify") if f["payload"]["custom"]["body"] == "held"), None), "it is sent")
            await loop.run_in_executor(None, take)
            if arguments.part.startswith("kafka"):
                # Both are safe only when Kafka has them.
                await device.send({"type": "ack", "deliveries": [held["delivery"]]})
                response = {
                    "type": "response", "response": "r-1", "receipt": held["receipt"], "identifier": held["identifier"],
                    "action": "com.apple.UNNotificationDefaultActionIdentifier", "at": 1}
                await device.send(response)
            for number in range(20):
                await producer.notify("user:ada", "meanwhile %d" % number)
            await until(lambda: unready(transform, fan_out), "both workers say that they cannot work", 60)
            await asyncio.sleep(arguments.seconds)
            expect(not ready(transform) and not ready(fan_out), "they go on saying so")
            expect(device.closed is None, "the device stays connected", device.closed)
            if arguments.part.startswith("kafka"):
                expect(not device.of("accepted"), "a response is not accepted before Kafka has it")
                expect(redis.cli("--scan", "--pattern", "m{*"), "the mailbox keeps what Kafka does not know to be delivered")
            device.acknowledges = True
            began = loop.time()
            await (redis.start() if give is None else loop.run_in_executor(None, give))
            await until(lambda: ready(transform) and ready(fan_out), "both are ready again, by themselves", 60)
            wanted = {"meanwhile %d" % number for number in range(20)}
            await until(lambda: wanted <= set(bodies(device)), "what was published meanwhile arrives", 60, lambda: bodies(device))
            resumed = round(loop.time() - began, 1)
            if arguments.part.startswith("kafka"):
                # What has not been accepted for long is sent again, as every device does.
                if not device.of("accepted"):
                    await device.send(response)
                await device.frame("accepted", 30, response="r-1")
            await until(lambda: not redis.cli("--scan", "--pattern", "m{*"), "the mailbox becomes empty", 30)
            await producer.notify("user:ada", "after")
            await producer.flush()
            await until(lambda: "after" in bodies(device), "and what is published after")
            expect(device.closed is None and len(device.of("welcome")) == 1, "by the same connection", device.closed)
            expect(transform.poll() is None and fan_out.poll() is None, "and the same processes")
            for number in range(200):
                await producer.notify("user:ada", "at last %d" % number)
            await producer.flush()
            await loop.run_in_executor(None, take)
            await asyncio.gather(ends(transform, "transform", stillness), ends(fan_out, "fan-out", stillness))
        say(part=arguments.part, result="held", gone=arguments.seconds, resumed=resumed)
    finally:
        sampling.cancel()
        if cluster:
            cluster.end()
        if redis.process:
            redis.process.send_signal(signal.SIGCONT)
            redis.kill()
        subprocess.run([kafka.script, "stop", kafka.folder], capture_output=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kafka-folder", required=True)
    parser.add_argument("--binary", required=True, help="the program under test")
    parser.add_argument(
        "--part", required=True,
        choices=["kafka-killed", "kafka-hangs", "kafka-too-few", "redis-killed", "redis-hangs", "redis-full", "redis-refuses"])
    parser.add_argument("--seconds", type=float, default=5, help="how long it is gone, after the workers have noticed")
    arguments = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="carillon-away-")
    try:
        asyncio.run(run(arguments, folder))
    except Failed as error:
        log = os.path.join(folder, "workers.log")
        if os.path.exists(log):
            print(open(log).read()[-8000:])
        say(part=arguments.part, result="broken", promise=str(error))
        raise SystemExit(1)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
