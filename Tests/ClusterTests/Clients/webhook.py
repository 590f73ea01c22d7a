"""The service extension 'webhook': real processes, and a team's own service in Python that checks who asks with the library of Standard Webhooks.

  asked        what the service answers is shown; whatever else it does, a notification is shown once, in time, and says what became of it;
               nobody else's notifications wait
  interrupted  workers are killed while the service works: nothing is lost or shown twice, what it has answered is not asked for again, and
               what is has the same key
  rebuilt      what a rebuilding puts back has been asked for, however little the service takes at a time
"""
import asyncio
import base64
import collections
import json
import os
import signal
import time

from standardwebhooks.webhooks import Webhook

from clients import APPLICATION, Reader, expect, say, until
from extensions import File, Publisher, RememberingDevice, after_a_rebuilding, audit, for_urls, start, states, trace
from healing import committed, on_one_redis, run_part
from service import Handler, Service

KEYS = {"new": os.urandom(32), "old": os.urandom(32)}
# What a service does wrong, and what becomes of the notification.
WRONG = {"hang": "timed-out", "error": "failed", "cut": "failed", "endless": "failed", "lie": "failed", "redirect": "failed", "junk": "failed"}


class Team(Service):
    """Puts a text before the title, unless the notification says what else it is to do."""

    def __init__(self):
        self.asked, self.faults = collections.Counter(), []
        super().__init__("127.0.0.1", Answer)

    @property
    def url(self):
        return "http://127.0.0.1:%d/notifications" % self.server_address[1]


