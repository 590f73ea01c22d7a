"""What no producer and no device should send: real processes on a real Redis.

  records    a thousand bad records with good ones among them: each bad one has a `rejected` event with its reason and a dead letter that is the
             record itself; every good one arrives
  frames     bad frames: each closes its own connection with its code, and no other one
  table      further codes of the table
"""
import asyncio
import json
import struct
import urllib.parse
import uuid

import websockets

from clients import APPLICATION, HANG, Device, Producer, Reader, expect, until
from healing import run_part, shares

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


# As large as a value may be; and as large as a key, or a header: with the headers of a dead letter they are more than a record may be.
HUGE, HUGE_KEY = 1_000_000, 1_047_600


@shares
async def records(arguments, folder, shared):
    topics = {name: arguments.prefix + name for name in ("requests", "events", "dead-letters")}
    reader = Reader(arguments.kafka, [topics["events"], topics["dead-letters"]])
    reading = asyncio.create_task(reader.run())
    producer = Producer(arguments.kafka, topics["requests"], linger=20)
    async with shared.workers() as (_, _, (url, _)), Device(url, None) as device:
        target = "device:" + device.token
        sent, good = {}, []

        def publish(headers, value, reason, key=target):
            pairs = [(name, text if isinstance(text, bytes) else text.encode()) for name, text in headers]
            pairs.append(("mark", str(len(sent)).encode()))

            def reported(message):
                sent[message.partition(), message.offset()] = (pairs, value, reason, key)

            producer.publish(pairs, value, key=key, reported=reported)

        for number in range(1_000):
            changes, value, reason = BAD[number % len(BAD)]
            headers = {"apns-topic": APPLICATION, "target": target, "apns-id": str(uuid.uuid4()), **changes}
            publish([(name, text) for name, text in headers.items() if text is not None], value, reason)
            if number % 50 == 0:
                good.append(await producer.notify(target, str(number)))
        publish([("apns-topic", APPLICATION), ("target", target), ("target", target)], OK, "DuplicateHeaders")
        publish([("apns-topic", APPLICATION)], OK, "MissingDeviceToken", key=None)
        publish([], OK, "MissingTopic")
        await producer.flush()
        publish([("apns-topic", APPLICATION), ("target", target)], b"x" * HUGE, "PayloadTooLarge")
        await producer.flush()
        publish([("apns-topic", APPLICATION)], OK, "BadDeviceToken", key="x" * HUGE_KEY)
        publish([("apns-topic", APPLICATION), ("target", "planet:mars"), ("more", b"x" * HUGE_KEY)], OK, "BadDeviceToken")
        good.append(await producer.notify(target, "last"))
        await producer.flush()
        letters = reader.records[topics["dead-letters"]]
        places = lambda: {tuple(int(r.headers["carillon-dead-letter-" + n]) for n in ("partition", "offset")): r for r in letters}
        await until(lambda: set(good) <= {frame["id"] for frame in device.of("notify")}, "all good ones are delivered",
                    lambda: [len(good), len(device.of("notify"))])
        await until(lambda: len(places()) >= len(sent), "each bad one is a dead letter",
                    lambda: [len(places()), len(sent), [str(sent[p])[:200] for p in set(sent) - set(places())][:5]])
        rejected = lambda: {(r.json["source"]["partition"], r.json["source"]["offset"]): r.json
                            for r in reader.records[topics["events"]] if r.type == "rejected"}
        await until(lambda: len(rejected()) >= len(sent), "each bad one has an event", lambda: [len(rejected()), len(sent)])
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


HELLO = {"type": "hello", "device": uuid.uuid4().hex * 2, "application": APPLICATION}


@shares
async def frames(arguments, folder, shared):
    expected = [
        ("nothing", None, 4001), ("binary", b"\x01\x02", 4017), ("no JSON", "hello", 4000),
        ("number as device", json.dumps({**HELLO, "device": 7}), 4002), ("short token", json.dumps({**HELLO, "device": "ab"}), 4002),
        ("no application", json.dumps({"type": "hello", "device": HELLO["device"]}), 4002),
        ("list as user", json.dumps({**HELLO, "user": []}), 4002), ("text as categories", json.dumps({**HELLO, "categories": "x"}), 4002),
    ]
    await close(expected, arguments, shared)


@shares
async def table(arguments, folder, shared):
    expected = [
        ("no hello first", '{"type": "ack"}', 4000), ("too large", json.dumps({**HELLO, "locale": "x" * 200_000}), 4010),
    ]
    await close(expected, arguments, shared)


async def close(expected, arguments, shared):
    """What is sent as the first frame closes its connection with its code; nobody else notices."""
    async with shared.workers() as (_, cluster, (url, _)):
        # Where a device has a second to say hello.
        hasty = None
        if any(first is None for _, first, _ in expected):
            hasty = (await cluster.started("fan-out", "--listen", "127.0.0.1:0", "--hello", "1s")).addresses["devices"]

        async def close_code(first):
            async with websockets.connect(hasty if first is None else url, subprotocols=["carillon.v1"], open_timeout=HANG) as socket:
                if first is not None:
                    await socket.send(first)
                try:
                    await asyncio.wait_for(socket.recv(), HANG)
                except websockets.exceptions.ConnectionClosed:
                    pass
                return socket.close_code

        async with Device(url, None) as bystander:
            codes = await asyncio.gather(*(close_code(first) for _, first, _ in expected), return_exceptions=True)
            wrong = [(name, code, seen) for (name, _, code), seen in zip(expected, codes) if code != seen]
            expect(not wrong, "the close code of the table (what, expected, seen)", wrong)
            expect(await unmasked(url) == 1002, "an unmasked frame is a protocol error")
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
    await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), HANG)
    writer.write(b"\x81\x02{}")
    head = await asyncio.wait_for(reader.readexactly(4), HANG)
    writer.close()
    return struct.unpack(">H", head[2:])[0] if head[0] == 0x88 else None


PARTS = {part.__name__: part for part in (records, frames, table)}

if __name__ == "__main__":
    run_part(__doc__, PARTS, "carillon-bad-input-")
