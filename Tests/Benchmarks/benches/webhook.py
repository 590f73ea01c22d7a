"""What asking a web service costs the transform worker, beside a plain libcurl program that posts the same."""
import base64
import json
import os
import subprocess
import sys
import time

from .bench import FIRST, ZEROS, log, result
from .extensions import APPLICATION
from .processes import cpu, ends_with_parent
from .transform import PAYLOAD, TransformStage

# Calls in flight at both sides.
CONCURRENCY = 256


class Webhook:
    def __init__(self, bench):
        self.bench = bench
        self.stage = TransformStage(bench)
        # One for all runs: each goes on where the one before has ended.
        self.group = self.stage.group()

    def run(self):
        bench, arguments = self.bench, self.bench.arguments
        source = os.path.join(os.path.dirname(__file__), "posts.c")
        subprocess.run(["cc", "-O2", "-o", bench.path("posts"), source, "-lcurl"], check=True)
        service = subprocess.Popen(
            ["taskset", "-c", bench.cores.others, sys.executable, os.path.join(os.path.dirname(__file__), "service.py")], stdout=subprocess.PIPE,
            text=True, preexec_fn=ends_with_parent)
        url = "http://127.0.0.1:%d/ask" % int(service.stdout.readline())
        rate, rounds = arguments.webhook_rate, []
        bench.begin("webhook")
        log(f"registering {arguments.devices} devices")
        self.stage.register(arguments.devices, keeps_sessions=False)
        bench.redis.restore("registered.rdb")
        file = self.file(url)
        for number in range(arguments.rounds):
            item = {}
            for name, flags in [("without", []), ("with", ["--extensions", file])][::-1 if number % 2 else 1]:
                item[name] = self.paced(rate, arguments.duration, flags)
            item["curl"] = bench.tool("posts", url, rate, arguments.duration, CONCURRENCY, self.body_bytes())
            if item["curl"]["failed"]:
                raise SystemExit(f"{item['curl']['failed']} posts of the plain program failed")
            if item["with"]["extensions"] != {"modified": rate * arguments.duration}:
                raise SystemExit(f"extensions told of {item['with']['extensions']}")
            rounds.append(item)
            log(f"round {number + 1}: without {item['without']['cpu_us']:.1f} µs, with {item['with']['cpu_us']:.1f} µs,"
                f" libcurl {item['curl']['cpu_us']:.1f} µs")
        service.kill()
        bench.redis.stop()

        def extra(item):
            return item["with"]["cpu_us"] - item["without"]["cpu_us"]

        return result("webhook", f"webhook at {rate}/s, payloads of {PAYLOAD} bytes, devices registered, not connected", rounds, [
            ("CPU of webhook ÷ plain libcurl program", None, lambda item: extra(item) / item["curl"]["cpu_us"]),
            ("CPU of webhook, µs a request", None, extra),
            ("CPU of the plain program, µs a post", None, lambda item: item["curl"]["cpu_us"]),
            ("CPU of the process without it, µs a request", None, lambda item: item["without"]["cpu_us"]),
            ("requests/s judged with it", None, lambda item: item["with"]["per_second"]),
        ])

    def file(self, url):
        bench = self.bench
        with open(bench.path("keys.json"), "w") as file:
            json.dump({"keys": [{"id": "one", "key": base64.urlsafe_b64encode(os.urandom(32)).decode().rstrip("=")}]}, file)
        ask = {"name": "ask", "use": "webhook", "url": url, "keys": "keys.json", "plaintext": True, "networks": ["127.0.0.0/8"],
               "concurrency": CONCURRENCY}
        with open(bench.path("webhook.json"), "w") as file:
            json.dump({"applications": {APPLICATION: [ask]}}, file)
        return bench.path("webhook.json")

    def payload(self):
        payload = {"aps": {"alert": {"title": "Order", "body": ""}, "mutable-content": 1}}
        payload["aps"]["alert"]["body"] = "x" * (PAYLOAD - len(json.dumps(payload, separators=(",", ":"))))
        return payload

    def body_bytes(self):
        """What the worker posts of such a payload."""
        message = {"id": ZEROS[:36], "identifier": ZEROS[:36], "application": APPLICATION, "extension": "ask", "expiration": 1700000000,
                   "payload": self.payload()}
        return len(json.dumps(message, separators=(",", ":")))

    def paced(self, rate, seconds, flags):
        """A worker that judges requests as they come, at this rate."""
        bench, arguments = self.bench, self.bench.arguments
        count, payload = rate * seconds, json.dumps(self.payload())
        worker = bench.transform(None, "--group", self.group, *flags, pin=bench.cores.server)
        publisher = subprocess.Popen(
            ["taskset", "-c", bench.cores.others, arguments.carillon, "publish", "--kafka", arguments.kafka, "--topic-prefix", bench.prefix,
             "--app", APPLICATION, "--lines", "-"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, preexec_fn=ends_with_parent)
        try:
            before = worker.total("carillon_transform_verdicts_total")
            spent, start, sent = cpu(worker.pid), time.time(), 0
            while sent < count:
                due = min(count, int((time.time() - start) * rate) + 1)
                for number in range(sent, due):
                    publisher.stdin.write('{"target":"device:%s%d","payload":%s}\n' % (ZEROS, FIRST + number % arguments.devices, payload))
                publisher.stdin.flush()
                sent = due
                time.sleep(0.005)
            publisher.stdin.close()
            end = time.time() + 60
            while worker.total("carillon_transform_verdicts_total") - before < count:
                if time.time() > end:
                    raise SystemExit(f"not all of {count} requests were judged")
                time.sleep(0.05)
            return {
                "cpu_us": round((cpu(worker.pid) - spent) / count, 2), "per_second": round(count / (time.time() - start)),
                "extensions": worker.labels("carillon_transform_extensions_total")}
        finally:
            publisher.wait()
            worker.end()
