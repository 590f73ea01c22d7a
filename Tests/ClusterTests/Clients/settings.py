"""What the person's settings make of notifications: real processes on a real Kafka and a real Redis, and devices in Python.

  switches   each status and each switch, told in the hello and changed by `settings`, for devices that are connected and for those that come
             back: what is shown, how, and why the rest is filtered; and the last word of the device
  categories published categories, a device's own, and responses, while both change; on two workers
  quiet      the quiet hours of a person, on two workers: what their devices are sent while they hold, with all that passes them
  granted    critical and time-sensitive notifications of an application before and after it was allowed them, while the device is connected
"""
import asyncio
import datetime
import json
import os
import uuid
import zoneinfo

from applications import applications
from clients import APPLICATION, Contract, Device, Producer, Reader, expect, run, say, until
from healing import run_part, shares

ALERT = {"alert": {"title": "Order", "body": "hello"}, "sound": "default", "badge": 3}
ALL = ["banner", "lockScreen", "list", "sound", "badge"]
DENIED = "the person does not allow notifications on the device"
NOT_ASKED = "the person was not asked yet whether the device may show notifications"
SWITCHED_OFF = "the device's settings let nothing of it be shown"
BADGES_ONLY = "the device's platform shows badges only, and the notification has none"

# The authorization, what differs from an alert with sound and badge, and how it is to be presented; or why it is filtered.
ROWS = [
    (None, {}, ALL),
    ({"status": "authorized"}, {}, ALL),
    ({"status": "ephemeral"}, {}, ALL),
    ({"status": "provisional"}, {}, ["list", "quietly"]),
    ({"status": "denied"}, {}, DENIED),
    ({"status": "notDetermined"}, {}, NOT_ASKED),
    ({"status": "authorized", "alert": False}, {}, ["lockScreen", "list", "sound", "badge"]),
    ({"status": "authorized", "lockScreen": False}, {}, ["banner", "list", "sound", "badge"]),
    ({"status": "authorized", "notificationCenter": False}, {}, ["banner", "lockScreen", "sound", "badge"]),
    ({"status": "authorized", "sound": False}, {}, ["banner", "lockScreen", "list", "badge"]),
    ({"status": "authorized", "badge": False}, {}, ["banner", "lockScreen", "list", "sound"]),
    ({"status": "authorized", "sound": False, "badge": False}, {"alert": None}, SWITCHED_OFF),
    ({"status": "authorized", "scheduledDelivery": True}, {}, ["list", "badge", "quietly"]),
    ({"status": "authorized", "previews": "never", "announcement": True, "carPlay": False}, {}, ALL),
    ({"status": "authorized"}, {"interruption-level": "passive"}, ["lockScreen", "list", "badge"]),
    ({"status": "denied"}, {"content-available": 1}, []),
    ({"status": "denied"}, {"alert": None, "sound": None, "badge": None, "content-available": 1}, []),
]


def filtered(reader, topic, name):
    """The event that a request was filtered, as JSON."""
    return next((record.json for record in reader.records[topic] if record.type == "filtered" and record.headers["ce_subject"] == name), None)


async def holds(reader, topic, device, name, expected):
    """Holds what a device was sent of a request, or its event, against what is expected of it."""
    def notified():
        return next((frame for frame in device.frames if frame["type"] == "notify" and frame["id"] == name), None)

    def ended():
        return notified() or filtered(reader, topic, name)

    await until(ended, "the notification is sent or filtered", seen=lambda: device.frames[-3:])
    frame = notified()
    if isinstance(expected, str):
        expect(frame is None, "it is filtered", frame)
        expect(filtered(reader, topic, name)["reason"] == expected, "the event says why", filtered(reader, topic, name))
    else:
        expect(frame and frame["presentation"] == expected, "it is presented as %s" % expected, frame or filtered(reader, topic, name))


