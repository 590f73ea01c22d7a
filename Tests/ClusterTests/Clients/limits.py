"""Rate limits, with real processes, a real Redis and a real Kafka.

  few     an application has a limit: the requests beyond it are rejected, and no others
  flood   an application floods: one of two workers is killed in the middle, another takes its partitions over, and Redis loses everything and is
          rebuilt. The requests that are rejected are those that a model counts in the log, no more and no fewer, and the audit says the same.
  untold  Redis loses everything, and the journal is deleted: a rebuild counts the requests, and brings back those that were accepted
  behind  another application's single notification behind a flood in its partition, without a limit and with one
"""
import asyncio
import collections
import datetime
import json
import random
import signal
import time
import uuid

import confluent_kafka.admin

from clients import APPLICATION, Device, Producer, Reader, asked, expect, run, say, until
from healing import bodies, committed, on_one_redis, ready, run_part, two_devices, unready

PER_TARGET, PER_APPLICATION, WINDOW = 25, 160, 2_000
TARGETS = ["user:ada", "user:grace", "user:linus", "device:" + "ab" * 32, "device:" + "AB" * 32] + ["user:%d" % number for number in range(40)]
DELAY, STEP_BACK = 5_000, 60_000


async def said(arguments, *words, code=0):
    result = await asked(arguments.binary, *words, "--kafka", arguments.kafka, "--topic-prefix", arguments.prefix, "--json")
    expect(result.returncode == code, "carillon %s ends with %d" % (" ".join(words[:2]), code), result.stdout + result.stderr)
    return [json.loads(line) for line in result.stdout.splitlines()]


def model(requests, since, per_target=PER_TARGET, per_application=PER_APPLICATION, length=WINDOW):
    """The places of the requests beyond the limit, by their records alone."""
    beyond = set()
    latest, windows = {}, collections.defaultdict(lambda: (None, 0, collections.Counter()))
    for record in sorted(requests, key=lambda record: (record.partition, record.offset)):
        before = latest.get(record.partition, -1)
        if record.timestamp > before or before - record.timestamp > STEP_BACK:
            latest[record.partition] = record.timestamp
        if record.headers.get("apns-topic") != APPLICATION or record.timestamp < since:
            continue
        number = latest[record.partition] // length
        window, total, targets = windows[record.partition]
        if window != number:
            total, targets = 0, collections.Counter()
        # The token of a device is the same in both cases.
        target = record.headers["target"].lower()
        total, targets[target] = total + 1, targets[target] + 1
        windows[record.partition] = (number, total, targets)
        if targets[target] > per_target or total > per_application:
            beyond.add((record.partition, record.offset))
    return beyond


