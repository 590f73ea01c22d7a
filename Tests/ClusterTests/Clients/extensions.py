"""Service extensions: real processes on a real Kafka and a real Redis, payloads that Python's http-ece has encrypted, and a device in Python.

  opened     what is encrypted is shown decrypted, and what cannot be opened is shown without it; each place that tells of a notification
             tells what became of it at its extensions, and none but its mailbox and the deliveries has the plaintext
  unopened   what only the device has the key for passes the workers as it is, and the device shows it opened, by a file of extensions or of keys
  reloaded   a changed file is put in force by itself, and on SIGHUP while requests come: none sees half of it; a broken file
             changes nothing
  killed     workers are killed with mutable requests in hand: nothing is lost, shown twice or shown as it was published
  rebuilt    what a rebuilding puts back has passed the extensions
"""
import asyncio
import base64
import collections
import json
import os
import signal
import uuid

import http_ece
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

import journal
from clients import APPLICATION, Contract, Device, Producer, Reader, expect, run, say, until
from healing import PILL, SOON, DeadlyProxy, committed, on_one_redis, ready, run_part, unready

MARKED = "com.example.marked"
KEYS = {"2026-05": os.urandom(16), "2026-11": os.urandom(32)}
PUBLISHED = {"title": "News", "body": "You have a message"}


class File:
    """The file that a worker is given, and the files beside it."""

    def __init__(self, folder):
        self.folder = os.path.join(folder, "extensions")
        self.path = os.path.join(self.folder, "extensions.json")
        os.mkdir(self.folder)

    def write(self, text, name="extensions.json"):
        """Puts a file in the place of the former one at once, so that nobody reads half of it."""
        path = os.path.join(self.folder, name)
        with open(path + ".new", "w") as file:
            file.write(text if isinstance(text, str) else json.dumps(text))
        os.replace(path + ".new", path)

    def write_keys(self, keys):
        self.write({"keys": [{"id": name, "key": for_urls(key).decode()} for name, key in keys.items()]}, "keys.json")

    def mark(self, mark):
        """Two extensions that put the same mark before the title and before the body."""
        steps = [
            {"name": "mark-" + member, "use": "set-and-copy", "prefix": {"/aps/alert/" + member: mark + ": "}} for member in ("title", "body")
        ]
        self.write({"applications": {APPLICATION: steps}})


def seal(plaintext, key, name, record_size=4096):
    return http_ece.encrypt(plaintext.encode(), key=key, keyid=name, rs=record_size, version="aes128gcm")


def for_urls(bytes):
    return base64.urlsafe_b64encode(bytes).rstrip(b"=")


def trace(name):
    """The W3C trace context that a request comes with, by its apns-id."""
    digits = name.replace("-", "")
    return "00-%s-%s-01" % (digits, digits[:16])


class Publisher:
    """Publishes payloads, and remembers their apns-ids."""

    def __init__(self, arguments):
        self.producer = Producer(arguments.kafka, arguments.prefix + "requests")

    def payload(self, target, payload, application=APPLICATION):
        name = str(uuid.uuid4())
        headers = {"target": target, "apns-topic": application, "apns-id": name, "traceparent": trace(name)}
        self.producer.publish(headers, json.dumps(payload).encode(), key=target)
        return name

    def mutable(self, target, body, title="Order"):
        return self.payload(target, {"aps": {"alert": {"title": title, "body": body}, "mutable-content": 1}, "custom": {"body": body}})

    def sealed(self, target, content, application=APPLICATION, encode=base64.b64encode, **aps):
        payload = {"aps": {"alert": dict(PUBLISHED), "mutable-content": 1, **aps}, "encrypted-content": encode(content).decode()}
        return self.payload(target, payload, application)

    async def flush(self):
        await self.producer.flush()


class Log:
    """What the workers have logged from a moment on."""

    def __init__(self, folder):
        self.path = os.path.join(folder, "workers.log")

    def text(self):
        with open(self.path) as file:
            return file.read()

    def count(self, *words):
        return sum(all(word in line for word in words) for line in self.text().splitlines())

    async def says(self, count, *words):
        """Waits for as many lines that have all of these words."""
        await until(lambda: self.count(*words) >= count, "the log says %s" % (words,), lambda: self.text()[-1500:])


