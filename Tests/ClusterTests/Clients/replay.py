"""`carillon replay`: real workers, devices, and a tool that is interrupted and killed.

  unfinished   1,000 requests that wait for devices which are offline lose their entries in the mailboxes and their remembered ids, and 200 of
               other devices their entries alone: --only-unfinished brings exactly these, each is shown once, and a rebuilding brings none of it
               back
  interrupted  a range, half of which no worker has judged yet, is replayed while newer revisions come, and the tool is interrupted three times,
               once by a kill: each record comes once more, nothing is shown twice, nothing takes the place of a newer one
               (--records 1000000 is its long form: a quarter of an hour, and 8 GB of memory)
  broker       the only broker is killed in the middle: the tool says how to go on, and each record comes once more when the broker is back
  gone         what is to be replayed is deleted before, between and while; its topic is made again; another process has the file; the range is
               empty: each ends with what is wrong and what to type, and that works
"""
import asyncio
import collections
import json
import os
import signal
import subprocess
import time
import uuid

import confluent_kafka
import confluent_kafka.admin

import clients
from clients import APPLICATION, HANG, Producer, Reader, expect, say, until
from dependencies import own_kafka
from extensions import RememberingDevice, audit, tool
from healing import SOON, committed, emptied_and_rebuilt, make_again, on_one_redis, run_part

# The devices of `unfinished`, those of them that forget ids, and how many requests wait for each.
PEOPLE, FORGETFUL, EACH = 48, 40, 50
# The devices of `interrupted`; at most as many requests as this are ahead of the workers.
SCREENS, AHEAD = 20, 20_000
# Takes half of the entries of each mailbox, and what the devices with these tokens remember of ids; answers with the apns-ids of what was taken,
# and with how many of them were taken from a device that remembers none any more.
LOSE = """
local gone, forgotten = {}, 0
for _, token in ipairs(ARGV) do redis.call('HDEL', redis.call('KEYS', 'd{*}' .. token)[1], 'w') end
for _, box in ipairs(redis.call('KEYS', 'm{*')) do
  local fields = redis.call('HKEYS', box)
  local remembers = redis.call('HEXISTS', 'd' .. string.sub(box, 2), 'w') == 1
  for i = 1, #fields / 2 do
    local id = string.sub(redis.call('HGET', box, fields[i]), 1, 16)
    gone[#gone + 1] = string.gsub(id, '.', function (c) return string.format('%02x', string.byte(c)) end)
    redis.call('HDEL', box, fields[i])
    if not remembers then forgotten = forgotten + 1 end
  end
end
gone[#gone + 1] = forgotten
return gone
"""


class Screen(RememberingDevice):
    """A device that also drops what is stale, as the protocol asks of it."""

    def __init__(self, *arguments, **hello):
        super().__init__(*arguments, **hello)
        self.newest, self.times = {}, collections.Counter()

    def drops(self, frame):
        reason = super().drops(frame)
        if reason is None and frame["revision"] <= self.newest.get(frame["identifier"], ""):
            reason = "stale"
        if reason is None:
            self.newest[frame["identifier"]] = frame["revision"]
            self.times[frame["id"]] += 1
        return reason


def waiting(redis):
    """How many entries the mailboxes have."""
    return int(redis.cli("EVAL", "local n = 0 for _, m in ipairs(redis.call('KEYS', 'm{*')) do n = n + redis.call('HLEN', m) end return n", "0"))


def replayed(arguments, reader):
    """The apns-ids of what a replay has written, as often as it has."""
    records = reader.records[arguments.prefix + "requests"]
    return collections.Counter(record.headers["apns-id"] for record in records if "carillon-replay" in record.headers)


def saved(state):
    """How many records are written, as the file of a replay says."""
    if not os.path.exists(state):
        return 0
    with open(state) as file:
        text = file.read()
    return sum(each["counts"]["written"] for each in json.loads(text)["partitions"]) if text else 0