async def flood(arguments, folder):
    requests, events, letters = [arguments.prefix + name for name in ("requests", "events", "dead-letters")]
    limit = await said(arguments, "applications", "limit", APPLICATION, "--per-target", str(PER_TARGET), "--per-application", str(PER_APPLICATION),
                "--window", "2s")
    expect(limit[0]["limits"][-1]["perTarget"] == PER_TARGET, "the limit is set", limit)
    async with on_one_redis(arguments, folder) as (redis, cluster):
        workers = [await cluster.started("transform", *cluster.group) for _ in range(2)]
        await until(lambda: all(map(ready, workers)), "the workers are ready")
        producer, chance = Producer(arguments.kafka, requests, linger=5), random.Random(7)
        ids, sent, end = [str(uuid.uuid4()) for _ in range(100)], 0, time.monotonic() + 24
        steps = iter([(8, "kill"), (10, "replace"), (14, "flush"), (17, "rebuild"), (60, None)])
        (at, step), begun = next(steps), time.monotonic()
        while time.monotonic() < end:
            for _ in range(30):
                target = TARGETS[0] if chance.random() < 0.3 else chance.choice(TARGETS)
                headers = {"target": target, "apns-topic": APPLICATION if chance.random() < 0.9 else "com.example.other"}
                if chance.random() < 0.05:
                    headers["apns-priority"] = "11"
                if chance.random() < 0.2:
                    headers["apns-id"] = chance.choice(ids)
                producer.publish(headers, b'{"aps":{"alert":"x"}}', key=target.lower())
                sent += 1
            await asyncio.sleep(0.04)
            if time.monotonic() - begun < at:
                continue
            if step == "kill":
                workers[0].send_signal(signal.SIGKILL)
            elif step == "replace":
                cluster.start("transform", *cluster.group)
            elif step == "flush":
                redis.cli("FLUSHALL")
                await until(lambda: unready(workers[1]), "the worker says that Redis has lost what it had")
            elif step == "rebuild":
                rebuild = await run(arguments.binary, "rebuild", *cluster.common, *cluster.group, "--json")
                expect(rebuild.returncode == 0, "Redis is rebuilt", rebuild.stderr)
            (at, step) = next(steps)
        await producer.flush()
        await until(lambda: committed(arguments) >= sent, "all requests are finished", lambda: (committed(arguments), sent))
        reader = Reader(arguments.kafka, [requests, events, letters])
        task = asyncio.create_task(reader.run())
        await until(lambda: len(reader.records[requests]) >= sent, "all requests are read")
        since = min(record.timestamp for record in reader.records[requests] if record.timestamp) - 1
        since = max(since, parsed(limit[0]["limits"][-1]["from"]))
        wanted = model(reader.records[requests], since)

        def rejected():
            return {(event.json["source"]["partition"], event.json["source"]["offset"]) for event in reader.records[events]
                    if event.type == "rejected" and event.json["reason"] == "TooManyRequests"}

        await until(lambda: len(rejected()) >= len(wanted), "the rejected requests are read", lambda: (len(rejected()), len(wanted)))
        await asyncio.sleep(1)
        expect(rejected() == wanted, "those beyond the limit are rejected, and no others",
               {"not rejected": sorted(wanted - rejected())[:10], "rejected": sorted(rejected() - wanted)[:10]})
        expect(len(wanted) > 500 and sent - len(wanted) > 500, "there are many of both", (len(wanted), sent))
        others = [letter.headers["carillon-dead-letter-reason"] for letter in reader.records[letters]]
        expect(others and set(others) == {"BadPriority"}, "only what breaks a rule is a dead letter", collections.Counter(others))
        task.cancel()
        audit = await said(arguments, "audit", "--grace", "0s")
        expect(audit[-1]["violations"] == 0, "the audit counts the same", audit[:5])
        say(sent=sent, rejected=len(wanted))


async def few(arguments, folder):
    requests, events = [arguments.prefix + name for name in ("requests", "events")]
    limit = await said(arguments, "applications", "limit", APPLICATION, "--per-target", "3", "--window", "10s")
    since = parsed(limit[0]["limits"][-1]["from"])
    reader = Reader(arguments.kafka, [requests, events])
    task = asyncio.create_task(reader.run())
    async with on_one_redis(arguments, folder) as (_, cluster):
        await cluster.started("transform", *cluster.group)
        await until(lambda: time.time() * 1000 > since + 1_000, "the limit has begun")
        producer = Producer(arguments.kafka, requests)
        names = {await producer.notify(target) for target in ("user:ada", "user:grace") for _ in range(20)}
        names |= {await producer.notify("user:ada", apns_topic="com.example.other") for _ in range(20)}
        await producer.flush()

        def told(kind):
            return {record.headers["ce_subject"] for record in reader.records[events] if record.type == kind}

        await until(lambda: len(reader.records[requests]) == len(names), "all requests are read")
        await until(lambda: told("rejected") | told("unregistered") == names, "each has its answer")
        beyond = model(reader.records[requests], since, 3, len(names), 10_000)
        wanted = {record.headers["apns-id"] for record in reader.records[requests] if (record.partition, record.offset) in beyond}
        expect(wanted and told("rejected") == wanted, "those beyond the limit are rejected, and no others", [len(told("rejected")), len(wanted)])
        reasons = {record.json["reason"] for record in reader.records[events] if record.type == "rejected"}
        expect(reasons == {"TooManyRequests"}, "for that reason", reasons)
    task.cancel()


