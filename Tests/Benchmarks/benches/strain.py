"""Devices whose notifications pass no extension, beside others whose extension hangs, fails and ends its program: the same load without, with
breakers, without them, and with a worker that is killed and a Redis that stands still."""
import json
import os
import signal
import subprocess
import sys
import threading
import time

from .bench import FIRST, ZEROS, log, result
from .deliveries import check
from .extensions import APPLICATION
from .processes import ends_with_parent

# A fifth of the calls hangs, a tenth fails, one in a thousand ends the program; by the notification's id, so that the same happens again.
PROGRAM = '''
import hashlib, json, sys

hanging = set()

def say(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

for line in sys.stdin:
    message = json.loads(line)
    if message["method"] == "cancel" and message["params"]["call"] in hanging:
        hanging.remove(message["params"]["call"])
        say({"id": message["params"]["call"], "result": None})
    if message["method"] != "didReceive":
        continue
    kind = hashlib.sha256(message["params"]["id"].encode()).digest()[0:4]
    kind = int.from_bytes(kind, "big") % 1000
    if kind == 0:
        sys.exit(1)
    elif kind < 101:
        say({"id": message["id"], "error": {"code": 1, "message": "no"}})
    elif kind < 301:
        hanging.add(message["id"])
    else:
        say({"id": message["id"], "result": {"patch": {"aps": {"thread-id": "t"}}}})
'''


class Strain:
    def __init__(self, bench):
        self.bench = bench
        self.count = bench.arguments.connections // 2

    def run(self):
        bench, rounds = self.bench, []
        with open(bench.path("child.py"), "w") as file:
            file.write(PROGRAM)
        phases = [("without", None, False), ("with", 0, False), ("breakers", 10, False), ("faults", 0, True)]
        for number in range(bench.arguments.rounds):
            item = {}
            for name, breaker, hurts in phases:
                item[name] = self.phase(f"strain-{number}-{name}", breaker, hurts)
                log(f"round {number + 1}, {name}: median {item[name]['latency_us']['p50'] / 1000:.1f} ms,"
                    f" 99th percentile {item[name]['latency_us']['p99'] / 1000:.1f} ms, {item[name]['extensions']}, MiB {item[name]['mib']}")
            rounds.append(item)

        def ratio(name, part):
            return lambda item: item[name]["latency_us"][part] / item["without"]["latency_us"][part]

        measures = []
        for name in ("with", "breakers"):
            measures += [(f"{name}: others' {text} ÷ without", "<= 1.1", ratio(name, part))
                         for text, part in (("median", "p50"), ("99th percentile", "p99"))]
            measures.append((f"{name}: memory of the worker, end ÷ middle", None, lambda item, name=name: item[name]["mib"][-1] / item[name]["mib"][1]))
        measures.append(("with: changed, percent", None, lambda item: 100 * item["with"]["extensions"].get("modified", 0) / item["with"]["published"]))
        measures.append(("audits: violations", "<= 0", lambda item: sum(item[name]["violations"] for name, *_ in phases)))
        rate = bench.arguments.paced_rate
        return result("strain", f"{rate}/s for {2 * self.count} devices, half of them by way of an extension in trouble", rounds, measures)

    def phase(self, name, breaker, hurts):
        bench, arguments = self.bench, self.bench.arguments
        bench.begin(name)
        flags = ["--group", bench.prefix + "transform", "--mailbox-bound", "10000"]
        if breaker is not None:
            flags += ["--extensions", self.file(breaker)]
        rate = arguments.paced_rate // 2
        fan_out, self.transform = bench.fan_out(), bench.transform(None, *flags)
        fleet = bench.fleet(self.count, fan_out, first=FIRST + self.count)
        self.published, self.mib, ending = 0, [], threading.Event()
        publishing = threading.Thread(target=self.publish, args=(rate, ending))
        try:
            while fan_out.total("carillon_fanout_sessions_total") < self.count:
                time.sleep(0.2)
            publishing.start()
            found = []
            measuring = threading.Thread(target=lambda: found.append(bench.publish(self.count, fan_out, "--rate", rate, "--drain", 10)))
            measuring.start()
            # A process that this thread starts lives as long as the thread does.
            self.hurt(flags) if hurts else self.watch()
            measuring.join()
            (measured,) = found
            ending.set()
            publishing.join()
            measured.update(self.end(hurts, measured), mib=self.mib, published=self.published)
            return measured
        finally:
            ending.set()
            fleet.kill()
            fleet.wait()
            self.transform.end()
            fan_out.end()

    def end(self, hurts, measured):
        """All that was published has come to its end, and an audit finds nothing amiss."""
        if not hurts:
            check(measured, self.count)
        audit = self.bench.audit()
        return {"extensions": self.transform.labels("carillon_transform_extensions_total"), "violations": audit["violations"],
                "outcomes": {name: count for name, count in audit["outcomes"].items() if count}}

    def file(self, breaker):
        bench = self.bench
        ask = {"name": "ask", "use": "child", "program": sys.executable, "arguments": [bench.path("child.py")], "budget": 2_000,
               "concurrency": 2_000, "breaker": breaker}
        with open(bench.path("strain.json"), "w") as file:
            json.dump({"applications": {APPLICATION: [ask]}}, file)
        return bench.path("strain.json")

    def publish(self, rate, ending):
        """Mutable requests for the second half of the devices, at a rate."""
        bench, arguments = self.bench, self.bench.arguments
        payload = json.dumps({"aps": {"alert": {"title": "Order", "body": "x" * 200}, "mutable-content": 1}})
        publisher = subprocess.Popen(
            [arguments.carillon, "publish", "--kafka", arguments.kafka, "--topic-prefix", bench.prefix, "--app", APPLICATION, "--lines", "-"],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, preexec_fn=ends_with_parent)
        start = time.time()
        while not ending.is_set():
            due = int((time.time() - start) * rate) + 1
            for number in range(self.published, due):
                publisher.stdin.write('{"target":"device:%s%d","payload":%s}\n' % (ZEROS, FIRST + self.count + number % self.count, payload))
            publisher.stdin.flush()
            self.published = due
            time.sleep(0.01)
        publisher.stdin.close()
        publisher.wait()

    def watch(self):
        """Its memory at the beginning, in the middle and at the end."""
        for _ in range(3):
            with open(f"/proc/{self.transform.pid}/statm") as file:
                self.mib.append(round(int(file.read().split()[1]) * 4096 / (1 << 20)))
            time.sleep(self.bench.arguments.duration / 2)

    def hurt(self, flags):
        """The worker is killed and started again; then Redis stands still for three seconds."""
        part = self.bench.arguments.duration / 4
        time.sleep(part)
        self.transform.end(signal.SIGKILL)
        self.transform = self.bench.transform(None, *flags)
        time.sleep(part)
        os.kill(self.bench.redis.pid, signal.SIGSTOP)
        time.sleep(3)
        os.kill(self.bench.redis.pid, signal.SIGCONT)
