"""What is due at a time: real processes on a real Kafka and a real Redis, and devices in Python.

  once       a time interval: shown at its time and not before, to devices and people, connected and absent; replaced, canceled, published twice,
             of a stopped application, of another person; garbage
  repeats    a calendar trigger that repeats, in the zones of two devices of one person, over two minutes
  moves      a wall time comes where a device is now: of a person and of a device, with a new device, and while the worker is down
  places     a location trigger is canceled and replaced: a device that has it, and one that is away
  rules      expiration from each due time, two applications, nobody there, too many, too late, not before
  killed     the transform worker is killed again and again while much is due: each is shown once
  stepped    the worker is killed before each of the writes of a firing, to Redis and to Kafka
  all        all that is pending of a person is canceled, and the worker is killed in the middle; what is published afterwards stays
  replaced   the worker is killed while a notification takes the place of the only one that waits
  overtaken  what is due fires while an earlier request is in flight that replaces or cancels it
  bounded    a bucket of Redis has as many schedules as it may have
  tools      a firing is replayed, and a request that is due at a time is redriven
  lost       Redis loses everything between scheduling and firing, and is rebuilt from the topic
"""
import asyncio
import contextlib
import datetime
import json
import os
import signal
import struct
import time
import uuid
import zoneinfo

import webhook
from applications import applications
from clients import APPLICATION, Contract, Device, Producer, Reader, expect, run, say, until
from extensions import audit, trace
from healing import bodies, committed, on_one_redis, ready, run_part, shares, unready
from letters import letters


def interval(seconds, **more):
    return json.dumps({"type": "timeInterval", "timeInterval": seconds, **more})


class Scene:
    """A cluster, a reader of its events, and a producer."""

    def __init__(self, arguments, application=APPLICATION):
        self.arguments, self.application = arguments, application
        self.contract = Contract(arguments.contract)
        self.events = arguments.prefix + "events"
        self.reader = Reader(arguments.kafka, [self.events])
        self.producer = Producer(arguments.kafka, arguments.prefix + "requests", application=application)
        self.reading = asyncio.create_task(self.reader.run())

    def told(self, name, kind):
        return next((record.json for record in self.reader.records[self.events]
                     if record.type == kind and record.headers["ce_subject"] == name), None)

    async def event(self, name, kind):
        return await until(lambda: self.told(name, kind), "%s is told of %s" % (kind, name), lambda: [
            (record.type, record.json) for record in self.reader.records[self.events] if record.headers["ce_subject"] == name])

    async def cancel(self, target, identifier):
        name = str(uuid.uuid4())
        headers = {"target": target, "apns-topic": self.application, "apns-id": name, "operation": "cancel", "apns-collapse-id": identifier}
        self.producer.publish(headers, None, key=target)
        await self.producer.flush()
        return name

    async def audit(self, *flags):
        """Holds that the audit finds nothing; some records are too young for it at first."""
        return await audit(self.arguments, *flags, is_complete=lambda report: not report.get("inFlight"))

    async def pending(self, target=None):
        """The lines of the schedules that are pending, of a target or of all, by the topic; none where it says that there is none."""
        line = ["pending", *(["--target", target] if target else []), "--kafka", self.arguments.kafka, "--topic-prefix", self.arguments.prefix, "--json"]
        done = await run(self.arguments.binary, *line)
        expect(done.returncode in (0, 1) and (done.returncode == 1) == (not done.stdout), "what is pending is listed", done.stdout + done.stderr)
        return [json.loads(text) for text in done.stdout.splitlines()]

    async def pended(self, name, target):
        """Waits until a schedule is pending."""
        async def is_pending():
            return name in [each["apnsId"] for each in await self.pending(target)]

        await until(is_pending, "%s is pending" % name)

    def end(self):
        self.reading.cancel()
        expect(not self.contract.broken, "all frames keep the contract", self.contract.broken[:3])


async def nothing_waits(scene, target=None):
    return not await scene.pending(target)


