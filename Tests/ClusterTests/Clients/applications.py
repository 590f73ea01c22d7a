"""An application is stopped and started again: real processes on a real Kafka and a real Redis, and devices in Python.

  stopped    under load, while transform workers are killed: what is published during the stop ends as filtered and is shown nowhere, so does
             what waits for its device, what is published afterwards is shown once, and another application notices nothing
  rebuilt    Redis loses everything and is rebuilt: what was filtered stays so, what was published again under its id arrives; records of the
             topic that nobody can read change nothing
  together   several people stop an application at once, and start it again: it is stopped once, and started once
"""
import asyncio
import calendar
import collections
import json
import signal
import time

from clients import APPLICATION, Producer, Reader, asked, expect, run, say, until
from extensions import RememberingDevice, tool
from healing import SOON, committed, on_one_redis, ready, run_part, unready
from letters import audit

OTHER = "com.example.other"


async def applications(arguments, *words, code=0):
    """Runs a tool of the applications and gives its lines."""
    line = [arguments.binary, "applications", *words, "--kafka", arguments.kafka, "--topic-prefix", arguments.prefix, "--json"]
    done = await asked(*line)
    expect(code is None or done.returncode == code, "'applications %s' ends with %s" % (" ".join(words), code), [done.returncode, done.stdout[-1500:], done.stderr[-800:]])
    return [json.loads(text) for text in done.stdout.splitlines()]


class Ends:
    """The apns-ids of what has ended, by the kind of its event. Each event is looked at once, for there are thousands."""

    def __init__(self, reader, topic):
        self.reader, self.topic, self.seen, self.kinds = reader, topic, 0, collections.defaultdict(set)

    def __call__(self, kind):
        records = self.reader.records[self.topic]
        while self.seen < len(records):
            record = records[self.seen]
            self.kinds[record.type].add(record.headers["ce_subject"])
            self.seen += 1
        return self.kinds[kind]


async def all_hear(publish, ended):
    """Waits until all that work on requests have heard of a stop: from then on they filter. One request in each partition, until all of a round
    are filtered."""
    async def filter():
        probes = {await publish("user:probe%d" % number, APPLICATION) for number in range(40)}
        await until(lambda: probes <= ended("filtered") | ended("unregistered"), "each request has an end")
        return probes <= ended("filtered")

    await until(filter, "all workers hear of the stop")


class Load:
    """Publishes for devices and persons of both applications until it is told to end, and no faster than the events of it come; remembers of
    each request for whom it is."""

    def __init__(self, arguments, targets, ended):
        self.producer, self.targets, self.ended = Producer(arguments.kafka, arguments.prefix + "requests"), targets, ended
        self.published = {}
        self.running = asyncio.create_task(self.run())

    async def publish(self, target, application):
        name = await self.producer.notify(target, "x", apns_topic=application)
        self.published[name] = (target, application)
        return name

    async def run(self):
        while True:
            if len(self.published) - len(self.ended("delivered") | self.ended("filtered") | self.ended("unregistered")) < 2_000:
                for target, application in self.targets:
                    await self.publish(target, application)
            await asyncio.sleep(0.05)

    async def end(self):
        self.running.cancel()
        await self.producer.flush()


