"""Dead letters, redriven when their cause is mended: real processes on a real Kafka and a real Redis, and devices in Python.

  reasons    letters of every reason that the contract has and that can occur, by a table: each is mended and arrives once; redriven again it is a
             repeat or a duplicate; what no header mends would be rejected again, and is discarded
  mended     letters are listed, counted, mended and redriven: what is superseded or has expired is not shown, and nothing is shown twice
  deadly     a record over which workers ended is redriven alone, and only when somebody says so; nobody loses anything by it
  killed     the redriving is killed again and again in the middle: the same line goes on, and each arrives once
  broker     the only broker is killed in the middle of a redriving: the tool says that the same line goes on, and each arrives once
"""
import asyncio
import collections
import json
import os
import re
import signal
import time
import uuid

import journal
from clients import APPLICATION, HANG, Device, Producer, Reader, expect, quietly, run, say, until
from dependencies import own_kafka
from extensions import RememberingDevice, audit
from healing import PILL, DeadlyProxy, bodies, committed, on_one_redis, run_part


async def letters(arguments, *words, code=0):
    """Runs a tool of the dead letters and gives its lines."""
    line = [arguments.binary, "dead-letters", *words, "--kafka", arguments.kafka, "--topic-prefix", arguments.prefix, "--json"]
    done = await run(*line)
    expect(code is None or done.returncode == code, "'dead-letters %s' ends with %s" % (" ".join(words), code), [done.returncode, done.stdout[-1500:], done.stderr[-800:]])
    return [json.loads(text) for text in done.stdout.splitlines()]


async def groups(arguments):
    return {(group["reason"], group["application"]): group for group in await letters(arguments, "list", code=None)}


class Bad:
    """Publishes what breaks rules, each with a body of its own."""

    def __init__(self, arguments, target):
        self.producer, self.target, self.bodies = Producer(arguments.kafka, arguments.prefix + "requests"), target, []

    def publish(self, body, value=None, target=None, **changes):
        self.bodies.append(body)
        target = target or self.target
        headers = {"target": target, "apns-topic": APPLICATION, "apns-id": str(uuid.uuid4())}
        headers.update({name.replace("_", "-"): text for name, text in changes.items()})
        payload = json.dumps({"aps": {"alert": value or body}, "custom": {"body": body}}).encode()
        self.producer.publish({name: text for name, text in headers.items() if text is not None}, payload, key=target)

    async def flush(self):
        await self.producer.flush()


class Way:
    """One way to a letter: headers that differ (None: absent; a list: as often as it has values), a payload, and what redrives it: words for the tool,
    `cause` where they do once the cause is mended, or None where nothing does. TARGET stands for the device's target."""

    def __init__(self, mend, payload=None, key=None, damaged=False, **headers):
        self.mend, self.payload, self.key, self.damaged, self.headers = mend, payload, key, damaged, headers


