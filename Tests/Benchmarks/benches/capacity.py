"""What a cluster carries, and what a notification takes at parts of that, beside the sum of its bare hops at the same rate."""
import json
import os
import subprocess

from .bench import PARTITIONS, log, result

SHARES = (25, 50, 75, 100)
MEASURES = [
    ("arrival, median in ms", lambda at: at["arrived"]["p50"]),
    ("arrival, 99th percentile in ms", lambda at: at["arrived"]["p99"]),
    ("median ÷ the sum of the bare hops", lambda at: at["arrived"]["p50"] / at["hops"]["p50"]),
    ("99th percentile ÷ the sum of the bare hops", lambda at: at["arrived"]["p99"] / at["hops"]["p99"]),
    ("CPU of workers and Redis, ms a request", lambda at: at["cpu"]),
]


class Capacity:
    def __init__(self, bench):
        self.bench = bench

    def run(self):
        bench, arguments, rounds = self.bench, self.bench.arguments, []
        bench.begin("capacity")
        source = os.path.join(os.path.dirname(__file__), "hops.c")
        subprocess.run(["cc", "-O2", "-o", bench.path("hops"), source, "-lrdkafka", "-lhiredis", "-lpthread"], check=True)
        place = ["--kafka", arguments.kafka, "--topic-prefix", bench.prefix]
        subprocess.run(
            [arguments.carillon, "topics", "create", *place, "--partitions", str(PARTITIONS), "--for-load"], check=True, stdout=subprocess.DEVNULL)
        self.fan_out, self.transform = bench.fan_out(), bench.transform()
        try:
            found = self.load("--find-capacity", "--p99", "200ms", "--step", f"{arguments.duration}s", "--rate", "100")
            capacity = max((step["rate"] for step in found["steps"] if step["kept"]), default=0)
            if not capacity:
                raise SystemExit(f"no rate keeps the goal: {found['steps']}")
            log(f"the capacity is {capacity} a second")
            for number in range(arguments.rounds):
                rounds.append({share: self.at(max(1, capacity * share // 100)) for share in SHARES})
                log(f"round {number + 1}: " + ", ".join(f"{share} %: {self.text(item)}" for share, item in rounds[-1].items()))
        finally:
            self.transform.end()
            self.fan_out.end()
            bench.redis.stop()
        measures = [("capacity, requests a second", None, capacity)]
        for share in SHARES:
            for what, value in MEASURES:
                measures.append((f"{share} %: {what}", None, lambda item, share=share, value=value: value(item[share])))
        return result("capacity", "one notification a request, to a device that acknowledges it", rounds, measures)

    def at(self, rate):
        """A run at a rate, and each of its hops alone at the same rate."""
        arguments = self.bench.arguments
        report = self.load("--rate", rate, "--duration", f"{arguments.duration}s")
        frames = self.bench.limit(arguments.devices, ["--rate", rate])["latency_us"]
        # A request passes two topics, a script of Redis, and a socket.
        record = self.bench.tool("hops", "kafka", arguments.kafka, self.bench.prefix + "floor.deliveries", rate, arguments.duration)
        call = self.bench.tool("hops", "redis", "127.0.0.1", self.bench.redis.port, rate, arguments.duration)
        for hop in (record, call):
            if hop["count"] < hop["due"]:
                raise SystemExit(f"a hop lost messages: {hop}")
        return {
            "rate": rate, "arrived": report["stages"]["arrived"], "cpu": report["processorMsPerRequest"], "schedule": report["schedule"],
            "hops": {part: 2 * record[part] + call[part] + frames[part] / 1000 for part in ("p50", "p99")},
        }

    @staticmethod
    def text(item):
        return f"{item['rate']}/s {item['arrived']['p50']:.1f} ms, hops {item['hops']['p50']:.1f} ms"

    def load(self, *words):
        bench = self.bench
        done = subprocess.run(
            [bench.arguments.carillon, "load", "--json", *bench.place(), "--fan-out", self.fan_out.addresses["devices"], "--to-users", "0",
             "--devices", str(bench.arguments.devices), "--connect-rate", "2000", *map(str, words)], capture_output=True, text=True)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        if not lines or "stages" not in lines[-1]:
            raise SystemExit(f"load {' '.join(map(str, words))}: {done.stderr[-500:]}")
        if any("violation" in line for line in lines):
            raise SystemExit(f"load found violations: {lines[0]}")
        return lines[-1]