class RememberingDevice(Device):
    """A device that shows each notification once, as the protocol asks of it."""

    def __init__(self, *arguments, **hello):
        super().__init__(*arguments, **hello)
        self.acknowledges = False
        self.shown = set()

    async def __aenter__(self):
        device = await super().__aenter__()
        self.showing = asyncio.create_task(self.show())
        return device

    async def __aexit__(self, *_):
        self.showing.cancel()
        await super().__aexit__()

    async def show(self):
        taken = 0
        while True:
            # Late, so that a worker's end leaves some that nobody has acknowledged.
            await asyncio.sleep(0.05)
            frames, taken = self.frames[taken:], len(self.frames)
            for frame in frames:
                if frame["type"] != "notify":
                    continue
                reason = self.drops(frame)
                if reason:
                    await self.send({"type": "ack", "deliveries": [], "dropped": [{"delivery": frame["delivery"], "reason": reason}]})
                else:
                    self.shown.add(frame["id"])
                    await self.send({"type": "ack", "deliveries": [frame["delivery"]]})

    def drops(self, frame):
        """Why a notification is not shown; None where it is."""
        return "known" if frame["id"] in self.shown else None


async def start(cluster, file, *flags):
    return await cluster.started("transform", "--extensions", file.path, *flags, *cluster.group)


async def tool(arguments, *words):
    """Runs a tool of the program on this Kafka."""
    return await run(arguments.binary, words[0], "--kafka", arguments.kafka, "--topic-prefix", arguments.prefix, *words[1:])


async def audit(arguments, *flags, is_complete=lambda report: True):
    """What an audit says that finds nothing amiss, and that is complete. Workers may be late to tell what became of something."""
    seen = []

    async def finds_nothing():
        done = await tool(arguments, "audit", "--grace", "1s", "--json", *flags)
        seen[:] = [done.stdout[:1500], done.stderr[-500:]]
        report = json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else None
        return report and is_complete(report) and report

    return await until(finds_nothing, "an audit finds nothing amiss", lambda: seen)


def states(event):
    return [(each["name"], each["state"]) for each in event.get("extensions", [])]