TARGET, KEPT, DUPLICATE = "device:TARGET", journal.KEPT, 3
# Every reason of the contract, and Poison, with the ways to it; or with a text that says why no letter has it today.
REASONS = {
    "BadCollapseId": [Way("--set apns-collapse-id=short", apns_collapse_id="x" * 65), Way("--unset apns-collapse-id", apns_collapse_id="")],
    "BadDeviceToken": [Way("--as-new --set target=" + TARGET, target="planet:mars"), Way("--as-new --set target=" + TARGET, target="device:xyz")],
    "BadExpirationDate": [
        Way("--set apns-expiration=%d" % (time.time() + 3_600), apns_expiration="soon"), Way("--unset apns-expiration", apns_expiration="-1")],
    "BadMessageId": [Way("--unset apns-id", apns_id="NOT-A-UUID")],
    "BadPriority": [Way("--set apns-priority=5", apns_priority="7")],
    "BadTopic": [
        Way("--set apns-topic=" + APPLICATION, apns_topic="com/example"), Way("--unset apns-push-type", apns_push_type="voip")],
    "DeviceTokenNotForTopic": [Way("--set apns-topic=" + APPLICATION, apns_topic="com.example.mail")],
    "DuplicateHeaders": [
        Way("--set apns-priority=5", apns_priority=["10", "5"]), Way("--set apns-topic=" + APPLICATION, apns_topic=[APPLICATION, APPLICATION])],
    "InvalidPushType": [Way("--unset apns-push-type", apns_push_type="pigeon")],
    "MissingDeviceToken": [Way("--as-new --set target=" + TARGET, target=None)],
    "MissingTopic": [Way("--set apns-topic=" + APPLICATION, apns_topic=None)],
    "PayloadEmpty": [Way(None, payload=b"")],
    "TopicDisallowed": "no cluster has a list of its applications",
    "PayloadTooLarge": [Way("cause", payload="x" * 5_000)],
    "ExpiredToken": "registrations do not expire",
    "Unregistered": "who is not registered has an event of its own",
    "TooManyRequests": "a bucket that has too many schedules gives it: see schedules.py; and a rate limit, without a letter: see limits.py",
    "FeatureNotEnabled": [
        Way("--unset apns-channel-id", apns_channel_id="bmV3cw=="),
        Way("--as-new --set target=" + TARGET, target="channel:news")],
    "BadRequestParams": [
        Way("--unset operation", operation="explode"), Way("--unset trigger", trigger="{"),
        Way("--unset trigger", trigger='{"type": "timeInterval", "timeInterval": 59, "repeats": true}'), Way("--unset carillon-origin", carillon_origin="nowhere")],
    "BadRequestPayload": [Way("--unset operation", operation="cancel"), Way(None, payload=b'{"aps": {"badge": "three"}}'), Way(None, payload=b"[]")],
    "MissingChannelId": "there are no channels",
    "BadChannelId": "there are no channels",
    "ChannelNotRegistered": "there are no channels",
    "InternalServerError": "the event of a request that could not be processed says so, and its letter Poison",
    "Poison": [Way("cause", damaged=True)],
}


def given_by_sources(contract):
    """The reasons that a source of the program rejects something with, apart from what could not be processed."""
    module = os.path.dirname(os.path.dirname(contract))
    with open(os.path.join(module, "Requests", "RejectionReason.swift")) as file:
        cases = dict(re.findall(r'case (\w+) = "(\w+)"', file.read()))
    expect(len(cases) > 20, "the reasons have their names in the sources", cases)
    given = set()
    for place, _, names in os.walk(os.path.dirname(module)):
        for name in names:
            if name.endswith(".swift"):
                with open(os.path.join(place, name)) as file:
                    given |= set(re.findall(r"Rejection\(\s*\.(\w+)", file.read()))
    return {cases[name] for name in given & set(cases)} - {"InternalServerError", "TooManyRequests"}


async def damage(arguments, redis, device):
    """Damages what Redis has of one of two devices, keeps it beside, and answers its key."""
    # A registration that is applied later mends what cannot be read.
    await until(lambda: committed(arguments, "devices") >= 2, "both devices are registered, and the transform worker knows")
    key = redis.cli("KEYS", "d{*}" + device.token).decode()
    redis.cli("RENAME", key, "kept")
    redis.cli("SET", key, "damaged")
    return key


