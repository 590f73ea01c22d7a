"""The transform stage with Kafka far away, beside itself with Kafka at hand: whether its limits hold it back."""
import os
import subprocess
import sys
import time

from .bench import log, result
from .processes import ends_with_parent, free_port, wait_for
from .transform import TransformStage

# What the design promises: so many records a second with so long a way to Kafka and back.
RECORDS_PER_SECOND, MILLISECONDS = 100_000, 200


class Distant:
    def __init__(self, bench):
        self.bench, self.stage = bench, TransformStage(bench)

    def run(self):
        """A machine that judges half as many gets a way that is twice as long: as many records are under way."""
        bench, rounds = self.bench, []
        here = os.path.dirname(__file__)
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", bench.path("detour.so"), os.path.join(here, "detour.c"), "-ldl"], check=True)
        self.stage.prepare()
        for number in range(bench.arguments.rounds):
            near = self.relayed(0)
            away = MILLISECONDS * max(1.0, RECORDS_PER_SECOND / near)
            far = self.relayed(away)
            rounds.append({"near": near, "far": far, "milliseconds": away, "under_way": far * away / 1000})
            log(f"round {number + 1}: at hand {near:.0f}/s, {away:.0f} ms away and back {far:.0f}/s")
        bench.redis.stop()
        return result(
            "distant", "transform stage, Kafka far away", rounds,
            [("records/s ÷ those with Kafka at hand", ">= 0.9", lambda item: item["far"] / item["near"]),
             ("records/s with Kafka at hand", None, lambda item: item["near"]),
             ("milliseconds to Kafka and back", None, lambda item: item["milliseconds"]),
             ("records under way between Kafka and the worker", None, lambda item: item["under_way"])])

    def relayed(self, milliseconds):
        """The rate through the same program, for what that costs is not what is asked."""
        kafka, port = self.bench.arguments.kafka.rsplit(":", 1)[1], free_port()
        between = subprocess.Popen(
            [sys.executable, os.path.join(os.path.dirname(__file__), "distance.py"), str(port), kafka, str(milliseconds / 2)],
            preexec_fn=ends_with_parent)
        try:
            wait_for(port)
            return self.rate({"LD_PRELOAD": self.bench.path("detour.so"), "DETOUR": f"{kafka}:{port}"})
        finally:
            between.kill()
            between.wait()

    def rate(self, environment):
        """Records a second, from the first fifth of them to the last one: how long the first one takes is not what is asked."""
        bench, count = self.bench, self.bench.arguments.records
        bench.redis.restore("registered.rdb")
        worker = bench.transform(None, "--group", self.stage.group(), environment=environment)
        marks, end = {}, time.time() + 600
        try:
            while (judged := worker.total("carillon_transform_verdicts_total")) < count:
                if judged >= count / 5:
                    marks.setdefault("start", (time.time(), judged))
                if time.time() > end:
                    raise SystemExit(f"not all of {count} records were judged")
                time.sleep(0.02)
            marks["end"] = time.time(), judged
        finally:
            worker.end()
        (start, before), (now, after) = marks["start"], marks["end"]
        return (after - before) / (now - start)
