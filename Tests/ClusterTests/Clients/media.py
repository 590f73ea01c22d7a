"""The service extension 'attach' and the media port: real workers, a media server in Python that does whatever it likes, and devices that fetch.

  attached   what a notification names is shown with it, byte for byte, at a link that is good for one device; whatever else the server does,
             a notification is shown once, in time, without it; nobody else's wait, no memory fills, and no log has what stands in a URL
  kept       workers are killed while files come: nothing is lost, shown twice or shown without its file, which is kept for as long as promised;
             a file that is gone is fetched again; a worker that serves no media says so
"""
import asyncio
import collections
import contextlib
import hashlib
import http.client
import json
import os
import re
import signal
import socket
import time
import urllib.parse
import uuid

from clients import APPLICATION, HANG, Reader, expect, say, until
from extensions import File, Log, Publisher, RememberingDevice, audit, start, states
from healing import committed, on_one_redis, run_part
from service import Handler, Service

# The applications whose notifications have next to no time, and less than a file may take.
HASTY, PATIENT = "com.example.hasty", "com.example.patient"
DAY = 86_400
MIB = 1 << 20
# A name whose address no rule admits: this machine's own.
NAME = socket.gethostname()
# Nobody else has such a text; it stands in the path and in the query of each URL.
SECRET = "secret-" + uuid.uuid4().hex
PNG = b"\x89PNG\r\n\x1a\n" + os.urandom(3_000)
WAV = b"RIFF\x00\x00\x40\x00WAVEfmt " + os.urandom(4 * MIB)
MP4 = b"\x00\x00\x00\x18ftypisom"
# What comes from the server, and what it is.
GOOD = {
    "small": (PNG, "image/png"), "misnamed": (b"\xff\xd8\xff\xe0" + os.urandom(60_000), "image/jpeg"), "slow": (WAV, "audio/wav"),
    "own": (PNG + b"own", "image/png"), "moved": (PNG, "image/png"), "hops-3": (PNG, "image/png")}
# What it does wrong; those that hang do so until the time is up.
HANGING = ("hang", "half", "long")
BAD = HANGING + ("page", "large", "endless", "cut", "longer-than-anything", "empty", "missing", "broken", "hops-4", "loop")
OPTIONS = {"thumbnailHidden": True}


class Media(Service):
    """Answers as the path says. Its address is the only private one that the workers may connect to."""

    def __init__(self):
        self.asked, self.sent = collections.Counter(), collections.Counter()
        # Others on this machine, whom nobody may ask: one whom no rule admits, and one whose name is admitted and not its address.
        self.others = [socket.create_server(("127.0.0.2", 0)), socket.create_server(("127.0.0.1", 0))]
        self.places = {
            "to-another-port": "http://127.0.0.2:%d/" % self.others[0].getsockname()[1],
            "to-a-name": "http://%s:%d/" % (NAME, self.others[1].getsockname()[1]),
            "to-the-metadata": "http://169.254.169.254/latest/", "to-a-file": "file:///etc/passwd"}
        super().__init__("127.0.0.2", Answer)

    @property
    def hosts(self):
        return ["127.0.0.2:%d" % self.server_address[1], "%s:%d" % (NAME, self.others[1].getsockname()[1])]

    def url(self, do, number=0):
        return "http://127.0.0.2:%d%s" % (self.server_address[1], self.path(do, number))

    @staticmethod
    def path(do, number=0):
        return "/%s/%s?number=%s&token=%s" % (SECRET, do, number, SECRET)

    def untouched(self):
        """Whether nobody has connected to the others."""
        for other in self.others:
            other.setblocking(False)
            try:
                other.accept()
                return False
            except BlockingIOError:
                pass
        return True

    def close(self):
        super().close()
        for other in self.others:
            other.close()