@shares
async def once(arguments, folder, shared):
    scene = Scene(arguments)
    producer = scene.producer
    async with shared.workers() as (redis, _, (url, _)):
        absent = Device(url, scene.contract, user="eve")
        async with absent:
            pass
        async with Device(url, scene.contract, user="ada") as device:
            target = "device:" + device.token

            # At its time, not before. The occurrence has the identifier, and an id of its own.
            began = time.time()
            name = await producer.notify(target, "later", trigger=interval(2.5), apns_collapse_id="later")
            frame = await device.frame("notify", identifier="later")
            expect(time.time() - began >= 2.5, "it is not shown before its time", time.time() - began)
            expect(frame["id"] != name and "trigger" not in frame, "an occurrence has an apns-id of its own", frame)
            await scene.event(frame["id"], "delivered")

            # For a person, and for a device that is away.
            for to in ("user:ada", "user:eve", "device:" + absent.token):
                await producer.notify(to, "for " + to, trigger=interval(1), apns_collapse_id="for " + to[:10])
            await device.frame("notify", identifier="for user:ada")
            async with Device(url, scene.contract, user="eve", device=absent.token) as back:
                await until(lambda: len(bodies(back)) == 2, "what fires meanwhile waits in the mailbox", seen=lambda: bodies(back))

            # The same apns-id again is a duplicate, whatever it says.
            twice = await producer.notify(target, "twice", trigger=interval(3), apns_collapse_id="twice")
            await producer.flush()
            await producer.notify(target, "twice", id=twice, trigger=interval(1), apns_collapse_id="twice")
            await scene.event(twice, "duplicate")

            # Replaced by another schedule, by a notification, for a device and for a person.
            for to in (target, "user:ada"):
                first = await producer.notify(to, "first", trigger=interval(600), apns_collapse_id="r")
                await producer.flush()
                second = await producer.notify(to, "second", trigger=interval(400), apns_collapse_id="r")
                event = await scene.event(first, "collapsed")
                expect(event["by"]["apnsId"] == second, "the event names the newer one", event)
                now = await producer.notify(to, "now " + to, apns_collapse_id="r")
                event = await scene.event(second, "collapsed")
                expect(event["by"]["apnsId"] == now, "the event names the notification", event)
                await device.frame("notify", id=now)

            # What waits is listed.
            waiting = await producer.notify("user:tom", "waits", trigger=interval(3600, repeats=True), apns_collapse_id="waits")
            await producer.flush()
            listed = (await until(lambda: scene.pending("user:tom"), "it is listed"))[0]
            expect(listed["apnsId"] == waiting and listed["identifier"] == "waits" and listed["trigger"]["repeats"] is True, "it is listed", listed)
            await scene.cancel("user:tom", "waits")
            await scene.event(waiting, "canceled")
            await until(lambda: nothing_waits(scene, "user:tom"), "nothing waits after the cancel")

            # Canceled in time, and too late.
            never = await producer.notify(target, "never", trigger=interval(20), apns_collapse_id="never")
            await producer.flush()
            cancel = await scene.cancel(target, "never")
            event = await scene.event(never, "canceled")
            expect(event["by"]["apnsId"] == cancel, "the event names the cancel", event)
            # It is due behind the one that is canceled.
            await producer.notify(target, "behind", trigger=interval(20), apns_collapse_id="behind")
            late = await scene.cancel(target, "later")
            event = await scene.event(late, "expired")
            expect(event["reason"] == "nothing is pending that could be canceled", "a late cancel says so", event)

            # Of another application's schedule of the same identifier nothing is canceled.
            other = {"target": target, "apns-topic": "com.example.other", "apns-id": str(uuid.uuid4()), "operation": "cancel",
                     "apns-collapse-id": "twice"}
            producer.publish(other, None, key=target)
            await producer.flush()
            await scene.event(other["apns-id"], "expired")
            await device.frame("notify", identifier="twice")

            # A device shows one notification of an apns-id, with a trigger or without one, whichever comes first.
            for to in (target, "user:ada"):
                first = await producer.notify(to, "now of " + to, apns_collapse_id="1 " + to[:10])
                await device.frame("notify", id=first)
                await producer.notify(to, "then of " + to, id=first, trigger=interval(1), apns_collapse_id="2 " + to[:10])
                await until(lambda: [record for record in scene.reader.records[scene.events] if record.type == "duplicate"
                                     and record.json.get("identifier") == "2 " + to[:10]], "its occurrence is a duplicate")
                fired = await producer.notify(to, "fired for " + to, trigger=interval(1), apns_collapse_id="3 " + to[:10])
                await device.frame("notify", identifier="3 " + to[:10])
                await producer.notify(to, "later of " + to, id=fired, apns_collapse_id="4 " + to[:10])
                await scene.event(fired, "duplicate")

            # A removal of all leaves its mark beside the owner of the device, who stays who it was.
            removal = {"target": target, "apns-topic": APPLICATION, "apns-id": str(uuid.uuid4()), "operation": "remove"}
            producer.publish(removal, b'{"all": true}', key=target)
            await producer.flush()
            await scene.event(removal["apns-id"], "removed")
            await producer.notify(target, "after a removal", trigger=interval(1), apns_collapse_id="after")
            await device.frame("notify", identifier="after")

            # The schedule of before such a removal is shown as well.
            await producer.notify(target, "across a removal", trigger=interval(3), apns_collapse_id="across")
            await producer.flush()
            again = {**removal, "apns-id": str(uuid.uuid4())}
            producer.publish(again, b'{"all": true}', key=target)
            await producer.flush()
            await device.frame("notify", identifier="across")

            # A stopped application's occurrences are filtered. It must have heard of the stop before that: where it has not, there is another one.
            stopping = "com.example.stopping"
            async with Device(url, scene.contract, user="ada", application=stopping) as other:
                async def filters(identifier, seconds):
                    name = await producer.notify("user:ada", "stopped", trigger=interval(seconds), apns_collapse_id=identifier, apns_topic=stopping)
                    await scene.pended(name, "user:ada")
                    await applications(arguments, "stop", stopping)
                    record = await until(
                        lambda: next((record for record in scene.reader.records[scene.events] if record.type in ("filtered", "delivered")
                                      and record.json.get("identifier") == identifier), None), "the occurrence has an end")
                    expect(record.headers["ce_subject"] != name, "the occurrence, and not the request", record.json)
                    await applications(arguments, "start", stopping)
                    return record.type == "filtered"

                expect(await filters("stopped", 8) or await filters("again", 60), "the occurrence is filtered", other.frames)
            await device.frame("notify", identifier="behind")
            expect("never" not in bodies(device), "nothing is shown of what was canceled", bodies(device))

        # The schedule of a device is its person's, and so is an occurrence that waits for the device.
        def waiting():
            return redis.cli("HLEN", redis.cli("KEYS", "m{*" + device.token) or "m") != b"0"

        # What was acknowledged leaves the mailbox a moment later. And a request that is judged after the device has changed hands is its new person's.
        await until(lambda: not waiting(), "the mailbox is empty")
        await scene.pended(await producer.notify(target, "ada's", trigger=interval(8), apns_collapse_id="hers"), target)
        await producer.notify(target, "ada's", trigger=interval(1), apns_collapse_id="waits")
        await producer.flush()
        await until(waiting, "it waits in the mailbox")
        async with Device(url, scene.contract, user="tom", device=device.token) as toms:
            for identifier in ("hers", "waits"):
                event = (await until(
                    lambda: [record.json for record in scene.reader.records[scene.events] if record.type == "filtered"
                             and record.json.get("identifier") == identifier], "%s is filtered" % identifier, lambda: [
                                 (record.type, record.json) for record in scene.reader.records[scene.events][-12:]]))[0]
                expect(event["reason"] == "the device belongs to another person now", "the event says why", event)

            # What breaks a rule is rejected, and says which.
            for trigger, field in ((interval(0), "trigger.timeInterval"), (interval(59, repeats=True), "trigger.timeInterval"),
                                   (interval(-1), "trigger.timeInterval"),
                                   ('{"type":"calendar","dateComponents":{"month":2,"day":31,"year":2001}}', "trigger"),
                                   ('{"type":"calendar","dateComponents":{"hour":24}}', "trigger.dateComponents.hour"),
                                   ('{"type":"calendar","dateComponents":{"hour":9,"timeZone":"Mars/Base"}}', "trigger.dateComponents.timeZone"),
                                   (" " * 65_536, "trigger")):
                name = await producer.notify("device:" + toms.token, "wrong", trigger=trigger)
                event = await scene.event(name, "rejected")
                expect(event["field"].startswith(field), "the event names the field", event)
            forged = {"schedule": "0" * 40, "id": str(uuid.uuid4()), "zone": "", "due": 1, "name": 1, "previous": 0, "owner": 0,
                      "repeats": False}
            name = await producer.notify("device:" + toms.token, "forged", **{"carillon-firing": json.dumps(forged)}, apns_collapse_id="x")
            await scene.event(name, "rejected")
            last = await producer.notify("device:" + toms.token, "last")
            await toms.frame("notify", id=last)
            expect("never" not in bodies(toms) and "ada's" not in bodies(toms) and "forged" not in bodies(toms),
                   "nothing of it is shown", bodies(toms))
        shown = bodies(device)
        for body in ("later", "for user:ada", "twice"):
            expect(shown.count(body) == 1, "%s is shown once" % body, shown)
        for body in ("first", "second", "never", "stopped", "ada's", "then of " + target, "then of user:ada", "later of " + target,
                     "later of user:ada"):
            expect(body not in shown, "%s is not shown" % body, shown)
        say(audit=await scene.audit())
    scene.end()


