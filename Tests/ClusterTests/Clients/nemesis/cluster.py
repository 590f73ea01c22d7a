"""The real processes of a run: Kafka from its folder, Redis, workers that are started again when they end, the proxy, the devices.

Everything is ended by its own process id; what a killed harness would leave behind is ended by a watchdog.
"""
import asyncio
import contextlib
import collections
import json
import os
import shutil
import signal
import sys
import time
import urllib.error
import urllib.request

import confluent_kafka.admin
from machine import certificate_flags, free_port, has_stopped, kafka_script

HERE = os.path.dirname(os.path.abspath(__file__))
# A worker that crashes says where.
TRACED = {"SWIFT_BACKTRACE": os.environ.get("SWIFT_BACKTRACE", "enable=yes,color=no,interactive=no,timeout=20s")}
DEATH = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []


class Broken(Exception):
    """The surroundings of the test do not work."""


class Child:
    """A process: its output goes to a log; the JSON lines on its standard output are kept too when somebody wants them."""

    def __init__(self, name, folder):
        self.name, self.path = name, os.path.join(folder, name + ".log")
        self.child, self.on_line, self.first, self.log = None, None, None, None

    async def start(self, *words, environment=None):
        self.first = asyncio.get_running_loop().create_future()
        if self.log:
            self.log.close()
        self.log = open(self.path, "ab", buffering=0)
        self.silent_size = os.path.getsize(self.path)
        self.child = await asyncio.create_subprocess_exec(
            *DEATH, *words, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=self.log,
            env={**os.environ, **(environment or {})}, limit=1 << 24)
        self.reading = asyncio.create_task(self.read(self.child.stdout, self.first))
        return self

    async def read(self, stdout, first):
        while line := await stdout.readline():
            self.log.write(line)
            if line.startswith(b"{"):
                value = json.loads(line)
                if not first.done():
                    first.set_result(value)
                if self.on_line:
                    self.on_line(value)
        if not first.done():
            first.set_exception(Broken("%s ended before it said anything; see %s" % (self.name, self.path)))
            first.exception()

    @property
    def is_silent(self):
        """Whether it has said nothing since its start."""
        return os.path.getsize(self.path) == self.silent_size

    @property
    def runs(self):
        return self.child is not None and self.child.returncode is None

    def send(self, number):
        # Not `send_signal`, which would reap a child that has just ended, and take its exit code from whoever waits for it.
        if self.runs:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.child.pid, number)

    async def stand_still(self):
        self.send(signal.SIGSTOP)
        end = time.monotonic() + 30
        while self.runs and not has_stopped(self.child.pid):
            if time.monotonic() > end:
                raise Broken("%s does not stand still" % self.name)
            await asyncio.sleep(0.02)

    async def end(self, number=signal.SIGKILL, seconds=10):
        if not self.runs:
            return
        self.send(number)
        try:
            await asyncio.wait_for(self.child.wait(), seconds)
        except asyncio.TimeoutError:
            self.send(signal.SIGKILL)
            await self.child.wait()

    def tail(self, lines=60):
        with open(self.path, "rb") as file:
            file.seek(max(0, os.path.getsize(self.path) - 40_000))
            return [line.decode("utf-8", "replace") for line in file.read().splitlines()[-lines:]]


