"""The transform stage beside floor.c: the same filled topic, the same Redis, new groups, one lane against one thread."""
import os
import signal
import time

from .bench import FLOORS, PARTITIONS, PAYLOAD, log, result
from .processes import cpu
from .topics import Produced

OUTCOMES = ["deliveries", "events", "journal", "dead-letters"]


class TransformStage:
    def __init__(self, bench):
        self.bench = bench
        self.runs = 0
        self.prefix = None

    def run(self, is_connected):
        bench, arguments = self.bench, self.bench.arguments
        snapshot = "connected.rdb" if is_connected else "registered.rdb"
        self.prepare()
        rounds = []
        for number in range(arguments.rounds):
            bench.redis.restore(snapshot)
            floor = self.floor()
            bench.redis.restore(snapshot)
            ours = self.ours()
            rounds.append({"floor": floor, "carillon": ours})
            log(f"round {number + 1}: floor {floor['records_per_second']:.0f}/s, carillon {ours['records_per_second']:.0f}/s")
        bench.redis.stop()

        def ratio(name):
            return lambda item: item["carillon"][name] / item["floor"][name]

        def ours(name):
            return lambda item: item["carillon"][name]

        name, devices = ("connected", "devices connected") if is_connected else ("transform", "devices registered, not connected")
        measures = [
            ("records/s ÷ floor", ">= 0.85", ratio("records_per_second")),
            ("CPU of the process ÷ floor", "<= 1.9", ratio("process_cpu_us")),
            ("CPU of Redis ÷ floor", "<= 1.35", ratio("redis_cpu_us")),
            ("CPU of the lane's thread, µs a request", None, ours("thread_cpu_us")),
            ("CPU of the process, µs a request", None, ours("process_cpu_us")),
            ("records produced for a request", None, ours("records_produced")),
            ("bytes produced for a request, payloads apart", None, ours("bytes_produced")),
        ]
        if bench.kafka_pid:
            measures.insert(3, ("CPU of Kafka ÷ floor", None, ratio("kafka_cpu_us")))
        return result(name, f"transform stage, {devices}", rounds, measures)

    def prepare(self):
        """Registers the devices once with and once without a session, and fills the topic."""
        bench, arguments = self.bench, self.bench.arguments
        if self.prefix:
            bench.prefix = self.prefix
            return
        log(f"registering {arguments.devices} devices")
        bench.begin("transform")
        self.prefix = bench.prefix
        self.register(arguments.devices, keeps_sessions=True)
        bench.redis.restore("connected.rdb")
        self.register(arguments.devices, keeps_sessions=False)
        log(f"filling the requests topic with {arguments.records} records")
        bench.tool("floor", "fill", arguments.kafka, bench.prefix + "requests", arguments.records, arguments.devices, PAYLOAD)

    def register(self, count, keeps_sessions):
        """Devices say hello. A worker that is killed while they are connected leaves their presence, and requests are routed."""
        bench = self.bench
        # Registrations get into Redis by the lane that hears them, markers by the transform stage.
        transform = bench.transform()
        fan_out = bench.fan_out()
        fleet = bench.fleet(count, fan_out)
        end = time.time() + 300
        while fan_out.total("carillon_fanout_sessions_total") < count:
            if time.time() > end:
                raise SystemExit("the devices did not register")
            time.sleep(0.2)
        time.sleep(1)
        if keeps_sessions:
            fan_out.end(signal.SIGKILL)
            fleet.kill()
        else:
            fleet.kill()
            while fan_out.total("carillon_fanout_connections") > 0:
                time.sleep(0.1)
            fan_out.end()
        fleet.wait()
        transform.end()
        bench.redis.keep("connected.rdb" if keeps_sessions else "registered.rdb")

    def group(self):
        self.runs += 1
        return f"bench-{os.getpid()}-{self.runs}"

    def floor(self):
        bench, count = self.bench, self.bench.arguments.records
        before = cpu(bench.redis.pid), cpu(bench.kafka_pid)
        floor = bench.tool(
            "floor", "run", bench.arguments.kafka, bench.prefix + "requests", bench.prefix + "floor.deliveries", self.group(), "127.0.0.1",
            bench.redis.port, os.path.join(FLOORS, "request.lua"))
        if floor["records"] != count:
            raise SystemExit(f"floor took {floor['records']} of {count} records")
        floor["redis_cpu_us"] = round((cpu(bench.redis.pid) - before[0]) / count, 2)
        floor["kafka_cpu_us"] = round((cpu(bench.kafka_pid) - before[1]) / count, 2)
        return floor

    def ours(self, *words):
        """One run of `carillon transform`, with these flags more."""
        bench, count = self.bench, self.bench.arguments.records
        produced = Produced(bench.arguments.kafka, [bench.prefix + topic for topic in OUTCOMES], PARTITIONS)
        worker = bench.transform(None, "--group", self.group(), *words)

        def reading():
            return [time.time(), worker.total("carillon_transform_verdicts_total"), worker.thread_cpu("transform-0"), cpu(worker.pid),
                    cpu(bench.redis.pid), cpu(bench.kafka_pid)]

        try:
            while worker.total("carillon_transform_verdicts_total") == 0:
                time.sleep(0.002)
            start, end = reading(), time.time() + 300
            while (done := worker.total("carillon_transform_verdicts_total")) < count:
                if time.time() > end:
                    raise SystemExit(f"not all of {count} records were judged")
                # Seldom: who asks takes its time from the worker, and nobody asks the floor.
                left = (count - done) * (time.time() - start[0]) / max(1, done - start[1])
                time.sleep(min(0.3, max(0.02, left / 2)))
            seconds, records, *spent = (after - before for before, after in zip(start, reading()))
            passed = worker.labels("carillon_transform_extensions_total")
        finally:
            worker.end()
        found, sizes = produced.take()
        deliveries = found[bench.prefix + "deliveries"]
        dead = found[bench.prefix + "dead-letters"]
        if dead:
            raise SystemExit(f"{dead} records went to the dead letters")
        names = ["thread_cpu_us", "process_cpu_us", "redis_cpu_us", "kafka_cpu_us"]
        return {
            "records": records, "seconds": round(seconds, 3), "records_per_second": round(records / seconds),
            **{name: round(value / records, 2) for name, value in zip(names, spent)},
            "produced": found, "produced_bytes": sizes, "extensions": passed,
            "records_produced": round(sum(found.values()) / count, 3),
            "bytes_produced": round((sum(sizes.values()) - PAYLOAD * deliveries) / count, 1),
        }