@shares
async def repeats(arguments, folder, shared):
    scene = Scene(arguments, "com.example.repeats")
    async with shared.workers() as (_, _, (url, _)):
        async with Device(url, scene.contract, application=scene.application, user="rita", timeZone="Africa/Lagos") as here, \
                Device(url, scene.contract, application=scene.application, user="rita", timeZone="America/New_York") as there:
            # One wall time that is due in a moment where the first device is, and hours later where the second is.
            wall = datetime.datetime.now(zoneinfo.ZoneInfo("Africa/Lagos")) + datetime.timedelta(seconds=20)
            units = {"hour": wall.hour, "minute": wall.minute, "second": wall.second}
            await scene.producer.notify("user:rita", "wall time", apns_collapse_id="wall",
                                        trigger=json.dumps({"type": "calendar", "dateComponents": units}))
            # Each minute, in whatever zone.
            second = (datetime.datetime.now().second + 4) % 60
            name = await scene.producer.notify(
                "user:rita", "each minute", apns_collapse_id="minute",
                trigger=json.dumps({"type": "calendar", "dateComponents": {"second": second, "timeZone": "UTC"}, "repeats": True}))
            await scene.producer.flush()
            await here.frame("notify", identifier="wall")

            def minutes(device):
                return [frame for frame in device.of("notify") if frame["identifier"] == "minute"]

            for device in (here, there):
                await until(lambda: len(minutes(device)) == 2, "two occurrences are shown", lambda: minutes(device))
                ids = [frame["id"] for frame in minutes(device)]
                expect(len(set(ids)) == 2 and name not in ids, "each has an apns-id of its own", ids)
                times = [int(frame["revision"][:16], 16) / 1000 for frame in minutes(device)]
                expect(all(moment % 60 >= second and moment % 60 < second + 30 or second > 30 for moment in times),
                       "at the second that was asked for, or somewhat later", [times, second])
            expect([f["id"] for f in minutes(here)] == [f["id"] for f in minutes(there)], "one occurrence has one apns-id at all devices")
            await scene.cancel("user:rita", "minute")
            await scene.event(name, "canceled")
            seen = len(minutes(here))
            # It is due behind the next minute's.
            await scene.producer.notify("user:rita", "behind", trigger=interval(62), apns_collapse_id="behind")
            for device in (here, there):
                await device.frame("notify", identifier="behind")
            expect(len(minutes(here)) == seen, "nothing fires after the cancel", minutes(here))
            expect("wall time" in bodies(here) and "wall time" not in bodies(there), "it is another time there", [bodies(here), bodies(there)])
        say(audit=await scene.audit())
    scene.end()


def wall_time(zone, seconds, **more):
    """A calendar trigger that is due in so many seconds on the clocks of a zone."""
    wall = datetime.datetime.now(zoneinfo.ZoneInfo(zone)) + datetime.timedelta(seconds=seconds)
    return json.dumps({"type": "calendar", "dateComponents": {"hour": wall.hour, "minute": wall.minute, "second": wall.second}, **more})


