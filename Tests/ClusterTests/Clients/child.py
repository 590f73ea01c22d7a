"""The service extension 'child': real workers, and a program in Python beside each that hangs, fails, ends and floods.

  rough   a fifth of the notifications gets no answer in time, a tenth a failure, some end the program, have it write without end, or have it
          do nothing any more, and a worker is killed over one of these: nothing is lost or shown twice, each says what became of it, other targets do not wait, and no program is left behind
"""
import asyncio
import collections
import os
import random
import signal
import sys

from clients import APPLICATION, Reader, expect, say, until
from extensions import File, Log, Publisher, RememberingDevice, audit, start, states
from healing import on_one_redis, run_part

PROGRAM = '''
import json, sys, threading, time

lock, hanging = threading.Lock(), set()

def say(message):
    with lock:
        print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

for line in sys.stdin:
    message = json.loads(line)
    if message["method"] == "cancel" and message["params"]["call"] in hanging:
        hanging.remove(message["params"]["call"])
        say({"id": message["params"]["call"], "result": None})
    if message["method"] != "didReceive":
        continue
    call, payload = message["id"], message["params"]["payload"]
    do = payload["custom"]["body"].split()[0]
    if do == "hang":
        hanging.add(call)
        continue
    if do == "fail":
        say({"id": call, "error": {"code": 1, "message": "plaintext of it"}})
    elif do == "end":
        sys.exit(9)
    elif do == "stuck":
        while True:
            pass
    elif do == "flood":
        while True:
            sys.stdout.write("x" * 65536)
    else:
        say({"id": call, "result": {"patch": {"aps": {"alert": {"title": "asked: " + payload["aps"]["alert"]["title"]}}}}})
'''
# What may become of a notification; what another one does to the program ends those that it has in hand.
POSSIBLE = {
    **{do: {"timed-out", "failed", "overloaded"} for do in ("hang", "fail", "end", "flood", "stuck")},
    "well": {"modified", "failed", "timed-out", "overloaded"}}


def choose():
    return random.choices(["hang", "fail", "end", "flood", "well"], [200, 100, 4, 2, 694])[0]


def running(path):
    """The processes that run the program of this path."""
    found = []
    for name in os.listdir("/proc"):
        try:
            with open("/proc/%s/cmdline" % name, "rb") as file:
                if name.isdigit() and file.read().split(b"\0")[1:2] == [path.encode()]:
                    found.append(int(name))
        except OSError:
            pass
    return found


async def rough(arguments, folder):
    publisher, file = Publisher(arguments), File(folder)
    file.write(PROGRAM, "child.py")
    path = os.path.join(file.folder, "child.py")
    ask = {"name": "ask", "use": "child", "program": sys.executable, "arguments": [path], "budget": 2_000, "breaker": 0, "memory": 256}
    file.write({"applications": {APPLICATION: [ask]}})
    reader = Reader(arguments.kafka, [arguments.prefix + "events"])
    reading = asyncio.create_task(reader.run())
    count, people = 3_000, 20
    async with on_one_redis(arguments, folder) as (redis, cluster):
        flags = ["--session-timeout", "2s", "--mailbox-bound", "10000"]
        worker = await start(cluster, file, *flags)
        fan_out = await cluster.started("fan-out", "--listen", "127.0.0.1:0")
        # The last of them gets what no extension changes.
        devices = [RememberingDevice(fan_out.addresses["devices"], None, user="person%d" % each) for each in range(people + 1)]
        for device in devices:
            await device.__aenter__()
        plain, wanted = devices[-1], {device.token: {} for device in devices}
        for number in range(count):
            if number % 2:
                wanted[plain.token][publisher.payload("device:" + plain.token, {"aps": {"alert": "x"}})] = None
            else:
                device, do = devices[number // 2 % people], choose()
                target = "user:" + device.hello["user"] if number % 4 else "device:" + device.token
                wanted[device.token][publisher.mutable(target, "%s %d" % (do, number))] = do
            if number % 20 == 0:
                await publisher.flush()
                await asyncio.sleep(0.04)
            if number in (count // 4, count // 2):
                wanted[device.token][publisher.mutable("device:" + device.token, "stuck %d" % count)] = "stuck"
                await publisher.flush()
            if number == count // 2:
                # The program works on that, and does not see that it is alone.
                await asyncio.sleep(0.5)
                worker.send_signal(signal.SIGKILL)
                await asyncio.to_thread(worker.wait)
                await until(lambda: not running(path), "the programs of a worker that was killed are gone", lambda: running(path))
                worker = await start(cluster, file, *flags)
        await publisher.flush()
        await until(
            lambda: all(set(wanted[device.token]) <= device.shown for device in devices), "nothing is lost",
            lambda: [len(set(wanted[device.token]) - device.shown) for device in devices])

        def told():
            return {record.headers["ce_subject"]: states(record.json) for record in reader.records[arguments.prefix + "events"]
                    if record.type == "delivered"}

        await until(lambda: sum(map(len, wanted.values())) == len(told()), "events tell of all of them", lambda: len(told()))
        events, seen = told(), collections.Counter()
        for device in devices:
            expect(device.shown == set(wanted[device.token]), "nothing is shown that is not meant")
            payloads = {}
            for frame in device.of("notify"):
                do = wanted[device.token][frame["id"]]
                expect(payloads.setdefault(frame["id"], frame["payload"]) == frame["payload"], "what comes again is the same", frame)
                if do is None:
                    expect(events[frame["id"]] == [], "what is not mutable passes none", events[frame["id"]])
                    continue
                (name, state), = events[frame["id"]]
                expect(state in POSSIBLE[do], "it says what became of it", [do, state])
                title = "asked: Order" if state == "modified" else "Order"
                expect(frame["payload"]["aps"]["alert"]["title"] == title, "and is shown so", [do, state, frame])
                seen[do, state] += 1
            await device.__aexit__()
        expect(seen["well", "modified"] > 100, "those that do no harm are changed where the program works", seen)
        worker.send_signal(signal.SIGTERM)
        await asyncio.to_thread(worker.wait)
        expect(not running(path), "a worker that ends leaves no program behind", running(path))
        log = Log(folder).text()
        expect('its program says that it has failed' in log and "com.example" in log, "the log says why", log[-1000:])
        expect("plaintext of it" not in log, "without what the program says", log[-1000:])
        reading.cancel()
        say(states={" ".join(key): number for key, number in sorted(seen.items())}, audit=await audit(arguments))


PARTS = {part.__name__: part for part in (rough,)}


if __name__ == "__main__":
    run_part(__doc__, PARTS, "carillon-child-")
