"""The figures that say whether a change costs something, as a row for the table in the README of this folder."""
import os
import subprocess

from . import deliveries, idle
from .transform import TransformStage

HERE = os.path.dirname(__file__)
TABLE = os.path.join(HERE, "..", "README.md")
# The columns of the table after the commit, and how the benchmarks call what they show.
COLUMNS = {
    "records/s ÷ floor": "records/s ÷ floor", "process CPU ÷ floor": "CPU of the process ÷ floor", "Redis CPU ÷ floor": "CPU of Redis ÷ floor",
    "all servers ÷ limit": "CPU of all servers ÷ limit", "bytes a connection": "bytes of the worker for a connection",
    "bytes of Redis a device": "bytes of Redis for a device",
}


def short(bench):
    """Runs what the table needs; its answer has the table with a row of this run."""
    stage = TransformStage(bench)
    results = [stage.run(is_connected=False), {"measures": [memory_of_a_device(bench)]}, deliveries.full_rate(bench), idle.memory(bench)]
    found = {measure["what"]: measure for part in results for measure in part["measures"]}
    measures = [found[name] for name in COLUMNS.values()]
    rows = [["commit", *COLUMNS], ["---", *("---:" for _ in COLUMNS)], ["goal", *(measure["goal"] for measure in measures)], *written(),
            [commit(), *(number(measure["value"]) for measure in measures)]]
    return {"benchmark": "short", "title": "the table of README.md, and a row of this run", "rounds": results[0]["rounds"], "measures": measures,
            "table": ["| " + " | ".join(row) + " |" for row in rows]}


def memory_of_a_device(bench):
    """What Redis takes for a device that is registered and away, with its part of the markers."""
    bench.redis.empty()
    empty = bench.redis.memory()
    bench.redis.restore("registered.rdb")
    value = (bench.redis.memory() - empty) / bench.arguments.devices
    bench.redis.stop()
    return {"what": "bytes of Redis for a device", "goal": "<= 450", "value": value}


def written():
    """The rows that the README has."""
    with open(TABLE) as file:
        rows = [[cell.strip() for cell in text.strip().strip("|").split("|")] for text in file if text.startswith("|")]
    return [row for row in rows if len(row) == len(COLUMNS) + 1 and row[0] not in ("commit", "---", "goal")]


def number(value):
    return f"{value:.0f}" if value >= 100 else f"{value:.2f}"


def commit():
    """The commit of the clone. Whether the build is of it is for who runs this to know."""
    done = subprocess.run(["git", "-C", HERE, "describe", "--always", "--dirty", "--abbrev=8"], capture_output=True, text=True)
    return done.stdout.strip() or "unknown"
