"""Deliveries to connected devices that acknowledge each, beside limit.c: the fan-out stage alone, and the whole way from Kafka."""
from .bench import PARTITIONS, PAYLOAD, log, result
from .topics import Produced
from .transform import OUTCOMES

# Deliveries outstanding where the publisher goes as fast as the devices take them.
WINDOW = 4096


def push(bench, binary, load):
    """Both stages, the fan-out worker alone on its core; what the fleet measures of it."""
    arguments = bench.arguments
    fan_out = bench.fan_out(binary, pin=bench.cores.server)
    transform = bench.transform(binary, pin=bench.cores.others)
    produced = Produced(arguments.kafka, [bench.prefix + topic for topic in OUTCOMES], PARTITIONS)
    try:
        others = {"transform": transform.pid, "redis": bench.redis.pid, "kafka": bench.kafka_pid}
        also = [word for name, pid in others.items() if pid for word in ("--also", f"{name}:{pid}")]
        measured = bench.publish(arguments.connections, fan_out, "--server", fan_out.pid, *also, *load, pin=bench.cores.others)
    finally:
        fan_out.end()
        transform.end()
    check(measured, arguments.connections)
    found, sizes = produced.take()
    arrived = measured["total"] - measured["repeats"]
    measured["records_per_delivery"] = sum(found.values()) / arrived
    measured["bytes_per_delivery"] = (sum(sizes.values()) - PAYLOAD * found[bench.prefix + "deliveries"]) / arrived
    measured["all_us"] = measured["server_us"] + sum(measured.get(f"{name}_us", 0) for name in others)
    return measured


def check(measured, connections):
    """Every message that was published has arrived, and in order."""
    if measured["ready"] != connections:
        raise SystemExit(f"only {measured['ready']} of {connections} connections were ready")
    for name in ("gaps", "refused", "lost"):
        if measured[name]:
            raise SystemExit(f"the fleet tells of {measured[name]} {name}: {measured}")
    # What is on the way when the run ends is none of it.
    arrived = measured["total"] - measured["repeats"]
    if arrived + WINDOW < measured["published"]:
        raise SystemExit(f"{arrived} of {measured['published']} messages arrived")


def beside_limit(bench, name, load):
    arguments, rounds = bench.arguments, []
    bench.begin(name)
    for number in range(arguments.rounds):
        ours = push(bench, None, load)
        limit = bench.limit(arguments.connections, load)
        check(limit, arguments.connections)
        rounds.append({"limit": limit, "carillon": ours})
        log(f"round {number + 1}: limit {limit['server_us']:.2f} µs, fan-out {ours['server_us']:.2f} µs,"
            f" all {ours['all_us']:.2f} µs a message at {ours['per_second']:.0f}/s")
    bench.redis.stop()
    return rounds


def repeats(item):
    """A notification may come by its delivery and by a page of the mailbox; a device drops one of them, and the fleet does not."""
    return 100 * item["carillon"]["repeats"] / item["carillon"]["total"]


def ratio(name):
    return lambda item: item["carillon"][name] / item["limit"]["server_us"]


def fan_out(bench):
    rate = bench.arguments.rate
    rounds = beside_limit(bench, "fan-out", ["--rate", rate])
    return result("fan-out", f"fan-out stage at {rate}/s, acknowledged", rounds, [
        ("CPU of the fan-out worker ÷ limit", "<= 1.1", ratio("server_us")),
        ("CPU of the fan-out worker, µs a delivery", None, lambda item: item["carillon"]["server_us"]),
    ])


def full_rate(bench):
    rounds = beside_limit(bench, "full-rate", ["--window", WINDOW])
    parts = [("fan-out", "server_us")] + [(name, f"{name}_us") for name in ("transform", "redis", "kafka")]
    return result("full-rate", f"all the way at full rate, {WINDOW} deliveries outstanding, acknowledged", rounds, [
        ("CPU of the fan-out worker ÷ limit", "<= 1.8", ratio("server_us")),
        ("CPU of all servers ÷ limit", "<= 7.5", ratio("all_us")),
        *[(f"CPU of {name}, µs a delivery", None, lambda item, key=key: item["carillon"].get(key, 0)) for name, key in parts],
        # In the first round with what tells of the devices' registrations.
        ("records produced for a delivery", "<= 2.1", lambda item: item["carillon"]["records_per_delivery"]),
        ("bytes produced for a delivery, payloads apart", "<= 700", lambda item: item["carillon"]["bytes_per_delivery"]),
        ("deliveries/s", None, lambda item: item["carillon"]["per_second"]),
        ("deliveries that came twice, percent", None, repeats),
    ])


def paced(bench):
    """At a rate at which batches are small: beside another build when there is one."""
    arguments, rounds = bench.arguments, []
    load = ["--rate", arguments.paced_rate]
    bench.begin("paced")
    for number in range(arguments.rounds):
        item = {"carillon": push(bench, None, load)}
        if arguments.beside:
            item["beside"] = push(bench, arguments.beside, load)
        rounds.append(item)
        log(f"round {number + 1}: " + ", ".join(
            f"{name} {one['all_us']:.0f} µs a message, median {one['latency_us']['p50'] / 1000:.1f} ms" for name, one in item.items()))
    bench.redis.stop()
    measures = [
        ("from produce to the frame, median in ms", "<= 30", lambda item: item["carillon"]["latency_us"]["p50"] / 1000),
        ("from produce to the frame, 99th percentile in ms", None, lambda item: item["carillon"]["latency_us"]["p99"] / 1000),
        ("deliveries that came twice, percent", None, repeats),
    ]
    parts = [("all servers", "all_us"), ("fan-out", "server_us")]
    parts += [(name, f"{name}_us") for name in ("transform", "redis", "kafka")]
    for name, key in parts:
        measures.append((f"CPU of {name}, µs a delivery", None, lambda item, key=key: item["carillon"].get(key, 0)))
    if arguments.beside:
        measures.insert(0, (
            "CPU of all servers ÷ the other build", "<= 0.5", lambda item: item["carillon"]["all_us"] / item["beside"]["all_us"]))
        measures.append(("the other build's median in ms", None, lambda item: item["beside"]["latency_us"]["p50"] / 1000))
    return result("paced", f"all the way at {arguments.paced_rate}/s, acknowledged", rounds, measures)
