"""The ends and sizes of topics, asked of a broker in Kafka's own protocol: what was produced, as the broker counts it.

The broker that is asked must lead the partitions, so this is for a Kafka of one broker.
"""
import socket
import struct

UNKNOWN_TOPIC = 3


class Broker:
    def __init__(self, servers):
        host, port = servers.split(",")[0].rsplit(":", 1)
        self.connection = socket.create_connection((host, int(port)), 30)

    def request(self, key, version, body):
        client = b"benchmark"
        message = struct.pack(">hhih", key, version, 1, len(client)) + client + body
        self.connection.sendall(struct.pack(">i", len(message)) + message)
        (size,) = struct.unpack(">i", self.receive(4))
        return Reader(self.receive(size)[4:])

    def receive(self, count):
        data = b""
        while len(data) < count:
            part = self.connection.recv(count - len(data))
            if not part:
                raise SystemExit("Kafka has closed the connection")
            data += part
        return data

    def close(self):
        self.connection.close()


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, format):
        values = struct.unpack_from(">" + format, self.data, self.at)
        self.at += struct.calcsize(">" + format)
        return values[0] if len(values) == 1 else values

    def text(self):
        size = self.take("h")
        self.at += max(size, 0)
        return self.data[self.at - size:self.at].decode() if size >= 0 else None

    def items(self):
        return range(self.take("i"))


def text(value):
    data = value.encode()
    return struct.pack(">h", len(data)) + data


def wanted(topics, partitions, item):
    body = struct.pack(">i", len(topics))
    for topic in topics:
        body += text(topic) + struct.pack(">i", partitions) + b"".join(item(number) for number in range(partitions))
    return body


def ends(broker, topics, partitions):
    """How many records each topic has had (ListOffsets, version 1)."""
    body = struct.pack(">i", -1) + wanted(topics, partitions, lambda number: struct.pack(">iq", number, -1))
    reader, found = broker.request(2, 1, body), {}
    for _ in reader.items():
        topic = reader.text()
        for _ in reader.items():
            partition, error, _, offset = reader.take("ihqq")
            if error == UNKNOWN_TOPIC:
                continue  # this build does not make it
            if error:
                raise SystemExit(f"Kafka does not tell the end of {topic}/{partition}: error {error}")
            found[topic] = found.get(topic, 0) + offset
    return found


def sizes(broker, topics, partitions):
    """How many bytes each topic takes, with what a batch needs around its records (DescribeLogDirs, version 1)."""
    reader, found = broker.request(35, 1, wanted(topics, partitions, lambda number: struct.pack(">i", number))), {}
    reader.take("i")
    for _ in reader.items():
        reader.take("h")
        reader.text()
        for _ in reader.items():
            topic = reader.text()
            for _ in reader.items():
                _, size, _, _ = reader.take("iqqb")
                found[topic] = found.get(topic, 0) + size
    return found


class Produced:
    """What has come to topics since this was made."""

    def __init__(self, servers, topics, partitions):
        self.arguments = (topics, partitions)
        self.broker = Broker(servers)
        self.before = ends(self.broker, *self.arguments), sizes(self.broker, *self.arguments)

    def take(self):
        """Records and bytes by topic."""
        after = ends(self.broker, *self.arguments), sizes(self.broker, *self.arguments)
        self.broker.close()
        topics = self.arguments[0]
        return [{topic: now.get(topic, 0) - then.get(topic, 0) for topic in topics} for then, now in zip(self.before, after)]
