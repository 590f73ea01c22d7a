"""Requests by HTTP: an ingress of its own beside real workers, and backends that know the article and the OpenAPI document.

  clients    curl, Python and JavaScript, as the article has them, publish to devices, schedule, cancel and remove; the text that a person
             answers is in the events; tokens of every algorithm; each answer keeps the OpenAPI document
  killed     the ingress is killed again and again while backends publish and repeat: each device shows each notification once
  hostile    bad bodies, bad HTTP, bad tokens and peers that never end or never read: each has its answer or its end, nothing of it is published, a
             good backend beside it has its answers all the time, and the worker keeps nothing of it
  drained    a worker gets SIGTERM while backends publish: each request has an answer, and Kafka has what was accepted
  frozen     two hundred backends publish while their broker stands still, and while its answers trickle: each has an answer in the article's
             time, the memory has its bound, and what they repeat is shown once
"""
import asyncio
import base64
import contextlib
import glob
import itertools
import json
import os
import re
import signal
import socket
import subprocess
import threading
import time
import urllib.parse
import uuid

import jsonschema
import openapi_spec_validator
import requests
from cryptography.hazmat.primitives import hashes, hmac, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, utils

from clients import APPLICATION, HANG, Contract, Device, Failed, Reader, expect, quietly, run, say, until
from dependencies import Stillness, own_kafka
from extensions import audit
from healing import on_one_redis, run_part
from machine import free_port

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../Sources")
ARTICLE = os.path.join(ROOT, "carillon/Documentation.docc/Ingress.md")
DOCUMENT = os.path.join(ROOT, "Notifications/Contract/openapi.json")
CATEGORIES = [{"identifier": "chat", "actions": [
    {"identifier": "reply", "title": "Reply", "textInput": {"buttonTitle": "Send", "placeholder": "Text"}}]}]


def example(language):
    """The article's example in a language."""
    with open(ARTICLE) as file:
        return re.search(r"```%s\n(.*?)```" % language, file.read(), re.S)[1]


class Answers:
    """Holds answers against the OpenAPI document."""

    def __init__(self):
        with open(DOCUMENT) as file:
            self.document = json.load(file)
        openapi_spec_validator.validate(self.document)

    def hold(self, method, path, status, body, is_lines=False):
        answers = self.document["paths"][path][method]["responses"]
        expect(str(status) in answers, "the document has the status", [method, path, status, body])
        schema = {"$ref": "#/components/schemas/LineAnswer"} if is_lines else answers[str(status)]["content"]["application/json"]["schema"]
        for value in map(json.loads, body.splitlines()) if is_lines else [json.loads(body)]:
            jsonschema.validate(value, {**schema, "components": self.document["components"]}, cls=jsonschema.Draft202012Validator)


def part(value):
    return base64.urlsafe_b64encode(value if isinstance(value, bytes) else json.dumps(value).encode()).rstrip(b"=").decode()


def token(algorithm, sign, **claims):
    """A token as a library makes it."""
    claims = {"aud": "carillon-publish", "apps": [APPLICATION], "exp": int(time.time()) + 3600, **claims}
    signed = part({"typ": "JWT", "kid": "1", "alg": algorithm}) + "." + part(claims)
    return signed + "." + part(sign(signed.encode()))


def secret(key):
    def sign(text):
        code = hmac.HMAC(key, hashes.SHA256())
        code.update(text)
        return code.finalize()
    return sign


