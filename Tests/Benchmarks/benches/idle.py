"""What is taken when nothing happens: memory of idle connections, and CPU of idle lanes."""
import os
import subprocess
import time

from .bench import log, result
from .processes import Carillon, cpu

SETTLE = 6


def memory(bench):
    """Bytes that a connection takes in its worker, which has been ready before."""
    arguments, rounds = bench.arguments, []
    bench.begin("memory")
    transform = bench.transform()
    try:
        for number in range(arguments.rounds):
            item = {}
            for name, binary in builds(arguments):
                fan_out = bench.fan_out(binary)
                try:
                    measured = bench.tool(
                        "fleet", arguments.connections, fan_out.device_port, "--server", fan_out.pid, "--settle", 2, "--hold", 1)
                finally:
                    fan_out.end()
                if measured["ready"] != arguments.connections:
                    raise SystemExit(f"only {measured['ready']} of {arguments.connections} connections were ready")
                item[name] = measured
            rounds.append(item)
            log(f"round {number + 1}: " + ", ".join(f"{name} {one['bytes_per_connection']:.0f} bytes" for name, one in item.items()))
    finally:
        transform.end()
        bench.redis.stop()
    measures = [("bytes of the worker for a connection", "<= 1400", lambda item: item["carillon"]["bytes_per_connection"])]
    if arguments.beside:
        measures.append(("the other build's", None, lambda item: item["beside"]["bytes_per_connection"]))
    return result("memory", f"{arguments.connections} idle connections", rounds, measures)


def idle(bench):
    """Percent of a core that lanes take without any work."""
    arguments, rounds = bench.arguments, []
    bench.begin("idle")
    for number in range(arguments.rounds):
        item = {}
        for name, binary in builds(arguments):
            transform, fan_out = bench.transform(binary), bench.fan_out(binary)
            up = Carillon(
                binary, "up", "--listen", "127.0.0.1:0", environment={"XDG_RUNTIME_DIR": bench.folder})
            roles = {"transform": [transform.pid], "fan-out": [fan_out.pid], "up": [up.pid, *children(up.pid)]}
            time.sleep(SETTLE)
            before = {role: sum(map(cpu, pids)) for role, pids in roles.items()}
            time.sleep(arguments.duration)
            item[name] = {
                role: round((sum(map(cpu, pids)) - before[role]) / 1e4 / arguments.duration, 2) for role, pids in roles.items()}
            for process in (transform, fan_out, up):
                process.end()
        rounds.append(item)
        log(f"round {number + 1}: {item}")
    bench.redis.stop()
    measures = [
        (f"{what}, percent of a core", goal, lambda item, role=role: item["carillon"][role])
        for role, what, goal in (("transform", "a transform lane", "<= 1"), ("fan-out", "a fan-out lane", "<= 1"),
                                 ("up", "`up` with its Kafka and its Redis", None))
    ]
    if arguments.beside:
        for role in ("transform", "fan-out", "up"):
            measures.append((f"the other build's {role}", None, lambda item, role=role: item["beside"][role]))
    return result("idle", "nothing to do", rounds, measures)


def builds(arguments):
    return [("carillon", arguments.carillon)] + ([("beside", arguments.beside)] if arguments.beside else [])


def children(pid):
    found = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True).stdout
    return [int(child) for child in found.split() if os.path.exists(f"/proc/{child}")]