async def stopped(arguments, folder):
    requests, events = arguments.prefix + "requests", arguments.prefix + "events"
    reader = Reader(arguments.kafka, [requests, events])
    reading = asyncio.create_task(reader.run())
    ended = Ends(reader, events)

    async with on_one_redis(arguments, folder) as (_, cluster):
        # While a worker is missed much piles up, for which the mailboxes have room; what its end has cut short is found by a resync.
        settings = ["--session-timeout", "2s", "--mailbox-bound", "10000", *cluster.group]
        workers = [await cluster.started("transform", *settings) for _ in range(2)]
        fan_out = await cluster.started("fan-out", "--listen", "127.0.0.1:0", "--refresh", "5s")
        url = fan_out.addresses["devices"]
        devices = {("user:u%d" % place, APPLICATION): RememberingDevice(url, None, user="u%d" % place) for place in range(6)}
        devices |= {("user:v%d" % place, OTHER): RememberingDevice(url, None, user="v%d" % place, application=OTHER) for place in range(6)}
        for device in list(devices.values()):
            await device.__aenter__()
            application = device.hello["application"]
            devices["device:" + device.token, application] = device
        late = RememberingDevice(url, None, user="late")
        async with late:
            pass
        await until(lambda: len(late.of("welcome")) == 1, "the late one is registered")
        targets = [*devices, ("user:late", APPLICATION)]
        load = Load(arguments, targets, ended)
        await until(lambda: len(ended("delivered")) > 300, "the load is delivered")

        await applications(arguments, "stop", APPLICATION, "--reason", "wrong prices", "--by", "ada")
        await all_hear(load.publish, ended)
        heard = len(load.published)
        await until(lambda: len(load.published) > heard, "the load goes on")
        workers[0].send_signal(signal.SIGKILL)
        workers.append(await cluster.started("transform", *settings))
        await until(lambda: len(ended("filtered").intersection(list(load.published)[heard:])) > 200, "the others go on")
        again = (await applications(arguments, "stop", APPLICATION))[0]
        expect(not again["changed"] and again["stops"][-1]["reason"] == "wrong prices", "what is stopped stays as it was stopped", again)
        listed = await applications(arguments, "list")
        expect([line["application"] for line in listed] == [APPLICATION], "it is listed", listed)

        before = len(load.published)
        # All of it has its time before the end of the stop.
        await load.producer.flush()
        started = (await applications(arguments, "start", APPLICATION, "--by", "bob"))[0]
        after = len(load.published)
        workers[1].send_signal(signal.SIGKILL)
        workers.append(await cluster.started("transform", *settings))
        await until(lambda: len(load.published) > after + 500, "the load goes on")
        await load.end()
        expect(await applications(arguments, "list", code=1) == [], "nothing is stopped any more")

        names = list(load.published)
        await until(lambda: len(reader.records[requests]) == len(names), "all requests are read")
        stamp = {record.headers["apns-id"]: record.timestamp for record in reader.records[requests]}
        begin, end = [1000 * calendar.timegm(time.strptime(started["stops"][-1][word][:19], "%Y-%m-%dT%H:%M:%S"))
                          + int(started["stops"][-1][word][20:23]) for word in ("from", "to")]
        inside = [name for name in names[heard:before] if begin <= stamp[name] < end]
        outside = [name for name in names[after:] if stamp[name] >= end]
        expect(len(inside) == before - heard and len(outside) == len(names) - after, "the clock of the broker decides", [len(inside), len(outside)])
        of = {place: [name for name, (_, application) in load.published.items() if application == place] for place in (APPLICATION, OTHER)}


        def shown():
            return set().union(*[device.shown for device in devices.values()])

        online = {name for name, (target, application) in load.published.items() if (target, application) in devices}
        wanted = {name for name in outside if name in online} | {name for name in of[OTHER] if name in online}
        await until(lambda: wanted <= shown(), "what is published outside of the stop is shown",
                    lambda: [(name, load.published[name], stamp[name] - end) for name in wanted - shown()])
        wrong = [name for name in inside if load.published[name][1] == APPLICATION and name in shown()]
        expect(not wrong, "nothing of the stop is shown", wrong[:5])
        filtered = {name for name in inside if load.published[name][1] == APPLICATION}
        await until(lambda: filtered <= ended("filtered"), "each of the stop has its end", lambda: len(filtered - ended("filtered")))
        expect(not ended("filtered") & set(of[OTHER]), "another application has none")

        # What waited for the late one since before the stop ends as well; what came after it is shown.
        late = RememberingDevice(url, None, **{key: value for key, value in late.hello.items() if key != "type"})
        async with late:
            mine = {name: stamp[name] for name, (target, _) in load.published.items() if target == "user:late"}
            expected = {name for name, time in mine.items() if time >= end}
            await until(lambda: late.shown >= expected, "what came after the stop waits for it")
            await until(lambda: set(mine) - expected <= ended("filtered"), "what came before its end is filtered",
                        lambda: len(set(mine) - expected - ended("filtered")))
            expect(late.shown == expected, "and not shown", [len(late.shown), len(expected)])
        told = collections.defaultdict(set)
        for record in reader.records[events]:
            if record.type == "filtered":
                told[record.headers["ce_subject"], record.json.get("device")].add(record.headers["ce_id"])
                expect(record.json["reason"] == "ApplicationStopped" and record.json["detail"] == "wrong prices", "an event says why", record.json)
        expect(max(len(ids) for ids in told.values()) == 1, "each end has one event, however often it is told")
        done = await tool(arguments, "explain", inside[[load.published[name][1] for name in inside].index(APPLICATION)])
        expect("ApplicationStopped" in done.stdout and "wrong prices" in done.stdout, "explain tells it", done.stdout)
        for device in set(devices.values()):
            await device.__aexit__()
        # An audit counts what was shown twice, too.
        say(requests=len(names), stopped=len(filtered), audit=await audit(arguments))
    reading.cancel()


