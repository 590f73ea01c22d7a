#!/usr/bin/env python3
"""Publishes a thousand bad records with good ones among them, and sends a fan-out worker what no device should send.

Each bad record must have a `rejected` event with its reason and a dead letter that is the record itself; every good one must arrive.
Standard output has one JSON object per line: promises that were kept or broken, then the result.
"""
import argparse
import asyncio
import json
import os
import struct
import sys
import urllib.parse
import uuid

import websockets
from clients import APPLICATION, Device, Producer, Reader, expect, say, until

OK = b'{"aps": {"alert": "hello"}}'


def aps(text):
    return {}, b'{"aps": ' + text.encode() + b"}", "BadRequestPayload"


# What changes in the headers (None: absent), the value, the reason.
BAD = [
    ({"apns-id": "NOT-A-UUID"}, OK, "BadMessageId"),
    ({"apns-id": str(uuid.uuid4()).upper().replace("-", "_", 1)}, OK, "BadMessageId"),
    ({"apns-id": ""}, OK, "BadMessageId"),
    ({"apns-topic": None}, OK, "MissingTopic"),
    ({"apns-topic": "com/example"}, OK, "BadTopic"),
    ({"apns-topic": "x" * 256}, OK, "BadTopic"),
    ({"apns-push-type": "voip"}, OK, "BadTopic"),
    ({"apns-collapse-id": "x" * 65}, OK, "BadCollapseId"),
    ({"apns-collapse-id": b"\xff\xfe"}, OK, "BadCollapseId"),
    ({"apns-priority": "7"}, OK, "BadPriority"),
    ({"apns-priority": "ten"}, OK, "BadPriority"),
    ({"apns-push-type": "background", "apns-priority": "10"}, b'{"aps": {"content-available": 1}}', "BadPriority"),
    ({"apns-push-type": "carrier-pigeon"}, OK, "InvalidPushType"),
    ({"apns-expiration": "soon"}, OK, "BadExpirationDate"),
    ({"apns-expiration": "-1"}, OK, "BadExpirationDate"),
    ({"target": "device:xyz"}, OK, "BadDeviceToken"),
    ({"target": "planet:mars"}, OK, "BadDeviceToken"),
    ({"target": "user:"}, OK, "BadDeviceToken"),
    ({"target": "channel:news"}, OK, "FeatureNotEnabled"),
    ({"operation": "cancel"}, OK, "BadRequestPayload"),
    ({"operation": "cancel", "apns-collapse-id": "a", "trigger": "{}"}, b"", "BadRequestParams"),
    ({"trigger": '{"type": "timeInterval", "timeInterval": 0}'}, OK, "BadRequestParams"),
    ({"trigger": '{"type": "calendar", "dateComponents": {"hour": 24}}'}, OK, "BadRequestParams"),
    ({"trigger": '{"type": "calendar", "dateComponents": {"hour": 9, "timeZone": "Mars/Base"}}'}, OK, "BadRequestParams"),
    ({"carillon-firing": "{}"}, OK, "BadRequestParams"),
    ({"operation": "explode"}, OK, "BadRequestParams"),
    ({"trigger": "{"}, OK, "BadRequestParams"),
    ({"carillon-origin": "nowhere"}, OK, "BadRequestParams"),
    ({}, None, "PayloadEmpty"),
    ({}, b"", "PayloadEmpty"),
    ({}, b'{"aps": {"alert": "' + b"x" * 5000 + b'"}}', "PayloadTooLarge"),
    ({}, b'{"aps": {"alert": "cut', "BadRequestPayload"),
    ({}, b"[]", "BadRequestPayload"),
    ({}, b"\x00\xff\x01", "BadRequestPayload"),
    ({}, b'{"aps": ' + b"[" * 500 + b"]" * 500 + b"}", "BadRequestPayload"),
    ({}, b'{"alert": "no aps"}', "BadRequestPayload"),
    aps("[]"), aps('{"alert": 3}'), aps('{"badge": "three"}'), aps('{"badge": 1.5}'), aps('{"badge": -1}'), aps('{"sound": 1}'), aps('{"sound": {"critical": 2}}'),
    aps('{"sound": {"volume": 2}}'), aps('{"thread-id": 1}'), aps('{"category": {}}'), aps('{"content-available": 2}'),
    aps('{"mutable-content": true}'), aps('{"interruption-level": "loud"}'), aps('{"relevance-score": 1.5}'),
    aps('{"alert": {"title": 1}}'), aps('{"alert": {"loc-args": [1]}}'), aps('{"event": "pause"}'), aps('{"content-state": 1}'),
]