async def reasons(arguments, folder):
    with open(arguments.contract) as file:
        known = json.load(file)["components"]["schemas"]["rejectionReason"]["enum"]
    expect({*known, "Poison"} == set(REASONS), "the table has each reason of the contract", sorted({*known, "Poison"} ^ set(REASONS)))
    given = sorted(reason for reason in given_by_sources(arguments.contract) if not isinstance(REASONS[reason], list))
    expect(not given, "what the table says of no letter is given by no source", given)
    ways = [(reason, way) for reason, all in REASONS.items() if isinstance(all, list) for way in all]
    reader = Reader(arguments.kafka, [arguments.prefix + name for name in ("dead-letters", "journal", "events")])
    reading = asyncio.create_task(reader.run())
    producer = Producer(arguments.kafka, arguments.prefix + "requests")

    def written():
        return [record for record in reader.records[arguments.prefix + "dead-letters"] if "carillon-dead-letter-reason" in record.headers]

    def verdicts():
        """What the journal says, by partition and offset of the request's record."""
        return {
            (record.partition, offset): verdict for record in reader.records[arguments.prefix + "journal"]
            for offset, _, _, verdict in journal.entries(record.value)}

    async with on_one_redis(arguments, folder) as (redis, cluster):
        worker = await cluster.started("transform", "--tries", "2", *cluster.group)
        fan_out = await cluster.started("fan-out", "--listen", "127.0.0.1:0")
        url = fan_out.addresses["devices"]
        async with Device(url, None) as device, Device(url, None) as damaged:
            key = await damage(arguments, redis, damaged)
            for number, (_, way) in enumerate(ways):
                headers = {"target": "device:" + (damaged if way.damaged else device).token, "apns-topic": APPLICATION, "apns-id": str(uuid.uuid4()),
                           "way": str(number)}
                headers.update({name.replace("_", "-"): value for name, value in way.headers.items()})
                pairs = [(name, each) for name, value in headers.items() if value is not None for each in (value if isinstance(value, list) else [value])]
                payload = way.payload
                if not isinstance(payload, bytes):
                    payload = json.dumps({"aps": {"alert": payload or "x"}, "custom": {"body": str(number)}}).encode()
                producer.publish(pairs, payload)
            await producer.flush()
            await until(lambda: len(written()) == len(ways), "each is a dead letter", lambda: [len(written()), len(ways)])
            found = {int(record.headers["way"]): record for record in written()}
            told = {number: record.headers["carillon-dead-letter-reason"] for number, record in found.items()}
            expect(told == {number: reason for number, (reason, _) in enumerate(ways)}, "for the reason that it was made for", told)
            expect(not bodies(device) and not bodies(damaged), "and nothing of it is shown")
            expect({reason for reason, _ in await groups(arguments)} == {reason for reason, _ in ways}, "a group for each reason")
            places = {number: "%d:%d" % (record.partition, record.offset) for number, record in found.items()}

            # The causes that lie elsewhere are mended: a device's state is repaired, and the cluster takes larger payloads.
            redis.cli("DEL", key)
            redis.cli("RENAME", "kept", key)
            worker.send_signal(signal.SIGTERM)
            await quietly(worker.wait)
            await cluster.started("transform", "--tries", "2", "--payload-bytes", "16KiB", *cluster.group)
            mends = collections.defaultdict(list)
            for number, (_, way) in enumerate(ways):
                mends[way.mend].append(number)
            hopeless = mends.pop(None)

            async def redrive(*more):
                """Redrives all that can be mended; the request's place in the topic and its apns-id by the number of the way."""
                again = {}
                for mend, numbers in mends.items():
                    words = [] if mend == "cause" else mend.replace(TARGET, "device:" + device.token).split()
                    done = await letters(
                        arguments, "redrive", *(places[number] for number in numbers), *words, "--payload-bytes", "16KiB", *more)
                    lines = {line["letter"]: line for line in done[:-1]}
                    expect(done[-1]["written"] == len(numbers), "'%s' mends each" % mend, done)
                    for number in numbers:
                        line = lines[places[number]]
                        again[number] = (tuple(map(int, line["request"].split(":"))), line["apnsId"])
                return again

            def seen():
                return collections.Counter(bodies(device)), collections.Counter(bodies(damaged))

            wanted = (collections.Counter(str(n) for n, (_, way) in enumerate(ways) if way.mend and not way.damaged),
                      collections.Counter(str(n) for n, (_, way) in enumerate(ways) if way.damaged))
            await redrive()
            await until(lambda: seen() == wanted, "each arrives once, at its device", lambda: [wanted[0] - seen()[0], seen()[0] - wanted[0]])

            # All of it again. What kept its first place is known to the device's ids as the same record, what is new as another.
            await until(lambda: not redis.cli("--scan", "--pattern", "m{*"), "the mailboxes are empty")
            again = await redrive("--again")
            await until(lambda: all(place in verdicts() for place, _ in again.values()), "each is judged")
            new = set()
            for number, (place, name) in again.items():
                isNew = "--as-new" in ways[number][1].mend
                expect(verdicts()[place] == (DUPLICATE if isNew else KEPT), "it is a duplicate, or a repeat", [ways[number][0], verdicts()[place]])
                if isNew:
                    new.add(name)

            def twice():
                return {record.headers["ce_subject"] for record in reader.records[arguments.prefix + "events"] if record.type == "duplicate"}

            await until(lambda: new <= twice(), "and an event says so of each duplicate", lambda: sorted(new - twice()))
            expect(not redis.cli("--scan", "--pattern", "m{*"), "no mailbox has it a second time")
            for each in (device, damaged):
                await each.frame("notify", id=await producer.notify("device:" + each.token, "last"))
            last = collections.Counter(["last"])
            expect(seen() == (wanted[0] + last, wanted[1] + last), "nothing is shown twice", seen())

            # What no header mends would be rejected again, and is discarded.
            left = await letters(arguments, "redrive", *(places[number] for number in hopeless), code=1)
            expect(left[-1]["left"] == len(hopeless) and all(line["why"] == "breaksRule" for line in left[:-1]), "it is left as it is", left)
            names = {ways[number][0] for number in hopeless}
            await letters(arguments, "discard", *(places[number] for number in hopeless), "--note", "nothing mends it")
            counts = await groups(arguments)
            expect(all(group["pending"] == 0 for group in counts.values()), "nothing is pending", list(counts.values()))
            expect({reason for (reason, _), group in counts.items() if group["discarded"]} == names, "and these are discarded", list(counts.values()))
            say(ways=len(ways), reasons=len({reason for reason, _ in ways}), hopeless=sorted(names))
        await audit(arguments)
    reading.cancel()