class Replay:
    """A replay that goes on beside the test, so slowly that it is not at its end before something is done to it."""

    def __init__(self, arguments, state, *words, rate=5):
        self.state, self.before = state, saved(state)
        line = [arguments.binary, "replay", "--kafka", arguments.kafka, "--topic-prefix", arguments.prefix, "--max-behind", "0",
                "--records-per-second", str(rate), *words]
        self.process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    async def is_under_way(self, count=0):
        """Waits until it has written, and saved that."""
        await until(lambda: saved(self.state) > self.before + count, "it writes and saves",
                    lambda: self.process.stderr.read() if self.process.poll() is not None else saved(self.state))

    async def ends(self, code, *words, number=None):
        """It ends, perhaps by a signal, with this code and with words that say why and what to type."""
        if number:
            self.process.send_signal(number)
        await until(lambda: self.process.poll() is not None, "it ends")
        errors = self.process.stderr.read()
        expect(self.process.returncode == code and all(word in errors for word in words), "it ends with %d and says %s" % (code, words),
               [self.process.returncode, errors])


def says(done, code, *words, never=()):
    """A tool has ended with this code, and its last word is what is wrong and what to type."""
    expect(done.returncode == code and all(word in done.stderr for word in words) and not any(word in done.stderr for word in never),
           "it ends with %d and says %s" % (code, words), [done.returncode, done.stdout, done.stderr])


async def again_and_again(arguments, total):
    """How often each record of the requests, by where it lies, was replayed, as the topic with so many records says."""
    reader = Reader(arguments.kafka, [arguments.prefix + "requests"])
    reading = asyncio.create_task(reader.run())
    records = reader.records[arguments.prefix + "requests"]
    await until(lambda: len(records) >= total, "the topic is read", lambda: [len(records), total])
    reading.cancel()
    again = [record for record in records if "carillon-replay" in record.headers]
    return collections.Counter((record.partition, int(record.headers["carillon-replay"].split("/")[1])) for record in again)


