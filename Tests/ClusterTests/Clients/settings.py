"""What the person's settings make of notifications: real processes on a real Kafka and a real Redis, and devices in Python.

  switches   each status and each switch, told in the hello and changed by `settings`, for devices that are connected and for those that come
             back: what is shown, how, and why the rest is filtered; and the last word of the device
  granted    critical and time-sensitive notifications of an application before and after it was allowed them, while the device is connected
"""
import asyncio

from applications import applications
from clients import APPLICATION, Contract, Device, Producer, Reader, expect, say, until
from healing import on_one_redis, run_part

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


async def switches(arguments, folder):
    contract = Contract(arguments.contract)
    events = arguments.prefix + "events"
    reader = Reader(arguments.kafka, [events])
    reading = asyncio.create_task(reader.run())
    producer = Producer(arguments.kafka, arguments.prefix + "requests")
    async with on_one_redis(arguments, folder) as (_, cluster):
        await cluster.started("transform", *cluster.group)
        fan_out = await cluster.started("fan-out", "--listen", "127.0.0.1:0")
        url = fan_out.addresses["devices"]

        # Connected: the settings change before each notification.
        async with Device(url, contract, user="ada") as device:
            for number, (authorization, members, expected) in enumerate(ROWS):
                if authorization:
                    await device.send({"type": "settings", "request": "s%d" % number, "authorization": authorization})
                    await device.frame("accepted", request="s%d" % number)
                name = await producer.notify("user:ada", aps={**ALERT, **members})
                await holds(reader, events, device, name, expected)
        say(rows=len(ROWS), device="connected")

        # Absent: published while nothing may be shown, and judged by the settings with which the device comes back.
        token = device.token
        for authorization, members, expected in ROWS:
            async with Device(url, contract, user="ada", device=token, authorization={"status": "denied"}):
                pass
            name = await producer.notify("user:ada", aps={**ALERT, **members})
            await producer.flush()
            hello = {"authorization": authorization} if authorization else {}
            async with Device(url, contract, user="ada", device=token, **hello) as device:
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


async def granted(arguments, folder):
    contract = Contract(arguments.contract)
    producer = Producer(arguments.kafka, arguments.prefix + "requests")
    summary = {"status": "authorized", "scheduledDelivery": True, "sound": False}
    async with on_one_redis(arguments, folder) as (_, cluster):
        await cluster.started("transform", *cluster.group)
        fan_out = await cluster.started("fan-out", "--listen", "127.0.0.1:0")
        async with Device(fan_out.addresses["devices"], contract, user="ada", authorization=summary) as device:
            async def shown(members):
                name = await producer.notify("user:ada", aps={**ALERT, **members})
                frame = await device.frame("notify", id=name)
                return frame["presentation"], frame.get("interruptionLevel")

            async def becomes(members, expected):
                # The worker may hear of the change a moment later.
                while (seen := await shown(members)) != expected:
                    say(seen=seen)
                    await asyncio.sleep(0.1)

            levels = {"time-sensitive": {"interruption-level": "time-sensitive"}, "critical": {"interruption-level": "critical"},
                      "sound": {"sound": {"critical": 1, "name": "alarm", "volume": 0.5}}}
            quiet, loud = (["list", "badge", "quietly"], "active"), (["banner", "lockScreen", "list", "sound", "badge"], None)
            silent = (["banner", "lockScreen", "list", "badge"], None)
            for members in levels.values():
                expect(await shown(members) == quiet, "without a grant it counts as active", members)
            answer = (await applications(arguments, "allow", APPLICATION, "--time-sensitive"))[0]
            expect(answer["changed"] and answer["allowed"] == ["timeSensitive"], "it says what is allowed", answer)
            await becomes(levels["time-sensitive"], silent)
            expect(await shown(levels["critical"]) == quiet, "the other level was not allowed")
            await applications(arguments, "allow", APPLICATION, "--critical")
            for kind in "critical", "sound":
                await becomes(levels[kind], loud)
            expect(await shown(levels["time-sensitive"]) == silent, "what was allowed before stays allowed")
            # A stop and a start leave the grants as they are.
            await applications(arguments, "stop", APPLICATION)
            await applications(arguments, "start", APPLICATION)
            listed = await applications(arguments, "list")
            expect(listed[0]["allowed"] == ["critical", "timeSensitive"], "it is listed", listed)
            await device.send({"type": "settings", "request": "s", "authorization": {**summary, "criticalAlert": False}})
            await device.frame("accepted", request="s")
            expect(await shown(levels["critical"]) == quiet, "the person has the last word")
            await applications(arguments, "disallow", APPLICATION, "--critical", "--time-sensitive")
            await becomes(levels["time-sensitive"], quiet)
            await applications(arguments, "list", code=1)
    expect(not contract.broken, "all frames keep the contract", contract.broken[:3])


PARTS = {"switches": switches, "granted": granted}

if __name__ == "__main__":
    run_part(__doc__, PARTS, "carillon-settings-", contract="the AsyncAPI document")