async def opened(arguments, folder):
    contract = Contract(arguments.contract)
    file = File(folder)
    file.write_keys(KEYS)
    mark = {"name": "mark", "use": "set-and-copy", "prefix": {"/aps/alert/title": "[modified] "}}
    opening = {"name": "open", "use": "decrypt", "keys": "keys.json"}
    file.write({"applications": {APPLICATION: [opening, mark], MARKED: [{**opening, "fallback": "marked"}]}})
    topics = {name: arguments.prefix + name for name in ("requests", "deliveries", "events", "journal", "dead-letters", "devices")}
    reader = Reader(arguments.kafka, topics.values())
    reading = asyncio.create_task(reader.run())
    publisher = Publisher(arguments)
    # Nobody else has such a text.
    secret = "plaintext-" + uuid.uuid4().hex
    key, name = KEYS["2026-11"], "2026-11"

    async with on_one_redis(arguments, folder) as (redis, cluster):
        await start(cluster, file, "--log-level", "debug")
        fan_out = await cluster.started("fan-out", "--listen", "127.0.0.1:0", "--log-level", "debug")
        url = fan_out.addresses["devices"]
        async with Device(url, contract, user="ada") as device, Device(url, contract, user="grace", application=MARKED) as other:
            target = "device:" + device.token
            patch = json.dumps({"aps": {"alert": {"title": None, "subtitle": secret}, "thread-id": "t"}, "from": {"name": secret}})
            long = secret + " " + "é" * 300
            cut = seal(secret, key, name)[:-3]
            changed = bytearray(seal(secret, key, name))
            changed[-20] ^= 1
            broken = [seal(secret, os.urandom(32), name), cut, bytes(changed), b"", b"none"]
            failed = [publisher.sealed(target, content) for content in broken]
            # What was opened breaks a rule.
            failed.append(publisher.sealed(target, seal('{"aps":{"badge":-1}}', key, name)))
            unknown = publisher.sealed(target, seal(secret, os.urandom(16), "2027-05"))
            plain = publisher.payload(target, {"aps": {"alert": dict(PUBLISHED)}, "encrypted-content": "none"})
            silent = publisher.payload(target, {"aps": {"content-available": 1, "mutable-content": 1}, "encrypted-content": "none"})
            in_many_records = seal(long, key, name, record_size=30)
            wanted = {
                publisher.sealed(target, seal(secret, key, name)): {"alert": {"title": "[modified] News", "body": secret}},
                publisher.sealed("user:ada", seal(long, KEYS["2026-05"], "2026-05"), encode=for_urls): {
                    "alert": {"title": "[modified] News", "body": long}},
                publisher.sealed(target, in_many_records): {"alert": {"title": "[modified] News", "body": long}},
                publisher.sealed("user:ada", seal(patch, key, name), badge=3): {
                    "alert": {"body": PUBLISHED["body"], "subtitle": secret}, "thread-id": "t", "badge": 3},
            }
            marked = publisher.sealed("device:" + other.token, seal(secret, os.urandom(32), name), MARKED)
            bad = publisher.sealed(target, seal(secret, key, name), badge="three")
            await publisher.flush()

            def payload(name, device=device):
                return next((frame["payload"] for frame in device.of("notify") if frame["id"] == name), None)

            for name, aps in wanted.items():
                shown = await until(lambda: payload(name), "what is encrypted is shown", lambda: device.frames[-3:])
                expect(shown["aps"] == {**aps, "mutable-content": 1}, "as it was before it was encrypted", [shown, aps])
                expect("encrypted-content" not in shown, "without the ciphertext", shown)
                expect(("from" in shown) == ("subtitle" in aps["alert"]), "with what an object adds", shown)
            for name in failed:
                shown = await until(lambda: payload(name), "what cannot be opened is shown")
                alert = {"title": "[modified] News", "body": PUBLISHED["body"]}
                expect(shown == {"aps": {"alert": alert, "mutable-content": 1}}, "with what it has beside the ciphertext", shown)
            shown = await until(lambda: payload(unknown), "what has an unknown key id is shown")
            expect(shown["aps"]["alert"] == {**PUBLISHED, "title": "[modified] News"} and shown["encrypted-content"], "as it is", shown)
            shown = await until(lambda: payload(plain), "what is not mutable is shown")
            expect(shown == {"aps": {"alert": PUBLISHED}, "encrypted-content": "none"}, "as it was published", shown)
            shown = await until(lambda: payload(silent), "what is silent arrives")
            expect(shown["aps"] == {"content-available": 1, "mutable-content": 1}, "as it was published", shown)
            shown = await until(lambda: payload(marked, other), "the other application's is shown")
            expect(shown["aps"]["alert"] == {**PUBLISHED, "subtitle": "(Encrypted)"}, "marked, as its file says", shown)

            # What is told.
            def told(kind, name):
                events = reader.records[topics["events"]]
                return [states(event.json) for event in events if event.type == kind and event.headers["ce_subject"] == name]

            expected = {}
            for name, aps in wanted.items():
                expected[name] = [("open", "modified"), ("mark", "modified" if "title" in aps["alert"] else "unchanged")]
            expected.update({name: [("open", "failed"), ("mark", "modified")] for name in failed})
            expected.update({unknown: [("open", "unchanged"), ("mark", "modified")], marked: [("open", "failed")], plain: [], silent: []})
            for name, passed in expected.items():
                await until(lambda: told("delivered", name), "an event tells that it was delivered")
                expect(told("delivered", name) == [passed], "and what became of it at its extensions", [name, told("delivered", name), passed])
            await until(lambda: told("rejected", bad), "what breaks a rule is rejected")
            letters = reader.records[topics["dead-letters"]]
            await until(lambda: letters, "and is a dead letter")
            expect(len(letters) == 1 and b"encrypted-content" in letters[0].value, "as it was published", letters[0].value)
            # The group commits what Kafka has the journal of.
            await until(lambda: committed(arguments) >= len(expected) + 1, "the group has committed", lambda: committed(arguments))
            await explain(arguments, next(iter(wanted)), failed[0])

            def journaled():
                requests = {(record.partition, record.offset): record.headers["apns-id"] for record in reader.records[topics["requests"]]}
                passed, judged = {}, set()
                for record in reader.records[topics["journal"]]:
                    # The verdict may come in a later record than what the request has passed before it.
                    steps = {}
                    judged |= {(record.partition, offset) for offset, *_ in journal.entries(record.value, steps)}
                    passed.update({(record.partition, offset): each for offset, each in steps.items()})
                found = {requests.get(place): [step[:2] for step in passed.pop(place, [])] for place in judged}
                # What passed its extensions is judged.
                found.update({place: steps for place, steps in passed.items()})
                return found

            await until(lambda: journaled() == {**expected, bad: []}, "the journal tells the same", journaled)

            # Where the plaintext is. The first shows that the others would be found.
            def holds(topic):
                return [record for record in reader.records[topics[topic]] if secret.encode() in
                        b"".join([record.value or b"", record.key or b"", *(value or b"" for _, value in record.pairs)])]

            await until(lambda: len(holds("deliveries")) >= len(wanted), "the deliveries have it")
            await until(lambda: len(reader.records[topics["journal"]]) > 0, "the journal is written")
            for topic in ("requests", "events", "journal", "dead-letters", "devices"):
                expect(reader.records[topics[topic]], "there is something in %s" % topic)
                expect(not holds(topic), "%s has no plaintext" % topic, [record.value for record in holds(topic)[:1]])
            log = Log(folder).text()
            expect(log and secret not in log, "the log has none", log[-500:])
            for key in KEYS.values():
                for text in (key.hex(), base64.b64encode(key).decode().rstrip("="), for_urls(key).decode()):
                    expect(text not in log, "nor a key")
        audited = await audit(arguments)
    reading.cancel()
    for record in reader.records[topics["events"]]:
        contract.hold("event." + record.type, record.json)
    for record in reader.records[topics["journal"]]:
        contract.hold("journalHeaders", record.headers)
    expect(not contract.broken, "all keeps the contract", contract.broken[:3])
    say(held=contract.held, audit=audited)