async def unfinished(arguments, folder):
    producer = Producer(arguments.kafka, arguments.prefix + "requests", linger=20)
    async with on_one_redis(arguments, folder) as (redis, cluster):
        transform = await cluster.started("transform", *cluster.group)
        fan_out = await cluster.started("fan-out", *SOON, "--listen", "127.0.0.1:0")
        url = fan_out.addresses["devices"]
        devices = [Screen(url, None, user="u%d" % number) for number in range(PEOPLE)]

        async def visit(device, count):
            """Connects, and leaves when it has been shown so many."""
            async with device:
                await until(lambda: len(device.shown) == count, "a device finds all of its notifications", lambda: len(device.shown))

        await asyncio.gather(*(visit(device, 0) for device in devices))
        names = []
        for number in range(EACH):
            for place, device in enumerate(devices):
                target = "user:u%d" % place if number % 2 else "device:" + device.token
                names.append(await producer.notify(target, "waits %d" % number, **({"apns_collapse_id": "c%d" % number} if number % 5 else {})))
        await producer.flush()
        await until(lambda: committed(arguments) >= len(names), "all is below the markers", lambda: committed(arguments))
        *taken, forgotten = redis.cli("EVAL", LOSE, "0", *(device.token for device in devices[:FORGETFUL])).split()
        gone = {str(uuid.UUID(name.decode())) for name in taken}
        expect(len(gone) == len(names) // 2, "half of it is lost", len(gone))
        expect(int(forgotten) == FORGETFUL * EACH // 2 == 1_000, "1,000 of them with the remembered id", int(forgotten))

        flags = [*cluster.common[2:4], "--only-unfinished", "--json", "--group", cluster.group[1], "--grace", "1s"]
        # A request that is younger than the grace may be under way.
        youngest = time.time()
        await until(lambda: time.time() > youngest + 1, "each is older than the grace")
        dry = await tool(arguments, "replay", *flags, "--dry-run")
        expect(dry.returncode == 0, "a dry run says how much there is to do", dry.stderr)
        expect(json.loads(dry.stdout)["written"] == len(gone), "exactly what was lost", dry.stdout)
        plain = await tool(arguments, "replay", "--json", "--records-per-second", "0", "--group", cluster.group[1], "--state", os.path.join(folder, "plain"))
        expect(plain.returncode == 0 and json.loads(plain.stdout)["written"] == len(names), "a replay brings all of it", plain.stdout + plain.stderr)
        await until(lambda: committed(arguments) >= 2 * len(names), "which is below the markers", lambda: committed(arguments))
        expect(waiting(redis) == len(names) - len(gone), "and does nothing, for it was applied before", waiting(redis))

        done = await tool(arguments, "replay", *flags, "--state", os.path.join(folder, "state"))
        expect(done.returncode == 0, "the lost ones are brought", done.stderr)
        expect(json.loads(done.stdout)["written"] == len(gone), "exactly these", done.stdout)
        reader = Reader(arguments.kafka, [arguments.prefix + "requests"])
        reading = asyncio.create_task(reader.run())
        await until(lambda: sum(replayed(arguments, reader).values()) == len(names) + len(gone), "they are in the topic")
        twice = {name for name, count in replayed(arguments, reader).items() if count == 2}
        expect(twice == gone, "and no others", [len(twice), len(gone)])
        reading.cancel()
        await until(lambda: committed(arguments) >= 2 * len(names) + len(gone), "they are judged", lambda: committed(arguments))
        again = await tool(arguments, "replay", *flags, "--dry-run")
        expect(again.returncode == 1 and json.loads(again.stdout)["written"] == 0, "nothing more is unfinished", again.stdout + again.stderr)
        shown = collections.Counter()
        await asyncio.gather(*(visit(device, EACH) for device in devices))
        for device in devices:
            shown += device.times
        expect(set(shown) == set(names) and max(shown.values()) == 1, "each is shown once", len(shown))
        await audit(arguments, is_complete=lambda report: report["outcomes"].get("queued", 0) == 0)
        await emptied_and_rebuilt(redis, cluster, transform, fan_out)
        expect(waiting(redis) == 0, "a rebuilding brings none of it back, though all of it was published twice", waiting(redis))
        say(lost=len(gone), forgotten=int(forgotten), audit=await audit(arguments))


async def interrupted(arguments, folder):
    producer = Producer(arguments.kafka, arguments.prefix + "requests", linger=20)
    flags = ["--mailbox-bound", "10000", "--session-timeout", "2s"]
    # The long form waits longer for each thing.
    clients.HANG = max(HANG, arguments.records // 1000)
    async with on_one_redis(arguments, folder) as (redis, cluster):
        transform = await cluster.started("transform", *flags, *cluster.group)
        fan_out = await cluster.started("fan-out", "--listen", "127.0.0.1:0")
        url = fan_out.addresses["devices"]
        devices = [Screen(url, None, user="u%d" % number) for number in range(SCREENS)]
        names = []

        async def publish(rounds, pause=0.0):
            for number in range(rounds):
                for place in range(len(devices)):
                    more = {"apns_collapse_id": "c%d" % (number % 7)} if number % 3 else {}
                    names.append(await producer.notify("user:u%d" % place, "%d" % number, **more))
                await asyncio.sleep(pause)
            await producer.flush()

        async def publish_newer():
            while True:
                await publish(1, 0.1)

        for device in devices:
            await device.__aenter__()
        rounds = arguments.records // SCREENS
        for begin in range(0, rounds // 2, AHEAD // SCREENS):
            await publish(min(AHEAD // SCREENS, rounds // 2 - begin))
            await until(lambda: committed(arguments) >= len(names), "the workers keep up", lambda: [committed(arguments), len(names)])
        transform.kill()
        transform.wait()
        await publish(rounds - rounds // 2)
        state = os.path.join(folder, "state")
        command = [arguments.binary, "replay", *cluster.common[:2], *cluster.common[4:], *cluster.group, "--json", "--max-behind", "0"]

        first, range_end = ["--state", state], len(names)
        newer = asyncio.create_task(publish_newer())
        for number, ending in enumerate((signal.SIGINT, signal.SIGKILL, signal.SIGINT)):
            # So slow that a machine that stands still for a while does not let it come to its end.
            words, before = [*command, *first, "--records-per-second", str(max(100, arguments.records // 100))], saved(state)
            process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            await until(lambda: saved(state) > before, "it writes and saves", lambda: process.stderr.read() if process.poll() is not None else None)
            await asyncio.sleep(0.5)
            process.send_signal(ending)
            await until(lambda: process.poll() is not None, "it ends")
            expect(process.returncode in (1, -9), "it was interrupted in the middle", [process.returncode, process.stderr.read()])
            first = ["--resume", state]
            if number == 0:
                await cluster.started("transform", *flags, *cluster.group)
        left = await asyncio.create_subprocess_exec(*command, *first, "--records-per-second", "0", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        output, errors = await asyncio.wait_for(left.communicate(), 2 * clients.HANG)
        expect(left.returncode == 0, "what is left is replayed", errors.decode())
        total = json.loads(output)
        newer.cancel()
        await producer.flush()
        reader = Reader(arguments.kafka, [arguments.prefix + "requests"])
        reading = asyncio.create_task(reader.run())
        records = reader.records[arguments.prefix + "requests"]
        await until(lambda: len(records) == len(names) + total["written"], "the topic is read", lambda: len(records))
        reading.cancel()
        again = replayed(arguments, reader)
        expect(max(again.values()) == 1, "each record comes once more, and not twice", again.most_common(3))
        expect(len(again) == total["written"] >= range_end, "and none is forgotten", [len(again), total, range_end])
        expect(set(names[:range_end]) <= set(again), "of those that were there when it began", len(set(names[:range_end]) - set(again)))
        judged = len(names) + total["written"]
        await until(lambda: committed(arguments) >= judged, "all of it is judged", lambda: [committed(arguments), judged])
        last = {}
        for record in records:
            if "carillon-replay" not in record.headers:
                last[record.headers["target"], record.headers.get("apns-collapse-id", record.headers["apns-id"])] = record.headers["apns-id"]
        wanted = {"user:u%d" % place: {name for (target, _), name in last.items() if target == "user:u%d" % place} for place in range(len(devices))}
        for place, device in enumerate(devices):
            target = "user:u%d" % place
            await until(
                lambda: wanted[target] <= device.shown, "a device has the newest of everything", lambda: len(wanted[target] - device.shown))
            expect(max(device.times.values()) == 1, "and nothing twice")
            await device.__aexit__()
        say(written=total["written"], shown=sum(len(device.shown) for device in devices), audit=await audit(arguments))


async def broker(arguments, folder):
    count, state = 2_000, os.path.join(folder, "state")
    async with own_kafka(arguments, folder) as kafka:
        producer = Producer(arguments.kafka, arguments.prefix + "requests", linger=20)
        names = [await producer.notify("user:u%d" % (number % 50), "%d" % number) for number in range(count)]
        await producer.flush()
        # Nobody waits a minute for what one knows after some seconds.
        soon = ["--kafka.message.timeout.ms", "15000"]
        replay = Replay(arguments, state, "--state", state, *soon, rate=100)
        await replay.is_under_way(200)
        kafka.kill()
        await replay.ends(3, "Kafka does not answer any more at " + arguments.kafka, "when it does, --resume %s continues" % state)
        expect(saved(state) < count, "it was in the middle", saved(state))
        await kafka.restart(arguments.kafka)
        done = await tool(
            arguments, "replay", "--resume", state, "--max-behind", "0", "--records-per-second", "0", "--json")
        says(done, 0)
        expect(json.loads(done.stdout)["written"] == count, "all of it is replayed", done.stdout)
        again = await again_and_again(arguments, 2 * count)
        expect(len(again) == len(names) and max(again.values()) == 1, "each record comes once more", [len(again), again.most_common(3)])
        say(replayed=len(again))


def delete_below(arguments, *ends):
    """Deletes what lies below these offsets of partitions; OFFSET_END for all of it."""
    admin, topic = confluent_kafka.admin.AdminClient({"bootstrap.servers": arguments.kafka}), arguments.prefix + "requests"
    for future in admin.delete_records([confluent_kafka.TopicPartition(topic, *end) for end in ends]).values():
        future.result(20)


async def gone(arguments, folder):
    producer, topic = Producer(arguments.kafka, arguments.prefix + "requests", linger=20), arguments.prefix + "requests"
    headers = {"target": "user:ada", "apns-topic": APPLICATION}
    path = iter(os.path.join(folder, "state-%d" % number) for number in range(100))

    async def publish(partition, count, size=10):
        for _ in range(count):
            producer.publish(headers, b'{"aps":{"alert":"%s"}}' % (b"x" * size), key="ada", partition=partition)
        await producer.flush()

    async def replay(*words):
        return await tool(arguments, "replay", "--max-behind", "0", "--records-per-second", "0", "--json", *words)

    # A range without records.
    says(await replay("--from", "2h", "--to", "1h", "--state", next(path)), 1, "nothing was found")
    await publish(0, 400)
    says(await replay("--from", "2h", "--to", "1h", "--dry-run"), 1, "nothing was found")

    # Offsets below the oldest; what the message says is typed.
    delete_below(arguments, (0, 100))
    says(await replay("--offsets", "0:50-80", "--state", next(path)), 2, "begins at offset 100", "nothing is left of the range")
    says(await replay("--offsets", "0:50-200", "--state", next(path)), 2, "begins at offset 100", "--offsets 0:100-200 is what is left")
    rest = await replay("--offsets", "0:100-200", "--dry-run")
    expect(rest.returncode == 0 and json.loads(rest.stdout)["written"] == 100, "what is left is there", rest.stdout + rest.stderr)

    # A replay whose file another process wants, which is interrupted, and whose next records are deleted then.
    state = next(path)
    slow = Replay(arguments, state, "--state", state, "--offsets", "0:100-400")
    await slow.is_under_way()
    says(await replay("--resume", state), 2, "another process continues %s now: wait" % state)
    says(await replay("--state", state), 2, "--resume " + state, "--state")
    await slow.ends(1, "interrupted: --resume %s continues" % state, number=signal.SIGINT)
    done = 100 + saved(state)
    expect(done < 350, "it was in the middle", done)
    delete_below(arguments, (0, done + 20))
    rest = await replay("--resume", state)
    says(rest, 0, "20 records are gone and left out")
    expect(json.loads(rest.stdout)["written"] == 280, "all but these are replayed", rest.stdout)

    # A deletion while it reads: more than it has fetched by then, in a partition of its own.
    await publish(1, 40, 500_000)
    state = next(path)
    slow = Replay(arguments, state, "--state", state, "--partitions", "1", rate=1)
    await slow.is_under_way()
    delete_below(arguments, (1, confluent_kafka.OFFSET_END))
    await slow.ends(3, "--resume %s continues" % state)
    written = saved(state)
    expect(0 < written < 40, "it was in the middle", written)
    rest = await replay("--resume", state)
    says(rest, 0, "%d records are gone and left out" % (40 - written))
    expect(json.loads(rest.stdout)["written"] == written, "nothing else is written", rest.stdout)

    # A topic that is made again between, empty at first, and then with as many records as were read of the former one. That had enough for
    # the replay to be in their middle, however slow this machine is.
    await publish(2, 3_000)
    state = next(path)
    slow = Replay(arguments, state, "--state", state, "--partitions", "2")
    await slow.is_under_way()
    await slow.ends(1, "--resume " + state, number=signal.SIGINT)
    await make_again(arguments)
    says(await replay("--resume", state), 2, topic + " was deleted and made again", "begin a new one")
    await publish(2, 1_000)
    says(await replay("--resume", state), 2, topic + " was deleted and made again", "begin a new one")
    expect(not await again_and_again(arguments, 1_000), "nothing is written to the new one")
    new = await replay("--partitions", "2", "--state", next(path))
    expect(new.returncode == 0 and json.loads(new.stdout)["written"] == 1_000, "a new one replays all of it", new.stdout + new.stderr)


PARTS = {"unfinished": unfinished, "interrupted": interrupted, "broker": broker, "gone": gone}

if __name__ == "__main__":
    run_part(__doc__, PARTS, "carillon-replay-", records=5_000, kafka_folder=None)