async def rebuilt(arguments, folder):
    events = arguments.prefix + "events"
    reader = Reader(arguments.kafka, [events])
    reading = asyncio.create_task(reader.run())
    ended = Ends(reader, events)

    async with on_one_redis(arguments, folder) as (redis, cluster):
        transform = await cluster.started("transform", *cluster.group)
        fan_out = await cluster.started("fan-out", *SOON, "--listen", "127.0.0.1:0")
        url = fan_out.addresses["devices"]
        absent = RememberingDevice(url, None, user="late")
        async with absent:
            pass
        producer, every = Producer(arguments.kafka, arguments.prefix + "requests"), []

        async def publish(target, application=APPLICATION, **more):
            every.append(await producer.notify(target, "x", apns_topic=application, **more))
            return every[-1]

        before = [await publish("user:late") for _ in range(5)]
        await producer.flush()
        await until(lambda: set(before) <= ended("addressed"), "what is published before waits")
        await applications(arguments, "stop", APPLICATION)
        # What is no record of an application, or says nothing that can be understood.
        hostile = Producer(arguments.kafka, arguments.prefix + "applications")
        for key, value in ((APPLICATION, b"{"), (APPLICATION, b'{"state":"started","stops":[{"by":1}]}'), ("a b", b"{}"), ("a.b", b"x" * 900_000),
                           (APPLICATION, b"[" * 60_000), ("\u0000", None)):
            hostile.publish({}, value, key=key)
        await hostile.flush()
        expect((await applications(arguments, "list"))[0]["application"] == APPLICATION, "what cannot be read leaves it stopped")

        await all_hear(publish, ended)
        during = [await publish(target) for target in ("user:late", "device:" + absent.token) for _ in range(5)]
        await until(lambda: set(during) <= ended("filtered"), "what is published during the stop is filtered")
        await applications(arguments, "start", APPLICATION)
        after = [await publish("user:late"), await publish("user:late", id=during[0])]
        await producer.flush()
        await until(lambda: set(after) <= ended("addressed"), "what is published afterwards waits")
        await until(lambda: committed(arguments) >= len(every), "the group has committed")
        redis.cli("FLUSHALL")
        await until(lambda: unready(transform, fan_out), "both workers say that Redis has lost what it had")
        done = await run(arguments.binary, "rebuild", *cluster.common, *cluster.group, "--json")
        expect(done.returncode == 0, "Redis is rebuilt", done.stderr)
        await until(lambda: ready(transform) and ready(fan_out), "the workers go on by themselves")
        async with RememberingDevice(url, None, user="late", device=absent.token) as late:
            await until(lambda: late.shown >= set(after), "what was published afterwards arrives", lambda: len(late.shown))
            await until(lambda: set(before) <= ended("filtered"), "what waited before the stop is filtered")
            expect(late.shown == set(after), "and nothing else is shown", len(late.shown))
        say(audit=await audit(arguments))
    reading.cancel()


async def together(arguments, folder):
    stops = await asyncio.gather(*[applications(arguments, "stop", "a.b", "--by", "p%d" % number) for number in range(6)])
    expect(all(lines[0]["state"] == "stopped" for lines in stops), "each says that it is stopped", stops)
    stop = (await applications(arguments, "list"))[0]
    expect(len(stop["stops"]) == 1 and "to" not in stop["stops"][0], "it is stopped once", stop)
    await asyncio.gather(*[applications(arguments, "start", "a.b", "--by", "p%d" % number) for number in range(6)])
    await applications(arguments, "list", code=1)
    stop = (await applications(arguments, "list", "--all"))[0]
    expect(len(stop["stops"]) == 1 and stop["stops"][0]["endedBy"].startswith("p"), "it is started once", stop)


PARTS = {"stopped": stopped, "rebuilt": rebuilt, "together": together}

if __name__ == "__main__":
    run_part(__doc__, PARTS, "carillon-applications-")
