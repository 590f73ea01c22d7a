"""What each kind of fault does, and how it ends. A fault that needs Kafka or Redis for itself waits for the one before."""
import asyncio
import contextlib
import os
import shutil
import signal
import time

# Longer than the session timeout of the consumer group: the partitions of a frozen worker go to another.
FREEZE = (7.0, 11.0)


class Nemesis:
    """Carries out a plan on a cluster, and counts what it did."""

    def __init__(self, cluster, producer, accounted, renewed, say):
        self.cluster, self.producer, self.accounted, self.renewed, self.say = cluster, producer, accounted, renewed, say
        self.done, self.extra, self.copies, self.bombs = {}, 100, 0, []
        self.exchanging = asyncio.Lock()

    async def run(self, faults):
        began, tasks = time.monotonic(), []
        for fault in faults:
            await asyncio.sleep(max(0, began + fault.at - time.monotonic()))
            tasks.append(asyncio.create_task(self.inject(fault)))
        await asyncio.gather(*tasks)

    async def inject(self, fault):
        self.say(fault=fault.number, kind=fault.kind, at=round(fault.at, 1))
        began = time.monotonic()
        what = await getattr(self, fault.kind.replace("-", "_"))(fault.random())
        self.done[fault.kind] = self.done.get(fault.kind, 0) + 1
        self.say(fault=fault.number, kind=fault.kind, healed=round(time.monotonic() - began, 1), what=what)

    def pick(self, role, dice):
        return dice.choice(self.cluster.of(role))

    # Workers.

    async def kill_transform(self, dice, role="transform"):
        """kill -9, and started again at once."""
        worker = self.pick(role, dice)
        worker.kill()
        return worker.name

    async def kill_fan_out(self, dice):
        return await self.kill_transform(dice, "fan-out")

    async def freeze_transform(self, dice, role="transform"):
        """SIGSTOP for longer than its session, then SIGCONT: it goes on as if nothing had happened."""
        worker = self.pick(role, dice)
        async with worker.freezing:
            child = worker.child
            worker.send(signal.SIGSTOP)
            await asyncio.sleep(dice.uniform(*FREEZE))
            if worker.child is child:
                worker.send(signal.SIGCONT)
        return worker.name

    async def freeze_fan_out(self, dice):
        return await self.freeze_transform(dice, "fan-out")

    async def storm(self, dice):
        """Transform workers join and leave quickly: partitions are always on their way."""
        joined = []
        for _ in range(dice.randrange(2, 5)):
            self.extra += 1
            worker = self.cluster.add("transform", self.extra)
            joined.append(worker)
            await asyncio.sleep(dice.uniform(0.5, 2))
            if dice.random() < 0.6:
                leaving = joined.pop(dice.randrange(len(joined)))
                await self.retire(leaving, dice)
        for worker in joined:
            await self.retire(worker, dice)
        return self.extra

    async def retire(self, worker, dice):
        del self.cluster.workers[worker.name]
        await worker.retire(signal.SIGTERM if dice.random() < 0.7 else signal.SIGKILL)

    async def rolling_transform(self, dice, role="transform", is_back=lambda worker: worker.admin):
        """SIGTERM to one after the other, each when the one before is back."""
        for worker in list(self.cluster.of(role)):
            if worker.name not in self.cluster.workers or worker.number >= 100:
                continue
            starts = worker.starts
            async with worker.freezing:
                worker.kill(signal.SIGTERM)
                end = time.monotonic() + 45
                while not (worker.starts > starts and is_back(worker)) and time.monotonic() < end:
                    await asyncio.sleep(0.1)
        return role

    async def rolling_fan_out(self, dice):
        return await self.rolling_transform(dice, "fan-out")

    async def exchange(self, dice):
        """All workers are replaced one by one, each when the one before is ready: by the newest program, fan-out workers first, or by the former
        one, transform workers first. It needs --former."""
        async with self.exchanging:
            programs, given = self.cluster.programs, self.cluster.arguments
            is_upgrade = programs["transform"] == given.former
            for role in ("fan-out", "transform") if is_upgrade else ("transform", "fan-out"):
                programs[role] = given.binary if is_upgrade else given.former
                await self.rolling_transform(dice, role, lambda worker: worker.admin and worker.ready)
        return "upgrade" if is_upgrade else "downgrade"

    # Kafka.

    async def kafka_kill(self, dice):
        """kill -9 of a broker, which comes back on its data."""
        async with self.cluster.kafka.lock:
            broker = str(dice.randrange(self.cluster.kafka.brokers) + 1)
            await self.cluster.kafka.do("kill", broker)
            await asyncio.sleep(dice.uniform(0.5, 4))
            await self.cluster.kafka.do("restart", broker)
        return "broker " + broker

    async def kafka_freeze(self, dice, meanwhile=None):
        """A broker that hangs: connections stand, nothing answers."""
        async with self.cluster.kafka.lock:
            broker = str(dice.randrange(self.cluster.kafka.brokers) + 1)
            await self.cluster.kafka.do("freeze", broker)
            try:
                if meanwhile:
                    await meanwhile()
                await asyncio.sleep(dice.uniform(3, 9))
            finally:
                await self.cluster.kafka.do("thaw", broker)
        return "broker " + broker

    async def kafka_freeze_kill(self, dice):
        """While Kafka hangs workers are killed: what they have said to nobody must come again."""
        async def kill():
            await asyncio.sleep(dice.uniform(0.5, 2.5))
            for role in ("fan-out", "transform", "fan-out"):
                self.pick(role, dice).kill()
                await asyncio.sleep(dice.uniform(0, 0.5))

        return await self.kafka_freeze(dice, kill)

    async def journal_away(self, dice):
        """The journal lies on one broker alone, which is killed and comes back: all other topics can be written meanwhile. Needs three brokers."""
        kafka, topic = self.cluster.kafka, self.cluster.prefix + "journal"
        async with kafka.lock:
            broker = dice.randrange(kafka.brokers) + 1
            await kafka.configure(topic, "min.insync.replicas", "1")
            await kafka.place(topic, [broker])
            await kafka.do("kill", str(broker))
            # Longer than it takes until other brokers lead what this one led.
            await asyncio.sleep(dice.uniform(5, 14))
            await kafka.do("restart", str(broker))
            await kafka.place(topic, [number + 1 for number in range(kafka.brokers)])
            await kafka.configure(topic, "min.insync.replicas", None)
        return "broker %d" % broker

    async def journal_refused(self, dice, topic="journal", limit=10):
        """Kafka takes no record of the journal, since none is small enough; all other topics can be written meanwhile."""
        kafka, topic = self.cluster.kafka, self.cluster.prefix + topic
        async with kafka.lock:
            await kafka.configure(topic, "max.message.bytes", str(limit))
            await asyncio.sleep(dice.uniform(1, 8))
            await kafka.configure(topic, "max.message.bytes", None)

    async def events_refused(self, dice):
        """Kafka takes no large batch of events: a single event is small enough, and a batch of them is not."""
        limit = dice.choice([3_000, 10_000, 65_536])
        await self.journal_refused(dice, "events", limit)
        return "%d bytes" % limit

    async def transactions(self, dice):
        """Transactions end on requests and devices: their control records lie at the ends of partitions, and take offsets."""
        async with self.cluster.kafka.lock:
            aborts = dice.random() < 0.5
            await asyncio.get_running_loop().run_in_executor(
                None, self.producer.transact, self.cluster.prefix + "devices", self.cluster.arguments.partitions, aborts, dice.uniform(0, 3))
        return "aborted" if aborts else "committed"

    async def bomb(self, dice):
        """A batch of a few kilobytes that no client can decompress lies in the requests topic."""
        kafka, topic, place = self.cluster.kafka, self.cluster.prefix + "requests", (0, -1)
        async with kafka.lock:
            partition = dice.randrange(self.cluster.arguments.partitions)
            await kafka.configure(topic, "compression.type", "producer")
            # Until the partition's leader knows, it refuses the batch.
            while place[1] < 0:
                place = await asyncio.get_running_loop().run_in_executor(None, self.producer.bomb, partition)
            await kafka.configure(topic, "compression.type", "uncompressed")
            self.bombs.append(place)
        return "partition %d, offset %d" % place

    # Redis.

    async def redis_kill(self, dice):
        """kill -9 of Redis, which comes back with its append-only file."""
        async with self.cluster.redis_lock:
            await self.cluster.redis.server.end()
            await asyncio.sleep(dice.uniform(0, 3))
            await self.cluster.redis.start()

    async def redis_full(self, dice):
        """A Redis without memory, that refuses what writes."""
        async with self.cluster.redis_lock:
            await self.cluster.redis.ask("CONFIG", "SET", "maxmemory", "1")
            await asyncio.sleep(dice.choice([dice.uniform(0.05, 0.8), dice.uniform(1, 4)]))
            await self.cluster.redis.ask("CONFIG", "SET", "maxmemory", "0")

    async def redis_freeze(self, dice, meanwhile=None):
        """A Redis that hangs."""
        async with self.cluster.redis_lock:
            server = self.cluster.redis.server
            server.send(signal.SIGSTOP)
            if meanwhile:
                await meanwhile()
            await asyncio.sleep(dice.uniform(1, 6))
            server.send(signal.SIGCONT)

    async def redis_freeze_kill(self, dice):
        """While Redis hangs a transform worker is killed: what it has begun must come again."""
        async def kill():
            await asyncio.sleep(dice.uniform(1.2, 2.5))
            self.pick("transform", dice).kill()
            if dice.random() < 0.5:
                self.pick("fan-out", dice).kill()

        return await self.redis_freeze(dice, kill)

    async def redis_older(self, dice):
        """Redis is put back to a copy that is some seconds old, as after a crash of its machine."""
        async with self.cluster.redis_lock:
            redis = self.cluster.redis
            self.copies += 1
            source, copy = os.path.join(redis.folder, "appendonlydir"), os.path.join(self.cluster.folder, "copy-%d" % self.copies)
            # It stands still for that, for it takes files away that it has written again.
            try:
                await redis.server.stand_still()
                shutil.copytree(source, copy)
            finally:
                redis.server.send(signal.SIGCONT)
            # Younger than the markers are raised, or older.
            age = dice.choice([dice.uniform(0.05, 1), dice.uniform(0.5, 6)])
            await asyncio.sleep(age)
            await redis.server.end()
            shutil.rmtree(source)
            shutil.move(copy, source)
            await redis.start("--aof-load-truncated", "yes")
        return "%.1f s older" % age

    async def redis_failover(self, dice):
        """Redis dies, and a replica that had stopped following some seconds before takes its place."""
        async with self.cluster.redis_lock:
            former, replica = self.cluster.redis, self.cluster.new_redis()
            await replica.start("--replicaof", "127.0.0.1", str(former.port))
            end = time.monotonic() + 30
            while "master_link_status:up" not in await replica.ask("INFO", "replication"):
                if time.monotonic() > end:
                    raise RuntimeError("the replica does not follow: %s" % replica.server.tail())
                await asyncio.sleep(0.1)
            await asyncio.sleep(dice.uniform(0, 2))
            # From here on it follows no more.
            lag, shows = dice.choice([dice.uniform(0.05, 1), dice.uniform(0.5, 4)]), dice.uniform(0, 1.5)
            await self.detach(replica)
            await asyncio.sleep(lag)
            # First it is still a replica and refuses writes, then it is the master.
            await self.cluster.lead_to(replica)
            await former.server.end()
            await asyncio.sleep(shows)
            await replica.ask("REPLICAOF", "NO", "ONE")
            shutil.rmtree(former.folder, ignore_errors=True)
        return "%.1f s behind" % lag

    async def detach(self, replica):
        """A replica of nobody who answers: it keeps what it has, and is read-only."""
        await replica.ask("REPLICAOF", "127.0.0.1", "1")

    async def redis_flush(self, dice):
        """FLUSHALL; its workers stop taking work until `carillon rebuild` has been run."""
        async with self.cluster.redis_lock:
            await self.cluster.redis.ask("FLUSHALL")
            if dice.random() < 0.5:
                # Else it is noticed by its emptiness alone.
                await self.cluster.proxy.do(drop="redis")
            await asyncio.sleep(dice.uniform(0.2, 3))
            words = [
                "rebuild", "--kafka", self.cluster.kafka.servers, "--redis", "127.0.0.1:%d" % self.cluster.redis.port, "--topic-prefix",
                self.cluster.prefix, "--group", self.cluster.prefix + "transform"]
            # It may end at any moment, and is begun again.
            kills, fails, end = dice.choice([0, 0, 1, 2]), [], time.monotonic() + 400
            for _ in range(kills):
                await self.cluster.tool(*words, check=False, dies_after=dice.uniform(0.05, 0.6))
            while True:
                code, _, errors = await self.cluster.tool(*words, seconds=600, check=False)
                if code == 0:
                    return "rebuilt; killed %d times, failed %s" % (kills, fails)
                fails.append(code)
                if code < 0:
                    self.cluster.crashes.append({"tool": "rebuild", "code": code, "log": errors.splitlines()[-60:]})
                if time.monotonic() > end:
                    raise RuntimeError("carillon rebuild goes on failing with %d: %s" % (code, errors[-800:]))
                await asyncio.sleep(1)

    async def damaged_markers(self, dice):
        """Some markers in Redis hold what no worker can read."""
        async with self.cluster.redis_lock:
            names = []
            for _ in range(dice.randrange(1, 5)):
                key, field = "k{%d}" % dice.randrange(256), dice.choice("qd") + str(dice.randrange(self.cluster.arguments.partitions))
                await self.cluster.redis.ask("HSET", key, field, dice.choice(["x", "", "9" * 40]))
                names.append(key + " " + field)
            if dice.random() < 0.5:
                # Markers are compared after a connection has broken.
                await self.cluster.proxy.do(drop="redis")
        return ", ".join(names)

    async def redis_denies(self, dice):
        """Redis refuses a command to its users, and allows it again."""
        async with self.cluster.redis_lock:
            command = dice.choice(["exists", "zrangebylex", "hset", "hmget", "evalsha", "zadd", "hgetall"])
            await self.cluster.redis.ask("ACL", "SETUSER", "default", "-" + command)
            await asyncio.sleep(dice.uniform(0.5, 6))
            await self.cluster.redis.ask("ACL", "SETUSER", "default", "+@all")
        return command

    # Devices.

    async def holes(self, dice):
        """Devices leave some deliveries without an acknowledgement until their sessions end."""
        seconds = dice.uniform(3, 15)
        self.cluster.crowd.child.stdin.write(b'{"holes": %.1f}\n' % seconds)
        return "%.0f s" % seconds

    # Connections.

    async def cut_devices(self, dice):
        """Connections of devices break off in the middle of a frame."""
        for worker in self.cluster.of("fan-out"):
            await self.cluster.proxy.do(cut=worker.name, share=dice.uniform(0.1, 0.9), seed=dice.getrandbits(32))

    async def cut_redis(self, dice):
        """Connections to Redis break off in the middle of a command or of an answer."""
        await self.cluster.proxy.do(cut="redis", share=dice.uniform(0.3, 1), seed=dice.getrandbits(32))

    async def stall_devices(self, dice):
        """The network between the devices and a fan-out worker stands still, and goes on."""
        worker = self.pick("fan-out", dice)
        await self.stall(worker.name, dice.uniform(2, 9))
        return worker.name

    async def stall_redis(self, dice):
        await self.stall("redis", dice.uniform(1, 8))

    async def stall(self, link, seconds):
        await self.cluster.proxy.do(stall=link)
        await asyncio.sleep(seconds)
        await self.cluster.proxy.do(flow=link)

    # The topic.

    async def delivered(self, seconds=30):
        """Waits until no mailbox holds anything."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            with contextlib.suppress(Exception):
                if not (await self.cluster.redis.ask("--scan", "--pattern", "m{*")).split():
                    return True
            await asyncio.sleep(0.3)
        return False

    async def topic_anew(self, dice):
        """The requests topic is deleted and made again, when all that it held has been delivered; Redis loses nothing meanwhile."""
        async with self.cluster.kafka.lock, self.cluster.redis_lock:
            return await self.make_topic_again(dice)

    async def make_topic_again(self, dice):
        await self.producer.pause()
        await self.accounted()
        if not await self.delivered():
            self.producer.is_paused = False
            return "left out: what lies in mailboxes could not be made again after a loss of Redis"
        await self.cluster.kafka.delete(self.producer.topic)
        await asyncio.sleep(dice.uniform(0, 2))
        await self.cluster.create_topics()
        await self.renewed()
        self.producer.renew()
        self.producer.is_paused = False

    async def late_worker(self, dice):
        """A transform worker stands still with what it has begun, others finish that, and the requests topic is deleted and made again; then
        it goes on, and writes what it has to say of the former topic."""
        async with self.cluster.kafka.lock, self.cluster.redis_lock:
            worker = self.pick("transform", dice)
            async with worker.freezing:
                child = worker.child
                worker.send(signal.SIGSTOP)
                try:
                    what = await self.make_topic_again(dice)
                    # Until new requests lie at the offsets of the former ones, or not.
                    await asyncio.sleep(dice.uniform(0, 6))
                finally:
                    if worker.child is child:
                        worker.send(signal.SIGCONT)
        return what or worker.name
