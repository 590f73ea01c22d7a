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


def log(*words):
    print(*words, file=sys.stderr, flush=True)


class Bench:
    def __init__(self, arguments):
        self.arguments = arguments
        self.folder = tempfile.mkdtemp(prefix="carillon-bench-")
        self.prefix = None
        self.redis = Redis(self.folder)
        self.cores = Cores()
        self.kafka_pid = listener(int(arguments.kafka.split(",")[0].rsplit(":", 1)[1]))
        self.limit_port = 19000  # below the ports that connections are given
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

    def close(self):
        self.redis.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    # The C programs

    def compile(self):
        for name, flags in (("floor", ["-lrdkafka", "-lhiredis"]), ("limitsrv", []), ("wsbench", []), ("kpub", ["-lrdkafka"])):
            source = os.path.join(self.arguments.floor_sources, name + ".c")
            subprocess.run(["cc", "-O2", "-w", "-o", self.path(name), source, *flags], check=True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def tool(self, name, *words, **more):
        """Runs one of them to its end: the JSON of its last line."""
        done = subprocess.run([self.path(name), *map(str, words)], capture_output=True, text=True, **more)
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

    def hello(self):
        return ["--connect-timeout", 60, "--path", "/v1/device", "--subproto", "carillon.v1", "--base", FIRST, "--ready-match", "welcome", "--first",
                '{"type":"hello","device":"%s%%d","application":"com.example.shop","user":"u%%d"}' % ZEROS]

    def fleet(self, count, port):
        """Devices that stay connected until they are killed."""
        return subprocess.Popen(
            [self.path("wsbench"), "-n", str(count), "-p", port, *map(str, self.hello()), "--hold", "900"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=ends_with_parent)

    def limit(self, connections, load, duration):
        """What the plain server takes for the same messages."""
        port = self.limit_port
        self.limit_port += 2
        server = subprocess.Popen(
            ["taskset", "-c", self.cores.server, self.path("limitsrv"), str(port), str(port + 1)], preexec_fn=ends_with_parent,
            stdout=subprocess.DEVNULL)
        try:
            wait_for(port)
            wait_for(port + 1)
            return self.tool(
                "wsbench", "-n", connections, "-p", port, "--path", "/sub/%d", "--ack", '{"type":"ack","id":$V}', "--pub", "raw", "--pub-port",
                port + 1, "--pub-fanout", 1, "--pub-channels", connections, *load, "--pid", server.pid, "--duration", duration, "--cpu",
                self.cores.others)
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