class Answer(Handler):
    def do_GET(self):
        do = self.path.partition("?")[0].rpartition("/")[2]
        self.server.asked[do] += 1
        if do in self.server.places:
            self.redirect(self.server.places[do] + ("" if do == "to-a-file" else SECRET))
        elif do == "moved":
            self.redirect("small?token=" + SECRET)
        elif do == "loop":
            self.redirect(self.path)
        elif do.startswith("hops-"):
            left = int(do[5:]) - 1
            self.redirect(self.server.url("hops-%d" % left if left else "small"))
        elif do == "slow":
            self.begin("transfer-encoding: chunked")
            for place in range(0, len(WAV), MIB // 8):
                self.chunk(WAV[place:place + MIB // 8])
                time.sleep(0.03)
            self.raw(b"0\r\n\r\n")
        elif do == "held":
            # The head and a half of the body come at once.
            self.begin("content-length: %d" % len(PNG))
            self.raw(PNG[:1_500])
            self.server.release.wait(120)
            self.raw(PNG[1_500:])
        elif do == "shared":
            time.sleep(1)
            self.say(200, PNG)
        elif do == "large":
            self.begin("content-length: %d" % (11 * MIB))
            self.flood(PNG, 11 * MIB, self.raw)
        elif do in ("endless", "endless-film"):
            self.begin("transfer-encoding: chunked")
            self.flood(PNG if do == "endless" else MP4, 1 << 40, self.chunk)
        elif do == "hang":
            self.server.ending.wait(120)
        elif do in ("half", "long", "cut"):
            self.begin("content-length: %d" % (len(PNG) + 100))
            self.raw(PNG[:1_000] if do == "half" else PNG)
            if do != "cut":
                self.server.ending.wait(120)
            self.close_connection = True
        elif do == "longer-than-anything":
            self.begin("content-length: 99999999999999999999")
            self.raw(PNG)
            self.server.ending.wait(120)
        elif do == "page":
            self.say(200, b"<!DOCTYPE html><title>A picture</title>" * 100, "image/png")
        elif do == "misnamed":
            self.say(200, GOOD[do][0], "application/zip")
        elif do in ("small", "own"):
            self.say(200, *GOOD[do])
        else:
            self.say({"missing": 404, "broken": 500}.get(do, 200), b"" if do == "empty" else PNG)

    def redirect(self, place):
        self.send_response(302)
        self.send_header("location", place)
        self.send_header("content-length", "0")
        self.end_headers()

    def say(self, status, body, kind="application/octet-stream"):
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.raw(body)

    def begin(self, field):
        self.raw(b"HTTP/1.1 200 OK\r\ncontent-type: image/png\r\n%s\r\n\r\n" % field.encode())

    def flood(self, beginning, size, write):
        """Writes a body that begins like this, until somebody stops it."""
        piece = beginning + bytes(65_536 - len(beginning))
        for _ in range(0, size, len(piece)):
            if self.server.ending.is_set():
                break
            write(piece)
            self.server.sent[self.path] += len(piece)

    def chunk(self, bytes):
        self.raw(b"%x\r\n%s\r\n" % (len(bytes), bytes))


def configure(folder, media, **settings):
    """The file of extensions, and the media folder."""
    file = File(folder)
    places = [{"url": "/custom/" + name, "options": OPTIONS} for name in ("photo", "sound")]
    attach = {"name": "photo", "use": "attach", "attachments": places, "hosts": media.hosts, "networks": ["127.0.0.2/32"], "plaintext": True,
              "breaker": 0, "timeout": 15_000, "budget": 25_000, **settings}
    patient = {**attach, "timeout": 30_000, "budget": 30_000}
    file.write({"applications": {APPLICATION: [attach], HASTY: [{**attach, "budget": 10_000}], PATIENT: [patient]}})
    return file, os.path.join(folder, "media")


def publish(publisher, target, application=APPLICATION, expiration=None, **urls):
    """A mutable notification with media at these places."""
    name = str(uuid.uuid4())
    headers = {"target": target, "apns-topic": application, "apns-id": name, **({"apns-expiration": str(expiration)} if expiration else {})}
    payload = {"aps": {"alert": "media", "mutable-content": 1}, "custom": urls}
    publisher.producer.publish(headers, json.dumps(payload).encode(), key=target)
    return name


async def served(url, method="GET", **fields):
    """What the media port answers: status, fields and body."""
    def ask():
        parts = urllib.parse.urlsplit(url)
        connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=HANG)
        try:
            connection.request(method, "%s?%s" % (parts.path, parts.query), headers={name.replace("_", "-"): text for name, text in fields.items()})
            answer = connection.getresponse()
            return answer.status, {name.lower(): text for name, text in answer.getheaders()}, answer.read()
        finally:
            connection.close()

    return await asyncio.to_thread(ask)


def attachments(device, name):
    """What a notification came with; None where it was not shown."""
    return next((frame.get("attachments", []) for frame in device.of("notify") if frame["id"] == name), None)


async def holds(attachment, content, kind, identifier="photo"):
    """The device finds the content at the link."""
    said = {key: attachment[key] for key in ("identifier", "hash", "type", "size", "options")}
    expected = {"identifier": identifier, "hash": hashlib.sha256(content).hexdigest(), "type": kind, "size": len(content), "options": OPTIONS}
    expect(said == expected, "an attachment says what it is", [said, expected])
    expect(attachment["expires"] > time.time(), "its link is good for a while", attachment)
    status, fields, body = await served(attachment["url"])
    expect((status, fields["content-type"]) == (200, kind), "its link leads to a file", [status, fields])
    expect(body == content, "which is the one that was published, byte for byte", [len(body), len(content)])


async def new_link(device, digest):
    request = uuid.uuid4().hex
    await device.send({"type": "link", "hash": digest, "request": request})
    answer = await device.frame("linked", request=request)
    expect(answer["expires"] > time.time(), "a new link is good for a while", answer)
    return answer["url"]


def stored(media_folder):
    """Of each stored file by its hash: its path, and until when it is kept by its latest mark."""
    found = {}
    for part in os.listdir(media_folder):
        if part != "new":
            names = os.listdir(os.path.join(media_folder, part))
            for name in names:
                if "." not in name:
                    marks = [int(each.partition(".")[2]) for each in names if re.fullmatch(name + r"\.[0-9]+", each)]
                    found[name] = (os.path.join(media_folder, part, name), max(marks, default=0))
    return found


def coming(media_folder):
    return set(os.listdir(os.path.join(media_folder, "new")))


def resident(process):
    """The memory that a process has, in MiB."""
    with open("/proc/%d/status" % process.pid) as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS")) / 1024


class Told:
    """What the events tell of each notification that was delivered."""

    def __init__(self, arguments):
        self.topic = arguments.prefix + "events"
        self.reader = Reader(arguments.kafka, [self.topic])
        self.reading = asyncio.create_task(self.reader.run())

    async def of(self, names):
        def told():
            return {record.headers["ce_subject"]: states(record.json) for record in self.reader.records[self.topic] if record.type == "delivered"}

        await until(lambda: set(names) <= set(told()), "events tell of all of them", lambda: len(told()))
        return {name: [state for _, state in told()[name]] for name in names}


async def attached(arguments, folder):
    media, publisher, told = Media(), Publisher(arguments), Told(arguments)
    file, media_folder = configure(folder, media)
    async with on_one_redis(arguments, folder) as (redis, cluster):
        flags = ["--media", media_folder, "--log-level", "debug"]
        worker = await start(cluster, file, "--mailbox-bound", "10000", "--session-timeout", "60s", *flags)
        fan_out = await cluster.started("fan-out", "--listen", "127.0.0.1:0", "--media-listen", "127.0.0.1:0", *flags)
        url = fan_out.addresses["devices"]
        who = [("ada", APPLICATION), ("grace", APPLICATION), ("ada", HASTY), ("ada", PATIENT)]
        async with contextlib.AsyncExitStack() as stack:
            device, quick, hasty, patient = [
                await stack.enter_async_context(RememberingDevice(url, None, user=user, application=application)) for user, application in who]
            await nobody_else(media, publisher, told, device, Log(folder))
            await whatever_comes(media, publisher, told, device, quick)
            await too_late(media, publisher, told, hasty)
            await links(media, publisher, device, quick)
            await once(media, publisher, told, (device, quick))
            memory = await endless(media, publisher, told, worker, patient)
            await until(lambda: not coming(media_folder), "what was not finished is gone", lambda: coming(media_folder))
            hashes = {hashlib.sha256(content).hexdigest() for content, _ in GOOD.values()}
            expect(set(stored(media_folder)) == hashes, "nothing else is stored than what was shown", sorted(stored(media_folder)))
            log = Log(folder).text()
            expect(SECRET not in log, "the log has nothing of a URL", [line for line in log.splitlines() if SECRET in line][:3])
            expect("signature=" not in log, "nor a link", [line for line in log.splitlines() if "signature=" in line][:3])
        say(asked=sum(media.asked.values()), memory=memory, audit=await audit(arguments))
    told.reading.cancel()
    media.close()


async def nobody_else(media, publisher, told, device, log):
    """Whom the rules do not admit is not asked, whether a notification names them or a redirect."""
    urls = [url for do in media.places for url in (media.places[do] + SECRET, media.url(do))]
    names = [publish(publisher, "device:" + device.token, photo=url) for url in urls]
    await publisher.flush()
    await until(lambda: set(names) <= device.shown, "all are shown", lambda: len(device.shown))
    for name, state in (await told.of(names)).items():
        expect(state == ["failed"] and attachments(device, name) == [], "without what they name", [state, urls[names.index(name)]])
    expect(media.untouched(), "and nobody has connected to them")
    for reason in ("hostRefused", "schemeRefused", "addressRefused"):
        await log.says(1, "a service extension has failed", reason)
    text = log.text()
    expect("169.254" not in text and media.places["to-a-name"] not in text, "the log does not say whom they name: that may have been encrypted")


async def whatever_comes(media, publisher, told, device, quick):
    """Good and bad media for one device, and what has none for another."""
    wanted, began = {}, time.monotonic()
    for do in (*GOOD, *BAD):
        for target in ("device:" + device.token, "user:ada")[:1 if do in HANGING else 2]:
            wanted[publish(publisher, target, photo=media.url(do))] = do
    for place in ("http://ada@" + media.url("never")[7:], "ftp" + media.url("never")[4:], "/%s.png" % SECRET, "", 7, {"url": 1}):
        wanted[publish(publisher, "device:" + device.token, photo=place)] = "no URL"
    both = publish(publisher, "device:" + device.token, photo=media.url("misnamed"), sound=media.url("slow"))
    half = publish(publisher, "device:" + device.token, photo=media.url("missing"), sound=media.url("slow"))
    none = publish(publisher, "device:" + device.token)
    behind = [publisher.payload("device:" + quick.token, {"aps": {"alert": "plain"}, "custom": {"photo": media.url("never")}}) for _ in range(20)]
    behind += [publish(publisher, "device:" + quick.token, photo=media.url("small")) for _ in range(20)]
    await publisher.flush()
    await until(lambda: set(behind) <= quick.shown, "another target's are shown", lambda: len(quick.shown))
    hanging = {name for name, do in wanted.items() if do in HANGING}
    # Later its time may be up.
    if time.monotonic() - began < 13:
        expect(not device.shown & hanging, "before what the server does not answer")
    every = {*wanted, both, half, none}
    await until(lambda: every <= device.shown, "all are shown", lambda: [wanted.get(name) for name in every - device.shown])
    seen = await told.of([*every, *behind])
    for name, do in wanted.items():
        came = attachments(device, name)
        expect(seen[name] == ["modified" if do in GOOD else "failed"], "an event tells what became of it", [do, seen[name]])
        expect(len(came) == (do in GOOD), "it is shown with the file, or without", [do, came])
        if do in GOOD:
            await holds(came[0], *GOOD[do])
    expect(seen[both] == ["modified"] and seen[half] == ["best-attempt"] and seen[none] == ["unchanged"], "several are told of together", seen[half])
    photo, sound = attachments(device, both)
    await holds(photo, *GOOD["misnamed"])
    await holds(sound, *GOOD["slow"], identifier="sound")
    expect([each["identifier"] for each in attachments(device, half)] == ["sound"], "what has come is shown", attachments(device, half))
    await holds(attachments(device, half)[0], *GOOD["slow"], identifier="sound")
    expect(attachments(device, none) == [], "what names no media comes without", attachments(device, none))
    for number, name in enumerate(behind):
        expect(seen[name] == (["modified"] if number >= 20 else []), "what is not mutable passes none", seen[name])
        expect(len(attachments(quick, name)) == (number >= 20), "and has none", attachments(quick, name))
    expect(media.asked["never"] == 0, "and is not fetched")
    # Once for both, or once for each.
    expect(media.asked["loop"] in (4, 8), "three redirects are followed, and no more", media.asked["loop"])
    await asyncio.sleep(1)
    for each in (device, quick):
        shown = [frame["id"] for frame in each.of("notify")]
        expect(len(shown) == len(set(shown)), "each is shown once", len(shown))


async def too_late(media, publisher, told, device):
    """Where the time of all ends first, what has come by then is shown."""
    never = publish(publisher, "device:" + device.token, HASTY, photo=media.url("hang", "late"))
    late = publish(publisher, "device:" + device.token, HASTY, photo=media.url("small", "late"), sound=media.url("hang", "later"))
    await publisher.flush()
    await until(lambda: {never, late} <= device.shown, "what is not there in time is not waited for")
    seen = await told.of([never, late])
    expect(seen == {never: ["timed-out"], late: ["best-attempt"]}, "events tell so", seen)
    expect(attachments(device, never) == [], "what is not there in time is not shown", attachments(device, never))
    came = attachments(device, late)
    expect(len(came) == 1, "what is there in time is", came)
    await holds(came[0], *GOOD["small"])


async def links(media, publisher, device, other):
    """A link is good for one file and one device, and is served as files are."""
    name = publish(publisher, "user:ada", photo=media.url("small"))
    others = publish(publisher, "user:grace", photo=media.url("small"))
    await publisher.flush()
    await until(lambda: name in device.shown and others in other.shown, "both have it")
    attachment, = attachments(device, name)
    link, digest, tag = attachment["url"], attachment["hash"], '"%s"' % attachment["hash"]
    others_link = attachments(other, others)[0]["url"]
    expect(re.fullmatch(r"http://127\.0\.0\.1:[0-9]+/.*", link), "the link says where the media port is", link)

    status, fields, body = await served(link, "HEAD")
    expect(status == 200 and body == b"", "HEAD has no body", [status, len(body)])
    expect((fields["etag"], fields["content-length"]) == (tag, str(len(PNG))), "but all fields", fields)
    for span, start, end in (("0-9", 0, 10), ("2990-", 2_990, len(PNG)), ("100-9999999", 100, len(PNG))):
        status, fields, body = await served(link, range="bytes=" + span)
        expect((status, body) == (206, PNG[start:end]), "a part is served", [span, status, len(body)])
        expect(fields["content-range"] == "bytes %d-%d/%d" % (start, end - 1, len(PNG)), "and says which it is", fields)
    status, fields, _ = await served(link, range="bytes=%d-" % len(PNG))
    expect((status, fields.get("content-range")) == (416, "bytes */%d" % len(PNG)), "a part that there is not is refused", [status, fields])
    for tags in (tag, '"other", ' + tag):
        status, fields, body = await served(link, if_none_match=tags)
        expect((status, body, fields["etag"]) == (304, b"", tag), "what the device has is not sent again", [tags, status])
    expect((await served(link, if_none_match='"other"'))[0] == 200, "but what it does not have")
    status, fields, _ = await served(link, "POST")
    expect(status == 405, "nothing can be posted", status)

    parts = urllib.parse.parse_qs(urllib.parse.urlsplit(link).query)
    others_parts = urllib.parse.parse_qs(urllib.parse.urlsplit(others_link).query)
    expect(set(parts) == {"device", "expires", "signature"}, "a link has these parts", parts)
    expect(parts["device"] != others_parts["device"], "each device has links of its own", [link, others_link])
    signature, expires = parts["signature"][0], parts["expires"][0]
    wrong = [
        link.replace(digest, hashlib.sha256(WAV).hexdigest()), link.replace(digest, "0" * 64), link.partition("?")[0],
        link.replace(parts["device"][0], others_parts["device"][0]), link.replace(expires, str(int(expires) + 1)),
        link.replace(signature, others_parts["signature"][0]), link.replace(signature, ("B" if signature[0] == "A" else "A") + signature[1:]),
        link.replace(signature, signature[:-4]), link.replace("signature=" + signature, "signature=")]
    for each in wrong:
        expect(each != link and (await served(each))[0] == 403, "another link is refused", [link, each])

    # Later, so that the link is another one.
    await asyncio.sleep(1.1)
    again = await new_link(device, digest)
    expect(again != link, "a device is given another link when it asks", again)
    for each in (link, again, others_link):
        expect((await served(each))[2] == PNG, "all of them are good")
    status, _, _ = await served(await new_link(device, "0" * 64))
    expect(status == 404, "what was never stored is not there", status)


async def once(media, publisher, told, devices):
    """What many notifications name at the same time is fetched once."""
    names = [publish(publisher, "device:" + devices[number % 2].token, photo=media.url("shared")) for number in range(100)]
    await publisher.flush()
    await until(lambda: set(names) <= devices[0].shown | devices[1].shown, "all are shown")
    expect(media.asked["shared"] == 1, "what they name was fetched once", media.asked["shared"])
    for number, name in enumerate(names):
        expect([each["hash"] for each in attachments(devices[number % 2], name)] == [hashlib.sha256(PNG).hexdigest()], "each has it", name)
    seen = await told.of(names)
    expect(set(map(tuple, seen.values())) == {("modified",)}, "events tell so", seen)


async def endless(media, publisher, told, worker, device):
    """Bodies without an end are not taken into memory, nor read or waited for any longer than need be."""
    before, peak, count = resident(worker), 0.0, {"endless": 12, "endless-film": 3}
    urls = [media.url(do, each) for do in count for each in range(1, count[do] + 1)]
    names = {publish(publisher, "device:" + device.token, PATIENT, photo=url) for url in urls}
    await publisher.flush()
    deadline = time.monotonic() + 120
    while not names <= device.shown:
        peak = max(peak, resident(worker))
        expect(time.monotonic() < deadline, "all are shown", len(names - device.shown))
        await asyncio.sleep(0.01)
    expect(peak - before < 100, "a worker's memory stays what it was", [before, peak])
    for do, most in (("endless", 10 * MIB), ("endless-film", 50 * MIB)):
        for each in range(1, count[do] + 1):
            # The system takes some on its own account.
            sent = media.sent[media.path(do, each)]
            expect(most < sent < most + 16 * MIB, "no more is read than a file may have", [do, each, sent])
    seen = collections.Counter(state for states in (await told.of(names)).values() for state in states)
    expect(seen == {"failed": len(names)}, "what is too large is not waited for", seen)
    return {"before": round(before), "peak": round(peak), "sent": round(sum(media.sent.values()) / MIB)}


async def kept(arguments, folder):
    media, publisher, told = Media(), Publisher(arguments), Told(arguments)
    file, media_folder = configure(folder, media, budget=30_000, timeout=30_000)
    flags = ["--media", media_folder, "--session-timeout", "2s", "--mailbox-bound", "10000"]
    count, rounds, left, digest = 60, 2, set(), hashlib.sha256(PNG).hexdigest()
    async with on_one_redis(arguments, folder) as (redis, cluster):
        worker = await start(cluster, file, *flags)
        serving = ["--listen", "127.0.0.1:0", "--media", media_folder, "--media-listen", "127.0.0.1:0"]
        fan_out = await cluster.started("fan-out", *serving)
        url = fan_out.addresses["devices"]
        devices = [RememberingDevice(url, None, user="ada" if each < 2 else "person%d" % each) for each in range(6)]
        for device in devices:
            await device.__aenter__()
        wanted = {device.token: {} for device in devices}

        def to(receivers, do, number):
            target = "user:ada" if len(receivers) > 1 else "device:" + receivers[0].token
            name = publish(publisher, target, photo=media.url(do, number))
            for device in receivers:
                wanted[device.token][name] = do

        for number in range(1, rounds + 1):
            media.release.clear()
            asked = media.asked["held"]
            # Nothing of a target is shown before its first one has come: all are read again.
            for each, receivers in enumerate([devices[:2], *([device] for device in devices)]):
                to(receivers, "held", "%d/%d" % (number, each))
            for each in range(count):
                to(devices[:2] if each % 5 == 0 else [devices[each % len(devices)]], ("small", "slow", "misnamed")[each % 3], number)
            await publisher.flush()
            await until(
                lambda: media.asked["held"] >= asked + 7 and len(coming(media_folder) - left) >= 7, "files are on their way",
                lambda: [media.asked, len(coming(media_folder))])
            worker.send_signal(signal.SIGKILL)
            await asyncio.to_thread(worker.wait)
            left |= coming(media_folder)
            media.release.set()
            worker = await start(cluster, file, *flags)
            await until(
                lambda: all(set(wanted[device.token]) <= device.shown for device in devices), "nothing is lost",
                lambda: {device.token[:4]: len(set(wanted[device.token]) - device.shown) for device in devices})
            await until(lambda: committed(arguments) == number * (count + 7), "the group has committed", lambda: committed(arguments))
        await asyncio.sleep(1)
        expect(coming(media_folder) <= left, "none but a worker that is killed leaves half of a file", [coming(media_folder), left])
        again, seen = 0, await told.of({name for names in wanted.values() for name in names})
        files = stored(media_folder)
        for device in devices:
            expect(device.shown == set(wanted[device.token]), "nothing is shown that is not meant", len(device.shown - set(wanted[device.token])))
            hashes = {}
            for frame in device.of("notify"):
                name, came = frame["id"], frame.get("attachments", [])
                expect(seen[name] == ["modified"] and len(came) == 1, "all are shown with what they name", [frame, seen[name]])
                again += name in hashes
                expect(hashes.setdefault(name, came[0]["hash"]) == came[0]["hash"], "what comes again is the same", frame)
                await holds(came[0], *GOOD.get(wanted[device.token][name], GOOD["small"]))
                until_then = files[came[0]["hash"]][1]
                expect(until_then >= frame["expiration"] + DAY, "which is kept for a day beyond it", [until_then, frame["expiration"]])
        for device in devices[1:]:
            await device.__aexit__()
        device = devices[0]
        await unserved(arguments, cluster, publisher, media, device)
        await gone(cluster, file, flags, publisher, media, media_folder, worker, device)
        await device.__aexit__()
        say(again=again, left=len(left), audit=await audit(arguments))
    told.reading.cancel()
    media.close()


async def shows(publisher, device, url, expiration=None):
    """Publishes a notification with this file, and gives what the device is shown with it."""
    name = publish(publisher, "device:" + device.token, expiration=expiration, photo=url)
    await publisher.flush()
    await until(lambda: name in device.shown, "it is shown")
    return attachments(device, name)


async def unserved(arguments, cluster, publisher, media, device):
    """A worker that serves no media tells what there is, and where it is not."""
    fan_out = await cluster.started("fan-out", "--listen", "127.0.0.1:0")
    async with RememberingDevice(fan_out.addresses["devices"], None, user="grace") as other:
        attachment, = await shows(publisher, other, media.url("small"))
        expected = {"identifier": "photo", "hash": hashlib.sha256(PNG).hexdigest(), "type": "image/png", "size": len(PNG), "options": OPTIONS}
        expect(attachment == expected, "a worker that serves no media gives no link", attachment)
        await other.send({"type": "link", "hash": attachment["hash"], "request": "x"})
        refused = await other.frame("refused", request="x")
        expect(refused["reason"] == "UnknownMedia", "nor when it is asked", refused)
        expect(not other.of("linked") and other.closed is None, "and goes on", other.closed)
    expect((await served(await new_link(device, attachment["hash"])))[2] == PNG, "another worker does")


async def gone(cluster, file, flags, publisher, media, media_folder, worker, device):
    """A file that is named again is kept for longer, and one that somebody has removed is fetched again."""
    url, digest = media.url("own"), hashlib.sha256(GOOD["own"][0]).hexdigest()
    for days in (1, 5, 2):
        expiration = int(time.time()) + days * DAY
        attachment, = await shows(publisher, device, url, expiration)
        path, until_then = stored(media_folder)[digest]
        longest = expiration if days == 1 else max(longest, expiration)
        expect(longest + DAY <= until_then <= longest + DAY + 3_600, "it is kept as long as one that names it", [until_then, longest])
    expect(media.asked["own"] == 1, "and was fetched once", media.asked["own"])
    # The same worker, which has fetched it a moment ago, and one that knows nothing of it.
    for asked in (2, 3):
        os.remove(path)
        expect((await served(attachment["url"]))[0] == 404, "what is gone is not there")
        if asked == 3:
            worker.send_signal(signal.SIGTERM)
            await asyncio.to_thread(worker.wait)
            await start(cluster, file, *flags)
        attachment, = await shows(publisher, device, url, expiration)
        await holds(attachment, *GOOD["own"])
        expect(media.asked["own"] >= asked, "it is fetched again", media.asked["own"])


PARTS = {part.__name__: part for part in (attached, kept)}


if __name__ == "__main__":
    run_part(__doc__, PARTS, "carillon-media-")