async def moves(arguments, folder):
    scene = Scene(arguments)
    async with on_one_redis(arguments, folder) as (_, cluster):
        transform = await cluster.started("transform", *cluster.group)
        fan_out = await cluster.started("fan-out", "--listen", "127.0.0.1:0")
        url = fan_out.addresses["devices"]
        # The two of the east are at one time and have no summer time.
        west, east = {"timeZone": "America/New_York"}, {"timeZone": "Africa/Lagos"}

        async def zones(target, *expected, count=1):
            """Waits until so many schedules of a target are due in these zones, by the topic."""
            async def are_due():
                found = [sorted(due["zone"] for due in one["dueTimes"]) for one in await scene.pending(target)]
                return found == [list(expected)] * count

            await until(are_due, "%d of %s are due in %s" % (count, target, expected))

        # One that repeats and one that does not, for a person and for a device, who are hours west of where they will be.
        async with Device(url, scene.contract, user="ada", **west) as device, Device(url, scene.contract, user="bob", **west) as bobs:
            targets = ["user:ada", "device:" + device.token, "user:bob"]
            began = time.time()
            for target in targets:
                for repeats in (True, False):
                    await scene.producer.notify(
                        target, "%s %s" % (target[:6], repeats), apns_collapse_id="m%s" % repeats + target[:6], aps={"thread-id": "moves"},
                        trigger=wall_time("Africa/Lagos", 75, repeats=repeats))
            await scene.producer.flush()
            for target in targets:
                await zones(target, "America/New_York", count=2)
        async with Device(url, scene.contract, user="ada", device=device.token, **east) as moved, \
                Device(url, scene.contract, user="bob", **east) as new:
            await zones("user:bob", "Africa/Lagos", "America/New_York", count=2)
            for target in targets:
                for repeats in (True, False):
                    await (new if target == "user:bob" else moved).frame("notify", identifier="m%s" % repeats + target[:6])
            expect(time.time() - began >= 74, "it is not shown before its time", time.time() - began)

            # What does not repeat has ended, but for the device that stays in the west. At another place with the same time it is over, too.
            await zones("user:ada", "Africa/Lagos")
            await zones("device:" + device.token, "Africa/Lagos")
        async with Device(url, scene.contract, user="ada", device=device.token, timeZone="Africa/Algiers") as again:
            await zones("user:ada", "Africa/Algiers")
            await zones("device:" + device.token, "Africa/Algiers")

            # The zone changes while no worker reads registrations.
            await scene.producer.notify("user:ada", "down", apns_collapse_id="down", trigger=wall_time("Asia/Tokyo", 90))
            await scene.producer.flush()
            await zones("user:ada", "Africa/Algiers", count=2)
            transform.kill()
            transform.wait()
        async with Device(url, scene.contract, user="ada", device=device.token, timeZone="Asia/Tokyo") as far:
            await cluster.started("transform", *cluster.group)
            await far.frame("notify", identifier="down")
            expect([frame["identifier"] for frame in again.of("notify") + far.of("notify")] == ["down"], "nothing is shown twice",
                   again.of("notify") + far.of("notify"))
        expect(not bobs.of("notify"), "it is another time where the other device is", bodies(bobs))
        for device in (moved, new):
            expect(len(bodies(device)) == len(set(bodies(device))), "each is shown once", bodies(device))
        say(audit=await scene.audit())
    scene.end()


@shares
async def places(arguments, folder, shared):
    scene = Scene(arguments, "com.example.places")
    place = json.dumps({"type": "location", "region": {"identifier": "shop", "latitude": 52.5, "longitude": 13.4, "radius": 100}})
    async with shared.workers() as (_, _, (url, _)):
        away = Device(url, scene.contract, application=scene.application, user="paul")
        async with away:
            pass
        async with Device(url, scene.contract, application=scene.application, user="paul") as device:
            producer = scene.producer

            async def placed(target, identifier):
                """Publishes a location trigger, and waits until the device has it."""
                await producer.notify(target, identifier, trigger=place, apns_collapse_id=identifier)
                await producer.flush()
                return await device.frame("notify", identifier=identifier)

            # Canceled, for the person and for the device.
            for target in ("user:paul", "device:" + device.token):
                identifier = "canceled " + target[:6]
                frame = await placed(target, identifier)
                expect("trigger" in frame, "the device gets the trigger", frame)
                cancel = await scene.cancel(target, identifier)
                removal = await device.frame("remove", identifiers=[identifier])
                expect(removal.get("scope") == "pending" and removal["revision"] > frame["revision"], "it is told to drop it", removal)
                late = await scene.cancel(target, identifier)
                await scene.event(late, "expired")
                expect(not scene.told(cancel, "expired"), "the first cancel was in time")

            # Once more after a removal of all, which leaves it alone.
            await placed("user:paul", "after all")
            removal = {"target": "user:paul", "apns-topic": scene.application, "apns-id": str(uuid.uuid4()), "operation": "remove"}
            producer.publish(removal, b'{"all": true}', key="user:paul")
            await producer.flush()
            await device.frame("remove", all=True)
            await scene.cancel("user:paul", "after all")
            await device.frame("remove", identifiers=["after all"], scope="pending")

            # A cancel of all takes each of them.
            for identifier in ("first of all", "second of all"):
                await placed("user:paul", identifier)
            cancel = {"target": "user:paul", "apns-topic": scene.application, "apns-id": str(uuid.uuid4()), "operation": "cancel"}
            producer.publish(cancel, b'{"all": true}', key="user:paul")
            await producer.flush()
            for identifier in ("first of all", "second of all"):
                await device.frame("remove", identifiers=[identifier], scope="pending")

            # Replaced by one that is due at a time, and by one that is due now, which itself takes its place.
            await placed("user:paul", "later")
            await producer.notify("user:paul", "later", trigger=interval(2), apns_collapse_id="later")
            await producer.flush()
            await device.frame("remove", identifiers=["later"], scope="pending")
            await until(lambda: [frame for frame in device.of("notify") if frame["identifier"] == "later" and "trigger" not in frame], "it fires")
            await placed("user:paul", "now")
            now = await producer.notify("user:paul", "now", apns_collapse_id="now")
            await producer.flush()
            await device.frame("notify", id=now)
            # What was shown since then stays.
            await scene.cancel("user:paul", "now")
            await producer.notify("user:paul", "last", apns_collapse_id="last")
            await producer.flush()
            await device.frame("notify", identifier="last")
            expect(not [frame for frame in device.of("remove") if frame["identifiers"] == ["now"]], "a cancel takes nothing that was shown",
                   device.of("remove"))
        async with Device(url, scene.contract, application=scene.application, user="paul", device=away.token) as back:
            await back.frame("notify", identifier="last")
            notified, removed = [[f for f in back.of(kind)] for kind in ("notify", "remove")]
            expect(sorted(f["identifier"] for f in notified) == ["last", "later", "now"], "it finds the result", notified)
            expect(all("trigger" not in frame for frame in notified), "and not the history", notified)
            expect(["canceled user:p"] in [frame["identifiers"] for frame in removed], "what was canceled it is to drop", removed)
        say(audit=await scene.audit())
    scene.end()


