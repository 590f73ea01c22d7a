"""Removals of delivered notifications, by identifier and of all: real processes on a real Kafka and a real Redis, and devices in Python.

  all        a person removes all: a device that is connected, one that is away and comes back, one of another application, what waits for a
             place, and what is published afterwards; and the events of all of it
  rebuilt    the floor of a device is the same after Redis was emptied and rebuilt, and what it has canceled does not come back
  opened     opening a notification on one device removes it from the person's others, connected or not, and takes no update
"""
import asyncio
import json
import uuid

from clients import APPLICATION, Contract, Device, Producer, Reader, expect, run, say, until
from extensions import audit
from healing import SOON, committed, emptied_and_rebuilt, on_one_redis, run_part, shares

PLACE = json.dumps({"type": "location", "region": {"identifier": "shop", "latitude": 52.5, "longitude": 13.4, "radius": 100}})


def told(reader, topic, name, kind, device):
    """The event of this type on a request at a device, as JSON."""
    return next((record.json for record in reader.records[topic] if record.type == kind and record.headers["ce_subject"] == name
                 and record.json.get("device") == device.token), None)


async def publish(arguments, *words):
    """Publishes by the command, and gives the apns-id."""
    line = [arguments.binary, "publish", "--kafka", arguments.kafka, "--topic-prefix", arguments.prefix, "--app", APPLICATION, "--json", *words]
    done = await run(*line)
    expect(done.returncode == 0, "it is published", done.stdout + done.stderr)
    return json.loads(done.stdout.splitlines()[-1])["apnsId"]


@shares
async def everything(arguments, folder, shared):
    contract = Contract(arguments.contract)
    events = arguments.prefix + "events"
    reader = Reader(arguments.kafka, [events])
    reading = asyncio.create_task(reader.run())
    producer = Producer(arguments.kafka, arguments.prefix + "requests")
    async with shared.workers() as (_, _, (url, _)):
        tablet = Device(url, contract, user="ann")
        async with tablet, Device(url, contract, user="ann", application="com.example.news"):
            seen = await producer.notify("user:ann", "seen by both")
            await tablet.frame("notify", id=seen)
            await until(lambda: told(reader, events, seen, "delivered", tablet), "it is delivered")
        news = Device(url, contract, user="ann", application="com.example.news")
        async with Device(url, contract, user="ann") as phone:
            plain = await producer.notify("user:ann", "plain")
            named = await producer.notify("user:ann", "named", apns_collapse_id="order-7")
            placed = await producer.notify("user:ann", "placed", trigger=PLACE)
            async with news:
                pass
            other = await producer.notify("device:" + news.token, "another application's", apns_topic="com.example.news")
            await producer.flush()
            for name in plain, named, placed:
                await phone.frame("notify", id=name)

            removal = await publish(arguments, "--target", "user:ann", "--operation", "remove", "--all")
            frame = await phone.frame("remove")
            expect(frame["all"] is True and frame["identifiers"] == [], "all are removed", frame)
            newest = max(frame["revision"] for frame in phone.of("notify"))
            expect(frame["revision"] > newest, "the removal is newer than what it removes", [frame, newest])
            await until(lambda: told(reader, events, removal, "removed", phone), "the device has acknowledged it")
            # Nobody has seen these at the tablet: they end before it comes back.
            for name in plain, named:
                event = await until(lambda: told(reader, events, name, "canceled", tablet), "it is canceled", seen=lambda: name)
                expect(event["by"]["apnsId"] == removal, "the event names the removal", event)
            after = await producer.notify("user:ann", "after")
            await phone.frame("notify", id=after)

            async with Device(url, contract, user="ann", device=tablet.token) as back:
                await back.frame("notify", id=after)
                await back.frame("remove")
                await back.frame("notify", id=placed)
                await until(lambda: told(reader, events, removal, "removed", back), "it has acknowledged the removal")
                ids = {frame["id"] for frame in back.of("notify")}
                expect(ids == {placed, after}, "it finds the result and not the history", [ids, back.frames])
            async with Device(url, contract, user="ann", application="com.example.news", device=news.token) as reads:
                await reads.frame("notify", id=other)
                expect(not reads.of("remove"), "another application's stay", reads.frames)
            # By identifier, as ever; and one that comes too late for a removal of all.
            gone = await publish(arguments, "--target", "user:ann", "--operation", "remove", "--identifiers", after)
            frame = await phone.frame("remove", identifiers=[after])
            expect("all" not in frame, "one is removed", frame)
            await until(lambda: told(reader, events, gone, "removed", phone), "the device has acknowledged it")
    reading.cancel()
    expect(not contract.broken, "all frames keep the contract", contract.broken[:3])
    for record in reader.records[events]:
        contract.hold("event." + record.type, record.json)
    expect(not contract.broken, "all events keep the contract", contract.broken[:3])
    say(audit=await audit(arguments))