@shares
async def switches(arguments, folder, shared):
    contract = Contract(arguments.contract)
    events = arguments.prefix + "events"
    reader = Reader(arguments.kafka, [events])
    reading = asyncio.create_task(reader.run())
    producer = Producer(arguments.kafka, arguments.prefix + "requests")
    async with shared.workers() as (_, _, (url, _)):
        # Connected: the settings change before each notification.
        async with Device(url, contract, user="ann") as device:
            for number, (authorization, members, expected) in enumerate(ROWS):
                if authorization:
                    await device.send({"type": "settings", "request": "s%d" % number, "authorization": authorization})
                    await device.frame("accepted", request="s%d" % number)
                name = await producer.notify("user:ann", aps={**ALERT, **members})
                await holds(reader, events, device, name, expected)
        say(rows=len(ROWS), device="connected")

        # Absent: published while nothing may be shown, and judged by the settings with which the device comes back.
        token = device.token
        for authorization, members, expected in ROWS:
            async with Device(url, contract, user="ann", device=token, authorization={"status": "denied"}):
                pass
            name = await producer.notify("user:ann", aps={**ALERT, **members})
            await producer.flush()
            hello = {"authorization": authorization} if authorization else {}
            async with Device(url, contract, user="ann", device=token, **hello) as device:
                await holds(reader, events, device, name, expected)
        say(rows=len(ROWS), device="absent")

        async with Device(url, contract, user="tom", platform="tvOS") as television:
            for members, expected in (({}, ["badge"]), ({"badge": None}, BADGES_ONLY)):
                await holds(reader, events, television, await producer.notify("user:tom", aps={**ALERT, **members}), expected)

        # The device has the last word.
        async with Device(url, contract, user="eve") as device:
            device.acknowledges = False
            name = await producer.notify("user:eve")
            frame = await device.frame("notify", id=name)
            await device.send({"type": "ack", "dropped": [{"delivery": frame["delivery"], "reason": "filtered"}]})
            event = await until(lambda: filtered(reader, events, name), "it is filtered")
            expect(event["reason"] == "the device shows nothing of it", "the event says who decided", event)
    reading.cancel()
    expect(not contract.broken, "all frames keep the contract", contract.broken[:3])


@shares
async def granted(arguments, folder, shared):
    contract = Contract(arguments.contract)
    application = "com.example.granted"
    producer = Producer(arguments.kafka, arguments.prefix + "requests", application=application)
    summary = {"status": "authorized", "scheduledDelivery": True, "sound": False}
    async with shared.workers() as (_, _, (url, _)):
        async with Device(url, contract, application=application, user="ken", authorization=summary) as device:
            async def shown(members):
                name = await producer.notify("user:ken", aps={**ALERT, **members})
                frame = await device.frame("notify", id=name)
                return frame["presentation"], frame.get("interruptionLevel")

            async def becomes(members, expected):
                async def is_so():
                    return await shown(members) == expected

                # The worker may hear of the change a moment later.
                await until(is_so, "it is presented as %s" % (expected,), lambda: device.frames[-2:])

            async def listed():
                lines = await applications(arguments, "list", code=None)
                return [line for line in lines if line["application"] == application]

            levels = {"time-sensitive": {"interruption-level": "time-sensitive"}, "critical": {"interruption-level": "critical"},
                      "sound": {"sound": {"critical": 1, "name": "alarm", "volume": 0.5}}}
            quiet, loud = (["list", "badge", "quietly"], "active"), (["banner", "lockScreen", "list", "sound", "badge"], None)
            silent = (["banner", "lockScreen", "list", "badge"], None)
            for members in levels.values():
                expect(await shown(members) == quiet, "without a grant it counts as active", members)
            answer = (await applications(arguments, "allow", application, "--time-sensitive"))[0]
            expect(answer["changed"] and answer["allowed"] == ["timeSensitive"], "it says what is allowed", answer)
            await becomes(levels["time-sensitive"], silent)
            expect(await shown(levels["critical"]) == quiet, "the other level was not allowed")
            await applications(arguments, "allow", application, "--critical")
            for kind in "critical", "sound":
                await becomes(levels[kind], loud)
            expect(await shown(levels["time-sensitive"]) == silent, "what was allowed before stays allowed")
            # A stop and a start leave the grants as they are.
            await applications(arguments, "stop", application)
            await applications(arguments, "start", application)
            expect((await listed())[0]["allowed"] == ["critical", "timeSensitive"], "it is listed", await listed())
            await device.send({"type": "settings", "request": "s", "authorization": {**summary, "criticalAlert": False}})
            await device.frame("accepted", request="s")
            expect(await shown(levels["critical"]) == quiet, "the person has the last word")
            await applications(arguments, "disallow", application, "--critical", "--time-sensitive")
            await becomes(levels["time-sensitive"], quiet)
            expect(not await listed(), "and is listed no more", await listed())
    expect(not contract.broken, "all frames keep the contract", contract.broken[:3])