async def rules(arguments, folder):
    scene = Scene(arguments)
    producer = scene.producer
    async with on_one_redis(arguments, folder) as (_, cluster):
        flags = ("--one-attempt", "2s")
        transform = await cluster.started("transform", *flags, *cluster.group)
        fan_out = await cluster.started("fan-out", "--listen", "127.0.0.1:0", *flags)
        url = fan_out.addresses["devices"]

        def occurrences(identifier, kind):
            return [record for record in scene.reader.records[scene.events]
                    if record.type == kind and record.json.get("identifier") == identifier]

        away = Device(url, scene.contract, user="eve")
        async with away:
            pass
        async with Device(url, scene.contract, user="ada") as device, \
                Device(url, scene.contract, user="ada", application="com.example.news") as news:
            # What is left until the expiration holds from the due time on.
            began = time.time()
            await producer.notify("user:ada", "lasts", trigger=interval(3), apns_collapse_id="lasts", apns_expiration=str(int(began) + 60))
            # One attempt: a device that is away does not get it later.
            await producer.notify("user:eve", "one attempt", trigger=interval(1), apns_collapse_id="attempt", apns_expiration="0")

            # Two applications may have the same identifier, and a cancel reaches that of its own.
            for topic in (APPLICATION, "com.example.news"):
                await producer.notify("user:ada", topic, trigger=interval(15), apns_collapse_id="order-7", apns_topic=topic)
            await producer.flush()
            await scene.cancel("user:ada", "order-7")
            await news.frame("notify", identifier="order-7")
            expect(not [f for f in device.of("notify") if f["identifier"] == "order-7"], "only the own one is canceled", bodies(device))
            frame = await device.frame("notify", identifier="lasts")
            expect(abs(frame["expiration"] - began - 63) <= 5, "it lasts from its due time on", [frame["expiration"], began])

            # Nobody is there.
            await producer.notify("user:nobody", "nobody", trigger=interval(1), apns_collapse_id="nobody")
            await until(lambda: occurrences("nobody", "unregistered"), "nobody is registered at the due time")

            # Of more than 64 the oldest ends, whatever its identifier. Those of one batch may have one timestamp.
            names = [await producer.notify("user:tom", "n%d" % n, trigger=interval(600), apns_collapse_id="n%d" % (99 - n)) for n in range(65)]
            await producer.flush()
            await scene.event(names[0], "evicted")
            expect(not scene.told(names[1], "evicted"), "and no other one")

            # One that repeats begins later.
            later = int(time.time()) + 86_400
            await producer.notify("user:bob", "later", apns_collapse_id="later", trigger=interval(60, repeats=True, notBefore=later))
            await producer.flush()
            listed = (await until(lambda: scene.pending("user:bob"), "it is listed"))[0]
            due = datetime.datetime.fromisoformat(listed["due"].replace("Z", "+00:00")).timestamp()
            expect(later <= due <= later + 60, "it is not due before that", [due, later])

            # While no worker runs, one of a repeating trigger is too late, and is told with its count. One that is shown once is shown late,
            # unless it has one attempt.
            moment = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=30)
            units = {"hour": moment.hour, "minute": moment.minute, "second": moment.second, "timeZone": "UTC"}
            trigger = {"type": "calendar", "dateComponents": units, "repeats": True, "late": 1}
            await producer.notify("user:ada", "too late", apns_collapse_id="skipped", trigger=json.dumps(trigger))
            await producer.notify("user:ada", "shown late", apns_collapse_id="late", trigger=interval(30))
            await producer.notify("user:ada", "attempt over", apns_collapse_id="over", apns_expiration="0",
                                  trigger=json.dumps({"type": "calendar", "dateComponents": units}))
            await producer.flush()
            async def are_listed():
                return len(await scene.pending("user:ada")) >= 3

            await until(are_listed, "all three are listed")
            transform.kill()
            transform.wait()
            await asyncio.sleep(max(0.0, moment.timestamp() + 3 - time.time()))
            await cluster.started("transform", *flags, *cluster.group)
            await device.frame("notify", identifier="late")
            event = (await until(lambda: occurrences("skipped", "expired"), "it was too late"))[0]
            expect(event.json["skipped"] == 1, "the event tells how many", event.json)
            await until(lambda: occurrences("over", "expired"), "one attempt counts from the due time")
            expect(not {"too late", "attempt over"} & set(bodies(device)), "neither is shown", bodies(device))
        async with Device(url, scene.contract, user="eve", device=away.token) as back:
            last = await producer.notify("user:eve", "last")
            await back.frame("notify", id=last)
            expect(bodies(back) == ["last"], "what had one attempt is not shown later", bodies(back))
        say(audit=await scene.audit(*flags))
    scene.end()


async def killed(arguments, folder):
    scene = Scene(arguments)
    async with on_one_redis(arguments, folder) as (_, cluster):
        transform = await cluster.started("transform", *cluster.group)
        fan_out = await cluster.started("fan-out", "--listen", "127.0.0.1:0")
        async with Device(fan_out.addresses["devices"], scene.contract, user="ada") as device:
            count = 400
            for number in range(count):
                target = "user:ada" if number % 2 else "device:" + device.token
                await scene.producer.notify(target, "n%d" % number, trigger=interval(1 + number / 40), apns_collapse_id="c%d" % number)
                # More than 64 may not be pending for one target.
                if number % 40 == 39:
                    await scene.producer.flush()
                    await asyncio.sleep(0.8)
                if number % 100 == 50:
                    transform.kill()
                    transform.wait()
                    transform = await cluster.started("transform", *cluster.group)
            await scene.producer.flush()

            def ended():
                return {record.json["identifier"] for record in scene.reader.records[scene.events]
                        if record.type in ("delivered", "evicted", "updated") and record.json.get("identifier", "").startswith("c")}

            await until(lambda: len(ended()) == count, "each fires, or is told to be too many",
                        lambda: sorted({"c%d" % number for number in range(count)} - ended())[:10])
            shown = bodies(device)
            expect(len(shown) == len(set(shown)), "nothing is shown twice", [body for body in shown if shown.count(body) > 1])
            say(shown=len(shown), of=count)
        say(audit=await scene.audit())
    scene.end()


