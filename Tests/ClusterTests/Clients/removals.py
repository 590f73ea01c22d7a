"""Removals of delivered notifications, by identifier and of all: real processes on a real Kafka and a real Redis, and devices in Python.

  all        a person removes all: a device that is connected, one that is away and comes back, one of another application, what waits for a
             place, and what is published afterwards; and the events of all of it
"""
import asyncio
import json
import subprocess

from clients import APPLICATION, Contract, Device, Producer, Reader, expect, say, until
from extensions import audit
from healing import on_one_redis, run_part
from letters import quietly

PLACE = json.dumps({"type": "location", "region": {"identifier": "shop", "latitude": 52.5, "longitude": 13.4, "radius": 100}})


def told(reader, topic, name, kind, device):
    """The event of this type on a request at a device, as JSON."""
    return next((record.json for record in reader.records[topic] if record.type == kind and record.headers["ce_subject"] == name
                 and record.json.get("device") == device.token), None)


async def publish(arguments, *words):
    """Publishes by the command, and gives the apns-id."""
    line = [arguments.binary, "publish", "--kafka", arguments.kafka, "--topic-prefix", arguments.prefix, "--app", APPLICATION, "--json", *words]
    done = await quietly(subprocess.run, line, capture_output=True, text=True, timeout=100)
    expect(done.returncode == 0, "it is published", done.stdout + done.stderr)
    return json.loads(done.stdout.splitlines()[-1])["apnsId"]


async def everything(arguments, folder):
    contract = Contract(arguments.contract)
    events = arguments.prefix + "events"
    reader = Reader(arguments.kafka, [events])
    reading = asyncio.create_task(reader.run())
    producer = Producer(arguments.kafka, arguments.prefix + "requests")
    async with on_one_redis(arguments, folder) as (_, cluster):
        await cluster.started("transform", *cluster.group)
        fan_out = await cluster.started("fan-out", "--listen", "127.0.0.1:0")
        url = fan_out.addresses["devices"]
        tablet = Device(url, contract, user="ada")
        async with tablet, Device(url, contract, user="ada", application="com.example.news"):
            seen = await producer.notify("user:ada", "seen by both")
            await tablet.frame("notify", id=seen)
            await until(lambda: told(reader, events, seen, "delivered", tablet), "it is delivered")
        news = Device(url, contract, user="ada", application="com.example.news")
        async with Device(url, contract, user="ada") as phone:
            plain = await producer.notify("user:ada", "plain")
            named = await producer.notify("user:ada", "named", apns_collapse_id="order-7")
            placed = await producer.notify("user:ada", "placed", trigger=PLACE)
            async with news:
                pass
            other = await producer.notify("device:" + news.token, "another application's", apns_topic="com.example.news")
            await producer.flush()
            for name in plain, named, placed:
                await phone.frame("notify", id=name)

            removal = await publish(arguments, "--target", "user:ada", "--operation", "remove", "--all")
            frame = await phone.frame("remove")
            expect(frame["all"] is True and frame["identifiers"] == [], "all are removed", frame)
            newest = max(frame["revision"] for frame in phone.of("notify"))
            expect(frame["revision"] > newest, "the removal is newer than what it removes", [frame, newest])
            await until(lambda: told(reader, events, removal, "removed", phone), "the device has acknowledged it")
            # Nobody has seen these at the tablet: they end before it comes back.
            for name in plain, named:
                event = await until(lambda: told(reader, events, name, "canceled", tablet), "it is canceled", seen=lambda: name)
                expect(event["by"]["apnsId"] == removal, "the event names the removal", event)
            after = await producer.notify("user:ada", "after")
            await phone.frame("notify", id=after)

            async with Device(url, contract, user="ada", device=tablet.token) as back:
                await back.frame("notify", id=after)
                await back.frame("remove")
                await back.frame("notify", id=placed)
                await until(lambda: told(reader, events, removal, "removed", back), "it has acknowledged the removal")
                ids = {frame["id"] for frame in back.of("notify")}
                expect(ids == {placed, after}, "it finds the result and not the history", [ids, back.frames])
            async with Device(url, contract, user="ada", application="com.example.news", device=news.token) as reads:
                await reads.frame("notify", id=other)
                expect(not reads.of("remove"), "another application's stay", reads.frames)
            # By identifier, as ever; and one that comes too late for a removal of all.
            gone = await publish(arguments, "--target", "user:ada", "--operation", "remove", "--identifiers", after)
            frame = await phone.frame("remove", identifiers=[after])
            expect("all" not in frame, "one is removed", frame)
            await until(lambda: told(reader, events, gone, "removed", phone), "the device has acknowledged it")
    reading.cancel()
    expect(not contract.broken, "all frames keep the contract", contract.broken[:3])
    for record in reader.records[events]:
        contract.hold("event." + record.type, record.json)
    expect(not contract.broken, "all events keep the contract", contract.broken[:3])
    say(audit=audit(arguments))


PARTS = {"all": everything}

if __name__ == "__main__":
    run_part(__doc__, PARTS, "carillon-removals-", contract="the AsyncAPI document")