@shares
async def quiet(arguments, folder, shared):
    contract = Contract(arguments.contract)
    events = arguments.prefix + "events"
    reader = Reader(arguments.kafka, [events])
    reading = asyncio.create_task(reader.run())
    producer = Producer(arguments.kafka, arguments.prefix + "requests")
    async with shared.workers() as (_, cluster, urls):
        await applications(arguments, "allow", APPLICATION, "--critical", "--time-sensitive")
        async with Device(urls[0], contract, user="quinn") as phone, Device(urls[1], contract, user="quinn") as tablet, \
                Device(urls[1], contract, user="quentin") as other:
            async def shown(device, user, members=None):
                name = await producer.notify("user:" + user, aps={**ALERT, **(members or {})})
                return (await device.frame("notify", id=name))["presentation"]

            async def set_quiet(device, hours):
                number = "q%d" % len(device.of("accepted"))
                await device.send({"type": "settings", "request": number, "quiet": hours})
                await device.frame("accepted", request=number)

            # All day long in the zones of both sides of the date line, so that the hour of the test does not matter.
            now = datetime.datetime.now(zoneinfo.ZoneInfo("Pacific/Auckland"))
            begin = (now - datetime.timedelta(hours=2)).strftime("%H:%M")
            end = (now + datetime.timedelta(hours=3)).strftime("%H:%M")
            await set_quiet(phone, {"from": begin, "to": end, "timeZone": "Pacific/Auckland"})
            async def becomes(device, expected, members=None):
                async def is_so():
                    return await shown(device, "quinn", members) == expected

                await until(is_so, "it is presented as %s" % expected, lambda: device.frames[-2:])

            for device in phone, tablet:
                await becomes(device, ["list", "badge", "quietly"])
            expect(await shown(other, "quentin") == ALL, "another person is not concerned")
            for level in "time-sensitive", "critical":
                # The tablet's worker may hear a moment later that the application may send them.
                await becomes(tablet, ALL, {"interruption-level": level})
            name = await producer.notify("user:quinn", aps={"alert": None, "sound": "default"})
            event = await until(lambda: filtered(reader, events, name), "a sound alone is filtered")
            expect("quiet hours" in event["reason"], "the event says why", event)
            async with Device(urls[0], contract, user="quinn") as watch:
                expect(watch.of("welcome")[0]["quiet"]["from"] == begin, "the welcome tells the quiet hours", watch.frames)
            # Another day of the week: they do not hold. Yesterday's would hold over midnight.
            today = (now.weekday() + 1) % 7 + 1
            days = [day for day in range(1, 8) if day not in (today, (today + 5) % 7 + 1, today % 7 + 1)]
            await set_quiet(tablet, {"from": begin, "to": end, "days": days, "timeZone": "Pacific/Auckland"})
            for device in phone, tablet:
                await becomes(device, ALL)
            await set_quiet(tablet, {})
            expect(await shown(phone, "quinn") == ALL, "there are none any more")
            # Each person of a cluster is known to a worker that starts now.
            await set_quiet(phone, {"from": begin, "to": end, "timeZone": "Pacific/Auckland"})
        late = await cluster.started("fan-out", "--listen", "127.0.0.1:0")
        async with Device(late.addresses["devices"], contract, user="quinn") as phone:
            expect("quiet" in phone.of("welcome")[0], "a worker that starts has read the quiet hours before it lets devices in")
            name = await producer.notify("user:quinn", aps=ALERT)
            expect((await phone.frame("notify", id=name))["presentation"] == ["list", "badge", "quietly"], "and they hold")
    reading.cancel()
    expect(not contract.broken, "all frames keep the contract", contract.broken[:3])