class Steps:
    """Kills a worker when it makes a certain write to Redis or Kafka for the nth time, and does not pass that write on."""

    def __init__(self):
        self.victim, self.wanted, self.seen = None, None, []

    def arm(self, victim, wanted):
        self.victim, self.wanted, self.seen = victim, wanted, []

    def passes(self, writes):
        if self.victim is None:
            return True
        self.seen += writes
        name, nth = self.wanted
        if name not in writes or self.seen.count(name) < nth:
            return True
        self.victim.send_signal(signal.SIGKILL)
        self.victim = None
        return False


class StepProxy:
    """Passes a protocol of messages on to a server, as long as `steps` lets it."""

    def __init__(self, steps):
        self.steps = steps

    async def listen(self, port):
        self.port = port
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", 0, limit=1 << 26)
        return self.server.sockets[0].getsockname()[1]

    async def serve(self, reader, writer):
        upstream_reader, upstream = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 26)
        answers = asyncio.create_task(self.answer(upstream_reader, writer))
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while True:
                message = await self.message(reader)
                if not self.steps.passes(self.writes(message)):
                    break
                upstream.write(message)
                await upstream.drain()
        upstream.close()
        answers.cancel()
        writer.close()


class RedisSteps(StepProxy):
    """Writes are the calls of scripts that judge a request, write or settle a schedule, or raise markers."""

    start = StepProxy.listen

    async def message(self, reader):
        data = await reader.readuntil(b"\r\n")
        for _ in range(int(data[1:])):
            size = await reader.readuntil(b"\r\n")
            data += size + await reader.readexactly(int(size[1:]) + 2)
        return data

    def writes(self, message):
        words = message.split(b"\r\n")[2::2]
        if words[0] != b"EVALSHA" or len(words) < 4:
            return []
        count, key = int(words[2]), words[3][:2]
        if key == b"s{" and count > 4:
            return ["Redis: the schedule" if count > 5 else "Redis: that nothing is pending"]
        if key == b"d{" and count > 2:
            return ["Redis: the device"]
        return ["Redis: the markers"] if key == b"k{" else []

    async def answer(self, reader, writer):
        with contextlib.suppress(ConnectionError):
            while chunk := await reader.read(65536):
                writer.write(chunk)
                await writer.drain()


TOPICS = ["requests", "schedule", "deliveries", "events", "journal"]


class KafkaSteps(StepProxy):
    """Writes are the produced batches and the committed offsets. One broker; its address is replaced by the proxy's in its answers."""

    def __init__(self, steps, prefix):
        super().__init__(steps)
        self.prefix = prefix

    async def message(self, reader):
        size = await reader.readexactly(4)
        return size + await reader.readexactly(struct.unpack(">i", size)[0])

    def writes(self, message):
        kind = struct.unpack_from(">h", message, 4)[0]
        if kind == 8:
            return ["Kafka: the offsets"]
        return ["Kafka: " + topic for topic in TOPICS if kind == 0 and self.has(message, topic)]

    def has(self, message, topic):
        """Whether a produce request names a topic, by either encoding of its length."""
        name = (self.prefix + topic).encode()
        return struct.pack(">h", len(name)) + name in message or struct.pack(">B", len(name) + 1) + name in message

    async def answer(self, reader, writer):
        own = self.server.sockets[0].getsockname()[1]
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                message = await self.message(reader)
                for host in (b"127.0.0.1", b"localhost"):
                    message = message.replace(host + struct.pack(">i", self.port), host + struct.pack(">i", own))
                writer.write(message)
                await writer.drain()


# The writes of a request that is due later, and of its firing. What lies between two of them is a state that a killed worker may leave.
WRITES = [
    ("Redis: the schedule", 1), ("Kafka: schedule", 1), ("Kafka: journal", 1), ("Kafka: requests", 1), ("Redis: the schedule", 2),
    ("Kafka: schedule", 2), ("Redis: the device", 1), ("Kafka: deliveries", 1), ("Kafka: journal", 2), ("Redis: that nothing is pending", 1),
    ("Redis: the markers", 1), ("Kafka: the offsets", 1)]


async def stepped(arguments, folder):
    scene = Scene(arguments)
    steps = Steps()
    async with on_one_redis(arguments, folder, RedisSteps(steps)) as (redis, cluster):
        fan_out = await cluster.started("fan-out", "--listen", "127.0.0.1:0")
        kafka = KafkaSteps(steps, arguments.prefix)
        port = await kafka.listen(int(arguments.kafka.split(",")[0].rsplit(":", 1)[1]))
        cluster.common[cluster.common.index("--kafka") + 1] = "127.0.0.1:%d" % port
        transform = await cluster.started("transform", *cluster.group)
        async with Device(fan_out.addresses["devices"], scene.contract, user="ada") as device:
            for number, write in enumerate(WRITES):
                steps.arm(transform, write)
                target = "user:ada" if number % 3 == 2 else "device:" + device.token
                name = "step %d" % number
                scheduled = await scene.producer.notify(target, name, trigger=interval(1), apns_collapse_id="s%d" % number)
                await scene.producer.flush()
                await until(lambda: steps.victim is None, "%s is written" % write[0], lambda: steps.seen)
                transform.wait()
                transform = await cluster.started("transform", *cluster.group)
                await until(lambda: name in bodies(device), "it is shown", lambda: [write, bodies(device)])
                say(write=write[0], nth=write[1], scheduled=scheduled)
            await until(lambda: not redis.cli("KEYS", "t{*").strip(), "nothing is due any more")
            await until(lambda: nothing_waits(scene), "nothing waits by the topic")
        shown = bodies(device)
        expect(sorted(shown) == sorted("step %d" % number for number in range(len(WRITES))), "each is shown once", shown)
        say(audit=await scene.audit())
    scene.end()


