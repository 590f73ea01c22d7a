"""Others' latency in the partition of a device or a person that is flooded: without the flood, with it, and with it beyond a rate limit."""
import subprocess
import sys
import threading
import time

from .bench import FIRST, ZEROS, log, result
from .deliveries import check
from .processes import ends_with_parent

APPLICATION = "com.example.shop"
PER_TARGET = 20
# The limit begins five seconds after its record.
BEGINNING = 6
DEVICE, PERSON = f"device:{ZEROS}%d", "user:u%d"
# The name of each phase, what is flooded, and whether there is a limit.
PHASES = (("alone", None, False), ("flood", DEVICE, False), ("limited", DEVICE, True), ("person", PERSON, True))


class Flood:
    def __init__(self, bench):
        self.bench = bench
        self.count = bench.arguments.devices
        self.rate = bench.arguments.paced_rate // 3
        self.flood_rate = bench.arguments.flood_rate

    def run(self):
        rounds = []
        for number in range(self.bench.arguments.rounds):
            item = {}
            for name, target, limits in PHASES:
                item[name] = self.phase(f"flood-{number}-{name}", target, limits)
                latency = item[name]["latency_us"]
                log(f"round {number + 1}, {name}: median {latency['p50'] / 1000:.1f} ms, 99th percentile {latency['p99'] / 1000:.1f} ms,"
                    f" {100 * item[name]['arrived']:.0f} % arrived, {item[name]['flooded']} flooded, {item[name]['outcomes']}")
            rounds.append(item)

        def ratio(name, part):
            return lambda item: item[name]["latency_us"][part] / item["alone"]["latency_us"][part]

        measures = [("limited: others' 99th percentile ÷ alone", "<= 1.2", ratio("limited", "p99")),
                    ("limited: others' median ÷ alone", None, ratio("limited", "p50")),
                    ("person, limited: others' 99th percentile ÷ alone", "<= 1.2", ratio("person", "p99")),
                    ("person, limited: others' median ÷ alone", None, ratio("person", "p50")),
                    ("flood: others' 99th percentile ÷ alone", None, ratio("flood", "p99")),
                    ("flood: others' median ÷ alone", None, ratio("flood", "p50")),
                    ("flood: others that arrived within the round and ten seconds, percent", None, lambda item: 100 * item["flood"]["arrived"]),
                    ("alone: 99th percentile, ms", None, lambda item: item["alone"]["latency_us"]["p99"] / 1000),
                    ("audits: violations", "<= 0", lambda item: sum(item[name]["violations"] for name in item))]
        title = f"{self.rate}/s for {self.count} devices, and {self.flood_rate}/s for one more device or its person, in one partition"
        return result("flood", title, rounds, measures)

    def phase(self, name, target, limits):
        """A run; target is what is flooded."""
        bench, arguments = self.bench, self.bench.arguments
        bench.begin(name, partitions=1)
        if limits:
            subprocess.run(
                [arguments.carillon, "applications", "limit", APPLICATION, "--per-target", str(PER_TARGET), "--kafka", arguments.kafka,
                 "--topic-prefix", bench.prefix], check=True, stdout=subprocess.DEVNULL)
        fan_out, transform = bench.fan_out(), bench.transform(None, "--group", bench.prefix + "transform")
        victim = bench.fleet(1, fan_out, first=FIRST + self.count)
        self.flooded, ending = 0, threading.Event()
        flood = threading.Thread(target=self.flood, args=(target, ending))
        try:
            while fan_out.total("carillon_fanout_sessions_total") < 1:
                time.sleep(0.2)
            if limits:
                time.sleep(BEGINNING)
            if target:
                flood.start()
            measured = bench.publish(self.count, fan_out, "--rate", self.rate, "--drain", 10)
            ending.set()
            if target:
                flood.join()
            measured.update(flooded=self.flooded, arrived=measured["total"] / measured["published"], violations=0, outcomes={})
            # Without a limit the flood is a backlog of minutes, and most of the others wait behind it.
            if target and not limits:
                return measured
            check(measured, self.count)
            audit = bench.audit()
            measured.update(violations=audit["violations"], outcomes={kind: count for kind, count in audit["outcomes"].items() if count})
            return measured
        finally:
            ending.set()
            victim.kill()
            victim.wait()
            transform.end()
            fan_out.end()

    def flood(self, target, ending):
        """Requests for the flooded device or person, at a rate, from a process of its own."""
        name = target % (FIRST + self.count)
        publisher = subprocess.Popen(
            [sys.executable, "-c", PUBLISHER, self.bench.arguments.kafka, self.bench.prefix + "requests", name, str(self.flood_rate)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, preexec_fn=ends_with_parent)
        ending.wait()
        self.flooded = int(publisher.communicate("\n")[0])


PUBLISHER = '''
import select, sys, time
import confluent_kafka
servers, topic, target, rate = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
producer = confluent_kafka.Producer({"bootstrap.servers": servers, "linger.ms": 5, "queue.buffering.max.messages": 2000000})
headers = [("target", target.encode()), ("apns-topic", b"com.example.shop")]
# The device acknowledges what has this member.
value, sent, start = b'{"ts":0,"aps":{"alert":"' + b"x" * 200 + b'"}}', 0, time.time()
while not select.select([sys.stdin], [], [], 0)[0]:
    due = int((time.time() - start) * rate)
    for _ in range(due - sent):
        producer.produce(topic, key=target.encode(), value=value, headers=headers, partition=0)
    sent = max(sent, due)
    producer.poll(0)
    time.sleep(0.01)
producer.flush(60)
print(sent)
'''