async def mended(arguments, folder):
    reader = Reader(arguments.kafka, [arguments.prefix + name for name in ("dead-letters", "requests")])
    reading = asyncio.create_task(reader.run())
    records = reader.records[arguments.prefix + "dead-letters"]

    def written():
        return [record for record in records if "carillon-dead-letter-reason" in record.headers]

    async with on_one_redis(arguments, folder) as (redis, cluster):
        worker = await cluster.started("transform", "--tries", "2", *cluster.group)
        fan_out = await cluster.started("fan-out", "--listen", "127.0.0.1:0")
        url = fan_out.addresses["devices"]
        async with Device(url, None, user="ada") as device, Device(url, None) as damaged:
            bad = Bad(arguments, "device:" + device.token)
            bad.publish("topic", apns_topic=None)
            bad.publish("person", apns_topic=None, target="user:ada")
            bad.publish("priority", apns_priority="7")
            bad.publish("collapsed", apns_priority="7", apns_collapse_id="order-7")
            bad.publish("id", apns_id="NOT-A-UUID")
            bad.publish("large", value="x" * 5000)
            # With the headers of a letter it is more than a record may be: only its source has it.
            bad.publish("elsewhere", apns_priority="7", more="x" * 1_047_600)
            bad.publish("target", target="planet:mars")
            bad.publish("expired", apns_push_type="pigeon", apns_expiration="1")
            await bad.flush()
            key = await damage(arguments, redis, damaged)
            bad.publish("poison", target="device:" + damaged.token)
            good = await bad.producer.notify(bad.target, "good")
            await bad.flush()
            await device.frame("notify", id=good)
            await until(lambda: len(written()) == len(bad.bodies), "each is a dead letter", lambda: [len(written()), len(bad.bodies)])
            redis.cli("DEL", key)
            redis.cli("RENAME", "kept", key)

            found = await groups(arguments)
            expect({reason for reason, _ in found} == {"MissingTopic", "BadPriority", "BadMessageId", "PayloadTooLarge", "BadDeviceToken",
                                                       "InvalidPushType", "Poison"}, "a group for each reason", list(found))
            expect(found["MissingTopic", None]["pending"] == 2 and found["BadPriority", APPLICATION]["letters"] == 2, "with their numbers", list(found.values()))
            place = {}
            for letter in await letters(arguments, "list", "--all"):
                place.setdefault(letter["reason"], []).append(letter["letter"])
            shown = (await letters(arguments, "show", place["PayloadTooLarge"][0]))[0]
            expect("payload" not in shown and shown["payloadBytes"] > 5000 and shown["source"]["topic"] == arguments.prefix + "requests",
                   "a letter is shown without its payload", shown)

            # Nothing is mended yet, so each would be rejected again.
            dry = await letters(arguments, "redrive", "--reason", "BadPriority,MissingTopic", "--dry-run", code=1)
            expect(dry[-1]["written"] == 0 and dry[-1]["left"] == 5, "what would be rejected again is left", dry)
            expect(bodies(device) == ["good"], "nothing was shown meanwhile", bodies(device))

            # A newer one of the same collapse id comes before the letter is redriven.
            newer = await bad.producer.notify(bad.target, "newer", apns_collapse_id="order-7")
            await device.frame("notify", id=newer)
            listed = await letters(arguments, "list", "--all")
            elsewhere = next(l["letter"] for l in listed if l["reason"] == "BadPriority" and "application" not in l)
            dry = await letters(arguments, "redrive", "--reason", "InvalidPushType", "--unset", "apns-push-type", "--dry-run")
            expect((dry[-1]["written"], dry[-1]["expired"]) == (1, 1), "a dry run counts what has expired", dry)

            done = await letters(arguments, "redrive", "--reason", "MissingTopic", "--set", "apns-topic=" + APPLICATION, "--wait", "30s")
            outcomes = [line["state"] for line in done if line.get("settled")]
            expect(done[-1]["written"] == 2 and outcomes == ["ended", "ended"], "what became of each is told", done)
            await letters(arguments, "redrive", "--reason", "BadPriority", "--app", APPLICATION, "--set", "apns-priority=5")
            await letters(arguments, "redrive", elsewhere, "--set", "apns-priority=5", "--unset", "more")
            await letters(arguments, "redrive", "--reason", "BadMessageId", "--unset", "apns-id")
            await letters(arguments, "redrive", "--reason", "InvalidPushType", "--unset", "apns-push-type")
            await letters(arguments, "redrive", "--reason", "Poison")
            await letters(arguments, "redrive", "--reason", "BadDeviceToken", "--set", "target=" + bad.target, code=2)
            await letters(arguments, "redrive", "--reason", "BadDeviceToken", "--set", "target=" + bad.target, "--as-new")
            # The limit is raised in the cluster, and given to the tool.
            await letters(arguments, "redrive", "--reason", "PayloadTooLarge", code=1)
            worker.send_signal(signal.SIGTERM)
            await quietly(worker.wait)
            await cluster.started("transform", "--tries", "2", "--payload-bytes", "16KiB", *cluster.group)
            await letters(arguments, "redrive", "--reason", "PayloadTooLarge", "--payload-bytes", "16KiB")

            # What is superseded or has expired is not shown.
            wanted = sorted({"good", "newer", *bad.bodies} - {"poison", "collapsed", "expired"})
            await until(lambda: sorted(bodies(device)) == wanted and bodies(damaged) == ["poison"], "each arrives once",
                        lambda: [sorted(bodies(device)), bodies(damaged), wanted])
            expect(await letters(arguments, "list", "--state", "pending", code=1) == [], "nothing is pending")
            shown = (await letters(arguments, "show", place["MissingTopic"][0]))[0]
            expect(shown["state"] == "redriven" and len(shown["states"]) == 1 and "@" in shown["states"][0]["by"], "who redrove it, and when", shown)

            # All over again: those made new lose their id's record only, the others are repeats.
            await letters(arguments, "redrive", "--everything", "--payload-bytes", "16KiB", code=0)
            again = await letters(arguments, "redrive", "--reason", "MissingTopic", "--set", "apns-topic=" + APPLICATION, "--again")
            expect(again[-1]["written"] == 2, "what was redriven goes once more when that is said", again)
            await letters(arguments, "redrive", "--reason", "PayloadTooLarge,Poison", "--again", "--payload-bytes", "16KiB")
            await letters(arguments, "redrive", "--reason", "BadPriority", "--app", APPLICATION, "--set", "apns-priority=5", "--again")
            await letters(arguments, "redrive", "--reason", "BadDeviceToken", "--set", "target=" + bad.target, "--as-new", "--again")
            last = await bad.producer.notify(bad.target, "last")
            await bad.flush()
            await device.frame("notify", id=last)
            done = await letters(arguments, "discard", "--reason", "BadMessageId", "--note", "a test")
            expect((done[-1]["discarded"], done[-1]["handled"]) == (0, 1), "what was redriven is passed over", done)
            done = await letters(arguments, "discard", "--reason", "BadMessageId", "--note", "a test", "--again")
            shown = (await letters(arguments, "show", "--reason", "BadMessageId"))[0]
            expect([state["state"] for state in shown["states"]] == ["redriven", "discarded"], "it is discarded, and that is noted", shown)
            # What lies behind all of these comes, and nothing of them before it.
            for each in (device, damaged):
                await each.frame("notify", id=await bad.producer.notify("device:" + each.token, "behind"))
            wanted.append("behind")
            expect(sorted(bodies(device)) == sorted(wanted + ["last"]), "nothing is shown twice", sorted(bodies(device)))
            expect(bodies(damaged) == ["poison", "behind"], "nor at the other device", bodies(damaged))
        await audit(arguments)
    reading.cancel()


