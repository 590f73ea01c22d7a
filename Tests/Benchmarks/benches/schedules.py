"""Requests that are due in one second while many others wait for later: how late they are, what an occurrence takes beside a plain request of the
same run, what a pending request takes in Redis, and what the lane asks Redis while nothing is due."""
import calendar
import json
import random
import re
import statistics
import subprocess
import time
from collections import Counter

from .bench import FIRST, PARTITIONS, ZEROS, log, result
from .processes import cpu, ends_with_parent
from .topics import Produced
from .transform import OUTCOMES, PAYLOAD

APPLICATION = "com.example.shop"
# How many requests are pending for one target, in each of the two halves.
SHAPES = {"one": 1, "ten": 10}
# Seconds after the last outcome in which markers are raised and ends are settled: they are part of what is measured. So many seconds before
# a burst show what the servers take without it.
SETTLE = 4
# In this order: what repeats is pending afterwards, and then each request for its device asks the schedules.
KINDS = [["plain", "once"], ["repeating", "beside"]]
DUE = ["once", "repeating"]
# A command as MONITOR tells it: its client, its name, and the kind of its first key in a bucket. Keys.swift has the kinds: these are of
# schedules.
COMMAND = re.compile(r'\[\d+ (\S+:\d+)\] "(\w+)"(?:.*? "([a-z])\{\d+\})?')
OF_SCHEDULES = "snehto"


