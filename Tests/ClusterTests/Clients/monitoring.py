"""Deploy/monitoring with a real Prometheus, which asks real workers each second.

  queries    while devices get notifications, live and out of their mailboxes: every query of the dashboard and of the alerts is one that
             Prometheus answers, those that must have data have some, `promtool` has no objection to what the workers show, each metric of
             MetricNames.swift is shown by one of them, and no alert fires. With --picture FILE each panel's series are drawn into it, for whoever
             has no Grafana at hand; that takes matplotlib
  rolling    every worker is replaced once while devices get notifications: each is seen to be away, and no alert fires. The waits of the
             rules are shortened to half a minute and more: a machine that stands still for seconds is no fault
  alerts     with the waits of the rules shortened, and with workers of low limits: what the alerts are for is done to the cluster, and each
             of them fires
"""
import asyncio
import contextlib
import json
import math
import os
import re
import resource
import signal
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid

import confluent_kafka
import confluent_kafka.admin
import websockets.exceptions
import yaml

from clients import APPLICATION, HANG, Device, Failed, Producer, expect, quietly, say, until
from healing import bodies, committed, on_one_redis, ready, run_part
from machine import certificate_flags, free_port

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
MONITORING = os.path.join(ROOT, "Deploy", "monitoring")

# What need not have data: it tells of faults, or of what these workers do not have.
QUIET = {
    "Service extensions", "Kafka's errors by kind", "Redis' errors by kind", "Unreadable values", "Conditions that are not ready",
    "Sessions opened and closed"}
# What the embedded broker does not tell.
ONLY_REAL = {"Retention that is used"}
# What workers without media do not show.
ELSEWHERE = re.compile(r"carillon_media_")