async def rebuilt(arguments, folder):
    contract = Contract(arguments.contract)
    events = arguments.prefix + "events"
    reader = Reader(arguments.kafka, [events])
    reading = asyncio.create_task(reader.run())
    producer = Producer(arguments.kafka, arguments.prefix + "requests")
    async with on_one_redis(arguments, folder) as (redis, cluster):
        transform = await cluster.started("transform", *cluster.group)
        fan_out = await cluster.started("fan-out", *SOON, "--listen", "127.0.0.1:0")
        url = fan_out.addresses["devices"]
        device = Device(url, contract, user="ada")
        async with device:
            pass

        def floor():
            key = redis.cli("KEYS", "d{*}" + device.token).decode()
            return redis.cli("--no-raw", "HGET", key, "f"), redis.cli("HSTRLEN", key, "u")

        before = await producer.notify("user:ada", "before")
        await producer.flush()
        removal = await publish(arguments, "--target", "user:ada", "--operation", "remove", "--all")
        after = await producer.notify("user:ada", "after")
        await producer.flush()
        await until(lambda: told(reader, events, before, "canceled", device), "what nobody saw is canceled")
        await until(lambda: committed(arguments) >= 3, "the group has committed")
        kept = floor()
        expect(len(kept[0]) > 60 and kept[1] == b"44", "the device has a floor", repr(kept))
        await emptied_and_rebuilt(redis, cluster, transform, fan_out)
        expect(floor() == kept, "it has the same floor again", [repr(floor()), repr(kept)])
        async with Device(url, contract, user="ada", device=device.token) as back:
            await back.frame("remove", all=True)
            await back.frame("notify", id=after)
            await until(lambda: told(reader, events, removal, "removed", back), "it has acknowledged the removal")
            expect(len(back.of("notify")) == 1, "what was canceled does not come", back.frames)
        say(audit=await audit(arguments))
    reading.cancel()


@shares
async def opened(arguments, folder, shared):
    contract = Contract(arguments.contract)
    events, requests = arguments.prefix + "events", arguments.prefix + "requests"
    reader = Reader(arguments.kafka, [events, requests])
    reading = asyncio.create_task(reader.run())
    producer = Producer(arguments.kafka, requests)

    def removals(of):
        return [record for record in reader.records[requests]
                if record.headers.get("operation") == "remove" and of["identifier"] in json.loads(record.value).get("identifiers", [])]

    async def respond(device, notify, action="com.apple.UNNotificationDefaultActionIdentifier", name=None):
        name = name or str(uuid.uuid4())
        await device.send({"type": "response", "response": name, "receipt": notify["receipt"], "identifier": notify["identifier"],
                           "action": action})
        await device.frame("accepted", response=name)
        return name

    async with shared.workers() as (_, _, (url, _)):
        away = Device(url, contract, user="otto")
        async with away:
            pass
        async with Device(url, contract, user="otto") as phone, Device(url, contract, user="otto") as tablet:
            name = await producer.notify("user:otto", when_opened="remove")
            other = await producer.notify("user:otto")
            here, there = await phone.frame("notify", id=name), await tablet.frame("notify", id=name)
            plain = await phone.frame("notify", id=other)
            await respond(phone, plain)
            # However often it answers, one session removes it once.
            for _ in range(5):
                await respond(phone, here)
            # Accepted, so it lies in Kafka.
            record = await until(lambda: removals(here), "the removal is among the requests")
            expect(json.loads(record[0].value)["notNewerThan"] == here["revision"], "it is bounded by what was opened", record[0].value.decode())
            frame = await tablet.frame("remove", identifiers=[name])
            expect(frame["revision"] >= there["revision"], "it takes what the tablet shows", [frame, there])
            await respond(tablet, there)
            expect(not removals(plain), "nobody asked for that one", [record.value.decode() for record in removals(plain)])
            async with Device(url, contract, user="otto", device=away.token) as back:
                await back.frame("notify", id=other)
                await back.frame("remove", identifiers=[name])
                expect(name not in {frame["id"] for frame in back.of("notify")}, "what was opened does not come to a device that was away")

            await until(lambda: len(removals(here)) >= 2, "both devices have removed it")
            expect(len(removals(here)) == 2, "each session removes it once", [record.value.decode() for record in removals(here)])

            # What was opened is older than what the others show by now.
            first = await producer.notify("user:otto", "first", apns_collapse_id="score", when_opened="remove")
            old = await phone.frame("notify", id=first)
            second = await producer.notify("user:otto", "second", apns_collapse_id="score")
            await tablet.frame("notify", id=second)
            await respond(phone, old)
            record = await until(lambda: removals(old), "the removal is among the requests")
            subject = record[0].headers["apns-id"]
            event = await until(lambda: told(reader, events, subject, "collapsed", tablet), "it is too late for the tablet")
            expect(event["by"]["apnsId"] == second, "the update stays", event)
            expect(not [frame for frame in tablet.of("remove") if "score" in frame["identifiers"]], "and nothing is removed", tablet.of("remove"))
    reading.cancel()
    expect(not contract.broken, "all frames keep the contract", contract.broken[:3])
    say(audit=await audit(arguments))


PARTS = {"all": everything, "opened": opened, "rebuilt": rebuilt}

if __name__ == "__main__":
    run_part(__doc__, PARTS, "carillon-removals-", contract="the AsyncAPI document")