async def explain(arguments, changed, failed):
    for name, details in ((changed, {"open": "modified", "mark": "modified"}), (failed, {"open": "failed", "mark": "modified"})):
        done = await tool(arguments, "explain", name, "--json")
        expect(done.returncode == 0, "explain finds it", done.stderr)
        steps = [step for step in json.loads(done.stdout)["steps"] if step["step"] == "extensions"]
        expect(len(steps) == 1 and set(steps[0]["details"]) == set(details), "and has a step of its extensions", done.stdout)
        for extension, state in details.items():
            expect(steps[0]["details"][extension].startswith(state + ", "), "with the state of each", steps)
    lines = (await tool(arguments, "explain", changed)).stdout.splitlines()
    steps = ("published", "extensions", "queued", "delivered")
    order = [next((at for at, line in enumerate(lines) if "  %s  " % step in line), None) for step in steps]
    expect(None not in order and order == sorted(order), "in its place", lines)
    expect('open="modified, ' in lines[order[1]], "for people as well", lines)


async def reloaded(arguments, folder):
    file, log, publisher = File(folder), Log(folder), Publisher(arguments)
    in_force, refused = "the extensions' file is in force", "a changed file cannot be used; what it held before stays in force"
    file.mark("one")
    async with on_one_redis(arguments, folder) as (redis, cluster):
        worker = await start(cluster, file, "--mailbox-bound", "10000")
        fan_out = await cluster.started("fan-out", "--listen", "127.0.0.1:0")

        def alert(device, name):
            return next((frame["payload"]["aps"]["alert"] for frame in device.of("notify") if frame["id"] == name), None)

        async with Device(fan_out.addresses["devices"], None, user="ada") as device:
            async def shows(mark):
                name = publisher.mutable("user:ada", "x")
                await publisher.flush()
                shown = await until(lambda: alert(device, name), "it is shown")
                expect(shown == {"title": mark + ": Order", "body": mark + ": x"}, "as the file in force says: " + mark, shown)

            await shows("one")
            file.mark("two")
            await log.says(2, in_force)
            await shows("two")

            broken = [
                ('{"applications":', file.path), ('{"applications":{"%s":[{"name":"a","use":"none"}]}}' % APPLICATION, "[0].use: "),
                ('{"applications":{"%s":[{"name":"a","use":"decrypt","keys":"none.json"}]}}' % APPLICATION, "none.json: there is no such file"),
            ]
            for number, (text, place) in enumerate(broken):
                file.write(text)
                worker.send_signal(signal.SIGHUP)
                await log.says(number + 1, refused)
                await log.says(1, refused, place)
                await shows("two")
            os.remove(file.path)
            worker.send_signal(signal.SIGHUP)
            await log.says(1, refused, "extensions.json: there is no such file")
            await shows("two")
            os.mkfifo(file.path)
            worker.send_signal(signal.SIGHUP)
            await log.says(1, refused, "only a regular file is read")
            await shows("two")
            os.remove(file.path)
            before = log.count(in_force)
            file.mark("three")
            worker.send_signal(signal.SIGHUP)
            await log.says(before + 1, in_force)
            await shows("three")

            # While requests come.
            names = []
            for number in range(20):
                mark, before = "load %d" % number, log.count(in_force)
                file.mark(mark)
                names += [publisher.mutable("user:ada", "y") for _ in range(50)]
                worker.send_signal(signal.SIGHUP)
                names += [publisher.mutable("user:ada", "y") for _ in range(50)]
                await log.says(before + 1, in_force)
            await publisher.flush()
            await shows(mark)
            await until(lambda: all(alert(device, name) for name in names), "all are shown")
            marks = collections.Counter()
            for name in names:
                shown = alert(device, name)
                before = shown["title"].removesuffix(": Order")
                expect(shown == {"title": before + ": Order", "body": before + ": y"}, "by one file, not by half of two", shown)
                marks[before] += 1
            expect(len(marks) > 2, "by several files", marks)
            expect(worker.poll() is None, "the worker is the same one all along")
            await until(lambda: ready(worker), "and is ready")
            say(marks=len(marks), audit=await audit(arguments))