async def deadly(arguments, folder):
    proxy = DeadlyProxy()
    producer = Producer(arguments.kafka, arguments.prefix + "requests")
    async with on_one_redis(arguments, folder, proxy) as (redis, cluster):
        async def supervise():
            while True:
                worker = cluster.start("transform", "--session-timeout", "2s", "--in-flight", "7", *cluster.group)
                proxy.victim = worker
                while worker.poll() is None:
                    await asyncio.sleep(0.02)

        fan_out = await cluster.started("fan-out", "--listen", "127.0.0.1:0")
        supervisor = asyncio.create_task(supervise())
        async with Device(fan_out.addresses["devices"], None) as device:
            target = "device:" + device.token
            for number in range(10):
                await producer.notify(target, PILL.decode() if number == 5 else "good %d" % number)
            await producer.flush()
            found = await until(lambda: letters(arguments, "list", "--all", code=None), "there is a dead letter", lambda: proxy.deaths)
            expect(len(found) == 1 and found[0]["reason"] == "Poison", "the pill is a dead letter", found)
            place = found[0]["letter"]
            left = await letters(arguments, "redrive", "--everything", code=1)
            expect(left[0]["why"] == "endsWorkers" and left[-1]["written"] == 0, "it is left unless somebody says otherwise", left)
            await letters(arguments, "redrive", "--reason", "Poison", "--force", code=2)
            # The cause is mended: nobody is killed any more.
            proxy.victim, deaths = None, proxy.deaths
            expect(PILL.decode() not in bodies(device), "nothing of it was shown", bodies(device))
            # One that is refused and one that goes are told apart by the word alone.
            done = await letters(arguments, "redrive", place, "--force")
            expect(done[-1]["written"] == 1, "it is redriven alone", done)
            await until(lambda: len(device.of("notify")) == 10, "each arrives once", lambda: bodies(device))
            expect(proxy.deaths == deaths, "and no worker ends over it", proxy.deaths)
            await letters(arguments, "redrive", place, "--force", "--again")
            await producer.notify(target, "last")
            await producer.flush()
            await until(lambda: "last" in bodies(device), "the last one arrives", lambda: bodies(device))
            expect(sorted(bodies(device)) == sorted(set(bodies(device))) and len(bodies(device)) == 11, "nothing is shown twice", bodies(device))
        await audit(arguments)
        supervisor.cancel()


