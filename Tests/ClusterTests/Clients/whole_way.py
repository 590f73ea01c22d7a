#!/usr/bin/env python3
"""Takes notifications the whole way, from a producer to a device and back to the events, and holds all it sees against the contract.

Standard output has one JSON object per line: a promise that was kept, then what the contract said, then the result. Exits 0 when every
promise was kept; what broke the contract is told by a line of its own.
"""
import argparse
import asyncio
import contextlib
import itertools
import json
import sys
import time
import uuid

import journal
from clients import APPLICATION, Contract, Device, Failed, Producer, Reader, expect, say, until

CATEGORIES = [
    {"identifier": "plain", "actions": [{"identifier": "open", "title": "Open", "options": ["foreground"]}]},
    {
        "identifier": "chat", "options": ["customDismissAction"],
        "actions": [
            {"identifier": "mute", "title": "Mute", "options": ["destructive"]},
            {"identifier": "reply", "title": "Reply", "textInput": {"buttonTitle": "Send", "placeholder": "Text"}},
        ],
    },
]
HELLO = {
    "platform": "linux", "locale": "de_AT", "timeZone": "Europe/Vienna", "categories": CATEGORIES,
    "authorization": {"status": "authorized", "alert": True, "sound": True, "badge": True},
}


class WholeWay:
    def __init__(self, arguments):
        self.urls = itertools.cycle(arguments.devices_url)
        self.window = arguments.window
        self.contract = Contract(arguments.contract)
        self.topics = {name: arguments.prefix + name for name in ("requests", "events", "journal", "devices", "dead-letters")}
        self.reader = Reader(arguments.kafka, list(self.topics.values()))
        self.producer = Producer(arguments.kafka, self.topics["requests"])
        self.batches = Producer(arguments.kafka, self.topics["requests"], linger=200)

    def device(self, **hello):
        return Device(next(self.urls), self.contract, **{**HELLO, **hello})

    def events(self, kind=None, **members):
        found = [record for record in self.reader.records[self.topics["events"]] if kind is None or record.type == kind]
        def said(record):
            is_about_device = record.type in ("registered", "settings-changed", "unregistered-device")
            return {"device" if is_about_device else "apnsId": record.headers["ce_subject"], **record.json}

        return [record for record in found if all(said(record).get(name) == value for name, value in members.items())]

    async def event(self, kind, **members):
        def seen():
            return [(record.type, record.json) for record in self.events()][-6:]

        return (await until(lambda: self.events(kind, **members), "event %s with %s" % (kind, members), seen))[0]

    def kept(self, name):
        """Whether the journal says that the request of this id was kept for its device."""
        for request in self.reader.records[self.topics["requests"]]:
            if request.headers.get("apns-id") == name:
                place = (request.offset, request.timestamp)
                return any((offset, timestamp) == place and verdict == journal.KEPT
                           for record in self.reader.records[self.topics["journal"]] if record.partition == request.partition
                           for offset, timestamp, _, verdict in journal.entries(record.value))
        return False

    async def queued(self, name):
        await until(lambda: self.kept(name), "the journal says that %s was kept" % name)

    async def respond(self, device, notify, action, text=None, **more):
        name = str(uuid.uuid4())
        frame = {
            "type": "response", "response": name, "receipt": notify["receipt"], "identifier": notify["identifier"], "action": action,
            "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), **more,
        }
        await device.send(frame if text is None else {**frame, "userText": text})
        return name

    # The promises.

    async def a_response_becomes_an_event(self):
        async with self.device(user="ada") as device:
            name = await self.producer.notify("user:ada", aps={"category": "chat"})
            notify = await device.frame("notify", id=name)
            expect(notify["payload"]["custom"] == {"body": "hello"}, "the payload is as published", notify)
            expect(notify["identifier"] == name and notify["priority"] == 10, "identifier and priority are as documented", notify)
            delivered = await self.event("delivered", apnsId=name)
            expect(delivered.json["device"] == device.token, "the event names the device", delivered.json)
            response = await self.respond(device, notify, "reply", "thank you 🎉")
            await device.frame("accepted", response=response)
            event = (await self.event("response", apnsId=name)).json
            expect(event["userText"] == "thank you 🎉" and event["action"] == "reply", "the event has the text", event)
            # The device sends it again, as after a lost answer: the same answer, and the same event, which consumers can drop.
            again = {"type": "response", "response": response, "receipt": notify["receipt"], "identifier": name, "action": "reply",
                     "userText": "thank you 🎉"}
            await device.send(again)
            await until(lambda: len(device.of("accepted")) == 2, "a repeated response is accepted again")
            marker = await self.producer.notify("user:ada", "marker")
            await self.event("delivered", apnsId=marker)
            ids = {record.headers["ce_id"] for record in self.events("response", apnsId=name)}
            expect(len(ids) == 1, "a repeated response has the same ce_id", list(ids))

    async def a_trace_goes_from_the_request_to_all_that_becomes_of_it(self):
        trace = "00-" + "c" * 32 + "-" + "d" * 16 + "-01"
        device = self.device(user="trudy")
        async with device:
            pass
        # Once out of the mailbox, and once on the fast path.
        waiting = await self.producer.notify("user:trudy", aps={"category": "chat"}, traceparent=trace)
        await self.queued(waiting)
        async with self.device(device=device.token, user="trudy") as device:
            live = await self.producer.notify("user:trudy", aps={"category": "chat"}, traceparent=trace)
            plain = await self.producer.notify("user:trudy", aps={"category": "chat"})
            for name, expected in (waiting, trace), (live, trace), (plain, None):
                notify = await device.frame("notify", id=name)
                expect(notify.get("traceparent") == expected, "the frame has the trace of its request", notify)
                await device.frame("accepted", response=await self.respond(device, notify, "reply", "yes"))
                for kind in "addressed", "delivered", "response":
                    event = await self.event(kind, apnsId=name)
                    expect(event.headers.get("traceparent") == expected, "the event has it, too", [kind, event.headers])

    async def a_dismissal_is_an_event_only_when_asked_for(self):
        async with self.device() as device:
            target = "device:" + device.token
            silent = await self.producer.notify(target, aps={"category": "plain"})
            told = await self.producer.notify(target, aps={"category": "chat"})
            for name in (silent, told):
                notify = await device.frame("notify", id=name)
                response = await self.respond(device, notify, "com.apple.UNNotificationDismissActionIdentifier")
                await device.frame("accepted", response=response)
            await self.event("dismissed", apnsId=told)
            expect(not self.events("dismissed", apnsId=silent), "no event without customDismissAction")

    async def what_is_wrong_with_a_response_is_said(self):
        async with self.device() as device:
            name = await self.producer.notify("device:" + device.token, aps={"category": "chat"})
            notify = await device.frame("notify", id=name)
            cases = [
                ("sing", None, "UnknownAction", "action"), ("mute", "text", "UnexpectedUserText", "userText"),
                ("reply", None, "MissingUserText", "userText"), ("reply", "x" * 5000, "UserTextTooLong", "userText"),
            ]
            for action, text, reason, field in cases:
                name = str(uuid.uuid4())
                frame = {"type": "response", "response": name, "receipt": notify["receipt"], "identifier": notify["identifier"],
                         "action": action}
                await device.socket.send(json.dumps(frame if text is None else {**frame, "userText": text}))
                refused = await device.frame("refused", response=name)
                expect((refused["reason"], refused["field"]) == (reason, field), "refused with reason and field", refused)
            wrong = {"userText": 5, "at": "tomorrow"}
            rules = {"userText": "This is text of at most 4096 bytes.", "at": "A time is milliseconds since 1970, or text by RFC 3339."}
            for field, value in wrong.items():
                name = str(uuid.uuid4())
                frame = {"type": "response", "response": name, "receipt": notify["receipt"], "identifier": notify["identifier"],
                         "action": "reply", field: value}
                await device.socket.send(json.dumps(frame))
                refused = await device.frame("refused", response=name)
                expect((refused["reason"], refused["field"], refused["rule"]) == ("BadFrame", field, rules[field]), "the rule", refused)
            forged = {**notify, "receipt": notify["receipt"][:-4] + "AAAA"}
            refused = await device.frame("refused", response=await self.respond(device, forged, "mute"))
            expect(refused["reason"] == "BadReceipt", "a forged receipt is refused", refused)

    async def a_response_is_not_told_as_later_than_its_event(self):
        async with self.device() as device:
            for ahead in (1, 3600, 10**9):
                name = await self.producer.notify("device:" + device.token)
                notify = await device.frame("notify", id=name)
                at = int((time.time() + ahead) * 1000)
                await self.respond(device, notify, "com.apple.UNNotificationDefaultActionIdentifier", at=at)
                event = await self.event("response", apnsId=name)
                expect(event.json["at"] <= event.headers["ce_time"], "at is no later than ce_time", [event.json, event.headers])
            name = await self.producer.notify("device:" + device.token)
            notify = await device.frame("notify", id=name)
            await self.respond(device, notify, "com.apple.UNNotificationDefaultActionIdentifier", at=1_700_000_000_123)
            event = await self.event("response", apnsId=name)
            expect(event.json["at"] == "2023-11-14T22:13:20.123Z", "an earlier time is told as it is", event.json)

    async def a_category_that_nobody_can_register_takes_no_response_away(self):
        async with self.device() as device:
            name = await self.producer.notify("device:" + device.token, aps={"category": "x" * 3500})
            notify = await device.frame("notify", id=name)
            response = await self.respond(device, notify, "com.apple.UNNotificationDefaultActionIdentifier")
            await device.frame("accepted", response=response)
            refused = await device.frame("refused", response=await self.respond(device, notify, "mute"))
            expect(refused["reason"] == "UnknownCategory", "its actions are unknown", refused)

    async def another_application_gets_nothing_of_the_former_one(self):
        user = "grace-%s" % uuid.uuid4()
        async with self.device(user=user) as device:
            target = "device:" + device.token
            shown = await device.frame("notify", id=await self.producer.notify(target))
        waiting = [await self.producer.notify(target), await self.producer.notify("user:" + user)]
        for name in waiting:
            await self.queued(name)
        async with self.device(device=device.token, user=user, application="com.example.other") as other:
            for name in waiting:
                filtered = await self.event("filtered", apnsId=name)
                expect(filtered.json["device"] == device.token and "application" in filtered.json["reason"], "it says why", filtered.json)
            name = await self.producer.notify(target, apns_topic="com.example.other")
            await other.frame("notify", id=name)
            expect([frame["id"] for frame in other.of("notify")] == [name], "only its own", other.of("notify"))
            refused = await other.frame(
                "refused", response=await self.respond(other, shown, "com.apple.UNNotificationDefaultActionIdentifier"))
            expect(refused["reason"] == "NotForThisDevice", "nor does it answer for the former one", refused)
            # Its person has this device no more in the former application, and has it in the new one.
            name = await self.producer.notify("user:" + user)
            await self.event("unregistered", apnsId=name)
            name = await self.producer.notify("user:" + user, apns_topic="com.example.other")
            await other.frame("notify", id=name)

    async def another_person_gets_nothing_of_the_former_one(self):
        former, present = ("%s-%s" % (name, uuid.uuid4()) for name in ("ada", "grace"))
        async with self.device(user=former) as device:
            await device.frame("notify", id=await self.producer.notify("user:" + former))
        name = await self.producer.notify("user:" + former)
        await self.queued(name)
        async with self.device(device=device.token, user=present) as other:
            filtered = await self.event("filtered", apnsId=name)
            expect(filtered.json["device"] == device.token and "person" in filtered.json["reason"], "it says why", filtered.json)
            name = await self.producer.notify("user:" + present)
            await other.frame("notify", id=name)
            expect([frame["id"] for frame in other.of("notify")] == [name], "only its own", other.of("notify"))

    async def a_second_connection_takes_over(self):
        async with self.device() as first:
            async with self.device(device=first.token) as second:
                await until(lambda: first.closed, "the first connection is closed")
                expect(first.closed[0] == 4004, "closed with 4004", first.closed)
                name = await self.producer.notify("device:" + first.token)
                await second.frame("notify", id=name)
                expect(not first.of("notify"), "the first connection got nothing")

    async def one_of_several_updates_in_a_batch_is_found(self):
        async with self.device() as device:
            pass
        target = "device:" + device.token
        names = [await self.batches.notify(target, "update %d" % number, apns_collapse_id="order-7") for number in range(8)]
        await self.batches.flush()
        other = await self.producer.notify(target, "other")
        await self.queued(other)
        await self.queued(names[-1])
        async with self.device(device=device.token) as device:
            await device.frame("notify", id=other)
            await device.frame("notify", id=names[-1])
            shown = [frame["id"] for frame in device.of("notify") if frame["identifier"] == "order-7"]
            expect(shown == names[-1:], "an offline device finds only the newest", [names, shown])
            await self.event("delivered", apnsId=names[-1])
        for name in names[:-1]:
            await self.event("collapsed", apnsId=name)
        # Connected: the order is kept, and the last word is the newest.
        async with self.device(device=device.token) as device:
            names = [await self.batches.notify(target, "later %d" % number, apns_collapse_id="order-7") for number in range(8)]
            await self.batches.flush()
            await device.frame("notify", id=names[-1])
            revisions = [frame["revision"] for frame in device.of("notify")]
            expect(revisions == sorted(revisions), "revisions rise", revisions)

    async def a_mailbox_comes_in_order_and_by_the_window(self):
        async with self.device() as device:
            pass
        names = [await self.producer.notify("device:" + device.token, str(number)) for number in range(self.window * 4)]
        await self.producer.flush()
        for name in names:
            await self.queued(name)
        connection = self.device(device=device.token)
        connection.acknowledges = False
        async with connection as device:
            taken = 0
            while taken < len(names):
                await until(lambda: len(device.of("notify")) >= min(len(names), taken + self.window), "a window is filled")
                # What would come too much comes before this answer, for which the worker asks nobody.
                forged = {**device.of("notify")[0], "receipt": "forged"}
                await device.frame("refused", response=await self.respond(device, forged, "mute"))
                notifies = device.of("notify")
                expect(len(notifies) - taken <= self.window, "at most a window is unacknowledged", len(notifies) - taken)
                step = self.window // 2 + 1
                await device.send({"type": "ack", "deliveries": [frame["delivery"] for frame in notifies[taken:taken + step]]})
                taken += min(step, len(notifies) - taken)
            expect([frame["id"] for frame in device.of("notify")] == names, "in the order of publication, each once")

    async def a_full_mailbox_gives_up_its_oldest(self):
        async with self.device() as device:
            pass
        names = [await self.producer.notify("device:" + device.token, str(number)) for number in range(300)]
        await self.producer.flush()
        await self.queued(names[-1])
        evicted = await until(
            lambda: (found := self.events("evicted", device=device.token)) and len(found) >= 200 and found, "the mailbox is within its bound", lambda: len(self.events("evicted", device=device.token)))
        # A few more than the bound may wait: they are given up several at a time.
        kept = names[len(evicted):]
        expect(100 <= len(kept) <= 117, "as many as the bound says stay, about", len(kept))
        expect([record.headers["ce_subject"] for record in evicted] == names[:len(evicted)], "the oldest go, each once, and Kafka knows")
        async with self.device(device=device.token) as device:
            await device.frame("gap")
            await until(lambda: len(device.of("notify")) >= len(kept), "what is left comes")
            expect([frame["id"] for frame in device.of("notify")] == kept, "what is left comes in order, each once")

    async def a_removal_reaches_the_device(self):
        async with self.device() as device:
            target = "device:" + device.token
            name = await self.producer.notify(target, apns_collapse_id="order-9")
            await device.frame("notify", id=name)
            remove = str(uuid.uuid4())
            headers = {"target": target, "apns-topic": APPLICATION, "apns-id": remove, "apns-collapse-id": "order-9", "operation": "remove"}
            self.producer.publish(headers, b"", key=target)
            frame = await device.frame("remove")
            expect(frame["identifiers"] == ["order-9"], "the frame names what is to go", frame)

    async def settings_and_leaving_are_told(self):
        async with self.device(user="grace") as device:
            await device.send({"type": "settings", "request": "s1", "authorization": {"status": "denied"}})
            await device.frame("accepted", request="s1")
            await self.event("settings-changed", device=device.token)
            await device.send({"type": "unregister", "request": "u1"})
            await device.frame("accepted", request="u1")
            await until(lambda: device.closed, "an unregistered device is closed")
            expect(device.closed[0] == 4013, "closed with 4013", device.closed)
        await self.event("unregistered-device", device=device.token)
        registrations = [record for record in self.reader.records[self.topics["devices"]] if record.key == device.token.encode()]
        expect(registrations[-1].value is None, "its registration has no value any more")

    async def a_bad_request_is_answered(self):
        name = await self.producer.notify("device:" + "0" * 64, apns_priority="7", traceparent="00-" + "a" * 32 + "-" + "b" * 16 + "-01")
        rejected = await self.event("rejected", apnsId=name)
        expect(rejected.json["reason"] == "BadPriority" and rejected.json["field"] == "apns-priority", "reason and field", rejected.json)
        async with self.device() as device:
            expired = await self.producer.notify("device:" + device.token, apns_expiration="1000000000")
            await self.event("expired", apnsId=expired)
            expect(not device.of("notify"), "nothing is shown after its expiration")
        first = await self.producer.notify("device:" + "2" * 64)
        await self.event("unregistered", apnsId=first)

    def hold_records(self):
        contract = self.contract
        for record in self.reader.records[self.topics["events"]]:
            contract.hold("eventHeaders", record.headers)
            contract.hold("event." + record.type, record.json)
        for record in self.reader.records[self.topics["devices"]]:
            if record.value is not None:
                contract.hold("registration", record.json)
        for record in self.reader.records[self.topics["journal"]]:
            contract.hold("journalHeaders", record.headers)
        for record in self.reader.records[self.topics["dead-letters"]]:
            contract.hold("deadLetterHeaders", {k: v for k, v in record.headers.items() if k.startswith("carillon-dead-letter-")})
        bad = {(r.headers["carillon-dead-letter-partition"], r.headers["carillon-dead-letter-offset"])
               for r in self.reader.records[self.topics["dead-letters"]]}
        for record in self.reader.records[self.topics["requests"]]:
            if (str(record.partition), str(record.offset)) not in bad:
                contract.hold("requestHeaders", record.headers)

    async def run(self):
        reading = asyncio.create_task(self.reader.run())
        failed = []
        promises = [
            self.a_response_becomes_an_event, self.a_trace_goes_from_the_request_to_all_that_becomes_of_it,
            self.a_dismissal_is_an_event_only_when_asked_for, self.what_is_wrong_with_a_response_is_said,
            self.a_response_is_not_told_as_later_than_its_event, self.a_category_that_nobody_can_register_takes_no_response_away,
            self.another_application_gets_nothing_of_the_former_one, self.another_person_gets_nothing_of_the_former_one,
            self.a_second_connection_takes_over, self.one_of_several_updates_in_a_batch_is_found,
            self.a_mailbox_comes_in_order_and_by_the_window, self.a_full_mailbox_gives_up_its_oldest, self.a_removal_reaches_the_device,
            self.settings_and_leaving_are_told, self.a_bad_request_is_answered,
        ]
        for promise in promises:
            began = time.monotonic()
            try:
                await promise()
                say(kept=promise.__name__, seconds=round(time.monotonic() - began, 2))
            except Exception as error:  # noqa: BLE001 - each promise is judged for itself
                failed.append(promise.__name__)
                say(broken=promise.__name__, why="%s: %s" % (type(error).__name__, error))
        # What nobody has waited for. Without it the contract is broken, or never held.
        letters = self.reader.records[self.topics["dead-letters"]]
        with contextlib.suppress(Failed):
            await until(lambda: self.events("removed") and len(letters) >= len(self.events("rejected")), "removal and dead letters are told")
        self.hold_records()
        say(contract="broken" if self.contract.broken else "kept", held=self.contract.held, first=self.contract.broken[:10],
            problems=len(self.contract.broken))
        say(result="failed" if failed else "passed", failed=failed)
        reading.cancel()
        return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kafka", required=True)
    parser.add_argument("--prefix", required=True)
    parser.add_argument("--devices-url", required=True, action="append")
    parser.add_argument("--contract", required=True)
    parser.add_argument("--window", type=int, default=32)
    return asyncio.run(WholeWay(parser.parse_args()).run())


if __name__ == "__main__":
    sys.exit(main())