async def killed(arguments, folder):
    file, proxy, publisher = File(folder), DeadlyProxy(), Publisher(arguments)
    file.mark("changed")
    reader = Reader(arguments.kafka, [arguments.prefix + "events"])
    reading = asyncio.create_task(reader.run())
    pill, count, rounds = PILL.decode(), 400, 3
    flags = ["--session-timeout", "2s", "--mailbox-bound", "10000"]

    async with on_one_redis(arguments, folder, proxy) as (redis, cluster):
        worker = await start(cluster, file, *flags)
        fan_out = await cluster.started("fan-out", "--listen", "127.0.0.1:0")
        url = fan_out.addresses["devices"]
        devices = [RememberingDevice(url, None, user="ada" if number < 2 else "person%d" % number) for number in range(8)]
        for device in devices:
            await device.__aenter__()
        wanted = {device.token: set() for device in devices}
        for number in range(1, rounds + 1):
            # Killed when a request in the middle is on its way to Redis, which has had some of the others.
            proxy.victim = worker
            for each in range(count):
                body = pill if each == count // 2 else "%d/%d" % (number, each)
                receivers = devices[:2] if each % 5 == 0 and body != pill else [devices[each % len(devices)]]
                target = "user:ada" if len(receivers) > 1 else "device:" + receivers[0].token
                name = publisher.mutable(target, body)
                for device in receivers:
                    wanted[device.token].add(name)
            await publisher.flush()
            await until(lambda: worker.poll() is not None, "the worker is killed")
            expect(worker.returncode == -signal.SIGKILL, "it did not end by itself", worker.returncode)
            worker = await start(cluster, file, *flags)
            await until(
                lambda: all(wanted[device.token] <= device.shown for device in devices), "nothing is lost",
                lambda: {device.token[:4]: len(wanted[device.token] - device.shown) for device in devices})
        expect(proxy.deaths == rounds, "each time in the middle", proxy.deaths)
        await until(lambda: committed(arguments) == rounds * count, "the group has committed", lambda: committed(arguments))

        def delivered():
            found = [(record.headers["ce_subject"], record.json["device"]) for record in reader.records[arguments.prefix + "events"]
                     if record.type == "delivered"]
            return collections.Counter(found)

        promised = {(name, token) for token, names in wanted.items() for name in names}
        await until(lambda: set(delivered()) >= promised, "an event tells of each", lambda: len(delivered()))
        # What lies behind all of these is shown, and each of them once before it.
        for device in devices:
            wanted[device.token].add(publisher.mutable("device:" + device.token, "behind"))
        await publisher.flush()
        await until(lambda: all(wanted[device.token] <= device.shown for device in devices), "what lies behind them is shown")
        again = 0
        for device in devices:
            expect(device.shown == wanted[device.token], "nothing is shown that is not meant", len(device.shown - wanted[device.token]))
            payloads = {}
            for frame in device.of("notify"):
                again += frame["id"] in payloads
                expect(payloads.setdefault(frame["id"], frame["payload"]) == frame["payload"], "what comes again is the same", frame)
                alert, body = frame["payload"]["aps"]["alert"], frame["payload"]["custom"]["body"]
                expect(alert == {"title": "changed: Order", "body": "changed: " + body}, "all are shown changed", frame)
        promised = {(name, token) for token, names in wanted.items() for name in names}
        await until(lambda: set(delivered()) >= promised, "an event tells of these, too", lambda: len(delivered()))
        expect(set(delivered()) == promised, "and of nothing else", len(delivered()))
        for device in devices:
            await device.__aexit__()
        say(killed=proxy.deaths, again=again, audit=await audit(arguments))
    reading.cancel()
    proxy.server.close()