class Worker(Child):
    """A worker that a supervisor starts again whenever it has ended."""

    def __init__(self, cluster, role, number):
        super().__init__("%s-%d" % (role, number), cluster.folder)
        self.cluster, self.role, self.number = cluster, role, number
        self.is_wanted, self.is_expected, self.starts, self.admin, self.ends = True, [], 0, None, []
        self.freezing = asyncio.Lock()
        self.supervisor = asyncio.create_task(self.supervise())

    async def supervise(self):
        while self.is_wanted:
            self.starts += 1
            self.is_expected, self.admin = [], None
            await self.start(*self.cluster.words(self.role, self.number, self.starts), environment=TRACED)
            asyncio.create_task(self.become_ready(self.first))
            code = await self.child.wait()
            expected = self.is_expected
            if not self.is_wanted:
                return
            if code not in expected:
                # 3: a dependency did not come in time; anything else nobody has asked for.
                self.ends.append(code)
                self.cluster.say(worker=self.name, ended=code, wanted=expected)
                if code != 3:
                    self.cluster.crashes.append({"worker": self.name, "code": code, "log": self.tail()})
            await asyncio.sleep(0.3)

    async def become_ready(self, first):
        try:
            line = await first
        except Broken:
            return
        self.admin = line["admin"]
        if self.role == "fan-out":
            await self.cluster.proxy.do(upstream=self.name, port=int(line["devices"].split(":")[2].split("/")[0]))

    def expect(self, number):
        """A signal is about to be sent; one that is told to end a second time does so at once."""
        if number == signal.SIGTERM:
            self.is_expected.append(128 + number if 0 in self.is_expected else 0)
            # One that has not come as far as to say anything does not catch it yet.
            if self.is_silent:
                self.is_expected.append(-number)
        else:
            self.is_expected.append(-number)

    def kill(self, number=signal.SIGKILL):
        """Ends it; the supervisor starts it again. One that has ended, or is not there yet, gets no signal, and owes no end."""
        if self.runs:
            self.expect(number)
            self.send(number)
            self.send(signal.SIGCONT)

    async def retire(self, number=signal.SIGTERM):
        # On a busy machine it may not even have begun.
        while self.child is None:
            await asyncio.sleep(0.05)
        self.is_wanted = False
        self.expect(number)
        await self.end(number, 90)
        code = self.child.returncode
        if code not in self.is_expected:
            self.cluster.crashes.append({"worker": self.name, "code": code, "log": self.tail()})
        self.supervisor.cancel()

    @property
    def ready(self):
        """What /readyz says; None without an answer."""
        try:
            with urllib.request.urlopen(self.admin + "/readyz", timeout=2) as answer:
                return answer.status == 200
        except urllib.error.HTTPError:
            return False
        except (OSError, TypeError):
            return None


class Kafka:
    """Brokers of this run's own."""

    def __init__(self, script, folder, brokers):
        self.script, self.folder, self.brokers = script, os.path.join(folder, "kafka"), brokers
        self.lock, self.servers = asyncio.Lock(), None

    async def do(self, verb, *arguments, check=True):
        child = await asyncio.create_subprocess_exec(
            self.script, verb, self.folder, *arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            stdin=asyncio.subprocess.DEVNULL)
        out, errors = await child.communicate()
        if check and child.returncode:
            raise Broken("kafka %s %s: %s" % (verb, " ".join(arguments), errors.decode("utf-8", "replace")[-600:]))
        return out.decode().strip()

    async def start(self):
        # The watchdog ends the brokers when this process has gone without doing so.
        watch = 'read -r _; [ -e "$2" ] || exit 0; "$1" thaw "$2"; "$1" kill "$2"'
        self.watchdog = await asyncio.create_subprocess_exec(
            "setsid", "bash", "-c", watch, "watchdog", self.script, self.folder, stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL)
        for attempt in range(3):
            try:
                self.servers = await self.do(
                    "start", "--brokers", str(self.brokers), "--config", "group.min.session.timeout.ms=1000")
                return
            except Broken:
                # Somebody else has taken a port meanwhile.
                await self.end()
                if attempt == 2:
                    raise
                shutil.rmtree(self.folder, ignore_errors=True)

    def admin(self):
        return confluent_kafka.admin.AdminClient({"bootstrap.servers": self.servers, "logger": None, "log_level": 0})

    async def ask(self, question, done=None):
        """What the question answers of an administration client; asked again for a minute, for a broker may just have gone or come back.
        An error of this code means that it is done."""
        end = time.monotonic() + 60
        while True:
            # Its answers come as long as it lives.
            admin = self.admin()
            try:
                return await asyncio.get_running_loop().run_in_executor(None, question, admin)
            except confluent_kafka.KafkaException as error:
                if done is not None and error.args[0].code() == done:
                    return None
                if time.monotonic() > end:
                    raise
            await asyncio.sleep(0.5)

    async def configure(self, topic, name, value):
        """Changes a setting of a topic; without a value to what it is by default."""
        operation = confluent_kafka.admin.AlterConfigOpType.DELETE if value is None else confluent_kafka.admin.AlterConfigOpType.SET
        entry = confluent_kafka.admin.ConfigEntry(name, value, incremental_operation=operation)
        resource = confluent_kafka.admin.ConfigResource(confluent_kafka.admin.ResourceType.TOPIC, topic, incremental_configs=[entry])
        await self.ask(lambda admin: admin.incremental_alter_configs([resource])[resource].result(60))

    async def place(self, topic, brokers):
        """Moves all partitions of a topic to these brokers, which lead them in turn, and answers when each of them has its copies."""
        async def partitions():
            return (await self.ask(lambda admin: admin.list_topics(topic, 30))).topics[topic].partitions.values()

        moves = [
            {"topic": topic, "partition": each.id, "replicas": brokers[each.id % len(brokers):] + brokers[:each.id % len(brokers)]}
            for each in await partitions()]
        path = os.path.join(self.folder, "moves.json")
        with open(path, "w") as file:
            json.dump({"version": 1, "partitions": moves}, file)
        words = [self.script, "tool", "reassign", "--bootstrap-server", self.servers, "--reassignment-json-file", path, "--execute"]
        child = await asyncio.create_subprocess_exec(*words, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT)
        out, _ = await child.communicate()
        if child.returncode:
            raise Broken("the partitions of %s cannot be moved: %s" % (topic, out.decode("utf-8", "replace")[-600:]))
        end = time.monotonic() + 90
        while not all(set(each.replicas) == set(each.isrs) == set(brokers) and each.leader in brokers for each in await partitions()):
            if time.monotonic() > end:
                raise Broken("the partitions of %s were not moved" % topic)
            await asyncio.sleep(0.2)

    async def delete(self, topic):
        """Deletes a topic, and answers when no broker knows it any more."""
        await self.ask(
            lambda admin: admin.delete_topics([topic], operation_timeout=30)[topic].result(60), done=confluent_kafka.KafkaError.UNKNOWN_TOPIC_OR_PART)
        while topic in (await self.ask(lambda admin: admin.list_topics(None, 30))).topics:
            await asyncio.sleep(0.1)

    async def end(self):
        await self.do("thaw", check=False)
        await self.do("kill", check=False)