class Prometheus:
    """A Prometheus with the example's configuration, but for the places, and with the rules of the alerts."""

    def __init__(self, folder, transforms, fan_outs, change=lambda rules: None):
        self.folder, self.port = os.path.join(folder, "prometheus"), free_port()
        os.mkdir(self.folder)
        with open(os.path.join(MONITORING, "prometheus.yaml")) as file:
            configuration = yaml.safe_load(file)
        with open(os.path.join(MONITORING, "alerts.yaml")) as file:
            rules = yaml.safe_load(file)
        change([rule for group in rules["groups"] for rule in group["rules"]])
        configuration["global"] = {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
        # An ingress is asked among the fan-out workers.
        for job, targets in zip(configuration["scrape_configs"], (transforms, fan_outs, []), strict=True):
            job["static_configs"][0]["targets"] = [target.removeprefix("http://") for target in targets]
        for name, document in (("prometheus.yaml", configuration), ("alerts.yaml", rules)):
            with open(os.path.join(self.folder, name), "w") as file:
                yaml.safe_dump(document, file)
        self.log = open(os.path.join(self.folder, "log"), "w")
        self.process = subprocess.Popen(
            ["prometheus", "--config.file", os.path.join(self.folder, "prometheus.yaml"), "--storage.tsdb.path", os.path.join(self.folder, "data"),
             "--web.listen-address", "127.0.0.1:%d" % self.port, "--log.level", "warn"], stdout=self.log, stderr=self.log)

    def ask(self, what, **query):
        """The API's answer; a query that cannot be answered is a promise that was not kept."""
        url = "http://127.0.0.1:%d/api/v1/%s?%s" % (self.port, what, urllib.parse.urlencode(query))
        try:
            with urllib.request.urlopen(url, timeout=20) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            expect(False, "Prometheus answers %s" % query, error.read().decode()[:500])

    async def started(self):
        def answers():
            with contextlib.suppress(OSError):
                with urllib.request.urlopen("http://127.0.0.1:%d/-/ready" % self.port, timeout=HANG):
                    return bool(self.ask("query", query="up == 1")["result"])

        await until(answers, "Prometheus has asked the workers", lambda: open(self.log.name).read()[-500:])

    @property
    def firing(self):
        return {alert["labels"]["alertname"] for alert in self.ask("alerts")["alerts"] if alert["state"] == "firing"}

    async def fires(self, *names):
        await until(lambda: set(names) <= self.firing, "%s fires" % " and ".join(names), lambda: sorted(self.firing))

    def end(self):
        self.process.terminate()
        self.process.wait()


@contextlib.asynccontextmanager
async def watched(*arguments, **more):
    prometheus = Prometheus(*arguments, **more)
    try:
        await prometheus.started()
        yield prometheus
    finally:
        prometheus.end()


def shown(worker):
    with urllib.request.urlopen(worker.addresses["admin"] + "/metrics", timeout=HANG) as answer:
        return answer.read().decode()


def dashboard():
    """The panels' queries, by their titles, with the variables filled in, and what a legend calls their series."""
    with open(os.path.join(MONITORING, "dashboard.json")) as file:
        panels = json.load(file)["panels"]
    for panel in panels:
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"].replace("$cluster", ".*").replace("$__rate_interval", "10s"), target.get("legendFormat", "")


def draw(path, panels):
    """Draws the series of all panels into one picture; `panels` is a list of a title and its series, each with a name, times and values."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    columns = 4
    rows = -(-len(panels) // columns)
    figure, places = pyplot.subplots(rows, columns, figsize=(columns * 5, rows * 2.8), squeeze=False)
    for place in places.flat[len(panels):]:
        place.axis("off")
    for place, (title, series) in zip(places.flat, panels):
        place.set_title(title, fontsize=9)
        place.tick_params(labelsize=6)
        for name, times, values in series:
            place.plot(times, values, marker="." if len(times) == 1 else None, linewidth=1, label=name)
        if series:
            top = max((value for _, _, values in series for value in values), default=0) or 1
            place.set_ylim(-top / 30, top * 1.15)
            place.legend(fontsize=5, loc="upper left")
        else:
            place.text(0.5, 0.5, "nothing", ha="center", va="center", transform=place.transAxes, color="gray")
    figure.tight_layout()
    figure.savefig(path, dpi=70)
    pyplot.close(figure)


def pictured(prometheus, seconds):
    """What `draw` takes: the series of each panel over the last seconds."""
    now, panels = time.time(), {}
    for title, query, legend in dashboard():
        for each in prometheus.ask("query_range", query=query, start=now - seconds, end=now, step=1)["result"]:
            points = [(float(at) - now, float(value)) for at, value in each["values"] if math.isfinite(float(value))]
            name = re.sub(r"\{\{(\w+)\}\}", lambda label: each["metric"].get(label[1], ""), legend)
            panels.setdefault(title, []).append((name, [at for at, _ in points], [value for _, value in points]))
        panels.setdefault(title, [])
    return list(panels.items())


def post(ingress):
    """Publishes a request by HTTP; gives the status."""
    body = json.dumps({"target": "user:u0", "app": APPLICATION, "title": "by HTTP"}).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(ingress.addresses["requests"], body), timeout=HANG) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


async def queries(arguments, folder):
    is_real = not is_embedded(arguments)
    producer = Producer(arguments.kafka, arguments.prefix + "requests")
    async with on_one_redis(arguments, folder) as (redis, cluster):
        # It serves nobody with it, but shows when it expires.
        transform = await cluster.started("transform", *cluster.group, *certificate_flags(folder)[0])
        redis.cli("CONFIG", "SET", "maxmemory", "1gb")
        fan_outs = [await cluster.started("fan-out", "--listen", "127.0.0.1:0") for _ in range(2)]
        ingress = await cluster.started("ingress", "--listen", "127.0.0.1:0")
        admins = [worker.addresses["admin"] for worker in [*fan_outs, ingress]]
        async with watched(folder, [transform.addresses["admin"]], admins) as prometheus, contextlib.AsyncExitStack() as stack:
            for number in range(6):
                await stack.enter_async_context(Device(fan_outs[number % 2].addresses["devices"], None, user="u%d" % number))
            away = Device(fan_outs[0].addresses["devices"], None, user="away")
            async with away:
                pass
            firing = prometheus.firing
            expect(not firing, "no alert fires as long as nothing happens", sorted(firing))

            async def publish():
                while True:
                    for number in range(6):
                        await producer.notify("user:u%d" % number)
                    await producer.notify("user:away")
                    await producer.notify("user:u0", apns_priority="7")
                    await producer.flush()
                    await quietly(post, ingress)
                    async with Device(fan_outs[0].addresses["devices"], None, device=away.token, user="away") as back:
                        await back.frame("notify")  # so soon that the end of this shows below
                    await asyncio.sleep(0.2)

            publishing = asyncio.create_task(publish())
            try:
                await asyncio.sleep(15)  # longer than the windows of the rates
                for title, query, _ in dashboard():
                    def values():
                        now = time.time()
                        series = prometheus.ask("query_range", query=query, start=now - 10, end=now, step=1)["result"]
                        return [float(value) for each in series for _, value in each["values"] if math.isfinite(float(value))]

                    if title in QUIET or title in ONLY_REAL and not is_real:
                        values()
                    else:
                        await until(values, "'%s' has data: %s" % (title, query))
                with open(os.path.join(MONITORING, "alerts.yaml")) as file:
                    rules = [rule for group in yaml.safe_load(file)["groups"] for rule in group["rules"]]
                for rule in rules:
                    prometheus.ask("query", query=rule["expr"])
                    # Both sides of its comparisons are there, too: one that compares nothing never fires.
                    for name in set(re.findall(r"\b(?:carillon|process)_\w+|\bup\b", rule["expr"])):
                        if not ELSEWHERE.match(name):
                            await until(lambda: prometheus.ask("query", query=name)["result"], "%s finds %s" % (rule["alert"], name))
                if arguments.picture:
                    draw(arguments.picture, pictured(prometheus, 40))
                for rule in prometheus.ask("rules")["groups"][0]["rules"]:
                    expect(rule["health"] == "ok", "%s can be judged" % rule["name"], rule.get("lastError"))
                firing = prometheus.firing
                expect(firing <= {"CarillonDeadLetters"}, "nothing fires but what was done", sorted(firing))
                expect(not publishing.done(), "the notifications arrive meanwhile", publishing.exception() if publishing.done() else None)
            finally:
                publishing.cancel()
            text = [shown(worker) for worker in [transform, *fan_outs, ingress]]
            for each in text:
                made = subprocess.run(["promtool", "check", "metrics"], input=each, capture_output=True, text=True)
                expect(made.returncode == 0, "promtool has no objection", made.stdout + made.stderr)
            there = set(re.findall(r"^# TYPE (\w+)", "\n".join(text), re.M))
            with open(os.path.join(ROOT, "Sources", "Worker", "MetricNames.swift")) as file:
                declared = set(re.findall(r'Metric<\w+>\(\s*"(\w+)"', file.read()))
            expect(len(declared) > 50 and there <= declared, "what is shown is declared", sorted(there - declared))
            missing = {name for name in declared - there if not ELSEWHERE.match(name)}
            expect(not missing, "what is declared is shown", sorted(missing))
            say(queries=len(list(dashboard())), rules=len(rules), metrics=len(there))


def is_embedded(arguments):
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": arguments.kafka})
    return admin.list_topics(timeout=20).cluster_id.startswith("mockCluster")


def scaled(rules):
    """A minute and more becomes half of one and more, and what is looked at for longer than is waited for stays so."""
    waits = {"1m": "30s", "2m": "1m", "3m": "75s", "5m": "90s", "15m": "15m"}  # a quarter of an hour stays: devices are uneven when they come back
    for rule in rules:
        if "for" in rule:
            rule["for"] = waits[rule["for"]]
        rule["expr"] = re.sub(r"\[[23]m\]", "[40s]", rule["expr"])


class Traveller:
    """A device that connects again, elsewhere, when its connection ends; `shown` are the bodies that it was sent."""

    def __init__(self, fan_outs, number):
        self.fan_outs, self.number, self.shown = fan_outs, number, set()
        self.token = uuid.uuid4().hex * 2
        self.connections = 0

    async def run(self):
        while True:
            self.connections += 1
            url = self.fan_outs[(self.number + self.connections) % len(self.fan_outs)].addresses["devices"]
            device = Device(url, None, device=self.token, user="u%d" % self.number)
            with contextlib.suppress(OSError, Failed, websockets.exceptions.WebSocketException):
                async with device:
                    while device.closed is None:
                        await asyncio.sleep(0.1)
                        self.shown |= set(bodies(device))
            self.shown |= set(bodies(device))
            await asyncio.sleep(0.3)


async def rolling(arguments, folder):
    producer, published = Producer(arguments.kafka, arguments.prefix + "requests"), {}
    async with on_one_redis(arguments, folder) as (redis, cluster):
        redis.cli("CONFIG", "SET", "maxmemory", "1gb")
        admins = ["127.0.0.1:%d" % free_port() for _ in range(4)]

        async def started(number):
            role = [("transform", *cluster.group), ("fan-out", "--listen", "127.0.0.1:0", "--unready-for", "2s", "--reconnect", "1s")][number // 2]
            return await cluster.started(*role, admin=admins[number])

        workers = [await started(number) for number in range(4)]
        async with watched(folder, admins[:2], admins[2:], change=scaled) as prometheus:
            fan_outs = workers[2:]
            devices = [Traveller(fan_outs, number) for number in range(8)]

            async def publish():
                while True:
                    for device in devices:
                        body = str(uuid.uuid4())
                        published.setdefault(device, set()).add(body)
                        await producer.notify("user:u%d" % device.number, body)
                    await producer.flush()
                    await asyncio.sleep(0.1)

            tasks = [asyncio.create_task(device.run()) for device in devices]
            await until(lambda: all(device.connections for device in devices), "the devices connect")
            await asyncio.sleep(3)
            publishing = asyncio.create_task(publish())
            began = time.time()
            try:
                def broken():
                    return [repr(task.exception()) for task in [publishing, *tasks] if task.done()]

                await until(lambda: all(device.shown for device in devices), "all of them are shown something", broken)
                for number, worker in enumerate(workers):
                    at = time.time()
                    worker.send_signal(signal.SIGTERM)
                    expect(await asyncio.get_running_loop().run_in_executor(None, worker.wait, 60) == 0, "it ends in order", worker.returncode)

                    def is_away():
                        # At the moment of an evaluation it answers nothing.
                        return prometheus.ask("query", query='up{instance="%s"} == 0' % admins[number])["result"]

                    await until(is_away, "Prometheus sees that it is away")
                    workers[number] = await started(number)
                    if number >= 2:
                        fan_outs[number - 2] = workers[number]
                    await until(lambda: not is_away() and all(ready(each) for each in workers), "all are ready")
                    say(replaced=admins[number], seconds=round(time.time() - at, 1))
                    await asyncio.sleep(5)  # of work on the new one
                publishing.cancel()
                count = sum(len(bodies) for bodies in published.values())
                await until(
                    lambda: all(published[device] <= device.shown for device in devices), "every notification is shown",
                    lambda: [len(published[device] - device.shown) for device in devices])
                # What has just begun to wait would fire soon.
                await until(lambda: not prometheus.ask("alerts")["alerts"], "nothing is pending", lambda: prometheus.ask("alerts")["alerts"])
                span = "[%ds]" % (time.time() - began + 5)
                fired = prometheus.ask("query", query='count by (alertname) (count_over_time(ALERTS{alertstate="firing"}%s))' % span)["result"]
                expect(not fired, "no alert has fired", [each["metric"] for each in fired])
                seen = prometheus.ask(
                    "query", query='count_over_time(ALERTS{alertname="CarillonNotReady",alertstate="pending"}%s)' % span)["result"]
                expect({each["metric"]["instance"] for each in seen} == set(admins), "that each was away was seen", seen)
                say(replaced=len(workers), notifications=count, seconds=round(time.time() - began))
            finally:
                for task in [publishing, *tasks]:
                    task.cancel()


def shortened(rules):
    """As if minutes were seconds, and a handful of devices many."""
    for rule in rules:
        if "for" in rule:
            rule["for"] = "2s"
        rule["expr"] = rule["expr"].replace("(carillon_fanout_connections) >= 100", "(carillon_fanout_connections) >= 3")


def configure(arguments, **settings):
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": arguments.kafka})
    entries = [
        confluent_kafka.admin.ConfigEntry(name.replace("_", "."), value, incremental_operation=confluent_kafka.admin.AlterConfigOpType.SET)
        for name, value in settings.items()]
    wanted = confluent_kafka.admin.ConfigResource(confluent_kafka.admin.ResourceType.TOPIC, arguments.prefix + "requests", incremental_configs=entries)
    for future in admin.incremental_alter_configs([wanted]).values():
        future.result(20)


def delete_records(arguments):
    """Deletes all that lies in the requests."""
    admin, topic = confluent_kafka.admin.AdminClient({"bootstrap.servers": arguments.kafka}), arguments.prefix + "requests"
    partitions = admin.list_topics(topic, 20).topics[topic].partitions
    ends = [confluent_kafka.TopicPartition(topic, number, confluent_kafka.OFFSET_END) for number in partitions]
    for future in admin.delete_records(ends).values():
        future.result(20)


async def slow_device(producer, url):
    """Acknowledges 30 notifications two seconds after each was published."""
    device = Device(url, None, user="slow")
    device.acknowledges = False
    async with device:
        for number in range(30):
            await producer.notify("user:slow", "%d" % number)
        await producer.flush()
        await until(lambda: len(device.of("notify")) == 30, "they are sent")
        await asyncio.sleep(2)
        await device.send({"type": "ack", "deliveries": [frame["delivery"] for frame in device.of("notify")]})
        await asyncio.sleep(2)  # until Prometheus has seen it, beside others


async def alerts(arguments, folder):
    seen = []

    async def fires(prometheus, *names):
        await prometheus.fires(*names)
        seen.extend(names)

    producer = Producer(arguments.kafka, arguments.prefix + "requests")
    # Kafka looks for what is too old every five minutes: the workers are behind half of it before.
    configure(arguments, retention_ms="16000")
    async with on_one_redis(arguments, folder) as (redis, cluster):
        limits = ["--in-flight", "100"]
        port = free_port()
        admins = [f"127.0.0.1:{port}", f"127.0.0.1:{free_port()}"]

        def transform_started():
            return cluster.started("transform", *cluster.group, *limits, admin=admins[0])

        def fan_out_started():
            return cluster.started("fan-out", "--listen", "127.0.0.1:0", "--connections", "10", admin=admins[1])

        transform, small = await transform_started(), await fan_out_started()
        large = await cluster.started("fan-out", "--listen", "127.0.0.1:0")
        # Its producers keep for long what they are given, as if Kafka took none of it.
        held = await cluster.started("fan-out", "--listen", "127.0.0.1:0", "--kafka.linger.ms", "25000")
        tardy = await cluster.started("ingress", "--listen", "127.0.0.1:0", "--kafka.linger.ms", "25000")
        fan_outs = [admins[1], large.addresses["admin"], held.addresses["admin"], tardy.addresses["admin"]]
        async with watched(folder, admins[:1], fan_outs, change=shortened) as prometheus:
            await asyncio.sleep(5)
            expect(not prometheus.firing, "no alert fires as long as nothing happens", sorted(prometheus.firing))

            async with contextlib.AsyncExitStack() as stack:
                for number in range(10):
                    await stack.enter_async_context(Device(small.addresses["devices"], None, user="u%d" % number))

                async def knock():
                    while True:
                        with contextlib.suppress(Exception):
                            async with Device(small.addresses["devices"], None):
                                pass
                        await asyncio.sleep(0.5)

                knocking = asyncio.create_task(knock())
                await fires(prometheus, "CarillonConnectionsNearLimit", "CarillonConnectionsUneven", "CarillonTurnedAway")
                knocking.cancel()
                open_now = len(os.listdir("/proc/%d/fd" % small.pid))
                resource.prlimit(small.pid, resource.RLIMIT_NOFILE, (open_now + 5, open_now + 5))
                await fires(prometheus, "CarillonDescriptors")

                for number in range(120):
                    await producer.notify("user:u1", apns_priority="7")
                await producer.flush()
                await fires(prometheus, "CarillonDeadLetters", "CarillonExpiredOrRejected")
                await slow_device(producer, large.addresses["devices"])
                await fires(prometheus, "CarillonSlow")

                # A device that is registered already, for that is waited for.
                known = Device(large.addresses["devices"], None, user="held")
                async with known:
                    pass
                async with Device(held.addresses["devices"], None, device=known.token, user="held") as device:
                    await producer.notify("user:held", "its acknowledgement waits")
                    await producer.flush()
                    await device.frame("notify")
                    await fires(prometheus, "CarillonProducerQueue")

            async def publish():
                while True:
                    await quietly(post, tardy)

            publishing = asyncio.create_task(publish())
            await fires(prometheus, "CarillonIngressUnavailable")
            publishing.cancel()

            for _ in range(3):
                small.kill()
                small.wait()
                small = await fan_out_started()
                await asyncio.sleep(2)
            await fires(prometheus, "CarillonRestarts")

            # They look at Redis every ten seconds.
            used = int(re.search(rb"used_memory:(\d+)", redis.cli("INFO", "memory"))[1])
            redis.cli("CONFIG", "SET", "maxmemory", str(int(used * 1.15)))
            await fires(prometheus, "CarillonRedisMemory")
            redis.cli("CONFIG", "SET", "maxmemory", "0")
            redis.cli("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
            await fires(prometheus, "CarillonRedisUnsuitable")
            redis.cli("CONFIG", "SET", "maxmemory-policy", "noeviction")
            await until(lambda: ready(transform) and ready(large), "the workers are ready again")

            # Redis is killed with work under way, and comes back as it was before.
            copy = os.path.join(folder, "copy")
            await redis.copied(copy)
            before = committed(arguments)
            marked = redis.cli("HGETALL", "k{7}")
            for number in range(20):
                await producer.notify("user:u1", "more")
            await producer.flush()
            await until(lambda: committed(arguments) >= before + 20, "these are judged")
            await until(lambda: redis.cli("HGETALL", "k{7}") != marked, "the markers are raised")
            redis.process.send_signal(signal.SIGSTOP)
            for number in range(300):
                await producer.notify("user:u1", "waits")
            await producer.flush()
            await fires(prometheus, "CarillonInFlight")
            redis.kill()
            await fires(prometheus, "CarillonNotReady", "CarillonBehind", "CarillonBehindRetention")
            await redis.put_back(copy)
            await until(lambda: ready(transform), "the worker is ready again")
            await fires(prometheus, "CarillonRewound")
            await until(
                lambda: not {"CarillonNotReady", "CarillonBehind", "CarillonBehindRetention", "CarillonInFlight"} & prometheus.firing,
                "these end by themselves", lambda: sorted(prometheus.firing))

            transform.kill()
            transform.wait()
            await fires(prometheus, "CarillonPartitionsWithoutOwner")
            for number in range(40):
                await producer.notify("user:u%d" % number, "is never read")
            await producer.flush()
            await asyncio.get_running_loop().run_in_executor(None, delete_records, arguments)
            transform = await transform_started()
            for number in range(40):
                await producer.notify("user:u%d" % number, "is read again")
            await producer.flush()
            await fires(prometheus, "CarillonRecordsMissed")
            await until(lambda: "CarillonPartitionsWithoutOwner" not in prometheus.firing, "the partitions have an owner")
            say(fired=sorted(seen), count=len(seen))


PARTS = {"queries": queries, "rolling": rolling, "alerts": alerts}

if __name__ == "__main__":
    run_part(__doc__, PARTS, "carillon-monitoring-", picture=(None, "of `queries`: where each panel's series are drawn"))