class Schedules:
    def __init__(self, bench):
        self.bench = bench
        self.due = bench.arguments.due
        self.numbers = iter(range(1 << 31))
        body = "x" * (PAYLOAD - len(json.dumps(self.content(""), separators=(",", ":"))))
        self.payload = json.dumps(self.content(body), separators=(",", ":")).encode()

    @staticmethod
    def content(body):
        # The fleet acknowledges what has a time.
        return {"aps": {"alert": {"title": "Order", "body": body}}, "ts": 0}

    def run(self):
        bench, arguments = self.bench, self.bench.arguments
        try:
            from confluent_kafka import Consumer, Producer, TopicPartition
            from confluent_kafka.admin import AdminClient
        except ImportError:
            raise SystemExit("'schedules' needs a Python with Deploy/test-requirements.txt") from None
        self.clients, admin = (Consumer, Producer, TopicPartition), AdminClient({"bootstrap.servers": arguments.kafka})
        bench.begin("schedules")
        self.topics = [bench.prefix + topic for topic in ["requests", "schedule", *OUTCOMES]]
        self.transform, self.fan_out = self.worker(), bench.fan_out()
        fleet = bench.fleet(self.due, self.fan_out)
        try:
            log(f"{self.due} devices connect")
            self.until(lambda: self.fan_out.total("carillon_fanout_sessions_total"), self.due)
            fills = {name: self.fill(arguments.pending // len(SHAPES), each) for name, each in SHAPES.items()}
            idle = self.idle()
            rounds = [{} for _ in range(arguments.rounds)]
            for kinds in KINDS:
                for number, item in enumerate(rounds):
                    for kind in kinds:
                        item[kind] = self.burst(kind, fills["one"]["per_second"])
                        log(f"round {number + 1}, {kind}: {self.text(item[kind])}")
        finally:
            fleet.kill()
            fleet.wait()
            self.transform.end()
            self.fan_out.end()
            bench.redis.stop()
            # A million requests take more than a gigabyte.
            for deleted in admin.delete_topics([name for name in admin.list_topics().topics if name.startswith(bench.prefix)]).values():
                deleted.result()
        title = f"{self.due} due in one second among {arguments.pending} pending"
        return {**result("schedules", title, rounds, self.measures(fills, idle)), "fills": fills, "idle": idle}

    def measures(self, fills, idle):
        def of(kind, name, part=None):
            return lambda item: item[kind][name] if part is None else item[kind][name][part]

        def ratio(kind, name):
            return lambda item: item[kind][name] / item["plain"][name]

        measures = []
        for kind in DUE:
            measures += [
                (f"{kind}: fired late by, median in s", None, of(kind, "fired", "p50")),
                (f"{kind}: fired late by, 99th percentile in s", "< 2", of(kind, "fired", "p99")),
                (f"{kind}: fired late by, worst in s", None, of(kind, "fired", "worst")),
                (f"{kind}: shown late by, 99th percentile in s", None, of(kind, "shown", "p99")),
            ]
        measures.append(("plain: shown after publication, 99th percentile in s", None, of("plain", "shown", "p99")))
        for kind in DUE:
            measures.append((f"{kind}: CPU of all servers ÷ plain", "<= 1.5", ratio(kind, "all_us")))
            for name in ["transform", "redis", "fan-out"] + (["kafka"] if self.bench.kafka_pid else []):
                measures.append((f"{kind}: CPU of {name} ÷ plain", None, ratio(kind, name + "_us")))
        measures.append(("beside (plain, while one is pending): CPU ÷ plain", None, ratio("beside", "all_us")))
        for kind in ["plain", *DUE, "beside"]:
            measures += [
                (f"{kind}: CPU of all servers, µs", None, of(kind, "all_us")),
                (f"{kind}: calls of scripts in Redis", None, of(kind, "scripts")),
                (f"{kind}: records produced", None, of(kind, "records")),
                (f"{kind}: bytes produced, payloads apart", None, of(kind, "bytes")),
            ]
        for name, each in SHAPES.items():
            each, filled = f"{each} for a target", fills[name]
            measures += [
                (f"{each}: Redis bytes of each, payload apart", "<= 700", filled["redis_bytes"]),
                (f"{each}: scheduled a second", None, filled["per_second"]),
                (f"{each}: CPU of scheduling one ÷ plain", None, lambda item, us=filled["all_us"]: us / item["plain"]["all_us"]),
            ]
        return measures + [
            ("idle: Redis commands about schedules", "<= 0", idle["about_schedules"]),
            ("idle: Redis commands of the worker, a second", None, idle["per_second"]),
            ("idle: the transform worker, percent of a core", "<= 1", idle["percent"]),
        ]

    def text(self, burst):
        fired = "" if "fired" not in burst else "fired after {p50:.2f} s, 99th percentile {p99:.2f} s, worst {worst:.2f} s; ".format(**burst["fired"])
        return fired + "shown after {p50:.2f} s, {p99:.2f} s, {worst:.2f} s; ".format(**burst["shown"]) + f"{burst['all_us']:.0f} µs of CPU"

    def worker(self):
        return self.bench.transform(None, "--group", self.bench.prefix + "transform")

    def until(self, reading, wanted, seconds=900, told=""):
        """Waits for a number, and tells of the progress."""
        end, next_line = time.time() + seconds, time.time() + 10
        while (found := reading()) < wanted:
            if time.time() > end:
                raise SystemExit(f"only {found:.0f} of {wanted:.0f} {told or 'came'} within {seconds:.0f} s")
            if told and time.time() > next_line:
                next_line += 10
                log(f"  {found:.0f} of {wanted:.0f} {told}")
            time.sleep(0.25)

    # Publishing

    def publish(self, requests):
        """Publishes requests: (device, headers)."""
        def told(error, _):
            if error:
                raise SystemExit(f"Kafka has not taken a request: {error}")

        producer = self.clients[1]({
            "bootstrap.servers": self.bench.arguments.kafka, "partitioner": "murmur2_random", "enable.idempotence": True, "linger.ms": 5,
            "batch.size": 1_000_000, "queue.buffering.max.messages": 1_000_000})
        for device, headers in requests:
            id = f"{next(self.numbers):08x}-0000-4000-8000-{random.getrandbits(48):012x}"
            target = "device:" + device
            while True:
                try:
                    producer.produce(
                        self.topics[0], key=target, value=self.payload, on_delivery=told,
                        headers=[("target", target), ("apns-topic", APPLICATION), ("apns-id", id), *headers])
                    break
                except BufferError:
                    producer.poll(0.05)
            producer.poll(0)
        producer.flush()

    def fleet_requests(self, trigger=None):
        headers = [] if trigger is None else [("trigger", json.dumps(trigger, separators=(",", ":")))]
        return ((f"{ZEROS}{FIRST + number}", headers) for number in range(self.due))

    def fill(self, count, each):
        """Requests that are due in a day to a month, for devices that nobody has registered; `each` of them for one. What they take."""
        bench = self.bench
        self.transform.end()
        log(f"publishing {count} requests that are due later, {each} of a target")
        first = next(self.numbers)

        def requests():
            for number in range(count):
                interval = 86_400 + random.randrange(29 * 86_400)
                yield f"{first + number // each:064x}"[::-1], [("trigger", b'{"type":"timeInterval","timeInterval":%d}' % interval)]

        before = self.redis("memory")["used_memory"]
        self.publish(requests())
        self.transform = self.worker()
        spent, start = self.spent(), time.time()
        self.until(lambda: self.transform.total("carillon_transform_verdicts_total"), count, told="scheduled")
        seconds, all_us = time.time() - start, sum(self.spent().values()) - sum(spent.values())
        verdicts = self.transform.labels("carillon_transform_verdicts_total")
        if verdicts != {"scheduled": count}:
            raise SystemExit(f"not all of {count} requests were scheduled: {verdicts}")
        time.sleep(SETTLE)
        taken = (self.redis("memory")["used_memory"] - before) / count
        filled = {"count": count, "per_second": round(count / seconds), "all_us": round(all_us / count, 1), "redis_bytes": round(taken - PAYLOAD)}
        log(f"  {filled}")
        return filled

    # Measuring

    def redis(self, section):
        """A section of INFO, as numbers where they are."""
        found = {}
        for line in self.bench.redis.call("info", section).splitlines():
            name, _, value = line.strip().partition(":")
            found[name] = int(value) if value.isdigit() else value
        return found

    def scripts(self):
        return int(re.search(r"calls=(\d+)", self.redis("commandstats")["cmdstat_evalsha"]).group(1))

    def spent(self):
        pids = {"transform": self.transform.pid, "redis": self.bench.redis.pid, "kafka": self.bench.kafka_pid, "fan-out": self.fan_out.pid}
        return {name: cpu(pid) for name, pid in pids.items()}

    def idle(self):
        """What the worker asks Redis while all wait for later, and its CPU."""
        seconds, redis = self.bench.arguments.duration, self.bench.redis
        # Markers and commits come to their end.
        time.sleep(SETTLE)
        log(f"nothing is due for {seconds} s")
        names = dict(re.findall(r"addr=(\S+) .*?name=(\S*)", redis.call("client", "list")))
        path, before = self.bench.path("monitor"), self.spent()
        with open(path, "w") as file:
            monitor = subprocess.Popen(["redis-cli", "-p", str(redis.port), "monitor"], stdout=file, preexec_fn=ends_with_parent)
            time.sleep(seconds)
            monitor.terminate()
            monitor.wait()
        taken = (self.spent()["transform"] - before["transform"]) / seconds
        commands = Counter()
        with open(path, errors="replace") as file:
            # What a script calls is of that script, and has no address.
            for line in file:
                if (found := COMMAND.search(line)) and "transform" in names.get(found[1], ""):
                    commands[found[2], found[3] or ""] += 1
        return {"about_schedules": sum(count for (_, kind), count in commands.items() if kind and kind in OF_SCHEDULES),
                "per_second": round(sum(commands.values()) / seconds, 1), "percent": round(taken / 1e4, 2),
                "commands": {" ".join(words).strip(): count for words, count in commands.most_common()}}

    def burst(self, kind, per_second):
        """As many as there are devices, at once: requests to be shown now, or occurrences that are due in one second."""
        moment = None
        if kind in DUE:
            # Time to be scheduled, twice as much as it took before.
            moment = int(time.time() + 8 + SETTLE + 2 * self.due / per_second)
            names = zip(("year", "month", "day", "hour", "minute", "second"), time.gmtime(moment)[:6])
            # One that repeats is due again in a year.
            components = {name: value for name, value in names if kind == "once" or name != "year"}
            scheduled = lambda: self.transform.labels("carillon_transform_verdicts_total").get("scheduled", 0)
            before = scheduled()
            self.publish(self.fleet_requests(
                {"type": "calendar", "dateComponents": {**components, "timeZone": "UTC"}, **({"repeats": True} if kind == "repeating" else {})}))
            self.until(scheduled, before + self.due)
            if time.time() > moment - SETTLE - 3:
                raise SystemExit("the requests were scheduled when they were nearly due: the machine is too slow for this")
            time.sleep(moment - SETTLE - 2 - time.time())
        before = self.spent()
        time.sleep(SETTLE)
        idle = {name: (value - before[name]) / SETTLE for name, value in self.spent().items()}
        places = self.ends()
        produced, spent, scripts, start = Produced(self.bench.arguments.kafka, self.topics, PARTITIONS), self.spent(), self.scripts(), time.time()
        acknowledged = lambda: self.fan_out.labels("carillon_events_total").get("delivered", 0)
        before = acknowledged()
        if kind not in DUE:
            moment = start
            self.publish(self.fleet_requests())
        self.until(acknowledged, before + self.due, 120 + max(0, moment - start))
        time.sleep(SETTLE)
        seconds = time.time() - start
        # What they take without any work is not of these.
        measured = {name + "_us": (value - spent[name] - idle[name] * seconds) / self.due for name, value in self.spent().items()}
        measured.update(all_us=sum(measured.values()), scripts=(self.scripts() - scripts) / self.due)
        records, sizes = ({topic.removeprefix(self.bench.prefix): value for topic, value in found.items()} for found in produced.take())
        # The requests that a producer has published are not of the cluster.
        if kind not in DUE:
            records["requests"] = sizes["requests"] = 0
        # A schedule that has ended keeps no payload.
        payloads = records["requests"] + records["deliveries"] + (records["schedule"] if kind == "repeating" else 0)
        measured.update(
            records=sum(records.values()) / self.due, bytes=(sum(sizes.values()) - PAYLOAD * payloads) / self.due, produced=records)
        measured.update(self.times(kind, places, moment))
        return measured

    # What Kafka has of a burst

    def ends(self):
        """Where the topics of requests and events end."""
        Consumer, _, TopicPartition = self.clients
        consumer = Consumer({"bootstrap.servers": self.bench.arguments.kafka, "group.id": "unused"})
        names = [(self.bench.prefix + topic, partition) for topic in ("requests", "events") for partition in range(PARTITIONS)]
        found = {name: consumer.get_watermark_offsets(TopicPartition(*name), 30)[1] for name in names}
        consumer.close()
        return found

    def records(self, places):
        """What lies behind these places."""
        Consumer, _, TopicPartition = self.clients
        ends = self.ends()
        left = {name for name, end in ends.items() if end > places[name]}
        consumer = Consumer({"bootstrap.servers": self.bench.arguments.kafka, "group.id": "unused", "enable.auto.commit": False})
        consumer.assign([TopicPartition(*name, places[name]) for name in left])
        while left:
            record = consumer.poll(30)
            if record is None or record.error():
                raise SystemExit(f"Kafka does not give what was produced: {record and record.error()}")
            name = record.topic(), record.partition()
            if record.offset() >= ends[name] - 1:
                left.discard(name)
            if record.offset() < ends[name]:
                yield record
        consumer.close()

    def times(self, kind, places, moment):
        """Seconds from the moment to the firings' timestamps, and to the acknowledgements of the devices."""
        fired, shown, devices = [], [], set()
        for record in self.records(places):
            headers = dict(record.headers() or [])
            if record.topic() == self.topics[0] and "carillon-firing" in headers:
                fired.append(record.timestamp()[1] / 1000 - json.loads(headers["carillon-firing"])["due"] / 1000)
            elif headers.get("ce_type") == b"carillon.delivered.v1":
                text = headers["ce_time"].decode()
                seconds, fraction = text.rstrip("Z").split(".")
                shown.append(timegm(seconds) + float("0." + fraction) - moment)
                devices.add(json.loads(record.value())["device"])
        if len(devices) != self.due or len(shown) != self.due:
            raise SystemExit(f"{kind}: {len(shown)} notifications were shown at {len(devices)} devices of {self.due}")
        if kind not in DUE:
            return {"shown": spread(shown)}
        if len(fired) < self.due or min(fired) < 0:
            raise SystemExit(f"{kind}: {len(fired)} firings for {self.due}, the first {min(fired)} s after its due time")
        return {"shown": spread(shown), "fired": spread(fired), "firings": len(fired)}


def timegm(text):
    return calendar.timegm(time.strptime(text, "%Y-%m-%dT%H:%M:%S"))


def spread(values):
    values = sorted(values)
    return {"p50": round(statistics.median(values), 3), "p99": round(values[int(len(values) * 0.99)], 3), "worst": round(values[-1], 3)}