async def bad_records(arguments, count):
    topics = {name: arguments.prefix + name for name in ("requests", "events", "dead-letters")}
    reader = Reader(arguments.kafka, [topics["events"], topics["dead-letters"]])
    reading = asyncio.create_task(reader.run())
    producer = Producer(arguments.kafka, topics["requests"], linger=20)
    async with Device(arguments.devices_url, None) as device:
        target = "device:" + device.token
        sent, good = {}, []

        def publish(headers, value, reason, key=target):
            pairs = [(name, text if isinstance(text, bytes) else text.encode()) for name, text in headers]
            pairs.append(("mark", str(len(sent)).encode()))

            def reported(message):
                sent[message.partition(), message.offset()] = (pairs, value, reason, key)

            producer.publish(pairs, value, key=key, reported=reported)

        for number in range(count):
            changes, value, reason = BAD[number % len(BAD)]
            headers = {"apns-topic": APPLICATION, "target": target, "apns-id": str(uuid.uuid4()), **changes}
            publish([(name, text) for name, text in headers.items() if text is not None], value, reason)
            if number % 50 == 0:
                good.append(await producer.notify(target, str(number)))
        publish([("apns-topic", APPLICATION), ("target", target), ("target", target)], OK, "DuplicateHeaders")
        publish([("apns-topic", APPLICATION)], OK, "MissingDeviceToken", key=None)
        publish([], OK, "MissingTopic")
        for size in arguments.huge:
            await producer.flush()
            publish([("apns-topic", APPLICATION), ("target", target)], b"x" * size, "PayloadTooLarge")
        # With the headers of a dead letter they are more than a record may be; their values have room.
        for size in arguments.huge_key:
            await producer.flush()
            publish([("apns-topic", APPLICATION)], OK, "BadDeviceToken", key="x" * size)
            publish([("apns-topic", APPLICATION), ("target", "planet:mars"), ("more", b"x" * size)], OK, "BadDeviceToken")
        good.append(await producer.notify(target, "last"))
        await producer.flush()
        letters = reader.records[topics["dead-letters"]]
        places = lambda: {tuple(int(r.headers["carillon-dead-letter-" + n]) for n in ("partition", "offset")): r for r in letters}
        await until(lambda: set(good) <= {frame["id"] for frame in device.of("notify")}, "all good ones are delivered", 40,
                    lambda: [len(good), len(device.of("notify"))])
        await until(lambda: len(places()) >= len(sent), "each bad one is a dead letter", 40,
                    lambda: [len(places()), len(sent), [str(sent[p])[:200] for p in set(sent) - set(places())][:5]])
        rejected = lambda: {(r.json["source"]["partition"], r.json["source"]["offset"]): r.json
                            for r in reader.records[topics["events"]] if r.type == "rejected"}
        await until(lambda: len(rejected()) >= len(sent), "each bad one has an event", 40, lambda: [len(rejected()), len(sent)])
        events, found = rejected(), places()
        expect(set(events) == set(sent) and set(found) == set(sent), "only the bad ones")
        for place, (pairs, value, reason, key) in sent.items():
            letter = found[place]
            expect((events[place]["reason"], letter.headers["carillon-dead-letter-reason"]) == (reason, reason), "the right reason",
                   [reason, events[place], str(pairs)[:300]])
            own = [pair for pair in letter.pairs if not pair[0].startswith("carillon-dead-letter-")]
            if len(key or "") + sum(len(text) for _, text in pairs) > 1_040_000:
                expect((own, letter.key, letter.value or b"") == ([], None, b"") and "where it lies" in letter.headers["carillon-dead-letter-error"],
                       "what does not fit is left where it lies", [str(own)[:500], str(letter.key)[:100]])
                continue
            expect(own == pairs, "the letter has the record's headers", [str(own)[:500], str(pairs)[:500]])
            expect((letter.value or b"") == (value or b"") and letter.key == (key.encode() if key else None), "its key and value",
                   [reason, len(letter.value or b""), str(letter.key)])
            expect(letter.headers["carillon-dead-letter-topic"] == topics["requests"], "where it came from")
    reading.cancel()


