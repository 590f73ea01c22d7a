"""Requests by HTTP: an ingress of its own beside real workers, and backends that know the article and the OpenAPI document.

  clients    curl, Python and JavaScript, as the article has them, publish to devices, schedule, cancel and remove; tokens of every algorithm; each
             answer keeps the OpenAPI document
  killed     the ingress is killed again and again while backends publish and repeat: each device shows each notification once
"""
import asyncio
import base64
import json
import os
import re
import signal
import subprocess
import threading
import time
import uuid

import jsonschema
import openapi_spec_validator
import requests
from cryptography.hazmat.primitives import hashes, hmac, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, utils

from clients import APPLICATION, HANG, Contract, Device, expect, quietly, run, say, until
from extensions import audit
from healing import on_one_redis, run_part
from machine import free_port

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../Sources")
ARTICLE = os.path.join(ROOT, "carillon/Documentation.docc/Ingress.md")
DOCUMENT = os.path.join(ROOT, "Notifications/Contract/openapi.json")


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


async def curl(url, bearer, *words):
    """Publishes with curl; gives the status and the body."""
    done = await run("curl", "-sS", "--max-time", str(HANG), "-w", "\n%{http_code}", "-H", "Authorization: Bearer " + bearer, *words, url)
    expect(done.returncode == 0, "curl has an answer", done.stderr)
    body, _, status = done.stdout.rpartition("\n")
    return int(status), body


async def clients(arguments, folder):
    contract, answers, keys = Contract(arguments.contract), Answers(), Keys(arguments, folder)
    async with on_one_redis(arguments, folder) as (_, cluster):
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

        async with Device(fan_out.addresses["devices"], contract, user="ada") as device:
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


PARTS = {"clients": clients, "killed": killed}

if __name__ == "__main__":
    run_part(__doc__, PARTS, "carillon-ingress-", contract="the AsyncAPI document", lines=1000, each=40)
