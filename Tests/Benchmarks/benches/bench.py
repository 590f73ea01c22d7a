"""One run of the benchmarks: where everything is, and what each of them needs."""
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from .processes import Carillon, Cores, Redis, ends_with_parent, listener, wait_for

ZEROS = "0" * 59
FIRST = 10000
PARTITIONS = 8
# The bytes of a request.
PAYLOAD = 300
FLOORS = os.path.join(os.path.dirname(__file__), "..", "floors")
KAFKA = os.path.join(os.path.dirname(__file__), "..", "..", "..", "Deploy", "kafka")


def log(*words):
    print(*words, file=sys.stderr, flush=True)


class Bench:
    def __init__(self, arguments):
        self.arguments = arguments
        self.folder = tempfile.mkdtemp(prefix="carillon-bench-")
        self.starts_kafka = not arguments.kafka
        if self.starts_kafka:
            arguments.kafka = self.start_kafka()
        self.prefix = None
        self.redis = Redis(self.folder)
        self.cores = Cores()
        self.kafka_pid = listener(int(arguments.kafka.split(",")[0].rsplit(":", 1)[1]))
        self.limit_port = 19000  # below the ports that connections are given
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

    def start_kafka(self):
        """A broker of this run's own, on this machine."""
        words = [KAFKA, "start", self.path("kafka"), "--heap", "1g"]
        environment = dict(os.environ, **({"TESTS_KAFKA_FOLDER": self.arguments.kafka_folder} if self.arguments.kafka_folder else {}))
        done = subprocess.run(words, stdout=subprocess.PIPE, text=True, env=environment)
        if done.returncode:
            raise SystemExit("no Kafka: --kafka HOST:PORT names one that runs, --kafka-folder FOLDER an unpacked one")
        log("half a minute for Kafka's own compiler, which takes half a core until then")
        time.sleep(30)
        return done.stdout.strip().splitlines()[-1]

    def close(self):
        self.redis.stop()
        if self.starts_kafka:
            subprocess.run([KAFKA, "stop", self.path("kafka")], stdout=subprocess.DEVNULL)
        shutil.rmtree(self.folder, ignore_errors=True)

    # The C programs

    def compile(self):
        for name, flags in (("floor", ["-lrdkafka", "-lhiredis"]), ("limit", []), ("fleet", ["-lrdkafka", "-lpthread"]), ("accept", ["-lrdkafka"]),
                            ("backends", [])):
            subprocess.run(["cc", "-O2", "-Wall", "-o", self.path(name), os.path.join(FLOORS, name + ".c"), *flags], check=True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def tool(self, name, *words, pin=None):
        """Runs one of them to its end: the JSON of its last line."""
        pinned = ["taskset", "-c", pin] if pin else []
        done = subprocess.run([*pinned, self.path(name), *map(str, words)], capture_output=True, text=True)
        if done.returncode or not done.stdout.strip():
            raise SystemExit(f"{name} {' '.join(map(str, words))}: {done.stderr.strip() or 'no answer'}")
        return json.loads(done.stdout.strip().splitlines()[-1])

    # The cluster

    def begin(self, name, partitions=PARTITIONS):
        """Topics of a benchmark's own, and a Redis that knows nothing."""
        self.prefix = f"bench{os.getpid()}.{name}."
        self.redis.empty()
        for prefix in (self.prefix, self.prefix + "floor."):
            subprocess.run(
                [self.arguments.carillon, "topics", "create", "--kafka", self.arguments.kafka, "--topic-prefix", prefix, "--partitions",
                 str(partitions)], check=True, stdout=subprocess.DEVNULL)

    def place(self):
        return ["--kafka", self.arguments.kafka, "--redis", self.redis.address, "--topic-prefix", self.prefix]

    def transform(self, binary=None, *words, **more):
        return Carillon(binary or self.arguments.carillon, "transform", *self.place(), *words, **more)

    def fan_out(self, binary=None, **more):
        # The storm of the fleet's hellos is not what is measured.
        return Carillon(
            binary or self.arguments.carillon, "fan-out", *self.place(), "--listen", "127.0.0.1:0", "--reconnects-per-second", "100000", **more)

    def audit(self):
        """What an audit says of all that was published, after ten seconds in which it can come to its end."""
        time.sleep(10)
        done = subprocess.run(
            [self.arguments.carillon, "audit", "--kafka", self.arguments.kafka, "--topic-prefix", self.prefix, "--grace", "1s", "--json"],
            capture_output=True, text=True)
        if not done.stdout.strip():
            raise SystemExit(f"the audit said: {done.stderr}")
        return json.loads(done.stdout.strip().splitlines()[-1])

    # The fleet

    def fleet(self, count, fan_out, first=FIRST):
        """Devices that stay connected until they are killed; they acknowledge all that comes, in any order."""
        return subprocess.Popen(
            [self.path("fleet"), str(count), fan_out.device_port, "--first", str(first), "--unordered", "yes", "--hold", "3600"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=ends_with_parent)

    def publish(self, count, fan_out, *words, pin=None):
        """Devices that get requests for a round, and what was measured of it."""
        arguments = self.arguments
        return self.tool(
            "fleet", count, fan_out.device_port, "--kafka", f"{arguments.kafka}/{self.prefix}requests", "--size", PAYLOAD, "--duration",
            arguments.duration, *words, pin=pin)

    def limit(self, connections, load):
        """What the plain server takes for the same messages."""
        port = self.limit_port
        self.limit_port += 2
        server = subprocess.Popen(
            ["taskset", "-c", self.cores.server, self.path("limit"), str(port), str(port + 1)], preexec_fn=ends_with_parent,
            stdout=subprocess.DEVNULL)
        try:
            wait_for(port)
            wait_for(port + 1)
            return self.tool(
                "fleet", connections, port, "--plain", "yes", "--raw", port + 1, "--size", PAYLOAD, "--server", server.pid, "--duration",
                self.arguments.duration, *load, pin=self.cores.others)
        finally:
            server.kill()
            server.wait()


def median(values):
    return round(statistics.median(values), 2)


def result(name, title, rounds, measures):
    """What a benchmark answers.

    `measures`: (what, goal or None, its value of a round, or the value itself).
    """
    return {
        "benchmark": name, "title": title, "rounds": rounds,
        "measures": [
            {"what": what, "goal": goal, "value": median([value(item) for item in rounds]) if callable(value) else value}
            for what, goal, value in measures
        ],
    }
