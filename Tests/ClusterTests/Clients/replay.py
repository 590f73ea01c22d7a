"""`carillon replay`: real workers, devices, and a tool that is interrupted and killed.

  unfinished   1,000 requests that wait for devices which are offline lose their entries in the mailboxes and their remembered ids, and 200 of
               other devices their entries alone: --only-unfinished brings exactly these, each is shown once, and a rebuilding brings none of it
               back
  interrupted  a range, half of which no worker has judged yet, is replayed while newer revisions come, and the tool is interrupted three times,
               once by a kill: each record comes once more, nothing is shown twice, nothing takes the place of a newer one
               (--records 1000000 is its long form: a quarter of an hour, and 8 GB of memory)
"""
import asyncio
import collections
import json
import os
import signal
import subprocess
import uuid

from clients import Producer, Reader, expect, say, until
from extensions import RememberingDevice, audit, tool
from healing import committed, emptied_and_rebuilt, on_one_redis, run_part

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


async def unfinished(arguments, folder):
    producer = Producer(arguments.kafka, arguments.prefix + "requests", linger=20)
    async with on_one_redis(arguments, folder) as (redis, cluster):
        transform = await cluster.started("transform", *cluster.group)
        fan_out = await cluster.started("fan-out", "--listen", "127.0.0.1:0")
        url = fan_out.addresses["devices"]
        devices = [Screen(url, None, user="u%d" % number) for number in range(PEOPLE)]
        for device in devices:
            async with device:
                pass
        names = []
        for number in range(EACH):
            for place, device in enumerate(devices):
                target = "user:u%d" % place if number % 2 else "device:" + device.token
                names.append(await producer.notify(target, "waits %d" % number, **({"apns_collapse_id": "c%d" % number} if number % 5 else {})))
        await producer.flush()
        await until(lambda: committed(arguments) >= len(names), "all is below the markers", 60, lambda: committed(arguments))
        *taken, forgotten = redis.cli("EVAL", LOSE, "0", *(device.token for device in devices[:FORGETFUL])).split()
        gone = {str(uuid.UUID(name.decode())) for name in taken}
        expect(len(gone) == len(names) // 2, "half of it is lost", len(gone))
        expect(int(forgotten) == FORGETFUL * EACH // 2 == 1_000, "1,000 of them with the remembered id", int(forgotten))

        flags = [*cluster.common[2:4], "--only-unfinished", "--json", "--group", cluster.group[1], "--grace", "1s"]
        await asyncio.sleep(1)
        dry = tool(arguments, "replay", *flags, "--dry-run")
        expect(dry.returncode == 0, "a dry run says how much there is to do", dry.stderr)
        expect(json.loads(dry.stdout)["written"] == len(gone), "exactly what was lost", dry.stdout)
        plain = tool(arguments, "replay", "--json", "--records-per-second", "0", "--group", cluster.group[1], "--state", os.path.join(folder, "plain"))
        expect(plain.returncode == 0 and json.loads(plain.stdout)["written"] == len(names), "a replay brings all of it", plain.stdout + plain.stderr)
        await until(lambda: committed(arguments) >= 2 * len(names), "which is below the markers", 60, lambda: committed(arguments))
        expect(waiting(redis) == len(names) - len(gone), "and does nothing, for it was applied before", waiting(redis))

        done = tool(arguments, "replay", *flags, "--state", os.path.join(folder, "state"))
        expect(done.returncode == 0, "the lost ones are brought", done.stderr)
        expect(json.loads(done.stdout)["written"] == len(gone), "exactly these", done.stdout)
        reader = Reader(arguments.kafka, [arguments.prefix + "requests"])
        reading = asyncio.create_task(reader.run())
        await until(lambda: sum(replayed(arguments, reader).values()) == len(names) + len(gone), "they are in the topic", 30)
        twice = {name for name, count in replayed(arguments, reader).items() if count == 2}
        expect(twice == gone, "and no others", [len(twice), len(gone)])
        reading.cancel()
        await until(lambda: committed(arguments) >= 2 * len(names) + len(gone), "they are judged", 60, lambda: committed(arguments))
        again = tool(arguments, "replay", *flags, "--dry-run")
        expect(again.returncode == 1 and json.loads(again.stdout)["written"] == 0, "nothing more is unfinished", again.stdout + again.stderr)
        shown = collections.Counter()
        for device in devices:
            async with device:
                await until(lambda: len(device.shown) == EACH, "a device finds all of its notifications", 30, lambda: len(device.shown))
                shown += device.times
        expect(set(shown) == set(names) and max(shown.values()) == 1, "each is shown once", len(shown))
        await until(lambda: audit(arguments)["outcomes"].get("pending", 0) == 0, "the audit knows of all of them", 60)
        await emptied_and_rebuilt(redis, cluster, transform, fan_out)
        expect(waiting(redis) == 0, "a rebuilding brings none of it back, though all of it was published twice", waiting(redis))
        say(lost=len(gone), forgotten=int(forgotten), audit=audit(arguments))


async def interrupted(arguments, folder):
    producer = Producer(arguments.kafka, arguments.prefix + "requests", linger=20)
    flags = ["--mailbox-bound", "10000", "--session-timeout", "2s"]
    # What takes a minute of a million takes no less of a machine that stands still.
    patience = 60 + arguments.records // 1000
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
            await until(lambda: committed(arguments) >= len(names), "the workers keep up", patience, lambda: [committed(arguments), len(names)])
        transform.kill()
        transform.wait()
        await publish(rounds - rounds // 2)
        state = os.path.join(folder, "state")
        command = [arguments.binary, "replay", *cluster.common[:2], *cluster.common[4:], *cluster.group, "--json", "--max-behind", "0"]

        def saved():
            """How many records are written, as the file says."""
            if not os.path.exists(state):
                return 0
            with open(state) as file:
                text = file.read()
            return sum(each["counts"]["written"] for each in json.loads(text)["partitions"]) if text else 0

        first, range_end = ["--state", state], len(names)
        newer = asyncio.create_task(publish_newer())
        for number, ending in enumerate((signal.SIGINT, signal.SIGKILL, signal.SIGINT)):
            # So slow that a machine that stands still for a while does not let it come to its end.
            words, before = [*command, *first, "--records-per-second", str(max(100, arguments.records // 100))], saved()
            process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            await until(lambda: saved() > before, "it writes and saves", 60, lambda: process.stderr.read() if process.poll() is not None else None)
            await asyncio.sleep(0.5)
            process.send_signal(ending)
            await until(lambda: process.poll() is not None, "it ends", 60)
            expect(process.returncode in (1, -9), "it was interrupted in the middle", [process.returncode, process.stderr.read()])
            first = ["--resume", state]
            if number == 0:
                await cluster.started("transform", *flags, *cluster.group)
        left = await asyncio.create_subprocess_exec(*command, *first, "--records-per-second", "0", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        output, errors = await asyncio.wait_for(left.communicate(), 2 * patience)
        expect(left.returncode == 0, "what is left is replayed", errors.decode())
        total = json.loads(output)
        newer.cancel()
        await producer.flush()
        reader = Reader(arguments.kafka, [arguments.prefix + "requests"])
        reading = asyncio.create_task(reader.run())
        records = reader.records[arguments.prefix + "requests"]
        await until(lambda: len(records) == len(names) + total["written"], "the topic is read", patience, lambda: len(records))
        reading.cancel()
        again = replayed(arguments, reader)
        expect(max(again.values()) == 1, "each record comes once more, and not twice", again.most_common(3))
        expect(len(again) == total["written"] >= range_end, "and none is forgotten", [len(again), total, range_end])
        expect(set(names[:range_end]) <= set(again), "of those that were there when it began", len(set(names[:range_end]) - set(again)))
        judged = len(names) + total["written"]
        await until(lambda: committed(arguments) >= judged, "all of it is judged", patience, lambda: [committed(arguments), judged])
        last = {}
        for record in records:
            if "carillon-replay" not in record.headers:
                last[record.headers["target"], record.headers.get("apns-collapse-id", record.headers["apns-id"])] = record.headers["apns-id"]
        wanted = {"user:u%d" % place: {name for (target, _), name in last.items() if target == "user:u%d" % place} for place in range(len(devices))}
        for place, device in enumerate(devices):
            target = "user:u%d" % place
            await until(
                lambda: wanted[target] <= device.shown, "a device has the newest of everything", patience, lambda: len(wanted[target] - device.shown))
            expect(max(device.times.values()) == 1, "and nothing twice")
            await device.__aexit__()
        say(written=total["written"], shown=sum(len(device.shown) for device in devices), audit=audit(arguments))


PARTS = {"unfinished": unfinished, "interrupted": interrupted}

if __name__ == "__main__":
    run_part(__doc__, PARTS, "carillon-replay-", records=5_000)