async def killed(arguments, folder):
    """Letters enough for several rounds; whoever redrives them is killed at any moment, and asked to end at another."""
    count = 9_000
    async with on_one_redis(arguments, folder) as (redis, cluster):
        # Whatever is left to wait for the device has room in its mailbox.
        await cluster.started("transform", "--mailbox-bound", "10000", *cluster.group)
        fan_out = await cluster.started("fan-out", "--listen", "127.0.0.1:0")
        async with RememberingDevice(fan_out.addresses["devices"], None) as device:
            bad = Bad(arguments, "device:" + device.token)
            for number in range(count):
                bad.publish("%d" % number, apns_topic=None)
            await bad.flush()

            async def pending():
                return (await groups(arguments)).get(("MissingTopic", None), {"pending": -1})["pending"]

            async def are_all():
                return await pending() == count

            await until(are_all, "each is a dead letter")
            line = [arguments.binary, "dead-letters", "redrive", "--reason", "MissingTopic", "--set", "apns-topic=" + APPLICATION,
                    "--kafka", arguments.kafka, "--topic-prefix", arguments.prefix, "--json"]
            for number in (signal.SIGKILL, signal.SIGKILL, signal.SIGINT):
                # Little is read ahead of the test, and the tool waits for its reader: so it is in the middle.
                process = await asyncio.create_subprocess_exec(*line, stdout=asyncio.subprocess.PIPE, stderr=cluster.log, limit=1 << 14)
                for _ in range(300):
                    expect(await process.stdout.readline(), "it redrives some")
                process.send_signal(number)
                await process.stdout.read()
                code = await process.wait()
                expect(code == (1 if number == signal.SIGINT else -number), "it ends as it was told to", code)
                left = await pending()
                say(left=left, after=number.name)
            expect(0 < left < count, "some of them are left", left)
            await letters(arguments, "redrive", "--reason", "MissingTopic", "--set", "apns-topic=" + APPLICATION)
            expect(await pending() == 0, "the same line goes on to the end")
            # What was redriven by two of them comes twice where the cluster has forgotten its id, and the device knows it.
            await until(lambda: len(device.shown) >= count, "each is shown", lambda: len(device.shown))
            expect({int(body) for body in bodies(device)} == set(range(count)), "and none is another", len(device.shown))
            say(notified=len(bodies(device)))
        await audit(arguments)


