"""A cluster in containers, by docker-compose.yml alone, while it is scaled, killed, stopped and its servers are restarted.

The image is the runtime stage of Deploy/Dockerfile around a program that was built before. Producers, a backend that publishes by HTTP, and devices know
only the contract: what is published while the cluster changes reaches each device, once in a connection, and no older state after a newer one.
"""
import argparse
import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.request
import uuid

import requests
import websockets

from clients import APPLICATION, HANG, Device, Failed, Producer, expect, quietly, say, until

ENTRY, MEDIA, KAFKA = "ws://127.0.0.1:7171/v1/device", "http://127.0.0.1:7181/v1/media/none", "127.0.0.1:29092"
INGRESS = "http://127.0.0.1:7174/v1/requests"
TOPIC = "notifications.requests"
# Devices of as many people.
DEVICES = 12
# `--remembered-ids`: of so many of a device's latest requests Redis knows that they were published before.
REMEMBERED = 32
# What the image may have besides the program: Debian and its libraries. The Dockerfile bounds the program, and both together stay below 170 MB.
LARGEST_BASE = 98_000_000


async def docker(*line, check=True, timeout=2 * HANG):
    """Runs `docker`, and gives what it has written to standard output."""
    try:
        done = await quietly(subprocess.run, ["docker", *line], capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        raise Failed("docker %s did not end in %d s" % (" ".join(line), timeout)) from None
    expect(not check or done.returncode == 0, "docker %s" % " ".join(line), (done.stdout + done.stderr).splitlines()[-4:])
    return done.stdout


class Compose:
    """`docker compose` for one project, which no other one is confused with."""

    def __init__(self, root):
        self.root, self.project = root, "carillon-test-%s" % uuid.uuid4().hex[:8]

    async def do(self, *line, **more):
        file = os.path.join(self.root, "docker-compose.yml")
        return await docker("compose", "--project-name", self.project, "--file", file, *line, **more)

    async def containers(self, service):
        return (await self.do("ps", "--quiet", service)).split()

    async def report(self):
        """Prints how each container is, the unhealthy ones first, and the last lines that it has logged."""
        names = (await self.do("ps", "--all", "--format", "{{.Name}}", check=False)).split()
        found = json.loads(await docker("inspect", *names, check=False) or "[]") if names else []
        for each in sorted(found, key=lambda each: each["State"].get("Health", {}).get("Status", "-") in ("healthy", "-")):
            state, health = each["State"], each["State"].get("Health", {})
            more = {name: state[name] for name in ("ExitCode", "OOMKilled", "StartedAt")}
            # Each check with what it has seen: a worker says what it waits for.
            checks = ["%s %s" % (check["ExitCode"], check["Output"][-200:].strip()) for check in health.get("Log") or []]
            say(container=each["Name"], state=state["Status"], health=health.get("Status"), restarts=each["RestartCount"], **more, checks=checks[-2:])
        for service in ("topics", "transform", "fan-out", "ingress", "entry", "redis", "kafka"):
            logged = await self.do("logs", "--no-color", "--tail", "12", service, check=False)
            print("\n".join(line[:300] for line in logged.splitlines()), flush=True)

    async def timed(self, *line):
        began = time.monotonic()
        await self.do(*line)
        return round(time.monotonic() - began, 1)

    async def scale(self, **workers):
        scales = [word for role, count in workers.items() for word in ("--scale", "%s=%d" % (role.replace("_", "-"), count))]
        return await self.timed("up", "--detach", "--no-build", "--no-recreate", "--wait", *scales)


class Person:
    """A person with one device, which reconnects to the one address whenever its connection ends."""

    def __init__(self, number, credential, token):
        self.hello = {"user": "person-%d" % number, "credential": credential, "device": token}
        self.target = "user:person-%d" % number
        # Every connection that was welcomed, with what it was sent.
        self.connections = []

    async def run(self):
        while True:
            goaways = []
            try:
                async with Device(ENTRY, None, **self.hello) as connection:
                    self.connections.append(connection)
                    await connection.task
                    goaways = connection.of("goaway")
            except (OSError, websockets.exceptions.WebSocketException, asyncio.TimeoutError, Failed):
                pass
            await asyncio.sleep(goaways[-1]["reconnectAfterMs"] / 1000 if goaways else 0.3)

    def of(self, kind):
        return [frame for connection in self.connections for frame in connection.of(kind)]

    @property
    def repeated(self):
        """What a connection was sent twice though Redis remembers it, since fewer than REMEMBERED others came in between.

        What one connection was sent comes once more to the next, where its acknowledgement was lost. A device that has ids knows all of these."""
        count = 0
        for connection in self.connections:
            last = {}
            for place, frame in enumerate(connection.of("notify")):
                count += place - last.get(frame["id"], -REMEMBERED - 1) <= REMEMBERED
                last[frame["id"]] = place
        return count

    @property
    def again(self):
        """What a connection was sent twice: workers lost their partitions while many of the device's requests were on their way."""
        return sum(len(sent) - len({frame["id"] for frame in sent}) for sent in (connection.of("notify") for connection in self.connections))

    @property
    def shown(self):
        """The (id, identifier, body) that it shows: as every device does, nothing that is not newer than what it knows of the identifier."""
        revisions, shown = {}, []
        for frame in self.of("notify"):
            if frame["revision"] > revisions.get(frame["identifier"], ""):
                revisions[frame["identifier"]] = frame["revision"]
                shown.append((frame["id"], frame["identifier"], frame["payload"]["custom"]["body"]))
        return shown


class Backend:
    """Publishes by HTTP, and sends a request again with the same id until it is accepted."""

    def __init__(self, token):
        self.session, self.tries, self.accepted, self.ended = requests.Session(), 0, 0, threading.Event()
        self.session.headers["Authorization"] = "Bearer " + token

    def publish(self, person, number):
        name = str(uuid.uuid4())
        request = {"id": name, "target": person.target, "app": APPLICATION, "title": "Order", "custom": {"custom": {"body": str(number)}}}
        while not self.ended.is_set():
            self.tries += 1
            try:
                status = self.session.post(INGRESS, json=request, timeout=5).status_code
            except requests.exceptions.RequestException:
                status = None
            if status == 202:
                self.accepted += 1
                return name
            expect(status in (None, 408, 502, 503, 504), "a request by HTTP is accepted, or may be sent again", status)
            self.ended.wait(0.2)


class Traffic:
    """Publishes for each person without a pause: notifications that each are shown, and one whose newest state alone counts."""

    def __init__(self, people, backend):
        self.people, self.backend, self.sent, self.number = people, backend, {person: [] for person in people}, 0
        self.producer = Producer(KAFKA, TOPIC, linger=20)
        self.tasks = [asyncio.create_task(self.run()), asyncio.create_task(self.run_backend())]

    async def end(self):
        """Nothing more is published; what has ended before has failed."""
        direct, backend = self.tasks
        self.backend.ended.set()
        await backend
        expect(not direct.done(), "the producer publishes until the end", direct)
        direct.cancel()

    async def run(self):
        while True:
            self.number += 1
            for person in self.people:
                self.sent[person].append(await self.producer.notify(person.target, str(self.number)))
                await self.producer.notify(person.target, str(self.number), apns_collapse_id="state")
            await asyncio.sleep(0.1)

    async def run_backend(self):
        """The same by HTTP, for one person after the other, one request at a time."""
        while not self.backend.ended.is_set():
            for person in self.people:
                if name := await quietly(self.backend.publish, person, self.number):
                    self.sent[person].append(name)

    def verdict(self):
        """What was lost, repeated and outdated."""
        lost, repeated, outdated = 0, sum(person.repeated for person in self.people), 0
        for person in self.people:
            shown = person.shown
            lost += len(set(self.sent[person]) - {name for name, _, _ in shown})
            states = [int(body) for _, identifier, body in shown if identifier == "state"]
            outdated += sum(later < earlier for earlier, later in zip(states, states[1:]))
        return {"lost": lost, "repeated": repeated, "outdated": outdated}

    def has_arrived(self):
        def has_all(person):
            shown = person.shown
            return set(self.sent[person]) <= {name for name, _, _ in shown} and ("state", str(self.number)) in {each[1:] for each in shown}

        return all(map(has_all, self.people))

    async def flows(self):
        """Waits until each person is shown what is published from now on, and the backend has had an answer for each."""
        now, accepted = self.number, self.backend.accepted
        await until(lambda: all(int(person.shown[-1][2]) > now for person in self.people), "what is published now arrives", self.verdict)
        await until(lambda: self.backend.accepted >= accepted + len(self.people), "the ingress accepts requests", lambda: self.backend.tries)


async def image(root, program, scratch):
    """Builds the runtime stage of the Dockerfile around a program, with the libraries of its toolchain; gives both sizes in bytes."""
    with open(os.path.join(root, "Deploy/Dockerfile")) as file:
        runtime = file.read().partition("AS runtime\n")[2]
    context = os.path.join(scratch, "image")
    os.mkdir(context)
    shutil.copy(program, os.path.join(context, "carillon"))
    subprocess.run(["strip", os.path.join(context, "carillon")], check=True)
    linked = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    libraries = sorted(set(re.findall(r"=> (/\S+/swift/linux/\S+)", linked)))
    folder = os.path.dirname(libraries[0]) if libraries else "/none"
    os.mkdir(os.path.join(context, "libraries"))
    for library in libraries:
        shutil.copy(library, os.path.join(context, "libraries"))
    stage = runtime.replace("COPY --from=build /out/carillon", "COPY libraries %s\nCOPY carillon" % folder)
    with open(os.path.join(context, "Dockerfile"), "w") as file:
        file.write("FROM debian:bookworm-slim\n" + stage)
    await docker("build", "--quiet", "--tag", "carillon", context, timeout=4 * HANG)
    size = int(await docker("image", "inspect", "--format", "{{.Size}}", "carillon"))
    program_size = os.path.getsize(os.path.join(context, "carillon"))
    base = size - program_size - sum(map(os.path.getsize, libraries))
    expect(base < LARGEST_BASE, "the image has little besides the program", base)
    return size, program_size, base


async def memory(containers):
    """The mean memory of containers in MiB, by their cgroups."""
    said = await docker("stats", "--no-stream", "--format", "{{.MemUsage}}", *containers)
    units = {"KiB": 1 / 1024, "MiB": 1, "GiB": 1024}
    sizes = [float(number) * units[unit] for number, unit in re.findall(r"^([\d.]+)(KiB|MiB|GiB)", said, re.M)]
    return round(sum(sizes) / len(sizes), 1)


def serves_media():
    """Whether a worker answers for media: it knows no such link, while a proxy that finds no worker answers 503."""
    try:
        urllib.request.urlopen(MEDIA, timeout=HANG).close()
    except urllib.error.HTTPError as error:
        return error.code == 404
    except OSError:
        return False


async def people(compose):
    made = []
    for number in range(DEVICES):
        token = uuid.uuid4().hex * 2
        line = ["carillon", "token", "--token", token, "--app", APPLICATION, "--user", "person-%d" % number, "--key", "/var/lib/carillon/key"]
        credential = (await compose.do("exec", "-T", "fan-out", *line)).strip()
        made.append(Person(number, credential, token))
    return made


async def changes(compose, traffic):
    """Everything that an operator, or a machine, does to a cluster; each with its seconds."""
    took = {}
    took["scale up"] = await compose.scale(fan_out=5, transform=5, ingress=3)
    say(step="scaled up", seconds=took["scale up"])
    for role in ("fan-out", "transform", "ingress"):
        # Docker starts it again, as it does not after a `docker kill`.
        os.kill(int(await docker("inspect", "--format", "{{.State.Pid}}", (await compose.containers(role))[0])), signal.SIGKILL)
    say(step="killed a worker of each role")
    await traffic.flows()
    for role in ("fan-out", "ingress"):
        began, stopped = time.monotonic(), (await compose.containers(role))[1]
        await docker("stop", "--time", "30", stopped)
        took["drain " + role] = round(time.monotonic() - began, 1)
    say(step="drained a worker of both", **took)
    await compose.do("restart", "redis")
    await traffic.flows()
    await compose.do("restart", "kafka", timeout=3 * HANG)
    say(step="restarted Redis and Kafka")
    await traffic.flows()
    took["scale down"] = await compose.scale(fan_out=1, transform=1, ingress=1)
    say(step="scaled down", seconds=took["scale down"])
    # The only worker that is left may have the highest number: the addresses of devices and of media are the same.
    await traffic.flows()
    await until(lambda: quietly(serves_media), "the worker that is left answers for media")
    return took


async def run(arguments, scratch):
    compose = Compose(arguments.root)
    sizes = await image(arguments.root, arguments.binary, scratch)
    say(image=sizes[0], program=sizes[1], base=sizes[2])
    tasks, backend = [], None
    try:
        await compose.do("build", "entry", timeout=4 * HANG)
        up = await compose.timed("up", "--detach", "--no-build", "--wait")
        idle = {role: await memory(await compose.containers(role)) for role in ("transform", "fan-out", "ingress")}
        say(step="up", seconds=up, idle=idle)
        crowd = await people(compose)
        tasks = [asyncio.create_task(person.run()) for person in crowd]
        await until(lambda: all(person.connections for person in crowd), "every device is welcomed")
        line = ["carillon", "token", "publisher", "--apps", APPLICATION, "--key", "/var/lib/carillon/publishers"]
        backend = Backend((await compose.do("exec", "-T", "ingress", *line)).strip())
        traffic = Traffic(crowd, backend)
        await until(lambda: all(person.shown for person in crowd), "the first notifications arrive")
        took = await changes(compose, traffic)
        await traffic.end()
        await traffic.producer.flush()
        await until(traffic.has_arrived, "all that was published arrives", traffic.verdict)
        verdict = traffic.verdict()
        expect(not any(verdict.values()), "nothing is lost, repeated or outdated", verdict)
        counts = {kind: sum(len(person.of(kind)) for person in crowd) for kind in ("welcome", "goaway")}
        again = sum(person.again for person in crowd)
        http = {"http": backend.accepted, "http_tries": backend.tries}
        say(result="held", published=sum(map(len, traffic.sent.values())) + traffic.number * DEVICES, again=again, **http, **counts, **took)
    except Exception as error:
        say(result="broken", promise=str(error) if isinstance(error, Failed) else repr(error))
        await compose.report()
        raise SystemExit(1) from error
    finally:
        for task in tasks:
            task.cancel()
        if backend:
            backend.ended.set()
        await compose.do("down", "--volumes", "--timeout", "5", check=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", required=True, help="the repository")
    parser.add_argument("--binary", required=True, help="the program for the image")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        asyncio.run(run(arguments, scratch))


if __name__ == "__main__":
    main()