async def bad_frames(arguments):
    hello = {"type": "hello", "device": uuid.uuid4().hex * 2, "application": APPLICATION}
    expected = [
        ("nothing", None, 4001), ("binary", b"\x01\x02", 4017), ("no JSON", "hello", 4000),
        ("number as device", json.dumps({**hello, "device": 7}), 4002), ("short token", json.dumps({**hello, "device": "ab"}), 4002),
        ("no application", json.dumps({"type": "hello", "device": hello["device"]}), 4002),
        ("list as user", json.dumps({**hello, "user": []}), 4002), ("text as categories", json.dumps({**hello, "categories": "x"}), 4002),
    ]

    if arguments.part == "table":
        expected = [
            ("no hello first", '{"type": "ack"}', 4000), ("too large", json.dumps({**hello, "locale": "x" * 200_000}), 4010),
        ]

    async def close_code(first):
        url = arguments.hasty_url if first is None else arguments.devices_url
        async with websockets.connect(url, subprotocols=["carillon.v1"], open_timeout=60) as socket:
            if first is not None:
                await socket.send(first)
            try:
                await asyncio.wait_for(socket.recv(), 60)
            except websockets.exceptions.ConnectionClosed:
                pass
            return socket.close_code

    async with Device(arguments.devices_url, None) as bystander:
        codes = await asyncio.gather(*(close_code(first) for _, first, _ in expected), return_exceptions=True)
        wrong = [(name, code, seen) for (name, _, code), seen in zip(expected, codes) if code != seen]
        expect(not wrong, "the close code of the table (what, expected, seen)", wrong)
        expect(await unmasked(arguments.devices_url) == 1002, "an unmasked frame is a protocol error")
        producer = Producer(arguments.kafka, arguments.prefix + "requests")
        name = await producer.notify("device:" + bystander.token)
        await bystander.frame("notify", id=name)


async def unmasked(url):
    """Sends a frame without a mask over a socket of its own; gives the close code."""
    place = urllib.parse.urlparse(url)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    writer.write((
        "GET %s HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: carillon.v1\r\n\r\n" % place.path).encode())
    await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 60)
    writer.write(b"\x81\x02{}")
    head = await asyncio.wait_for(reader.readexactly(4), 60)
    writer.close()
    return struct.unpack(">H", head[2:])[0] if head[0] == 0x88 else None


async def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kafka", required=True)
    parser.add_argument("--prefix", required=True)
    parser.add_argument("--devices-url", required=True)
    parser.add_argument("--hasty-url", required=True, help="where a device has a second to say hello")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--huge", type=int, action="append", default=[], help="a value of so many bytes among them")
    parser.add_argument("--huge-key", type=int, action="append", default=[], help="a key, and a header, of so many bytes among them")
    parser.add_argument("--part", choices=["records", "frames", "table"], required=True)
    arguments = parser.parse_args()
    failed = []
    try:
        await (bad_records(arguments, arguments.count) if arguments.part == "records" else bad_frames(arguments))
        say(kept=arguments.part)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is told
        failed.append(arguments.part)
        say(broken=arguments.part, why="%s: %s" % (type(error).__name__, error))
    say(result="failed" if failed else "passed", failed=failed)
    # The reader's thread may be in the middle of a poll.
    sys.stdout.flush()
    os._exit(1 if failed else 0)


asyncio.run(main())
