"""`carillon replay`, the workers stopped and its rate not bounded, beside a plain C program that consumes and produces the same."""
import json
import os
import re
import resource
import subprocess
import time

from .bench import PARTITIONS, log, result
from .transform import PAYLOAD


def replay(bench):
    arguments = bench.arguments
    source = os.path.join(os.path.dirname(__file__), "copies.c")
    subprocess.run(["cc", "-O2", "-o", bench.path("copies"), source, "-lrdkafka"], check=True)
    bench.begin("replay")
    log(f"filling the requests topic with {arguments.records} records")
    bench.tool("floor", "fill", arguments.kafka, bench.prefix + "requests", arguments.records, arguments.devices, PAYLOAD)
    ranges, count = offsets(bench)
    if count != arguments.records:
        raise SystemExit(f"the topic has {count} records")
    rounds = []
    for number in range(arguments.rounds):
        item = {}
        for name in ["plain", "carillon"][::-1 if number % 2 else 1]:
            item[name] = plain(bench, ranges) if name == "plain" else ours(bench, ranges)
        rounds.append(item)
        log(f"round {number + 1}: plain {item['plain']['records_per_second']:.0f}/s, carillon {item['carillon']['records_per_second']:.0f}/s")
    bench.redis.stop()
    return result("replay", f"replay of {arguments.records} requests with payloads of {PAYLOAD} bytes", rounds, [
        ("records/s ÷ plain", ">= 0.8", lambda item: item["carillon"]["records_per_second"] / item["plain"]["records_per_second"]),
        ("CPU of the process ÷ plain", None, lambda item: item["carillon"]["cpu_us"] / item["plain"]["cpu_us"]),
    ])


def offsets(bench):
    """All that the requests topic has now, as the flags say it, so that nothing is replayed that comes later; and how much that is."""
    consumer = subprocess.run(
        ["kcat", "-b", bench.arguments.kafka, "-Q"] + [word for number in range(PARTITIONS) for word in ("-t", f"{bench.prefix}requests:{number}:-1")],
        capture_output=True, text=True, check=True)
    ends = {int(number): int(end) for number, end in re.findall(r"\[(\d+)\] offset (\d+)", consumer.stdout)}
    return [word for number, end in ends.items() if end for word in ("--offsets", f"{number}:0-{end}")], sum(ends.values())


def tool(bench, *words):
    return [bench.arguments.carillon, "replay", "--kafka", bench.arguments.kafka, "--topic-prefix", bench.prefix, *words]


def plain(bench, ranges):
    # Into a topic of its own; it copies as many records of each partition as the other one.
    ends = [word.partition("-")[2] for word in ranges[1::2]]
    numbers = [word.partition(":")[0] for word in ranges[1::2]]
    return bench.tool("copies", bench.arguments.kafka, bench.prefix + "requests", bench.prefix + "floor.requests", *map(":".join, zip(numbers, ends)))


def ours(bench, ranges):
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.time()
    words = ["--records-per-second", "0", "--max-behind", "0", "--json", "--state", bench.path(f"replay-{start}")]
    done = subprocess.run(tool(bench, *words, *ranges), capture_output=True, text=True)
    seconds, after = time.time() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(f"replay ended with {done.returncode}: {done.stderr[-500:]}")
    written = json.loads(done.stdout)["written"]
    if written != bench.arguments.records:
        raise SystemExit(f"replay wrote {written} of {bench.arguments.records} records")
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"records": written, "records_per_second": round(written / seconds), "cpu_us": round(spent * 1e6 / written, 2)}