async def rebuilt(arguments, folder):
    file = File(folder)
    file.mark("changed")
    async for body, alert in after_a_rebuilding(arguments, folder, file, 40):
        expect(alert == {"title": "changed: Order", "body": "changed: " + body}, "changed, as it was before", alert)


async def after_a_rebuilding(arguments, folder, file, count):
    """The body and the alert of each of so many notifications that Redis had lost and that a rebuilding has put back."""
    publisher = Publisher(arguments)
    async with on_one_redis(arguments, folder) as (redis, cluster):
        worker = await start(cluster, file, "--mailbox-bound", "10000")
        fan_out = await cluster.started("fan-out", *SOON, "--listen", "127.0.0.1:0")
        url, absent = fan_out.addresses["devices"], Device(fan_out.addresses["devices"], None, user="grace")
        async with absent:
            pass
        names = [publisher.mutable("user:grace" if number % 2 else "device:" + absent.token, "%d" % number) for number in range(count)]
        await publisher.flush()
        await until(lambda: committed(arguments) >= len(names), "the group has committed", lambda: committed(arguments))
        redis.cli("FLUSHALL")
        # What comes next shows the workers that Redis is empty.
        names.append(publisher.mutable("user:grace", "last"))
        await publisher.flush()
        await until(lambda: unready(worker, fan_out), "both workers say that Redis has lost what it had")
        done = await tool(arguments, "rebuild", "--redis", "127.0.0.1:%d" % redis.port, *cluster.group, "--extensions", file.path)
        expect(done.returncode == 0, "Redis is rebuilt", done.stderr)
        await until(lambda: ready(worker) and ready(fan_out), "the workers go on by themselves")
        async with Device(url, None, **{key: absent.hello[key] for key in ("device", "user")}) as late:
            await until(lambda: len(late.of("notify")) >= len(names), "all that waited is there", lambda: len(late.of("notify")))
            expect({frame["id"] for frame in late.of("notify")} == set(names), "and nothing else")
            for frame in late.of("notify"):
                yield frame["payload"]["custom"]["body"], frame["payload"]["aps"]["alert"]