async def untold(arguments, folder):
    requests, journal = arguments.prefix + "requests", arguments.prefix + "journal"
    limit = await said(arguments, "applications", "limit", APPLICATION, "--per-target", "3", "--window", "10s")
    since = parsed(limit[0]["limits"][-1]["from"])
    count = 30

    async def work(redis, cluster, transform, fan_out, url, present, absent):
        producer = Producer(arguments.kafka, requests)
        await until(lambda: time.time() * 1000 > since + 1_000, "the limit has begun")
        for number in range(count):
            await producer.notify("user:grace", "number %d" % number)
        await producer.flush()
        await until(lambda: committed(arguments) >= count, "all requests are finished")
        reader = Reader(arguments.kafka, [requests])
        task = asyncio.create_task(reader.run())
        await until(lambda: len(reader.records[requests]) >= count, "all requests are read")
        task.cancel()
        beyond = model(reader.records[requests], since, 3, count, 10_000)
        accepted = {record.json["custom"]["body"] for record in reader.records[requests] if (record.partition, record.offset) not in beyond}
        expect(len(accepted) < count / 2, "most are beyond the limit", sorted(accepted))
        admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": arguments.kafka})
        ends = [confluent_kafka.TopicPartition(journal, number, confluent_kafka.OFFSET_END)
                for number in admin.list_topics(journal, 20).topics[journal].partitions]
        for deletion in admin.delete_records(ends).values():
            deletion.result(60)
        redis.cli("FLUSHALL")
        await until(lambda: unready(transform, fan_out), "both workers say that Redis has lost what it had")
        rebuild = await run(arguments.binary, "rebuild", *cluster.common, *cluster.group, "--json")
        expect(rebuild.returncode == 0, "Redis is rebuilt", rebuild.stderr)
        await until(lambda: ready(transform) and ready(fan_out), "the workers go on by themselves")
        async with Device(url, None, **{key: absent[key] for key in ("device", "user")}) as late:
            await until(lambda: set(bodies(late)) >= accepted, "the device finds what was accepted", lambda: bodies(late))
            # Pages of a mailbox are sent in its order, before what comes later.
            await until(lambda: time.time() * 1000 > reader.records[requests][-1].timestamp + 10_000, "the next window has begun")
            await producer.notify("user:grace", "the last")
            await until(lambda: "the last" in bodies(late), "a later request arrives")
            expect(set(bodies(late)) - {"the last"} == accepted, "and nothing else", sorted(set(bodies(late)) - accepted))
        say(accepted=len(accepted))

    await two_devices(arguments, folder, work)


async def behind(arguments, folder):
    flooding, count = "com.example.flood", 20_000
    async with on_one_redis(arguments, folder) as (redis, cluster):
        transform = await cluster.started("transform", *cluster.group)
        fan_out = await cluster.started("fan-out", "--listen", "127.0.0.1:0")
        url, producer, took = fan_out.addresses["devices"], Producer(arguments.kafka, arguments.prefix + "requests", linger=5), {}
        async with Device(url, None, user="eve", application=flooding) as flooded, Device(url, None, user="ada") as other:
            for name in ("without a limit", "with a limit"):
                if name == "with a limit":
                    limit = await said(arguments, "applications", "limit", flooding, "--per-target", "20")
                    await until(lambda: time.time() * 1000 > parsed(limit[0]["limits"][-1]["from"]) + 1_000, "the limit has begun")
                for _ in range(count):
                    headers = {"target": "device:" + flooded.token, "apns-topic": flooding}
                    producer.publish(headers, b'{"aps":{"alert":"x"}}', key="flood", partition=0)
                single = {"target": "user:ada", "apns-topic": APPLICATION, "apns-id": str(uuid.uuid4())}
                producer.publish(single, b'{"aps":{"alert":"single"},"custom":{"body":"single"}}', key="single", partition=0)
                began = time.monotonic()
                await producer.flush()
                await until(lambda: any(frame["id"] == single["apns-id"] for frame in other.of("notify")), "the single one arrives")
                took[name] = round(time.monotonic() - began, 2)
                await until(lambda: committed(arguments) >= (count + 1) * len(took), "all requests are finished")
            await until(lambda: ready(transform) and ready(fan_out), "the workers are ready")
        audit = await said(arguments, "audit", "--grace", "0s")
        expect(audit[-1]["violations"] == 0, "the audit finds no violation", audit[:5])
        say(seconds=took)


def parsed(text):
    return int(datetime.datetime.fromisoformat(text).timestamp() * 1000)


if __name__ == "__main__":
    run_part(__doc__, {"few": few, "flood": flood, "untold": untold, "behind": behind}, "carillon-limits-")
