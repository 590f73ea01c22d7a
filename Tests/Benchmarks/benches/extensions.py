"""What service extensions cost in the transform stage: payloads of 300 bytes, devices registered and not connected, one lane."""
import base64
import json
import os
import statistics
import subprocess

from .bench import FIRST, ZEROS, log, result
from .transform import PAYLOAD, TransformStage

APPLICATION = "com.example.shop"
KEY_ID = "2026-11"
PLAINTEXT = 97


class Extensions:
    def __init__(self, bench):
        self.bench = bench
        self.key = os.urandom(16)

    def run(self):
        """The variants of a round, each on a topic filled with its kind of payload. The next round has them the other way round."""
        bench, arguments = self.bench, self.bench.arguments
        copying = self.file("set-and-copy", {
            "name": "mark", "use": "set-and-copy", "prefix": {"/aps/alert/title": "[modified] "}, "copy": {"/aps/thread-id": "/order"}})
        with open(bench.path("keys.json"), "w") as file:
            json.dump({"keys": [{"id": KEY_ID, "key": base64.urlsafe_b64encode(self.key).decode().rstrip("=")}]}, file)
        decrypting = self.file("decrypt", {"name": "open", "use": "decrypt", "keys": "keys.json"})
        variants = [
            # name, kind of payload, the extensions' file
            ("plain", "plain", copying), ("mutable", "mutable", copying), ("sealed", "sealed", None), ("decrypt", "sealed", decrypting),
        ]
        stages = {kind: self.prepare(kind) for kind in ("plain", "mutable", "sealed")}
        rounds = []
        for number in range(arguments.rounds):
            item = {}
            for name, kind, file in variants[::-1] if number % 2 else variants:
                item[name] = self.measure(name, kind, file, stages[kind])
            item["aead_us"] = self.aead()
            rounds.append(item)
            log(f"round {number + 1}: " + ", ".join(f"{name} {item[name]['records_per_second']}/s" for name, *_ in variants))
        bench.redis.stop()

        def cpu(name, without):
            return lambda item: item[name]["process_cpu_us"] - item[without]["process_cpu_us"]

        return result("extensions", f"service extensions, payloads of {PAYLOAD} bytes, devices registered, not connected", rounds, [
            ("records/s, set-and-copy ÷ not mutable", ">= 0.7",
             lambda item: item["mutable"]["records_per_second"] / item["plain"]["records_per_second"]),
            ("CPU of the process, µs a request, not mutable", None, lambda item: item["plain"]["process_cpu_us"]),
            ("CPU of set-and-copy, µs a request", None, cpu("mutable", "plain")),
            ("CPU of decrypt, µs a request", None, cpu("decrypt", "sealed")),
            (f"AEAD alone, µs for {PLAINTEXT} bytes (openssl speed)", None, statistics.median(item["aead_us"] for item in rounds)),
            ("CPU of decrypt ÷ AEAD alone", None, lambda item: cpu("decrypt", "sealed")(item) / item["aead_us"]),
        ])

    def file(self, name, extension):
        path = self.bench.path(name + ".json")
        with open(path, "w") as file:
            json.dump({"applications": {APPLICATION: [extension]}}, file)
        return path

    def measure(self, name, kind, file, stage):
        bench, count = self.bench, self.bench.arguments.records
        bench.prefix = stage.prefix
        bench.redis.restore(kind + ".rdb")
        measured = stage.ours(*(["--extensions", file] if file else []))
        passed = measured["extensions"]
        wanted = {"modified": count} if name in ("mutable", "decrypt") else {}
        if passed != wanted:
            raise SystemExit(f"{name}: extensions told of {passed}, not of {wanted}")
        return measured

    # What is measured

    def prepare(self, kind):
        """Topics of this kind's own with its requests, and a Redis that knows the devices."""
        bench, arguments = self.bench, self.bench.arguments
        stage = TransformStage(bench)
        bench.begin("extensions-" + kind)
        stage.prefix = bench.prefix
        log(f"{kind}: registering {arguments.devices} devices")
        stage.register(arguments.devices, keeps_sessions=False)
        os.rename(bench.path("registered.rdb"), bench.path(kind + ".rdb"))
        log(f"{kind}: filling the requests topic with {arguments.records} records")
        lines, payload = bench.path("requests.jsonl"), self.payload(kind)
        with open(lines, "w") as file:
            for number in range(arguments.records):
                file.write('{"target":"device:%s%d","payload":%s}\n' % (ZEROS, FIRST + number % arguments.devices, payload()))
        subprocess.run(
            [arguments.carillon, "publish", "--kafka", arguments.kafka, "--topic-prefix", bench.prefix, "--app", APPLICATION, "--lines", lines],
            check=True, stdout=subprocess.DEVNULL)
        os.remove(lines)
        return stage

    def payload(self, kind):
        """What gives payloads of a kind, each of the same length."""
        aps = {"alert": {"title": "Order", "body": ""}, **({} if kind == "plain" else {"mutable-content": 1})}

        def text(more):
            room = PAYLOAD - len(json.dumps({"aps": aps, **more}, separators=(",", ":")))
            if room < 0:
                raise SystemExit(f"a payload of this kind has {-room} bytes too much")
            filled = {**aps, "alert": {**aps["alert"], "body": "x" * room}}
            return json.dumps({"aps": filled, **more}, separators=(",", ":"))

        if kind != "sealed":
            always = text({"order": "7"})
            return lambda: always
        try:
            import http_ece
        except ImportError:
            raise SystemExit("'extensions' needs a Python with Deploy/test-requirements.txt") from None

        def sealed():
            content = http_ece.encrypt(b"y" * PLAINTEXT, key=self.key, keyid=KEY_ID, version="aes128gcm")
            return text({"encrypted-content": base64.b64encode(content).decode()})

        # A few of them, for they take longer to make than all else.
        some = [sealed() for _ in range(100)]
        turns = iter(range(1 << 62))
        return lambda: some[next(turns) % len(some)]

    def aead(self):
        """Microseconds of CPU for the opening of as many bytes, the key being set up once."""
        done = subprocess.run(
            ["openssl", "speed", "-mr", "-seconds", "1", "-bytes", str(PLAINTEXT), "-decrypt", "-aead", "-evp", "aes-128-gcm"],
            capture_output=True, text=True, check=True)
        (line,) = [line for line in (done.stdout + done.stderr).splitlines() if line.startswith("+F:")]
        return round(PLAINTEXT * 1e6 / float(line.rsplit(":", 1)[1]), 3)
