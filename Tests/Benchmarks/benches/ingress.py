"""What accepting a request by HTTP costs, beside a plain C server that does the least of it; and many lines, beside a Kafka client."""
import subprocess

from .bench import PAYLOAD, log, result
from .processes import Carillon, cpu, ends_with_parent, free_port, wait_for

CONNECTIONS = 100
# The lines of a body, and how many of them come in a second.
LINES, LINE_RATE = 1_000, 10_000


def ingress(bench):
    arguments, rounds = bench.arguments, []
    bench.begin("ingress")
    for number in range(arguments.rounds):
        item = {}
        for name, rate, lines in ("one", arguments.ingress_rate, 1), ("lines", LINE_RATE // LINES, LINES):
            for side in ("carillon", "floor")[::-1 if number % 2 else 1]:
                item[name, side] = posted(bench, side, rate, lines)
        produced = bench.tool(
            "accept", "produce", arguments.kafka, bench.prefix + "floor.requests", LINE_RATE // LINES, arguments.duration, LINES, PAYLOAD,
            pin=bench.cores.server)
        item["client"] = produced["cpu_us"]
        rounds.append(item)
        log(f"round {number + 1}: one {item['one', 'carillon']:.1f} µs, floor {item['one', 'floor']:.1f} µs; of many"
            f" {item['lines', 'carillon']:.1f} µs, floor {item['lines', 'floor']:.1f} µs, client {item['client']:.1f} µs")
    bench.redis.stop()
    rounds_of_text = [{" ".join(key) if isinstance(key, tuple) else key: value for key, value in item.items()} for item in rounds]
    return result(
        "ingress", f"requests of {PAYLOAD} bytes at {arguments.ingress_rate}/s, and {LINE_RATE} lines a second in bodies of {LINES}", rounds_of_text, [
            ("CPU of a request ÷ floor", None, lambda item: item["one carillon"] / item["one floor"]),
            ("CPU of a request, µs", None, lambda item: item["one carillon"]),
            ("CPU of a line ÷ floor", None, lambda item: item["lines carillon"] / item["lines floor"]),
            ("CPU of a line ÷ Kafka client", None, lambda item: item["lines carillon"] / item["client"]),
            ("CPU of a line, µs", None, lambda item: item["lines carillon"]),
        ])


def posted(bench, side, rate, lines):
    """CPU microseconds of a side for each request that it has accepted."""
    if side == "carillon":
        server = Carillon(
            bench.arguments.carillon, "ingress", *bench.place(), "--listen", "127.0.0.1:0", "--no-access-log", pin=bench.cores.server)
        pid, port, end = server.pid, server.addresses["requests"].split(":")[2].split("/")[0], server.end
    else:
        port = free_port()
        floor = subprocess.Popen(
            ["taskset", "-c", bench.cores.server, bench.path("accept"), "serve", str(port), bench.arguments.kafka,
             bench.prefix + "floor.requests"], preexec_fn=ends_with_parent)
        wait_for(port)
        pid, end = floor.pid, floor.kill
    try:
        # Its clients of Kafka have connected, and each of its paths has run once.
        bench.tool("backends", port, 1, 10, 1, lines, PAYLOAD, pin=bench.cores.others)
        before = cpu(pid)
        done = bench.tool("backends", port, CONNECTIONS, rate, bench.arguments.duration, lines, PAYLOAD, pin=bench.cores.others)
        return round((cpu(pid) - before) / (done["posts"] * lines), 2)
    finally:
        end()