class Redis:
    """A Redis server with its append-only file; `number` tells servers apart."""

    def __init__(self, cluster, number):
        self.cluster, self.number = cluster, number
        self.folder = os.path.join(cluster.folder, "redis-%d" % number)
        os.makedirs(self.folder, exist_ok=True)
        self.server, self.port = Child("redis-%d" % number, cluster.folder), None

    async def start(self, *more):
        self.port = self.port or free_port()
        await self.server.start(
            "redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--dir", self.folder, "--appendonly", "yes", "--appendfsync",
            "everysec", "--maxmemory-policy", "noeviction", "--save", "", "--hash-max-listpack-value", "1024",
            "--repl-diskless-sync-delay", "0", *more)
        end = time.monotonic() + 30
        while await self.ask("PING", check=False) != "PONG":
            if time.monotonic() > end or not self.server.runs:
                raise Broken("redis-server does not answer: %s" % self.server.tail())
            await asyncio.sleep(0.05)

    async def ask(self, *words, check=True):
        child = await asyncio.create_subprocess_exec(
            "redis-cli", "-p", str(self.port), *words, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE)
        out, errors = await child.communicate()
        text = out.decode("utf-8", "replace").strip()
        if check and (child.returncode or text.startswith(("ERR", "LOADING", "READONLY"))):
            raise Broken("redis-cli %s: %s %s" % (" ".join(words), text[:300], errors.decode("utf-8", "replace")[:300]))
        return text


class Proxy(Child):
    """The proxy, and what it was told."""

    async def open(self):
        self.answers, self.asking = asyncio.Queue(), asyncio.Lock()
        self.on_line = self.answers.put_nowait
        await self.start(sys.executable, os.path.join(HERE, "proxy.py"))

    async def do(self, **command):
        async with self.asking:
            self.child.stdin.write(json.dumps(command).encode() + b"\n")
            return await asyncio.wait_for(self.answers.get(), 20)