class Answer(Handler):
    def do_GET(self):
        self.server.faults.append("a redirect was followed")
        self.say(200, {})

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        try:
            for key in KEYS.values():
                Webhook(base64.b64encode(key).decode()).verify(body, dict(self.headers))
        except Exception as error:  # What the library says of it is all that matters.
            self.server.faults.append(repr(error))
        message = json.loads(body)
        if {self.headers["traceparent"], message.get("traceparent")} != {trace(message["id"])}:
            self.server.faults.append("the trace of %s is %s" % (message["id"], self.headers["traceparent"]))
        self.server.asked[self.headers["webhook-id"]] += 1
        do = message["payload"]["custom"]["body"].split()[0]
        if do == "hang":
            self.server.ending.wait(120)
        elif do == "error":
            self.say(500, {})
        elif do == "redirect":
            self.send_response(307)
            self.send_header("location", "http://127.0.0.1:%d/elsewhere" % self.server.server_address[1])
            self.send_header("content-length", "0")
            self.end_headers()
        elif do == "junk":
            self.raw(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{\"patch\":")
        elif do == "cut":
            self.raw(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"patch\":")
            self.close_connection = True
        elif do == "lie":
            self.raw(b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n{}")
            self.server.ending.wait(120)
        elif do == "endless":
            self.raw(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
            while not self.server.ending.is_set():
                self.raw(b"2000\r\n" + b" " * 0x2000 + b"\r\n")
        else:
            if do == "slow":
                self.server.release.wait(120)
            alert = message["payload"]["aps"]["alert"]
            self.say(200, {"patch": {"aps": {"alert": {"title": "asked: " + alert["title"]}}}})

    def say(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)



def configure(folder, service, **settings):
    file = File(folder)
    file.write({"keys": [{"id": name, "key": for_urls(key).decode()} for name, key in KEYS.items()]}, "keys.json")
    ask = {"name": "ask", "use": "webhook", "url": service.url, "keys": "keys.json", "plaintext": True, "networks": ["127.0.0.0/8"], **settings}
    file.write({"applications": {APPLICATION: [ask]}})
    return file


async def asked(arguments, folder):
    service, publisher = Team(), Publisher(arguments)
    file = configure(folder, service, budget=15_000, timeout=30_000, attempts=1, breaker=0, concurrency=1_000)
    reader = Reader(arguments.kafka, [arguments.prefix + "events"])
    reading = asyncio.create_task(reader.run())
    async with on_one_redis(arguments, folder) as (redis, cluster):
        await start(cluster, file, "--mailbox-bound", "10000", "--session-timeout", "60s")
        fan_out = await cluster.started("fan-out", "--listen", "127.0.0.1:0")
        url = fan_out.addresses["devices"]
        async with RememberingDevice(url, None, user="ada") as slow, RememberingDevice(url, None, user="grace") as quick:
            wanted, began = {}, time.monotonic()
            for number in range(60):
                do = list(WRONG)[number % len(WRONG)] if number % 3 == 0 else "well"
                wanted[publisher.mutable("device:" + slow.token if number % 2 else "user:ada", "%s %d" % (do, number))] = do
            behind = [publisher.payload("device:" + quick.token, {"aps": {"alert": "plain"}}) for _ in range(20)]
            behind += [publisher.mutable("device:" + quick.token, "well") for _ in range(20)]
            await publisher.flush()
            await until(lambda: set(behind) <= quick.shown, "another target's are shown", lambda: len(quick.shown))
            hung = [name for name, do in wanted.items() if do in ("hang", "lie")]
            # Later its time may be up.
            if time.monotonic() - began < 13:
                expect(not slow.shown & set(hung), "before what the service does not answer")
            await until(lambda: set(wanted) <= slow.shown, "all are shown", lambda: [wanted[name] for name in set(wanted) - slow.shown])

            def told():
                return {record.headers["ce_subject"]: states(record.json) for record in reader.records[arguments.prefix + "events"]
                        if record.type == "delivered"}

            await until(lambda: set(wanted) <= set(told()), "events tell of all of them")
            for frame in slow.of("notify"):
                do = wanted[frame["id"]]
                title = "Order" if do in WRONG else "asked: Order"
                expect(frame["payload"]["aps"]["alert"]["title"] == title, "as the service has answered, or as it was published", frame)
                # A length that is a lie is found out at once by some libraries, and by others when the time is up.
                state = told()[frame["id"]][0][1]
                expect(state == WRONG.get(do, "modified") or do == "lie" and state == "timed-out", "and says so", [do, state])
            await asyncio.sleep(1)
            expect(len(slow.of("notify")) == len(wanted), "each is shown once", len(slow.of("notify")))
        expect(not service.faults, "the library knows who asks, and the trace is the request's", service.faults[:3])
        expect(set(service.asked.values()) == {1}, "each is asked for once", service.asked.most_common(3))
        say(asked=len(service.asked), audit=await audit(arguments))
    reading.cancel()
    service.close()


async def interrupted(arguments, folder):
    service, publisher = Team(), Publisher(arguments)
    file = configure(folder, service, budget=30_000, timeout=30_000, concurrency=1_000)
    flags, count, rounds = ["--session-timeout", "2s", "--mailbox-bound", "10000"], 200, 2
    async with on_one_redis(arguments, folder) as (redis, cluster):
        worker = await start(cluster, file, *flags)
        fan_out = await cluster.started("fan-out", "--listen", "127.0.0.1:0")
        devices = [RememberingDevice(fan_out.addresses["devices"], None, user="ada" if each < 2 else "person%d" % each) for each in range(8)]
        for device in devices:
            await device.__aenter__()
        wanted, names = {device.token: set() for device in devices}, {"slow": set(), "well": set()}

        def publish(do, receivers):
            name = publisher.mutable("user:ada" if len(receivers) > 1 else "device:" + receivers[0].token, do)
            names[do].add(name)
            for device in receivers:
                wanted[device.token].add(name)

        for number in range(1, rounds + 1):
            service.release.clear()
            # What was remembered of the round before; all of that is committed.
            redis.cli("EVAL", "for _, key in ipairs(redis.call('KEYS', 'x*')) do redis.call('DEL', key) end", "0")
            # Nothing is shown of a target before its first one is answered, nor committed of a partition: all are read again.
            for receivers in [devices[:2], *([device] for device in devices)]:
                publish("slow", receivers)
            for each in range(count):
                publish("well", devices[:2] if each % 5 == 0 else [devices[each % len(devices)]])
            await publisher.flush()
            remembered = "return #redis.call('KEYS', 'x*')"
            await until(
                lambda: int(redis.cli("EVAL", remembered, "0")) == count, "what the service has answered is remembered",
                lambda: redis.cli("EVAL", remembered, "0"))
            worker.send_signal(signal.SIGKILL)
            await asyncio.to_thread(worker.wait)
            before = dict(service.asked)
            service.release.set()
            worker = await start(cluster, file, *flags)
            await until(
                lambda: all(wanted[device.token] <= device.shown for device in devices), "nothing is lost",
                lambda: {device.token[:4]: len(wanted[device.token] - device.shown) for device in devices})
            await until(lambda: committed(arguments) == number * (count + 9), "the group has committed", lambda: committed(arguments))
            for name in names["well"]:
                expect(service.asked[name + "_ask"] == before[name + "_ask"], "what was remembered is not asked for again")
        await asyncio.sleep(1)
        for device in devices:
            expect(device.shown == wanted[device.token], "nothing is shown that is not meant", len(device.shown - wanted[device.token]))
            payloads = {}
            for frame in device.of("notify"):
                expect(payloads.setdefault(frame["id"], frame["payload"]) == frame["payload"], "what comes again is the same", frame)
                expect(frame["payload"]["aps"]["alert"]["title"] == "asked: Order", "all are shown changed", frame)
            await device.__aexit__()
        expect(not service.faults, "the library knows who asks, and the trace is the request's", service.faults[:3])
        expect(all(service.asked[name + "_ask"] > 1 for name in names["slow"]), "what was not answered is, with the same key")
        expect(len(service.asked) == len(names["slow"]) + len(names["well"]), "each notification has a key of its own")
        say(asked=len(service.asked), again=sum(service.asked.values()) - len(service.asked), audit=await audit(arguments))
    service.close()


async def rebuilt(arguments, folder):
    service = Team()
    # The workers may have shown some of so many without it; a rebuilding has time.
    file = configure(folder, service, concurrency=8, breaker=1, budget=30_000, timeout=30_000)
    async for _, alert in after_a_rebuilding(arguments, folder, file, 400):
        expect(alert["title"] == "asked: Order", "the service was asked", alert)
    expect(not service.faults, "the library knows who asks, and the trace is the request's", service.faults[:3])
    say(asked=sum(service.asked.values()))
    service.close()


PARTS = {part.__name__: part for part in (asked, interrupted, rebuilt)}


if __name__ == "__main__":
    run_part(__doc__, PARTS, "carillon-webhook-")