class Keys:
    """The three kinds of keys in files, and what signs with each."""

    def __init__(self, arguments, folder):
        self.files, self.signs = [], {}
        path = os.path.join(folder, "publishers.key")
        subprocess.run([arguments.binary, "token", "key", path], check=True)
        self.files.append(path)
        with open(path) as file:
            text = file.read().strip()
        self.signs["HS256"] = secret(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        curve, edwards = ec.generate_private_key(ec.SECP256R1()), ed25519.Ed25519PrivateKey.generate()

        def es256(signed):
            r, s = utils.decode_dss_signature(curve.sign(signed, ec.ECDSA(hashes.SHA256())))
            return r.to_bytes(32, "big") + s.to_bytes(32, "big")

        for name, key, sign in ("ES256", curve, es256), ("EdDSA", edwards, edwards.sign):
            self.signs[name] = sign
            self.files.append(os.path.join(folder, name + ".pem"))
            self.pem = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
            with open(self.files[-1], "wb") as file:
                file.write(self.pem)

    @property
    def flags(self):
        return [word for file in self.files for word in ("--key-file", file)]


@contextlib.asynccontextmanager
async def reading(reader):
    """Reads topics meanwhile."""
    task = asyncio.create_task(reader.run())
    try:
        yield
    finally:
        task.cancel()


async def curl(url, bearer, *words):
    """Publishes with curl; gives the status and the body."""
    done = await run("curl", "-sS", "--max-time", str(HANG), "-w", "\n%{http_code}", "-H", "Authorization: Bearer " + bearer, *words, url)
    expect(done.returncode == 0, "curl has an answer", done.stderr)
    body, _, status = done.stdout.rpartition("\n")
    return int(status), body


async def clients(arguments, folder):
    contract, answers, keys = Contract(arguments.contract), Answers(), Keys(arguments, folder)
    reader = Reader(arguments.kafka, [arguments.prefix + "events"])
    async with on_one_redis(arguments, folder) as (_, cluster), reading(reader):
        await cluster.started("transform", *cluster.group)
        fan_out = await cluster.started("fan-out", "--listen", "127.0.0.1:0")
        ingress = await cluster.started("ingress", "--listen", "127.0.0.1:0", *keys.flags)
        url, path = ingress.addresses["requests"], "/v1/requests"
        made = await run(arguments.binary, "token", "publisher", "--apps", APPLICATION, "--name", "shop", "--key", keys.files[0])
        bearer = made.stdout.strip()

        async def publish(*words, expected=202, is_lines=False):
            status, body = await curl(url, bearer, *words)
            answers.hold("post", path, status, body, is_lines)
            expect(status == expected, "the status is %d" % expected, [status, body])
            return [json.loads(line) for line in body.splitlines()] if is_lines else json.loads(body)

        async with Device(fan_out.addresses["devices"], contract, user="ada", categories=CATEGORIES) as device:
            one = await publish("-d", json.dumps({"target": "user:ada", "app": APPLICATION, "title": "curl", "collapse-id": "order"}))
            await device.frame("notify", id=one["apnsId"], identifier="order")
            payload = await publish("-H", "target: user:ada", "-H", "apns-topic: " + APPLICATION, "-d", '{"aps":{"alert":"payload","alertt":1}}')
            await device.frame("notify", id=payload["apnsId"])
            expect("aps.alertt" in payload["warnings"][0], "what has no effect is named", payload)

            # The article's examples, and many lines, of which some are wrong.
            space = {}
            exec(example("python"), space)
            more = [await quietly(space["publish"], url, bearer, target="user:ada", app=APPLICATION, title="Python") for _ in range(20)]
            script = os.path.join(folder, "publish.mjs")
            with open(script, "w") as file:
                file.write(example("js") + "for (let n = 0; n < 20; n++) console.log(await publish(%s, %s, %s));\n" % tuple(
                    map(json.dumps, (url, bearer, {"target": "user:ada", "app": APPLICATION, "title": "JavaScript"}))))
            done = await run("node", script)
            expect(done.returncode == 0, "Node publishes", done.stderr)
            more += done.stdout.split()
            lines = os.path.join(folder, "lines")
            with open(lines, "w") as file:
                for number in range(arguments.lines):
                    file.write(json.dumps({"target": "user:ada", "app": APPLICATION, "title": "Line %d" % number} if number % 100 else {}) + "\n")
            many = await publish("-H", "Content-Type: application/x-ndjson", "--data-binary", "@" + lines, expected=207, is_lines=True)
            expect([each["line"] for each in many] == list(range(1, arguments.lines + 1)), "each line has an answer", many[:3])
            expect(all((each["status"] == 202) == bool((each["line"] - 1) % 100) for each in many), "the right ones", many[:3])
            more += [each["apnsId"] for each in many if each["status"] == 202]
            for name in more:
                await device.frame("notify", id=name)

            # The person answers one with a category. The backend reads the text in the events.
            asked = await publish("-d", json.dumps({"target": "user:ada", "app": APPLICATION, "title": "Dinner?", "category": "chat"}))
            shown = await device.frame("notify", id=asked["apnsId"])
            await device.send({
                "type": "response", "response": str(uuid.uuid4()), "receipt": shown["receipt"], "identifier": shown["identifier"],
                "action": "reply", "userText": "at eight 🍲", "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())})
            event = await until(lambda: next((
                record for record in reader.records[arguments.prefix + "events"]
                if record.type == "response" and record.headers["ce_subject"] == asked["apnsId"]), None), "the response is an event")
            contract.hold("event.response", event.json)
            expect((event.json["action"], event.json["userText"]) == ("reply", "at eight 🍲"), "the event has the text", event.json)

            # A removal, a schedule and its cancel, and what became of them.
            await publish("-d", json.dumps({"target": "user:ada", "app": APPLICATION, "operation": "remove", "identifiers": ["order"]}))
            await device.frame("remove", identifiers=["order"])
            later = await publish("-d", json.dumps({
                "target": "user:ada", "app": APPLICATION, "title": "Later", "collapse-id": "later",
                "trigger": {"type": "timeInterval", "timeInterval": 3600}}))

            async def fate(name, *words):
                status, body = await curl(url + "/" + name, bearer, "-G", *words)
                answers.hold("get", path + "/{apns-id}", status, body)
                return status, json.loads(body)

            async def is_pending():
                return ((await fate(later["apnsId"]))[1].get("schedule") or {}).get("state") == "pending"

            await until(is_pending, "it waits for its time")
            await publish("-d", json.dumps({"target": "user:ada", "app": APPLICATION, "operation": "cancel", "collapse-id": "later"}))

            async def is_canceled():
                return ((await fate(later["apnsId"]))[1].get("schedule") or {}).get("state") == "canceled"

            await until(is_canceled, "it is canceled")

            async def is_delivered():
                status, found = await fate(one["apnsId"], "-d", "target=user:ada")
                return status == 200 and [each["state"] for each in found["devices"]] == ["delivered"]

            await until(is_delivered, "its fate is known")
            expect((await fate(str(uuid.uuid4())))[0] == 404, "what was never published is not known")

        # Tokens of each algorithm, and those that are none.
        body = json.dumps({"target": "user:ada", "app": APPLICATION, "title": "token"})
        for name, sign in keys.signs.items():
            status, said = await curl(url, token(name, sign), "-d", body)
            expect(status == 202, "a token by %s holds" % name, said)
            for wrong in (token(other, sign) for other in ("HS256", "ES256", "EdDSA", "none", "ES384") if other != name):
                status, said = await curl(url, wrong, "-d", body)
                answers.hold("post", path, status, said)
                expect(status == 401, "the algorithm is the key's", said)
        forged = [
            token("HS256", secret(keys.pem)), token("HS256", secret(b"")), token("none", lambda _: b""),
            token("ES256", lambda _: bytes(64)), token("EdDSA", lambda _: bytes(64)), bearer[:-4] + "AAAA", bearer + ".x", "",
        ]
        for wrong in forged:
            status, said = await curl(url, wrong, "-d", body)
            expect(status == 401, "a forged token is refused", [wrong, said])
        for claims, expected in ({"exp": 1}, 401), ({"apps": ["com.example"]}, 403), ({"targets": ["device"]}, 403), ({"operations": ["remove"]}, 403):
            status, said = await curl(url, token("EdDSA", keys.signs["EdDSA"], **claims), "-d", body)
            answers.hold("post", path, status, said)
            expect(status == expected, "the claims decide", [claims, status, said])
    expect(not contract.broken, "all frames keep the contract", contract.broken[:3])
    say(audit=await audit(arguments))


async def killed(arguments, folder):
    contract, port = Contract(arguments.contract), free_port()
    url = "http://127.0.0.1:%d/v1/requests" % port
    async with on_one_redis(arguments, folder) as (_, cluster):
        await cluster.started("transform", *cluster.group, "--remembered-ids", "1000")
        fan_out = await cluster.started("fan-out", "--listen", "127.0.0.1:0")
        ingress = await cluster.started("ingress", "--listen", "127.0.0.1:%d" % port)
        tries, there = [], threading.Event()
        there.set()

        def backend(user, count):
            """Publishes with ids of its own, and repeats each until it is accepted."""
            session, names = requests.Session(), []
            for _ in range(count):
                names.append(str(uuid.uuid4()))
                while True:
                    tries.append(names[-1])
                    try:
                        answer = session.post(url, json={"target": "user:" + user, "app": APPLICATION, "id": names[-1], "title": "x"}, timeout=5)
                        if answer.status_code == 202:
                            break
                    except requests.exceptions.RequestException:
                        there.wait(HANG)
            return names

        async with Device(fan_out.addresses["devices"], contract, user="ada") as ada, Device(
                fan_out.addresses["devices"], contract, user="bob") as bob:
            work = [asyncio.create_task(quietly(backend, user, arguments.each)) for user in ("ada", "bob") for _ in range(4)]
            kills = 0
            while not all(each.done() for each in work):
                before = len(tries)
                await until(lambda: len(tries) > before + 40 or all(each.done() for each in work), "backends publish")
                there.clear()
                ingress.send_signal(signal.SIGKILL)
                ingress.wait()
                kills += 1
                ingress = await cluster.started("ingress", "--listen", "127.0.0.1:%d" % port)
                there.set()
            published = [await each for each in work]
            expect(kills >= 2 and len(tries) > sum(map(len, published)), "it was killed, and backends have repeated", [kills, len(tries)])
            for device, names in (ada, sum(published[:4], [])), (bob, sum(published[4:], [])):
                for name in names:
                    await device.frame("notify", id=name)
                shown = [frame["id"] for frame in device.of("notify")]
                expect(len(shown) == len(set(shown)) == len(names), "each is shown once", [len(shown), len(set(shown)), len(names)])
    say(audit=await audit(arguments), kills=kills, tries=len(tries), published=sum(map(len, published)))


# What the article says of an answer, in seconds; and the bytes of a lane's bodies and of its records, of which each has a bound.
LONGEST, LANE = 4, 2 * (32 << 20)


class Connection:
    """A connection of a backend, which is opened when it is needed."""

    def __init__(self, url, bearer=None):
        self.place = urllib.parse.urlsplit(url)
        self.head = "POST %s HTTP/1.1\r\nHost: %s\r\n" % (self.place.path, self.place.netloc)
        if bearer:
            self.head += "Authorization: Bearer %s\r\n" % bearer
        self.streams = None

    async def open(self):
        self.streams = await asyncio.open_connection(self.place.hostname, self.place.port, limit=1 << 24)
        return self.streams

    def close(self):
        if self.streams:
            self.streams[1].close()
        self.streams = None

    async def answer(self):
        """The next answer: its status, its header fields and its body."""
        reader = self.streams[0]
        status, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
        fields = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
        body = await reader.readexactly(int(fields["content-length"]))
        if fields.get("connection") == "close":
            self.close()
        return int(status.split()[1]), fields, body

    async def send(self, body, *fields):
        """Sends a body, whose answer `answer` gives."""
        _, writer = self.streams or await self.open()
        writer.write((self.head + "".join(field + "\r\n" for field in fields) + "Content-Length: %d\r\n\r\n" % len(body)).encode() + body)
        await writer.drain()

    async def post(self, body, *fields):
        """Sends a body; gives the answer."""
        await self.send(body, *fields)
        return await self.answer()


class Trickle:
    """Passes everything on to Kafka. While it trickles, one answer of Kafka passes in a while."""

    def __init__(self):
        self.port, self.pause, self.turn = None, 0, asyncio.Lock()

    async def start(self):
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        return self.server.sockets[0].getsockname()[1]

    async def serve(self, client, back):
        kafka, on = await asyncio.open_connection("127.0.0.1", self.port)
        answers = asyncio.create_task(self.answers(kafka, back))
        with contextlib.suppress(ConnectionError):
            while chunk := await client.read(1 << 16):
                on.write(chunk)
                await on.drain()
        answers.cancel()
        on.close()
        back.close()

    async def answers(self, kafka, back):
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                length = await kafka.readexactly(4)
                answer = await kafka.readexactly(int.from_bytes(length, "big"))
                async with self.turn:
                    await asyncio.sleep(self.pause)
                back.write(length + answer)
                await back.drain()


class Backend:
    """Publishes as the article says: each request has an id, and is repeated until it is accepted."""

    def __init__(self, url, lost, answers):
        self.connection, self.lost, self.answers = Connection(url), lost, answers
        self.ids, self.sent = [], 0

    async def publish(self, *requests):
        """Publishes requests with ids of their own as one body; repeats those that are not accepted."""
        self.ids += [each["id"] for each in requests]
        while requests:
            is_many = len(requests) > 1
            lines = "\n".join(map(json.dumps, requests)).encode()
            before, began = self.lost(), time.monotonic()
            status, fields, body = await self.connection.post(lines, *(["Content-Type: application/x-ndjson"] if is_many else []))
            took, lost = time.monotonic() - began, self.lost() - before
            self.sent += len(lines)
            each = [json.loads(line) for line in body.splitlines()]
            for answer in each:
                what = answer.get("status", status)
                expect(what in (202, 503), "it is accepted or not", answer)
                self.answers.append((took, lost, "%d%s" % (what, " and an id" * ("apnsId" in answer)), is_many))
            # A body that was not read is refused as a whole.
            each = each if len(each) == len(requests) else each * len(requests)
            requests = [request for request, answer in zip(requests, each) if answer.get("status", status) != 202]
            if requests:
                await asyncio.sleep(int(fields.get("retry-after", 1)))


def lane_of(process):
    """The folder of the lane's thread."""
    for folder in glob.glob("/proc/%d/task/*" % process.pid):
        # A thread may end before it is read.
        with contextlib.suppress(OSError), open(folder + "/comm") as file:
            if file.read().strip() == "ingress-0":
                return folder
    raise Failed("the ingress has no lane")


def kept_waiting(thread):
    """How long a thread was ready to run and had no core, in seconds: the kernel counts it."""
    with open(thread + "/schedstat") as file:
        return int(file.read().split()[1]) / 1e9


def resident(process):
    """The memory of a process, in bytes."""
    with open("/proc/%d/status" % process.pid) as file:
        return int(re.search(r"VmRSS:\s*(\d+)", file.read())[1]) << 10


async def metric(process, name):
    """The sum of a metric of a worker."""
    text = await quietly(lambda: requests.get(process.addresses["admin"] + "/metrics", timeout=HANG).text)
    return sum(float(line.rpartition(" ")[2]) for line in text.splitlines() if re.match(name + r"[{ ]", line))


async def frozen(arguments, folder):
    trickle, port = Trickle(), free_port()
    proxied = "127.0.0.1:%d" % await trickle.start()
    trickle.port = port + 2
    # A second listener of the broker, whose clients come through the proxy.
    listeners = "PLAINTEXT://127.0.0.1:%d" % port, "PROXIED://127.0.0.1:%d" % trickle.port
    settings = {
        "listeners": "CONTROLLER://127.0.0.1:%d,%s,%s" % (port + 1, listeners[1], listeners[0]),
        "advertised.listeners": "PROXIED://%s,%s" % (proxied, listeners[0]),
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,PROXIED:PLAINTEXT,CONTROLLER:PLAINTEXT"}
    flags = [word for name, value in settings.items() for word in ("--config", "%s=%s" % (name, value))]
    stillness, answers = Stillness(), []
    async with own_kafka(arguments, folder, "--port", str(port), *flags) as kafka, on_one_redis(arguments, folder) as (_, cluster):
        await cluster.started("transform", *cluster.group, "--remembered-ids", "1000")
        fan_out = await cluster.started("fan-out", "--listen", "127.0.0.1:0")
        cluster.common = [proxied if word == arguments.kafka else word for word in cluster.common]
        ingress = await cluster.started("ingress", "--listen", "127.0.0.1:0", "--no-access-log")
        url, user = ingress.addresses["requests"], itertools.cycle(("ada", "bob", "eve", "joe"))

        lane = lane_of(ingress)

        def lost():
            """The time in which this process stood still or the lane had no core, in seconds."""
            return stillness.lost + kept_waiting(lane)

        people = [(next(user), Backend(url, lost, answers)) for _ in range(arguments.senders * 4 // 5)]
        # Their bodies alone are more than a lane takes.
        many = [Backend(url, lost, answers) for _ in range(arguments.senders // 5)]

        def request(target):
            return {"target": target, "app": APPLICATION, "id": str(uuid.uuid4()), "title": "x"}

        def big():
            return [{**request("device:" + "ab" * 32), "custom": {"long": "x" * 3_800}} for _ in range(250)]

        def publishing(with_many=True):
            work = [backend.publish(request("user:" + name)) for name, backend in people]
            return asyncio.gather(*work, *(backend.publish(*big()) for backend in many if with_many))

        async def holds(what, change, back):
            """Backends publish while Kafka is slow, and as long after it until each is accepted."""
            answers.clear()
            pauses, before, sizes = await metric(ingress, "carillon_ingress_pauses_total"), resident(ingress), []
            await change()
            sent, work = sum(each.sent for each in many), publishing()
            # So long, and until more has come than a lane may keep.
            while len(sizes) < arguments.seconds * 4 or sum(each.sent for each in many) < sent + 3 * LANE:
                await asyncio.sleep(0.25)
                sizes.append(resident(ingress))
            seen, sent = list(answers), sum(each.sent for each in many) - sent
            await back()
            await work
            late = [each for each in answers if each[0] - each[1] > LONGEST]
            half = len(sizes) // 2
            said = dict(
                phase=what, answers={kind: sum(each[2] == kind for each in seen) for kind in sorted({each[2] for each in seen})},
                longest=round(max(each[0] for each in answers), 2), longest_of_ours=round(max(each[0] - each[1] for each in answers), 2),
                before=before >> 20, sent=sent >> 20, sizes=[max(sizes[:half]) >> 20, max(sizes[half:]) >> 20])
            say(**said)
            expect(not late, "each answer comes in its time", [sorted(late)[-5:], said])
            expect({"503", "503 and an id"} <= set(said["answers"]), "some may have arrived, and others were refused", said)
            expect(await metric(ingress, "carillon_ingress_pauses_total") > pauses, "it has stopped reading before", said)
            # Twice, since what is read of a body and what is sent of a record has copies.
            expect(max(sizes) < before + 2 * LANE, "the memory has its bound", said)

        async def trickles(pause):
            trickle.pause = pause

        sampling = asyncio.create_task(stillness.run())
        devices = [Device(fan_out.addresses["devices"], None, user=next(user)) for _ in range(4)]
        async with devices[0], devices[1], devices[2], devices[3]:
            await publishing(with_many=False)
            await holds("frozen", lambda: quietly(kafka.do, "freeze", kafka.folder, "1"), lambda: quietly(kafka.do, "thaw", kafka.folder, "1"))
            await holds("trickles", lambda: trickles(0.3), lambda: trickles(0))
            for device in devices:
                ids = sum((backend.ids for name, backend in people if name == device.hello["user"]), [])
                for name in ids:
                    await device.frame("notify", id=name)
                expect(sorted(frame["id"] for frame in device.of("notify")) == sorted(ids), "each is shown once", [len(device.of("notify")), len(ids)])
        sampling.cancel()
        say(audit=(await audit(arguments))["requests"])


SHOP = ["target: user:ada", "apns-topic: " + APPLICATION]
LINES = ["Content-Type: application/x-ndjson"]
PAYLOAD = b'{"aps":{"alert":"x"}}'


def line(**more):
    return json.dumps({"target": "user:ada", "app": APPLICATION, "title": "x", **more}).encode()


# Of each kind one: the header fields, the body, the status, the field that the answer names.
BODIES = [
    ([], b'{"target":', 400, "body"), ([], b"\xff\xfe", 400, "body"), ([], b"[]", 400, "body"), ([], b"", 400, "body"),
    ([], line(target=5), 400, "target"), ([], line(target="planet:mars"), 400, "target"), ([], line(tittle="x"), 400, "tittle"),
    ([], line()[:-1] + b',"target":"user:eve"}', 400, "target"), ([], line(custom={"x": "x" * 5_000}), 413, "payload"),
    (SHOP + ["Apns-Topic: com.example"], PAYLOAD, 400, "apns-topic"), (SHOP, b'{"aps":[]}', 400, "aps"),
    (SHOP + ["apns-expiration: soon"], PAYLOAD, 400, "apns-expiration"), (SHOP + ["apns-id: 7"], PAYLOAD, 400, "apns-id"),
    (LINES, line(headers={"apns-priority": []}), 400, "headers"), (LINES, b"\n\n", 400, "body"), (LINES, b"{" * 5_000, 400, "body"),
    # What only the cluster writes, in each form.
    (["Carillon-Origin: {}"], line(), 400, "carillon-origin"), (SHOP + ["CARILLON-FIRING: {}"], PAYLOAD, 400, "carillon-firing"),
    (LINES + ["carillon-x: 1"], line(), 400, "carillon-x"), ([], line(headers={"carillon-firing": "{}"}), 400, "carillon-firing"),
    (LINES, line(headers={"Carillon-X": "1"}), 400, "Carillon-X"),
]

# HTTP that no client means; %s is what must not be published. The connection is closed after the answer.
SMUGGLED = [
    ("Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n%s", 400),
    ("Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n%s", 400),
    ("Content-Length: 0\r\nContent-Length: 5\r\n\r\n%s", 400), ("Content-Length: +2\r\n\r\n{}%s", 400),
    ("Content-Length: 2, 2\r\n\r\n{}%s", 400), ("Transfer-Encoding: chunked\r\n\r\nzz\r\n%s", 400),
    ("Transfer-Encoding: chunked\r\n\r\n-1\r\n%s", 400), ("Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n%s", 400),
    ("Transfer-Encoding: identity, chunked, x\r\n\r\n0\r\n\r\n%s", 400), ("X : y\r\nContent-Length: 0\r\n\r\n%s", 400),
    ("Content-Length: 10000000\r\n\r\n%s", 413),
]


async def hostile(arguments, folder):
    contract, answers, keys = Contract(arguments.contract), Answers(), Keys(arguments, folder)
    reader = Reader(arguments.kafka, [arguments.prefix + "requests"])
    async with on_one_redis(arguments, folder) as (_, cluster), reading(reader):
        await cluster.started("transform", *cluster.group)
        fan_out = await cluster.started("fan-out", "--listen", "127.0.0.1:0")
        ingress = await cluster.started("ingress", "--listen", "127.0.0.1:0", "--connections", "100", *keys.flags)
        url, accepted, again = ingress.addresses["requests"], [], []
        bearer = token("EdDSA", keys.signs["EdDSA"])

        async def ask(body, *fields, bearer=bearer):
            connection = Connection(url, bearer)
            try:
                return await connection.post(body, *fields)
            finally:
                connection.close()

        async def refused(body, fields, status, field, bearer=bearer):
            found, _, said = await ask(body, *fields, bearer=bearer)
            answers.hold("post", "/v1/requests", found, said, is_lines=LINES[0] in fields and b"line" in said)
            answer = json.loads(said)
            expect((found, answer.get("field")) == (status, field) and answer.get("rule"), "field and rule are named", [fields, body[:80], found, said])

        async def good():
            """A backend that knows nothing of all that. While it rests its connection may be closed for another one: it opens one, and sends again."""
            connection, name = Connection(url, bearer), str(uuid.uuid4())
            while True:
                try:
                    status, _, said = await connection.post(line(id=name))
                except (ConnectionError, asyncio.IncompleteReadError):
                    connection.close()
                    again.append(name)
                    continue
                # Where each connection has a request, a further one is refused. A Kafka that stood still may have it all the same.
                stood_still = status == 503 and b"Kafka " in said
                expect(status == 202 or stood_still or status == 503 and name in again, "a good backend is served", said)
                if stood_still:
                    again.append(name)
                if status == 202:
                    accepted.append(name)
                    name = str(uuid.uuid4())

        async def goes_on():
            """A good backend has further answers, whatever stands open."""
            count = len(accepted)
            await until(lambda: beside.done() or len(accepted) > count + 3, "a good backend has its answers", lambda: accepted[-1:])
            expect(not beside.done(), "a good backend is served", beside.done() and repr(beside.exception()))

        async def bad_bodies():
            for fields, body, status, field in BODIES:
                await refused(body, fields, status, field)

        async def bad_tokens():
            ed, es = keys.signs["EdDSA"], keys.signs["ES256"]
            for wrong in (
                    token("none", lambda _: b""), token("HS256", secret(keys.pem)), token("ES256", ed), token("EdDSA", es), token("EdDSA", ed, exp=1),
                    token("EdDSA", ed, nbf=4_000_000_000), token("EdDSA", ed, aud="x"), token("EdDSA", ed, apps=[]), bearer[:-6] + "AAAAAA", "x", ""):
                await refused(line(), [], 401, "Authorization", wrong)
            other = token("EdDSA", ed, apps=["com.example"])
            await refused(line(), [], 403, "apns-topic", other)
            voip = "apns-push-type: voip"
            await refused(PAYLOAD, ["target: user:ada", "apns-topic: %s.voip" % APPLICATION, voip], 403, "apns-topic", other)
            # Of the application alone; and one that only looks as if it were the application's.
            for topic, more in ("x", []), (".voip", []), (".voip.voip", [voip]):
                await refused(PAYLOAD, ["target: user:ada", "apns-topic: %s%s" % (APPLICATION, topic), *more], 403, "apns-topic")
            await refused(PAYLOAD, ["target: user:ada", "apns-topic: " + APPLICATION, voip], 400, "apns-topic")
            status, _, said = await ask(PAYLOAD, "target: user:ada", "apns-topic: %s.voip" % APPLICATION, voip)
            expect(status == 202, "an application includes its suffixes", said)
            accepted.append(json.loads(said)["apnsId"])

        async def bad_http():
            for text, expected in SMUGGLED:
                connection, name = Connection(url, bearer), str(uuid.uuid4())
                stream, writer = await connection.open()
                inner = line(id=name).decode()
                inner = connection.head + "Content-Length: %d\r\n\r\n%s" % (len(inner), inner)
                writer.write((connection.head + text % inner).encode())
                status, _, said = await connection.answer()
                answers.hold("post", "/v1/requests", status, said)
                expect(status == expected and json.loads(said)["rule"], "bad HTTP is refused", [text, status, said])
                with contextlib.suppress(ConnectionError):
                    expect(not await stream.read(), "nothing follows", text)
                writer.close()
            # What is good about the same things.
            connection, body = Connection(url, bearer), line(id=str(uuid.uuid4()))
            _, writer = await connection.open()
            chunks = b"%x\r\n%s\r\n%x;x=y\r\n%s\r\n0\r\nTrailer: x\r\n\r\n" % (9, body[:9], len(body) - 9, body[9:])
            plain = (connection.head + "Content-Length: 2\r\n\r\n{}").encode()
            writer.write(plain + (connection.head + "Transfer-Encoding: chunked\r\n\r\n").encode() + chunks + plain)
            found = [await connection.answer() for _ in range(3)]
            expect([status for status, _, _ in found] == [400, 202, 400], "pipelined requests have their answers in order", found)
            accepted.append(json.loads(found[1][2])["apnsId"])
            connection.close()

        async def huge(head, piece):
            """Ten million bytes, as far as the ingress takes them."""
            connection = Connection(url, bearer)
            _, writer = await connection.open()
            writer.write((connection.head + head + "\r\n\r\n").encode())
            answer = asyncio.create_task(connection.answer())
            with contextlib.suppress(ConnectionError):
                for _ in range(100):
                    # Whoever reads the answer closes the connection, and asyncio writes to none that was closed with bytes still waiting.
                    if writer.is_closing():
                        break
                    writer.write(piece)
                    await writer.drain()
            status, _, said = await answer
            expect(status == 413 and json.loads(said)["field"] == "body", "a body has its bound", said)
            writer.close()

        async def end_of(stream):
            with contextlib.suppress(ConnectionError):
                await stream.read()

        async def endless():
            """More bodies that never end than there are connections: the oldest give way, and nobody is kept out."""
            peers = []
            for number in range(120):
                connection = Connection(url, bearer)
                stream, writer = await connection.open()
                head = "Content-Length: 1000" if number % 2 else "Transfer-Encoding: chunked"
                writer.write((connection.head + head + "\r\n\r\n5\r\n{\"tar\r\n").encode())
                peers.append((asyncio.create_task(end_of(stream)), writer))
            await goes_on()
            # Or they were refused, where each had a request that was not read yet.
            await until(lambda: sum(end.done() for end, _ in peers) >= 20, "some have given way")
            return peers

        async def deaf():
            """A peer that sends and does not read."""
            connection = Connection(url, bearer)
            with socket.socket() as peer:
                peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                peer.connect((connection.place.hostname, connection.place.port))
                peer.setblocking(False)
                lines = b'{"x":1}\n' * 1000
                one = (connection.head + "Content-Type: application/x-ndjson\r\nContent-Length: %d\r\n\r\n" % len(lines)).encode() + lines
                with contextlib.suppress(ConnectionError):
                    while True:
                        await asyncio.wait_for(asyncio.get_running_loop().sock_sendall(peer, one), HANG)

        descriptors, sizes = "/proc/%d/fd" % ingress.pid, []
        async with Device(fan_out.addresses["devices"], contract, user="ada") as device:
            beside = asyncio.create_task(good())
            await goes_on()
            for number in range(2):
                deaf_peer = asyncio.create_task(deaf()) if number == 1 else None
                peers = await endless()
                open_at_most = len(os.listdir(descriptors))
                for attack, *what in (
                        (bad_bodies,), (bad_tokens,), (bad_http,),
                        (huge, "Content-Type: application/x-ndjson\r\nContent-Length: 10000000", b"x" * 100_000),
                        (huge, "Transfer-Encoding: chunked", b"186a0\r\n" + b"x" * 100_000 + b"\r\n")):
                    await attack(*what)
                    await goes_on()
                for _, writer in peers:
                    writer.close()
                await until(lambda: len(os.listdir(descriptors)) < open_at_most - 50, "their connections are closed")
                if deaf_peer:
                    await deaf_peer
                await goes_on()
                sizes.append(resident(ingress) >> 20)
            beside.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await beside
            # The good backend's last request may be on its way.
            for name in accepted:
                await device.frame("notify", id=name)

            def published():
                return [record.headers["apns-id"] for record in reader.records[arguments.prefix + "requests"]]

            # All are for one person, so that the last accepted one is behind whatever was smuggled.
            await until(lambda: set(accepted) <= set(published()), "Kafka has what was accepted", lambda: len(set(accepted) - set(published())))
            found = published()
            expect(len(found) - len(again) <= len(set(found)) <= len(accepted) + 1, "nothing else is published", [len(found), len(accepted), again])
            expect(sizes[-1] < sizes[0] + 16, "the worker keeps nothing of it", sizes)
    expect(not contract.broken, "all frames keep the contract", contract.broken[:3])
    say(audit=await audit(arguments), published=len(accepted), sizes=sizes)


async def drained(arguments, folder):
    reader = Reader(arguments.kafka, [arguments.prefix + "requests"])
    async with on_one_redis(arguments, folder) as (_, cluster), reading(reader):
        await cluster.started("transform", *cluster.group, "--remembered-ids", "1000")
        fan_out = await cluster.started("fan-out", "--listen", "127.0.0.1:0")
        flags = "--listen", "127.0.0.1:0", "--unready-for", "1s", "--drain", "20s"
        ingress, other = [await cluster.started("ingress", *flags) for _ in range(2)]
        accepted, moved, stop = [], [], asyncio.Event()

        async def backend(number):
            """Publishes one after the other; goes to the other worker when its connection is closed, as behind a load balancer."""
            connection, many, ids = Connection(ingress.addresses["requests"]), number % 4 == 0, []
            now = asyncio.get_running_loop().time
            answered = now()
            while not stop.is_set():
                ids = ids or [str(uuid.uuid4()) for _ in range(50 if many else 1)]
                requests = [line(id=name) if not many else line(id=name, target="device:" + "ab" * 32) for name in ids]
                # Whatever was sent on a connection has an answer: an end without one is an error here. Only a backend that has stood still
                # for longer than half of the two seconds that an ending worker waits may find its connection closed: it sends again.
                sent = None
                try:
                    await connection.send(b"\n".join(requests), *(LINES if many else []))
                    sent = now()
                    status, fields, said = await connection.answer()
                except (ConnectionError, asyncio.IncompleteReadError):
                    if number in moved or (sent or now()) - answered < 1:
                        raise
                    moved.append(number)
                    connection.close()
                    connection = Connection(other.addresses["requests"])
                    continue
                answered = now()
                expect(status == 202, "it is accepted", said)
                accepted.extend(ids)
                ids = []
                if fields.get("connection") == "close":
                    moved.append(number)
                    connection = Connection(other.addresses["requests"])

        async with Device(fan_out.addresses["devices"], None, user="ada") as device:
            work = [asyncio.create_task(backend(number)) for number in range(20)]
            await until(lambda: len(accepted) > 200 or any(each.done() for each in work), "backends publish")
            ingress.send_signal(signal.SIGTERM)
            await until(lambda: len(moved) == len(work) or any(each.done() for each in work), "each connection is told", lambda: len(moved))
            await until(lambda: ingress.poll() is not None, "the worker ends")
            count = len(accepted)
            await until(lambda: len(accepted) > count or any(each.done() for each in work), "backends go on at the other worker")
            stop.set()
            await asyncio.gather(*work)
            expect(ingress.returncode == 0, "it ends in order", ingress.returncode)

            def kept():
                return [record.headers["apns-id"] for record in reader.records[arguments.prefix + "requests"]]

            await until(lambda: set(accepted) <= set(kept()), "Kafka has what was accepted", lambda: len(set(accepted) - set(kept())))
            expect(sorted(kept()) == sorted(accepted), "and each once", [len(kept()), len(accepted)])
            marker = str(uuid.uuid4())
            await Connection(other.addresses["requests"]).post(line(id=marker))
            await device.frame("notify", id=marker)
    say(audit=(await audit(arguments))["requests"], published=len(accepted))


PARTS = {"clients": clients, "killed": killed, "hostile": hostile, "drained": drained, "frozen": frozen}

if __name__ == "__main__":
    run_part(__doc__, PARTS, "carillon-ingress-", contract="the AsyncAPI document", kafka_folder=None, lines=1000, each=40,
        senders=200, seconds=12)
