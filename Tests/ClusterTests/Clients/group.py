"""A member of a transform workers' group that is none of ours, by Kafka's protocol alone.

  unfair     it leads the group and gives a worker nothing, as a leader does whose broker does not know the topic for a moment: the worker finds
             out that the partitions have no owner, joins again, and works
"""
import asyncio
import socket
import struct
import threading

from clients import Producer, Reader, expect, say, until
from healing import on_one_redis, run_part

# Error codes and requests of Kafka's protocol (https://kafka.apache.org/protocol), in the oldest versions that brokers take.
NO_COORDINATOR, REBALANCING = (14, 15, 16), 27
FIND_COORDINATOR, JOIN, HEARTBEAT, LEAVE, SYNC = (10, 0), (11, 2), (12, 0), (13, 0), (14, 0)


def text(value):
    return struct.pack(">h", len(value)) + value.encode()


def blob(value):
    return struct.pack(">i", len(value)) + value


class Answer:
    def __init__(self, data):
        self.data, self.at = data, 0

    def number(self, form):
        value = struct.unpack_from(">" + form, self.data, self.at)[0]
        self.at += struct.calcsize(">" + form)
        return value

    def bytes(self, form):
        count = self.number(form)
        self.at += max(0, count)
        return self.data[self.at - max(0, count):self.at]

    def text(self):
        return self.bytes("h").decode()


class Connection:
    def __init__(self, address):
        host, port = address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), 60)
        self.file, self.number = self.socket.makefile("rb"), 0

    def ask(self, request, body):
        self.number += 1
        message = struct.pack(">hhi", *request, self.number) + text("leader") + body
        self.socket.sendall(blob(message))
        answer = Answer(self.file.read(struct.unpack(">i", self.file.read(4))[0]))
        expect(answer.number("i") == self.number, "answers come in order")
        return answer


class Leader(threading.Thread):
    """Leads a group that nobody else was in before: gives each member nothing, until one has joined again."""

    def __init__(self, kafka, group, topic, partitions):
        super().__init__(daemon=True)
        self.kafka, self.group, self.topic, self.partitions = kafka, group, topic, partitions
        self.member, self.generation = "", -1
        self.others, self.failure = [], None
        self.ended = threading.Event()

    def run(self):
        try:
            self.coordinator = self.find()
            while not self.ended.wait(0.2):
                if self.generation < 0 or self.beat() == REBALANCING:
                    self.join_group()
            self.coordinator.ask(LEAVE, text(self.group) + text(self.member))
        except Exception as error:  # told by whoever waits for it
            self.failure = error

    def find(self):
        while True:
            answer = Connection(self.kafka).ask(FIND_COORDINATOR, text(self.group))
            error, _, host, port = answer.number("h"), answer.number("i"), answer.text(), answer.number("i")
            if error == 0:
                return Connection("%s:%d" % (host, port))
            expect(error in NO_COORDINATOR and not self.ended.wait(0.2), "the group has a coordinator", error)

    def beat(self):
        return self.coordinator.ask(HEARTBEAT, text(self.group) + struct.pack(">i", self.generation) + text(self.member)).number("h")

    def join_group(self):
        metadata = struct.pack(">hi", 1, 1) + text(self.topic) + struct.pack(">ii", -1, 0)
        answer = self.coordinator.ask(
            JOIN, text(self.group) + struct.pack(">ii", 30_000, 60_000) + text(self.member) + text("consumer") + struct.pack(">i", 1)
            + text("cooperative-sticky") + blob(metadata))
        answer.number("i")
        error = answer.number("h")
        if error in NO_COORDINATOR:
            return
        expect(error == 0, "the group takes the leader", error)
        self.generation, _, leader, self.member = answer.number("i"), answer.text(), answer.text(), answer.text()
        expect(leader == self.member, "whoever came first leads", leader)
        members = []
        for _ in range(answer.number("i")):
            members.append(answer.text())
            answer.bytes("i")
        others = [member for member in members if member != self.member]
        self.others += [member for member in others if member not in self.others]
        given = {member: self.share(member) for member in others}
        assignments = b"".join(text(member) + blob(given.get(member) or self.nothing()) for member in members)
        self.coordinator.ask(
            SYNC, text(self.group) + struct.pack(">i", self.generation) + text(self.member) + struct.pack(">i", len(members)) + assignments)

    def nothing(self):
        return struct.pack(">hii", 0, 0, -1)

    def share(self, member):
        if member == self.others[0]:
            return self.nothing()
        numbers = struct.pack(">%di" % self.partitions, *range(self.partitions))
        return struct.pack(">hi", 0, 1) + text(self.topic) + struct.pack(">i", self.partitions) + numbers + struct.pack(">i", -1)


async def unfair(arguments, folder):
    reader = Reader(arguments.kafka, [arguments.prefix + "events"])
    topic = arguments.prefix + "requests"
    partitions = len(reader.consumer.list_topics(topic, 20).topics[topic].partitions)
    leader = Leader(arguments.kafka, arguments.prefix + "transform", topic, partitions)
    leader.start()
    await until(lambda: leader.failure or leader.generation >= 0, "the leader has its group")
    async with on_one_redis(arguments, folder) as (_, cluster):
        try:
            task = asyncio.create_task(reader.run())
            worker = asyncio.create_task(cluster.started("transform", *cluster.group))
            await until(lambda: leader.failure or leader.others, "the worker joins, and is given nothing")
            await until(lambda: leader.failure or len(leader.others) > 1, "it joins again", lambda: leader.generation)
            expect(leader.failure is None, "the leader leads", leader.failure)
            await asyncio.wait_for(worker, 60)
            producer = Producer(arguments.kafka, topic)
            names = {await producer.notify("device:" + "%064x" % number) for number in range(20)}
            await producer.flush()
            events = reader.records[arguments.prefix + "events"]
            await until(lambda: names <= {record.headers["ce_subject"] for record in events}, "every request has its answer")
            say(members=len(leader.others))
        finally:
            leader.ended.set()
            task.cancel()


if __name__ == "__main__":
    run_part(__doc__, {"unfair": unfair}, "carillon-group-")