async def all_canceled(arguments, folder):
    scene = Scene(arguments)
    steps = Steps()
    async with on_one_redis(arguments, folder, RedisSteps(steps)) as (redis, cluster):
        transform = await cluster.started("transform", *cluster.group)
        for rounds, nth in enumerate((1, 2, 7, 12)):
            names = [await scene.producer.notify("user:ada", "never", trigger=interval(600), apns_collapse_id="a%d" % number)
                     for number in range(12)]
            other = await scene.producer.notify("user:tom", "another's", trigger=interval(600), apns_collapse_id="a%d" % nth)
            await scene.producer.flush()
            await until(lambda: redis.cli("ZCARD", redis.cli("KEYS", "n{*user:ada") or "n") == (b"13" if rounds else b"12"), "they are pending", seen=lambda: [redis.cli("KEYS", "*"), steps.seen])
            steps.arm(transform, ("Redis: the schedule", nth))
            cancel = str(uuid.uuid4())
            headers = {"target": "user:ada", "apns-topic": APPLICATION, "apns-id": cancel, "operation": "cancel"}
            scene.producer.publish(headers, b'{"all": true}', key="user:ada")
            after = await scene.producer.notify("user:ada", "after", trigger=interval(600), apns_collapse_id="after %d" % nth)
            await scene.producer.flush()
            await until(lambda: steps.victim is None, "the worker is killed", seen=lambda: steps.seen)
            transform.wait()
            transform = await cluster.started("transform", *cluster.group)
            for name in names:
                event = await scene.event(name, "canceled")
                expect(event["by"]["apnsId"] == cancel, "the event names the cancel", event)
            await until(lambda: committed(arguments) >= 15 * (rounds + 1), "the records are finished", seen=lambda: committed(arguments))
            listed = {each["apnsId"] for each in await scene.pending()}
            expect(after in listed and other in listed and not listed & set(names), "what came afterwards stays", [listed, after, other])
            expect(not any(scene.told(after, kind) for kind in ("canceled", "collapsed")), "and nobody is told of an end of it")
            say(killed_at=nth)
        # The rest, and then there is nothing.
        for kind in ("canceled", "expired"):
            line = [arguments.binary, "publish", "--kafka", arguments.kafka, "--topic-prefix", arguments.prefix, "--app", APPLICATION,
                    "--target", "user:ada", "--operation", "cancel", "--all", "--json"]
            done = await run(*line)
            expect(done.returncode == 0, "it is published", done.stdout + done.stderr)
            cancel = json.loads(done.stdout.splitlines()[-1])["apnsId"]
            await scene.event(after if kind == "canceled" else cancel, kind)
        say(audit=await scene.audit())
    scene.end()


async def replaced(arguments, folder):
    scene = Scene(arguments)
    async with on_one_redis(arguments, folder) as (redis, cluster):
        transform = await cluster.started("transform", *cluster.group)
        fan_out = await cluster.started("fan-out", "--listen", "127.0.0.1:0")
        async with Device(fan_out.addresses["devices"], scene.contract, user="ada") as device:
            # Killed while a notification takes the place of the only one that waits, between its writes to Redis and to Kafka.
            for number in range(10):
                target = "user:ada" if number % 2 else "device:" + device.token
                replaced = await scene.producer.notify(target, "replaced", trigger=interval(30), apns_collapse_id="p%d" % number)
                await scene.producer.flush()
                await until(lambda: redis.cli("KEYS", "h{*").strip(), "something waits")
                newer = await scene.producer.notify(target, "newer %d" % number, apns_collapse_id="p%d" % number)
                await scene.producer.flush()
                await asyncio.sleep(number / 100)
                transform.kill()
                transform.wait()
                transform = await cluster.started("transform", *cluster.group)
                await device.frame("notify", id=newer)
                say(number=number)
                expect((await scene.event(replaced, "collapsed"))["by"]["apnsId"] == newer, "the end of the replaced one is told")
                # A record that ends one worker after the other would become a dead letter.
                await until(lambda: committed(arguments) >= 2 * number + 2, "the records are finished", seen=lambda: committed(arguments))
            await until(lambda: nothing_waits(scene), "and nothing waits by the topic")
            await until(lambda: not redis.cli("KEYS", "h{*").strip(), "nor is anybody looked up for it", seen=lambda: redis.cli("KEYS", "h{*"))
        say(audit=await scene.audit())
    scene.end()


async def overtaken(arguments, folder):
    scene, service = Scene(arguments), webhook.Team()
    file = webhook.configure(folder, service, budget=30_000, timeout=30_000, concurrency=100)
    requests = Reader(arguments.kafka, [scene.producer.topic])
    reading = asyncio.create_task(requests.run())
    async with on_one_redis(arguments, folder) as (_, cluster):
        await cluster.started("transform", "--extensions", file.path, *cluster.group)
        fan_out = await cluster.started("fan-out", "--listen", "127.0.0.1:0")
        async with Device(fan_out.addresses["devices"], scene.contract, user="ada") as device:
            # The same device, however its token is written.
            for number, targets in enumerate((["user:ada"] * 2, ["device:" + device.token, "device:" + device.token.upper()])):
                service.release.clear()
                published = len(requests.records[scene.producer.topic])
                later = await scene.producer.notify(targets[0], "later", trigger=interval(8), apns_collapse_id="o%d" % number)
                newer = str(uuid.uuid4())
                await scene.producer.notify(
                    targets[1], "slow %d" % number, id=newer, key=targets[0], aps={"mutable-content": 1}, traceparent=trace(newer),
                    apns_collapse_id="o%d" % number)
                await scene.producer.flush()
                # The firing lies behind the request, whose service extension has not answered.
                await until(lambda: len(requests.records[scene.producer.topic]) == published + 3, "the schedule fires")
                service.release.set()
                await device.frame("notify", id=newer)
                expect((await scene.event(later, "collapsed"))["by"]["apnsId"] == newer, "the request replaces what was pending")
                await until(lambda: committed(arguments) >= published + 3, "the records are finished", seen=lambda: committed(arguments))
            expect(sorted(bodies(device)) == ["slow 0", "slow 1"], "and no occurrence is shown afterwards", bodies(device))
        say(audit=await scene.audit())
    reading.cancel()
    service.close()
    scene.end()