async def broker(arguments, folder):
    count = 3_000
    async with own_kafka(arguments, folder) as kafka, on_one_redis(arguments, folder) as (redis, cluster):
        await cluster.started("transform", "--mailbox-bound", "10000", *cluster.group)
        fan_out = await cluster.started("fan-out", "--listen", "127.0.0.1:0")
        async with RememberingDevice(fan_out.addresses["devices"], None) as device:
            bad = Bad(arguments, "device:" + device.token)
            for number in range(count):
                bad.publish("%d" % number, apns_topic=None)
            await bad.flush()

            async def pending():
                # There may be none yet.
                return sum(group["pending"] for group in await letters(arguments, "list", code=None))

            async def are_all():
                return await pending() == count

            await until(are_all, "each is a dead letter")
            words = ["redrive", "--reason", "MissingTopic", "--set", "apns-topic=" + APPLICATION]
            # Nobody waits a minute for what one knows after some seconds.
            soon = ["--kafka.message.timeout.ms", "15000"]
            line = [arguments.binary, "dead-letters", *words, *soon, "--kafka", arguments.kafka, "--topic-prefix", arguments.prefix, "--json"]
            # Little is read ahead of the test, and the tool waits for its reader: so it is in the middle.
            process = await asyncio.create_subprocess_exec(*line, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, limit=1 << 14)
            for _ in range(300):
                expect(await process.stdout.readline(), "it redrives some")
            kafka.kill()
            output, errors = await asyncio.wait_for(process.communicate(), HANG)
            expect(process.returncode == 3, "it ends since Kafka is lost", [process.returncode, errors.decode()])
            says = "Kafka does not answer any more at " + arguments.kafka
            expect(says in errors.decode() and "the same command continues" in errors.decode(),
                   "and says how to go on", errors.decode())
            await kafka.restart(arguments.kafka)
            left = await pending()
            expect(0 < left < count, "some of them are left", left)
            done = await letters(arguments, *words)
            expect(await pending() == 0 and done[-1]["written"] == left, "the same line goes on to the end", done[-1])
            await until(lambda: len(device.shown) >= count, "each is shown", lambda: len(device.shown))
            expect({int(body) for body in bodies(device)} == set(range(count)) and len(device.shown) == count, "and shown once", len(device.shown))
            say(left=left, notified=len(bodies(device)))
            await until(lambda: not redis.cli("--scan", "--pattern", "m{*"), "nothing waits any more")
        await audit(arguments)


PARTS = {part.__name__: part for part in (reasons, mended, deadly, killed, broker)}


if __name__ == "__main__":
    run_part(__doc__, PARTS, "carillon-letters-", kafka_folder=None, contract=None)
