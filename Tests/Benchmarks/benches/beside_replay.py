"""Live requests while a replay of all that was published before runs as it does by default; then its rest without bounds, interrupted three
times, once by a kill. Each record comes once more, and an audit finds nothing amiss."""
import json
import signal
import subprocess
import time

from .bench import log, result
from .deliveries import WINDOW, check
from .processes import ends_with_parent
from .replay import offsets, tool

UNBOUNDED = ["--records-per-second", "0"]


class BesideReplay:
    def __init__(self, bench):
        self.bench = bench
        self.count = bench.arguments.connections
        self.state = bench.path("beside-replay")

    def run(self):
        bench, arguments, rounds = self.bench, self.bench.arguments, []
        bench.begin("beside-replay")
        self.group = ["--group", bench.prefix + "transform"]
        self.fan_out, self.transform = bench.fan_out(), bench.transform(None, *self.group)
        try:
            (ranges, count), first = self.fill(), True
            for number in range(arguments.rounds):
                item = {"without": self.live()}
                replay = self.begin(*([*ranges, "--state", self.state] if first else ["--resume", self.state]))
                item["with"] = self.live()
                item["written"] = self.interrupt(replay)
                first = False
                rounds.append(item)
                log(f"round {number + 1}: {self.text(item['without'])} without, {self.text(item['with'])} with; {item['written']} replayed")
            # Whatever lies behind it has nobody's latency to spare.
            for ending in (signal.SIGINT, signal.SIGKILL):
                replay, before = self.begin("--resume", self.state, *UNBOUNDED), self.saved()
                while self.saved() == before and replay.poll() is None:
                    time.sleep(0.05)
                self.interrupt(replay, ending)
            done = subprocess.run(self.words("--resume", self.state, *UNBOUNDED), capture_output=True, text=True)
            if done.returncode:
                raise SystemExit(f"replay ended with {done.returncode}: {done.stderr[-500:]}")
            written = json.loads(done.stdout)["written"]
            violations = bench.audit()["violations"]
        finally:
            self.transform.end()
            self.fan_out.end()

        def ratio(part):
            return lambda item: item["with"]["latency_us"][part] / item["without"]["latency_us"][part]

        return result("beside-replay", f"{arguments.paced_rate}/s live beside the replay of {count} requests", rounds, [
            ("live 99th percentile ÷ without", "<= 1.2", ratio("p99")), ("live median ÷ without", None, ratio("p50")),
            ("replayed, of what there was", "== 1", written / count), ("audit: violations", "<= 0", violations),
        ])

    def text(self, measured):
        return f"99th percentile {measured['latency_us']['p99'] / 1000:.1f} ms"

    def fill(self):
        """Devices take all of it before anything is replayed; answers where it lies, as flags, and how much it is."""
        ranges, count = offsets(self.bench)
        while count < self.bench.arguments.records:
            log(f"{count} of {self.bench.arguments.records} requests are published and delivered")
            self.live(["--window", WINDOW])
            ranges, count = offsets(self.bench)
        return ranges, count

    def live(self, load=None):
        """Devices get requests at a rate."""
        measured = self.bench.publish(self.count, self.fan_out, *(load or ["--rate", self.bench.arguments.paced_rate]))
        check(measured, self.count)
        return measured

    # The tool

    def words(self, *words):
        return tool(self.bench, *self.group, "--json", *words)

    def begin(self, *words):
        return subprocess.Popen(self.words(*words), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, preexec_fn=ends_with_parent)

    def saved(self):
        """How many records are written, as its file says."""
        try:
            with open(self.state) as file:
                return sum(each["counts"]["written"] for each in json.load(file)["partitions"])
        except (OSError, ValueError):
            return 0

    def interrupt(self, replay, ending=signal.SIGINT):
        """Ends it in its middle; answers how many records were written by then."""
        if replay.poll() is not None:
            raise SystemExit(f"replay has ended with {replay.returncode}: {replay.stderr.read()[-500:]}")
        replay.send_signal(ending)
        replay.wait()
        return self.saved()