async def unopened(arguments, folder):
    publisher, file = Publisher(arguments), File(folder)
    # The device's own key pair, and a key that it shares with its senders (RFC 8291; RFC 8188).
    private, secret, shared = ec.generate_private_key(ec.SECP256R1()), os.urandom(16), os.urandom(16)
    public = private.public_key().public_bytes(serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint)
    number = private.private_numbers().private_value.to_bytes(32, "big")
    keys = {"keys": [{"id": "home", "key": for_urls(shared).decode()}],
            "receiver": {"privateKey": for_urls(number).decode(), "authenticationSecret": for_urls(secret).decode()}}
    # The workers have the file, and not the keys that it names.
    settings = {"applications": {APPLICATION: [
        {"name": "open", "use": "decrypt", "keys": "device-keys.json", "place": "device"},
        {"name": "mark", "use": "set-and-copy", "prefix": {"/aps/alert/title": "[workers] "}},
        {"name": "shown", "use": "set-and-copy", "prefix": {"/aps/alert/title": "[device] "}, "place": "device"}]}}
    file.write(settings)
    at_home = os.path.join(folder, "device")
    os.mkdir(at_home)
    for name, content in (("extensions.json", settings), ("device-keys.json", keys)):
        with open(os.path.join(at_home, name), "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as out:
            json.dump(content, out)
    async with on_one_redis(arguments, folder) as (redis, cluster):
        await start(cluster, file)
        fan_out = await cluster.started("fan-out", "--listen", "127.0.0.1:0")
        token = os.urandom(32).hex()
        device = await asyncio.create_subprocess_exec(
            arguments.binary, "device", "--devices", fan_out.addresses["devices"], "--token", token, "--app", APPLICATION, "--extensions",
            os.path.join(at_home, "extensions.json"), "--json", stdout=asyncio.subprocess.PIPE, stdin=asyncio.subprocess.PIPE, limit=1 << 20)
        events = []

        async def read():
            async for line in device.stdout:
                events.append(json.loads(line))

        reading = asyncio.create_task(read())
        try:
            await until(lambda: any(each.get("event") == "connected" for each in events), "the device is connected", lambda: events[-3:])
            target, text = "device:" + token, "plaintext " + token[:8]
            sealed = http_ece.encrypt(text.encode(), private_key=ec.generate_private_key(ec.SECP256R1()), dh=public, auth_secret=secret,
                                      version="aes128gcm")
            wanted = {publisher.sealed(target, sealed): text, publisher.sealed(target, seal(text, shared, "home")): text,
                      publisher.sealed(target, seal(text, os.urandom(16), "home")): PUBLISHED["body"]}
            await publisher.flush()

            def shown():
                return {each["id"]: each for each in events if each.get("event") == "shown"}

            await until(lambda: set(wanted) <= set(shown()), "the device shows all", lambda: events[-3:])
            for each, body in wanted.items():
                title = "[device] [workers] " + PUBLISHED["title"]
                expect(shown()[each]["body"] == body and shown()[each]["title"] == title, "as only it can", shown()[each])
            came = [each["frame"] for each in events if each.get("frame", {}).get("type") == "notify"]
            expect({frame["id"] for frame in came} == set(wanted), "and nothing else came", came)
            expect(all("encrypted-content" in frame["payload"] for frame in came), "and it came sealed", came)
            expect(text not in json.dumps(came), "with no plaintext in it", came)
        finally:
            device.kill()
            await device.wait()
            await reading
        say(audit=await audit(arguments))


PARTS = {part.__name__: part for part in (opened, unopened, reloaded, killed, rebuilt)}


if __name__ == "__main__":
    run_part(__doc__, PARTS, "carillon-extensions-", contract="the AsyncAPI document")