@shares
async def categories(arguments, folder, shared):
    contract = Contract(arguments.contract)
    events = arguments.prefix + "events"
    reader = Reader(arguments.kafka, [events])
    reading = asyncio.create_task(reader.run())
    producer = Producer(arguments.kafka, arguments.prefix + "requests")

    async def publish(actions):
        path = os.path.join(folder, "categories.json")
        with open(path, "w") as file:
            json.dump([category(actions)] if actions else [], file)
        line = [arguments.binary, "categories", "publish", path, "--app", APPLICATION, "--kafka", arguments.kafka, "--topic-prefix", arguments.prefix]
        done = await run(*line)
        expect(done.returncode == 0, "the categories are published", done.stderr)

    def category(actions):
        return {"identifier": "chat", "options": ["customDismissAction"],
                "actions": [{"identifier": name, "title": name, **({"textInput": {}} if name == "reply" else {})} for name in actions]}

    async with shared.workers() as (_, _, urls):

        async def notified(device, user):
            name = await producer.notify("user:" + user, aps={"category": "chat"})
            return await device.frame("notify", id=name)

        async def becomes(device, user, holds):
            async def found():
                frame = await notified(device, user)
                return holds(frame) and frame

            # The worker may hear of what is published a moment later.
            return await until(found, "the worker hears of the categories", lambda: device.frames[-2:])

        async def respond(device, notify, action, **more):
            name = str(uuid.uuid4())
            await device.send({"type": "response", "response": name, "receipt": notify["receipt"], "identifier": notify["identifier"],
                               "action": action, **more})
            def answer():
                return next((frame for frame in device.frames if frame.get("response") == name), None)
            frame = await until(answer, "a response is answered")
            return frame.get("reason", "accepted")

        async with Device(urls[0], contract, user="carl") as phone, Device(urls[1], contract, user="cora") as other, \
                Device(urls[1], contract, user="cleo", categories=[category(["like"])]) as own:
            unknown = await notified(phone, "carl")
            expect("category" not in unknown, "an unknown category has no actions", unknown)
            expect(await respond(phone, unknown, "reply", userText="x") == "UnknownCategory", "and takes no response")
            await publish(["reply", "mute"])
            for device, user in (phone, "carl"), (other, "cora"):
                frame = await becomes(device, user, lambda frame: "category" in frame)
                expect([action["identifier"] for action in frame["category"]["actions"]] == ["reply", "mute"], "both workers hear of it", frame)
            frame = await notified(own, "cleo")
            expect("category" not in frame, "a device's own outranks the published one", frame)
            expect(await respond(own, frame, "like") == "accepted", "its own action is taken")
            expect(await respond(own, frame, "reply", userText="x") == "UnknownAction", "the published one's is not")

            # What was delivered keeps the actions that it had, whatever is published or registered since.
            before = await notified(phone, "carl")
            await publish(["like"])
            after = await becomes(phone, "carl", lambda frame: frame["category"]["actions"][0]["identifier"] == "like")
            await phone.send({"type": "categories", "request": "c", "categories": []})
            await phone.frame("accepted", request="c")
            expect(await respond(phone, before, "reply", userText="thanks") == "accepted", "by the category as it was")
            expect(await respond(phone, before, "reply") == "MissingUserText", "with its text")
            expect(await respond(phone, before, "like") == "UnknownAction", "and by no later one")
            expect(await respond(phone, after, "like") == "accepted", "the newer one has the newer actions")
            expect(await respond(phone, after, "shrug", dynamic=True) == "accepted", "a dynamic action is the device's word")
            def told(action="shrug"):
                return [record.json for record in reader.records[events]
                        if record.type == "response" and record.headers["ce_subject"] == after["id"] and record.json["action"] == action]
            event = (await until(told, "the response is an event"))[0]
            expect(event["dynamic"] is True and "unanswered" not in event, "and its event says so", event)
            expect(await respond(phone, after, "sigh", dynamic=True, unanswered=True) == "accepted", "no extension has answered")
            event = (await until(lambda: told("sigh"), "the response is an event"))[0]
            expect(event["unanswered"] is True, "and its event says so, too", event)
            await publish([])
            await becomes(phone, "carl", lambda frame: "category" not in frame)
    reading.cancel()
    expect(not contract.broken, "all frames keep the contract", contract.broken[:3])


PARTS = {"switches": switches, "granted": granted, "quiet": quiet, "categories": categories}

if __name__ == "__main__":
    run_part(__doc__, PARTS, "carillon-settings-", contract="the AsyncAPI document")