async def bounded(arguments, folder):
    scene = Scene(arguments)
    async with on_one_redis(arguments, folder) as (_, cluster):
        await cluster.started("transform", "--scheduled-bound", "32", *cluster.group)
        # One target, so one partition and one bucket; no device is registered for it, so a sixteenth of the bound is for it.
        names = []
        for number in range(3):
            names.append(await scene.producer.notify("user:ada", "waits", trigger=interval(600), apns_collapse_id="b%d" % number))
            await scene.producer.flush()
        event = await scene.event(names[2], "rejected")
        expect(event["reason"] == "TooManyRequests" and event["field"] == "trigger", "the third is refused", event)
        await scene.cancel("user:ada", "b0")
        await scene.event(names[0], "canceled")
        more = await scene.producer.notify("user:ada", "waits", trigger=interval(600), apns_collapse_id="b3")
        await scene.producer.flush()
        line = [arguments.binary, "pending", "--kafka", arguments.kafka, "--topic-prefix", arguments.prefix, "--app", APPLICATION]

        async def both_wait():
            return (await run(*line, "--json")).stdout.count("\n") == 2

        await until(both_wait, "both wait for their time")
        done = await run(*line, "--cancel")
        expect(done.returncode == 0 and "the cancel of 2 requests of 1 target is published" in done.stderr, "all are canceled", done.stderr)
        for name in (names[1], more):
            await scene.event(name, "canceled")
        say(audit=await scene.audit())
    scene.end()


async def tools(arguments, folder):
    scene = Scene(arguments)
    async with on_one_redis(arguments, folder) as (_, cluster):
        await cluster.started("transform", "--scheduled-bound", "1", *cluster.group)
        fan_out = await cluster.started("fan-out", "--listen", "127.0.0.1:0")
        async with Device(fan_out.addresses["devices"], scene.contract, user="ada") as device:
            target = "device:" + device.token
            await scene.producer.notify(target, "fired", trigger=interval(1), apns_collapse_id="fired")
            await scene.producer.flush()
            await device.frame("notify", identifier="fired")
            await until(lambda: committed(arguments) == 2, "the firing is finished", lambda: committed(arguments))
            # The request and its firing are applied once more, and nothing becomes of either.
            line = [arguments.binary, "replay", *cluster.common, *cluster.group, "--json", "--max-behind", "0",
                    "--state", os.path.join(folder, "state")]
            done = await run(*line)
            expect(done.returncode == 0 and json.loads(done.stdout.splitlines()[-1])["written"] == 2, "both are replayed", done.stdout + done.stderr)
            await until(lambda: committed(arguments) == 4, "the replayed ones are finished", lambda: committed(arguments))

            # The bucket has room for one.
            first = await scene.producer.notify(target, "first", trigger=interval(600), apns_collapse_id="first")
            second = await scene.producer.notify(target, "second", trigger=interval(5), apns_collapse_id="second")
            await scene.producer.flush()
            await scene.event(second, "rejected")
            await scene.cancel(target, "first")
            await scene.event(first, "canceled")
            await asyncio.sleep(6)
            began = time.time()
            done = await letters(arguments, "redrive", second)
            expect(done[-1]["written"] == 1, "it is redriven", done)
            await device.frame("notify", identifier="second")
            expect(time.time() - began >= 5, "its time counts from the redriven record", time.time() - began)
            expect(bodies(device) == ["fired", "second"], "each is shown once", bodies(device))
        say(audit=await scene.audit())
    scene.end()


async def lost(arguments, folder):
    scene = Scene(arguments)
    async with on_one_redis(arguments, folder) as (redis, cluster):
        transform = await cluster.started("transform", *cluster.group)
        fan_out = await cluster.started("fan-out", "--listen", "127.0.0.1:0")
        async with Device(fan_out.addresses["devices"], scene.contract, user="ada") as device:
            target = "device:" + device.token
            kept = await scene.producer.notify(target, "kept", trigger=interval(20), apns_collapse_id="kept")
            gone = await scene.producer.notify(target, "gone", trigger=interval(20), apns_collapse_id="gone")
            await scene.producer.notify(target, "fired", trigger=interval(1), apns_collapse_id="fired")
            await scene.producer.flush()
            await device.frame("notify", identifier="fired")
            await scene.cancel(target, "gone")
            await scene.event(gone, "canceled")
            await until(lambda: committed(arguments) >= 5, "the group has committed", lambda: committed(arguments))
            # Nothing that has been told is lost with Redis.
            redis.cli("FLUSHALL")
            await until(lambda: unready(transform), "the worker says that Redis has lost what it had")
            done = await run(arguments.binary, "rebuild", *cluster.common, *cluster.group, "--json")
            expect(done.returncode == 0, "Redis is rebuilt", done.stderr)
            say(rebuilt=json.loads(done.stdout))
            expect(json.loads(done.stdout)["schedules"] >= 3, "with the schedules", done.stdout)
            await until(lambda: ready(transform) and ready(fan_out), "the workers go on")
            frame = await device.frame("notify", identifier="kept")
            expect(frame["id"] != kept, "it is the occurrence", frame)
            # It is due behind what was canceled.
            await scene.producer.notify(target, "behind", trigger=interval(1), apns_collapse_id="behind")
            await device.frame("notify", identifier="behind")
            expect(sorted(bodies(device)) == ["behind", "fired", "kept"], "each is shown once, and the canceled one not at all", bodies(device))
            again = await scene.producer.notify(target, "kept", id=kept, trigger=interval(1), apns_collapse_id="kept")
            await scene.event(again, "duplicate")
        say(audit=await scene.audit())
    scene.end()


PARTS = {"once": once, "repeats": repeats, "moves": moves, "places": places, "rules": rules, "killed": killed, "stepped": stepped,
         "all": all_canceled, "replaced": replaced, "overtaken": overtaken, "bounded": bounded, "tools": tools, "lost": lost}

if __name__ == "__main__":
    run_part(__doc__, PARTS, "carillon-schedules-", contract="the AsyncAPI document")
