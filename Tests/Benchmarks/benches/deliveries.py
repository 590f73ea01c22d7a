"""Deliveries to connected devices that acknowledge each, beside limitsrv.c: the fan-out stage alone, and the whole way from Kafka."""
import os

from .bench import PARTITIONS, log, result
from .topics import Produced
from .transform import OUTCOMES, PAYLOAD

# Deliveries outstanding where the publisher goes as fast as the devices take them.
WINDOW = 4096


def push(bench, binary, load, duration):
    """Both stages, the fan-out worker alone on its core; what wsbench measures of it."""
    arguments = bench.arguments
    fan_out = bench.fan_out(binary, pin=bench.cores.server)
    transform = bench.transform(binary, pin=bench.cores.others)
    memory = os.path.join("/dev/shm", f"carillon-bench-{os.getpid()}")
    produced = Produced(arguments.kafka, [bench.prefix + topic for topic in OUTCOMES], PARTITIONS)
    try:
        publish = [bench.path("kpub"), arguments.kafka, bench.prefix + "requests", PARTITIONS, "run", memory, arguments.connections, "--mode",
                   "carillon", "--size", PAYLOAD, *load]
        others = {"transform": transform.pid, "redis": bench.redis.pid, "kafka": bench.kafka_pid}
        measured = bench.tool(
            "wsbench", "-n", arguments.connections, "-p", fan_out.device_port, *bench.hello(), "--ack", '{"type":"ack","deliveries":[$V]}',
            "--ack-field", "delivery", "--pid", fan_out.pid, "--xpid", ",".join(f"{name}:{pid}" for name, pid in others.items() if pid),
            "--shm", memory, "--exec-pub", " ".join(map(str, publish)), "--duration", duration, "--cpu", bench.cores.others)
    finally:
        fan_out.end()
        transform.end()
        if os.path.exists(memory):
            os.remove(memory)
    check(measured, arguments.connections)
    found, sizes = produced.take()
    arrived = measured["total_msgs"] - measured["dups"]
    measured["records_per_msg"] = sum(found.values()) / arrived
    measured["bytes_per_msg"] = (sum(sizes.values()) - PAYLOAD * found[bench.prefix + "deliveries"]) / arrived
    measured["all_us_per_msg"] = measured["srv_cpu_us_per_msg"] + sum(measured.get(f"x_{name}_us_per_msg", 0) for name in others)
    return measured


def check(measured, connections):
    """Every message that was published has arrived, and in order."""
    if measured["ready"] != connections:
        raise SystemExit(f"only {measured['ready']} of {connections} connections were ready")
    for name in ("gaps", "pub_errors", "pub_lost"):
        if measured[name]:
            raise SystemExit(f"wsbench tells of {measured[name]} {name}: {measured}")
    # What is on the way when the run ends is none of it.
    arrived = measured["total_msgs"] - measured["dups"]
    if arrived + WINDOW < measured["expected"]:
        raise SystemExit(f"{arrived} of {measured['expected']:.0f} messages arrived")


def beside_limit(bench, name, our_load, limit_load):
    arguments, rounds = bench.arguments, []
    bench.begin(name)
    for number in range(arguments.rounds):
        ours = push(bench, None, our_load, arguments.duration)
        limit = bench.limit(arguments.connections, limit_load, arguments.duration)
        check(limit, arguments.connections)
        rounds.append({"limit": limit, "carillon": ours})
        log(f"round {number + 1}: limit {limit['srv_cpu_us_per_msg']:.2f} µs, fan-out {ours['srv_cpu_us_per_msg']:.2f} µs,"
            f" all {ours['all_us_per_msg']:.2f} µs a message at {ours['msgs_per_s']:.0f}/s")
    bench.redis.stop()
    return rounds


def repeats(item):
    """A notification may come by its delivery and by a page of the mailbox; a device drops one of them, and wsbench does not."""
    return 100 * item["carillon"]["dups"] / item["carillon"]["total_msgs"]


def ratio(name):
    return lambda item: item["carillon"][name] / item["limit"]["srv_cpu_us_per_msg"]


def fan_out(bench):
    rate = bench.arguments.rate
    rounds = beside_limit(bench, "fan-out", ["--rate", rate], ["--pub-rate", rate])
    return result("fan-out", f"fan-out stage at {rate}/s, acknowledged", rounds, [
        ("CPU of the fan-out worker ÷ limit", "<= 1.1", ratio("srv_cpu_us_per_msg")),
        ("CPU of the fan-out worker, µs a delivery", None, lambda item: item["carillon"]["srv_cpu_us_per_msg"]),
    ])


def full_rate(bench):
    rounds = beside_limit(bench, "full-rate", ["--window", WINDOW], ["--pub-window", WINDOW])
    parts = [("fan-out", "srv_cpu_us_per_msg")] + [(name, f"x_{name}_us_per_msg") for name in ("transform", "redis", "kafka")]
    return result("full-rate", f"all the way at full rate, {WINDOW} deliveries outstanding, acknowledged", rounds, [
        ("CPU of the fan-out worker ÷ limit", "<= 1.8", ratio("srv_cpu_us_per_msg")),
        ("CPU of all servers ÷ limit", "<= 5.5", ratio("all_us_per_msg")),
        *[(f"CPU of {name}, µs a delivery", None, lambda item, key=key: item["carillon"].get(key, 0)) for name, key in parts],
        # In the first round with what tells of the devices' registrations.
        ("records produced for a delivery", "<= 2.1", lambda item: item["carillon"]["records_per_msg"]),
        ("bytes produced for a delivery, payloads apart", "<= 700", lambda item: item["carillon"]["bytes_per_msg"]),
        ("deliveries/s", None, lambda item: item["carillon"]["msgs_per_s"]),
        ("deliveries that came twice, percent", None, repeats),
    ])


def paced(bench):
    """At a rate at which batches are small: beside another build when there is one."""
    arguments, rounds = bench.arguments, []
    load = ["--rate", arguments.paced_rate]
    bench.begin("paced")
    for number in range(arguments.rounds):
        item = {"carillon": push(bench, None, load, arguments.duration)}
        if arguments.beside:
            item["beside"] = push(bench, arguments.beside, load, arguments.duration)
        rounds.append(item)
        log(f"round {number + 1}: " + ", ".join(
            f"{name} {one['all_us_per_msg']:.0f} µs a message, median {one['lat_us']['p50'] / 1000:.1f} ms" for name, one in item.items()))
    bench.redis.stop()
    measures = [
        ("from produce to the frame, median in ms", "<= 30", lambda item: item["carillon"]["lat_us"]["p50"] / 1000),
        ("from produce to the frame, 99th percentile in ms", None, lambda item: item["carillon"]["lat_us"]["p99"] / 1000),
        ("deliveries that came twice, percent", None, repeats),
    ]
    parts = [("all servers", "all_us_per_msg"), ("fan-out", "srv_cpu_us_per_msg")]
    parts += [(name, f"x_{name}_us_per_msg") for name in ("transform", "redis", "kafka")]
    for name, key in parts:
        measures.append((f"CPU of {name}, µs a delivery", None, lambda item, key=key: item["carillon"].get(key, 0)))
    if arguments.beside:
        measures.insert(0, (
            "CPU of all servers ÷ the other build", "<= 0.5", lambda item: item["carillon"]["all_us_per_msg"] / item["beside"]["all_us_per_msg"]))
        measures.append(("the other build's median in ms", None, lambda item: item["beside"]["lat_us"]["p50"] / 1000))
    return result("paced", f"all the way at {arguments.paced_rate}/s, acknowledged", rounds, measures)
