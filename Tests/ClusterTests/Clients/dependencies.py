"""A dependency that is gone for a while: Kafka or Redis is killed, hangs, takes no writes, or Redis refuses a command, and comes back.

  kafka-killed, kafka-hangs, redis-killed, redis-hangs, redis-full, redis-refuses
  kafka-too-few   nothing can be written, since two of three brokers are killed

Both workers must say that they are not ready, the device must stay connected, what is published meanwhile must arrive afterwards, and the
worker processes must be the same ones all along. While Kafka is away no response is accepted, and no mailbox forgets what was acknowledged.
When it goes away once more, workers that are told to end do so, with work under way that cannot be done, and in the time that they have for it
(`--timed`).
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

from clients import HANG, Device, Failed, Producer, expect, quietly, say, until
from healing import Cluster, Redis, bodies, ready, unready
from machine import kafka_script


# What --drain gives workers that must end in their time, and what they may take besides, in seconds.
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

        await until(answers, "each partition answers again")

    def each(self, word, *brokers):
        for broker in brokers:
            self.do(word, self.folder, broker)

    def do(self, *words):
        done = subprocess.run([self.script, *words], capture_output=True, text=True, timeout=HANG)
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
    """A worker that is told to end does it, whatever is gone; in its time where there is somebody who knows how long nothing ran."""
    worker.send_signal(signal.SIGTERM)
    began, before = time.monotonic(), stillness and stillness.lost
    await until(lambda: worker.poll() is not None, "the %s worker ends" % name)
    took = time.monotonic() - began
    expect(worker.returncode == 0, "the %s worker ends in order" % name, worker.returncode)
    if stillness:
        # The other task has its turn first.
        await asyncio.sleep(0.2)
        lost = stillness.lost - before
        expect(took - lost < DRAIN + GRACE, "the %s worker ends in its time" % name, "%.1f s, of which nothing ran for %.1f s" % (took, lost))


class Away:
    """Workers, a device, and what takes a dependency away from them and gives it back."""

    def __init__(self, arguments, kafka, redis, cluster, workers, device):
        self.arguments, self.kafka, self.redis, self.cluster, self.workers, self.device = arguments, kafka, redis, cluster, workers, device
        self.producer = Producer(arguments.kafka, arguments.prefix + "requests")

    async def change(self, part, is_gone):
        """Takes away what a part is about, or gives it back."""
        kafka, redis = self.kafka, self.redis
        await {
            "kafka-killed": lambda: quietly(kafka.do, "kill" if is_gone else "restart", kafka.folder, "1"),
            "kafka-too-few": lambda: quietly(kafka.each, "kill" if is_gone else "restart", "2", "3"),
            "kafka-hangs": lambda: quietly(kafka.do, "freeze" if is_gone else "thaw", kafka.folder, "1"),
            "redis-killed": lambda: quietly(redis.kill) if is_gone else redis.start(),
            "redis-full": lambda: quietly(redis.cli, "CONFIG", "SET", "maxmemory", "1" if is_gone else "0"),
            "redis-refuses": lambda: quietly(redis.cli, "ACL", "SETUSER", "default", "-hmget" if is_gone else "+hmget"),
            "redis-hangs": lambda: quietly(redis.process.send_signal, signal.SIGSTOP if is_gone else signal.SIGCONT),
        }[part]()

    async def publish(self, *names):
        for name in names:
            await self.producer.notify("user:ada", name)

    async def pauses_and_resumes(self, part):
        device, workers, redis = self.device, self.workers, self.redis
        is_kafka = part.startswith("kafka")
        await self.publish(part + " before")
        await self.producer.flush()
        await until(lambda: part + " before" in bodies(device), "what is published before arrives")
        device.acknowledges = not is_kafka
        await self.publish(part + " held")
        await self.producer.flush()
        held = await until(
            lambda: next((f for f in device.of("notify") if f["payload"]["custom"]["body"] == part + " held"), None), "it is sent")
        response = {
            "type": "response", "response": "r-" + part, "receipt": held["receipt"], "identifier": held["identifier"],
            "action": "com.apple.UNNotificationDefaultActionIdentifier", "at": 1}

        def is_accepted():
            return any(frame["response"] == response["response"] for frame in device.of("accepted"))

        await self.change(part, True)
        if is_kafka:
            # Both are safe only when Kafka has them.
            await device.send({"type": "ack", "deliveries": [held["delivery"]]})
            await device.send(response)
        wanted = {"%s %d" % (part, number) for number in range(20)}
        await self.publish(*wanted)
        await until(lambda: unready(*workers), "both workers say that they cannot work")
        await asyncio.sleep(self.arguments.seconds)
        expect(not any(map(ready, workers)), "they go on saying so")
        expect(device.closed is None, "the device stays connected", device.closed)
        if is_kafka:
            expect(not is_accepted(), "a response is not accepted before Kafka has it")
            expect(redis.cli("--scan", "--pattern", "m{*"), "the mailbox keeps what Kafka does not know to be delivered")
        device.acknowledges = True
        await self.change(part, False)
        await until(lambda: all(map(ready, workers)), "both are ready again, by themselves")
        await until(lambda: wanted <= set(bodies(device)), "what was published meanwhile arrives", lambda: bodies(device))
        if is_kafka:
            # What has not been accepted for long is sent again, as every device does.
            if not is_accepted():
                await device.send(response)
            await until(is_accepted, "the response is accepted")
        await until(lambda: not redis.cli("--scan", "--pattern", "m{*"), "the mailbox becomes empty")
        await self.publish(part + " after")
        await self.producer.flush()
        await until(lambda: part + " after" in bodies(device), "and what is published after")
        expect(device.closed is None and len(device.of("welcome")) == 1, "by the same connection", device.closed)
        expect(all(worker.poll() is None for worker in workers), "and the same processes")

    async def end(self, part, stillness):
        """What a part is about is gone once more, with work that cannot be done: the workers are told to end."""
        await self.publish(*("%s at last %d" % (part, number) for number in range(200)))
        await self.producer.flush()
        await self.change(part, True)
        await asyncio.gather(*(ends(worker, name, stillness) for worker, name in zip(self.workers, ("transform", "fan-out"))))


async def run(arguments, folder):
    """Runs parts one after the other, with the same workers; at the end of the last one they are told to end."""
    names = arguments.part.split(",")
    stillness = Stillness() if arguments.timed else None
    sampling = asyncio.create_task(stillness.run()) if stillness else None
    kafka = Kafka(kafka_script(arguments.kafka_folder), os.path.join(folder, "kafka"))
    redis = Redis(folder)
    # With two of three brokers away no topic has the two copies in step that min.insync.replicas asks for.
    brokers = ["--brokers", "3", "--heap", "256m"] if "kafka-too-few" in names else []
    arguments.kafka = kafka.start(*brokers, "--config", "group.min.session.timeout.ms=1000")
    arguments.prefix = "away."
    cluster, part = None, names[0]
    try:
        subprocess.run(
            [arguments.binary, "topics", "create", "--kafka", arguments.kafka, "--topic-prefix", arguments.prefix, "--partitions", "4"],
            check=True, capture_output=True)
        await redis.start()
        cluster = Cluster(arguments, folder, redis.port)
        drain = "%ds" % (DRAIN if arguments.timed else 2)
        transform = await cluster.started("transform", *cluster.group, "--drain", drain)
        fan_out = await cluster.started("fan-out", "--listen", "127.0.0.1:0", "--drain", drain)
        async with Device(fan_out.addresses["devices"], None, user="ada") as device:
            away = Away(arguments, kafka, redis, cluster, [transform, fan_out], device)
            for part in names:
                await away.pauses_and_resumes(part)
                if part == names[-1]:
                    await away.end(part, stillness)
                say(part=part, result="held")
    except Failed as error:
        print(open(os.path.join(folder, "workers.log")).read()[-8000:] if cluster else "there are no workers")
        say(part=part, result="broken", promise=str(error))
        raise SystemExit(1)
    finally:
        if sampling:
            sampling.cancel()
        if cluster:
            cluster.end()
        if redis.process:
            redis.process.send_signal(signal.SIGCONT)
            redis.kill()
        subprocess.run([kafka.script, "stop", kafka.folder], capture_output=True)


PARTS = ["kafka-killed", "kafka-hangs", "kafka-too-few", "redis-killed", "redis-hangs", "redis-full", "redis-refuses"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kafka-folder", required=True)
    parser.add_argument("--binary", required=True, help="the program under test")
    parser.add_argument("--part", required=True, help="one of %s, or several with commas between: one after the other" % ", ".join(PARTS))
    parser.add_argument("--seconds", type=float, default=0, help="how long it is gone, after the workers have noticed")
    parser.add_argument("--timed", action="store_true", help="whether the workers must end in their time")
    arguments = parser.parse_args()
    if unknown := set(arguments.part.split(",")) - set(PARTS):
        parser.error("--part: there is no %s" % ", ".join(sorted(unknown)))
    folder = tempfile.mkdtemp(prefix="carillon-away-")
    try:
        asyncio.run(run(arguments, folder))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