class Cluster:
    """All of it together."""

    def __init__(self, arguments, folder, say):
        self.arguments, self.folder, self.say = arguments, folder, say
        self.prefix, self.crashes, self.workers = "nemesis.", [], collections.OrderedDict()
        # What the workers of a role are started as.
        self.programs = dict.fromkeys(("transform", "fan-out"), arguments.former or arguments.binary)
        self.kafka = Kafka(kafka_script(arguments.kafka_folder), folder, arguments.brokers)
        self.proxy = Proxy("proxy", folder)
        self.redis, self.redis_lock, self.redis_servers = None, asyncio.Lock(), 0
        self.web_port = free_port()
        # Of fan-out workers.
        self.tls = []
        self.crowd = Child("devices", folder)
        self.devices = {"connected": 0, "welcomed": 0, "outbox": 0}

    def words(self, role, number, start):
        own = ["--group", self.prefix + "transform"] if role == "transform" else [
            "--listen", "127.0.0.1:0", "--allowed-origins", "http://127.0.0.1:%d" % self.web_port, "--refresh", "5s", "--lane-silence", "4s", "--acknowledge", "20s", "--reconnect", "2s", "--ping", "5s"]
        bounds = ["--mailbox-bound", str(self.arguments.mailbox_bound)] if role == "transform" else []
        tls = self.tls if role == "fan-out" else []
        return [
            self.programs[role], role, "--json", "--kafka", self.kafka.servers, "--redis", "127.0.0.1:%d" % self.redis_port,
            "--topic-prefix", self.prefix, "--admin", "127.0.0.1:0", "--worker", "%s-%d.%d" % (role, number, start),
            *own, *bounds, *tls, *self.arguments.worker_flags]

    async def tool(self, *words, seconds=120, check=True, dies_after=None):
        """Runs a tool of the program; gives its exit code and what it wrote. `dies_after`: it is killed after so many seconds."""
        child = await asyncio.create_subprocess_exec(
            *DEATH, self.arguments.binary, *words, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            stdin=asyncio.subprocess.DEVNULL, env={**os.environ, **TRACED})
        if dies_after is not None:
            asyncio.get_running_loop().call_later(dies_after, lambda: child.returncode is None and child.kill())
        out, errors = await asyncio.wait_for(child.communicate(), seconds)
        with open(os.path.join(self.folder, "tools.log"), "a") as log:
            log.write("carillon %s: %s\n%s%s\n" % (
                " ".join(words), child.returncode, out.decode("utf-8", "replace")[-2000:], errors.decode("utf-8", "replace")))
        if check and child.returncode:
            raise Broken("carillon %s ended with %d: %s" % (" ".join(words), child.returncode, errors.decode("utf-8", "replace")[-800:]))
        return child.returncode, out.decode("utf-8", "replace"), errors.decode("utf-8", "replace")

    async def create_topics(self):
        await self.tool(
            "topics", "create", "--kafka", self.kafka.servers, "--topic-prefix", self.prefix, "--partitions", str(self.arguments.partitions))

    def new_redis(self):
        self.redis_servers += 1
        return Redis(self, self.redis_servers)

    async def lead_to(self, redis):
        """Workers reach this server from now on, after all connections have broken."""
        self.redis = redis
        await self.proxy.do(upstream="redis", port=redis.port)
        await self.proxy.do(drop="redis")

    async def start(self):
        await self.proxy.open()
        redis = self.new_redis()
        await asyncio.gather(self.kafka.start(), redis.start())
        await self.create_topics()
        self.redis_port = (await self.proxy.do(listen="redis"))["port"]
        await self.lead_to(redis)
        urls, scheme = [], "wss" if self.arguments.tls else "ws"
        if self.arguments.tls:
            self.tls, certificate = await asyncio.to_thread(certificate_flags, self.folder)
            urls = ["--ca", certificate]
        for number in range(self.arguments.fan_outs):
            port = (await self.proxy.do(listen="fan-out-%d" % number))["port"]
            urls += ["--url", "%s://127.0.0.1:%d/v1/device" % (scheme, port)]
            self.add("fan-out", number)
        for number in range(self.arguments.transforms):
            self.add("transform", number)
        await self.until(self.all_ready, 90, "all workers are ready")
        logs = os.path.join(self.folder, "devices")
        os.makedirs(logs)
        self.crowd.on_line = self.devices.update
        await self.crowd.start(
            sys.executable, os.path.join(HERE, "devices.py"), *urls, "--devices", str(self.arguments.devices), "--seed",
            str(self.arguments.seed), "--folder", logs, "--binary", self.arguments.binary, "--programs", str(self.arguments.programs),
            "--pages", str(self.arguments.pages), "--web-port", str(self.web_port))
        await self.until(lambda: self.devices["welcomed"] == self.arguments.devices, 120, "all devices were welcomed")

    def add(self, role, number):
        worker = Worker(self, role, number)
        self.workers[worker.name] = worker
        return worker

    def of(self, role):
        return [worker for worker in self.workers.values() if worker.role == role]

    async def all_ready(self):
        loop = asyncio.get_running_loop()
        return all(await asyncio.gather(*(loop.run_in_executor(None, lambda w=w: w.ready) for w in self.workers.values())))

    async def until(self, condition, seconds, what):
        end = time.monotonic() + seconds
        while True:
            found = condition()
            if asyncio.iscoroutine(found):
                found = await found
            if found:
                return
            if not self.crowd.runs and self.crowd.child:
                raise Broken("the devices have ended: %s" % self.crowd.tail())
            if time.monotonic() > end:
                states = {worker.name: (worker.starts, worker.ready, worker.ends) for worker in self.workers.values()}
                raise Broken("not within %d s: %s; workers %s, devices %s" % (seconds, what, states, self.devices))
            await asyncio.sleep(0.2)

    async def end(self):
        for worker in self.workers.values():
            worker.is_wanted = False
            await worker.end()
            worker.supervisor.cancel()
        if self.redis:
            await self.redis.server.end()
        await self.crowd.end()
        await self.proxy.end()
        await self.kafka.end()
