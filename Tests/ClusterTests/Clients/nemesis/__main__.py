"""A cluster of real processes, and a seeded nemesis that tries to make it lose, repeat, outdate or delay a notification.

It starts Kafka, Redis, workers, a proxy that breaks connections, and a few hundred devices; publishes requests of all kinds; injects faults
by a plan that the seed alone makes; heals, waits until everything has come to its end, and judges: from what Kafka has of the requests,
from the devices' own logs, and from the events. Exits 0 when everything held; else it prints each violation with all that is known of it,
and keeps the folder with all logs.
"""
import argparse
import asyncio
import json
import os
import shutil
import signal
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "../../../.."))
# What it shares with the other clients lies beside its folder.
sys.path.append(os.path.dirname(HERE))

import schedule  # noqa: E402
from cluster import Broken, Cluster  # noqa: E402
from faults import Nemesis  # noqa: E402
from producer import Plan, Producer  # noqa: E402
from verdict import Topics, Verdict  # noqa: E402


def arguments():
    parser = argparse.ArgumentParser(
        prog="nemesis", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="kinds of faults:\n" + "\n".join(
            "  %-18s %s" % (kind, " ".join((getattr(Nemesis, kind.replace("-", "_")).__doc__ or "").split()))
            for kind in schedule.KINDS))
    add = parser.add_argument
    add("--seed", type=int, default=1, help="makes the plan of faults and the requests (default 1)")
    add("--minutes", type=float, default=1, help="how long requests are published and faults injected (default 1)")
    add("--requests", type=int, default=6000, help="(default 6000)")
    add("--faults", type=int, default=15, help="(default 15)")
    add("--faults-of", default="all", metavar="KIND,…", help="the kinds to choose from, of those below (default all)")
    add("--devices", type=int, default=200, help="(default 200)")
    add("--programs", type=int, default=33, metavar="PERCENT", help="how many of the devices are processes of 'carillon device' (default 33)")
    add("--pages", type=int, default=0, help="how many of the others are one page of carillon.js in Chromium, a database each (default 0)")
    add("--transforms", type=int, default=2, help="transform workers (default 2)")
    add("--fan-outs", type=int, default=3, help="fan-out workers (default 3)")
    add("--brokers", type=int, default=1, choices=(1, 3), help="Kafka brokers (default 1)")
    add("--partitions", type=int, default=8, help="of each topic (default 8)")
    add("--mailbox-bound", type=int, default=1000, help="(default 1000)")
    add("--deadline", type=float, default=600, help="seconds that everything may take to come to its end, after the faults and where one waits for it (default 600)")
    add("--quiet-seconds", type=float, default=4, help="seconds after the end in which nothing more may happen (default 4)")
    add("--tls", action="store_true", help="devices connect by TLS, and know the fan-out workers' certificate")
    add("--plan", action="store_true", help="only print the plan of faults")
    add("--json", action="store_true", help="one JSON object a line, the last one with the result")
    add("--keep", action="store_true", help="keep the folder also when everything held")
    add("--binary", default=os.environ.get("TESTS_BINARY") or os.path.join(ROOT, ".build/release/carillon"),
        help="the program (default: TESTS_BINARY, else .build/release/carillon)")
    add("--former", metavar="BINARY", help="another program, which the workers are at first; see the fault 'exchange', and Tests/ClusterTests/former")
    add("--kafka-folder", default=os.environ.get("TESTS_KAFKA_FOLDER") or os.path.join(ROOT, "../shared/kafka"),
        help="an unpacked Apache Kafka, 4.0 or newer (default: TESTS_KAFKA_FOLDER, else ../shared/kafka beside the clone)")
    add("--worker-flags", type=str.split, default=[], metavar="'--FLAG VALUE …'", help="further flags for all workers")
    given = parser.parse_args()
    needs = {"--brokers 3": (given.brokers == 3, schedule.THREE_BROKERS), "--former": (given.former, schedule.TWO_PROGRAMS)}
    missing = {kind: flag for flag, (is_given, kinds) in needs.items() if not is_given for kind in kinds}
    possible = [kind for kind in schedule.KINDS if kind not in missing]
    if given.tls and given.pages:
        parser.error("a page trusts no certificate of a run: --tls goes without --pages")
    given.kinds = possible if given.faults_of == "all" else given.faults_of.split(",")
    for kind in given.kinds:
        if kind not in schedule.KINDS:
            parser.error("'%s' is none of %s" % (kind, ", ".join(schedule.KINDS)))
        if kind in missing:
            parser.error("'%s' needs %s" % (kind, missing[kind]))
    return given


# How far the requests are applied in Redis: the sum of the least markers of all partitions.
APPLIED = """
local least, sum = {}, 0
for _, key in ipairs(redis.call('KEYS', 'k{*')) do
  local all = redis.call('HGETALL', key)
  for i = 1, #all, 2 do
    if string.match(all[i], '^q%d+$') and #all[i + 1] == 20 then
      least[all[i]] = math.min(least[all[i]] or math.huge, (struct.unpack('>I8', all[i + 1])))
    end
  end
end
for _, offset in pairs(least) do sum = sum + offset end
return sum
"""


class Run:
    def __init__(self, given):
        self.given = given
        self.began = time.monotonic()
        self.faults = schedule.plan(given.seed, given.faults, given.minutes * 60, given.kinds)
        self.folder = tempfile.mkdtemp(prefix="carillon-nemesis-")
        self.cluster = Cluster(given, self.folder, self.say)
        self.log = open(os.path.join(self.folder, "nemesis.log"), "w", buffering=1)
        self.is_reading = True

    def say(self, **members):
        line = json.dumps({"second": round(time.monotonic() - self.began, 1), **members}, default=str)
        self.log.write(line + "\n")
        if self.given.json:
            print(line, flush=True)
        else:
            print("%7.1f  %s" % (time.monotonic() - self.began, "  ".join("%s %s" % pair for pair in members.items() if pair[1] is not None)),
                  flush=True)

    async def blocking(self, call, *arguments):
        return await asyncio.get_running_loop().run_in_executor(None, call, *arguments)

    # Following what happens.

    async def read(self):
        """Follows topics and logs as long as it is told; requests come before what is said of them."""
        while self.is_reading:
            await self.read_once()
            await asyncio.sleep(0.2)

    async def read_once(self):
        took = 0
        for name, take in (("requests", self.verdict.request), ("events", self.verdict.event), ("journal", self.verdict.journal),
                           ("dead-letters", self.verdict.dead_letter)):
            messages = await self.blocking(self.topics.read, name)
            for message in messages:
                take(message)
            took += len(messages)
        self.verdict.follow()
        return took

    async def accounted(self):
        """Waits until the transform workers have finished all that is published, Redis has it, and all that is published was read here."""
        end = time.monotonic() + self.given.deadline
        while True:
            try:
                unread = await self.blocking(self.topics.unread, "requests")
                applied = int(await self.cluster.redis.ask("EVAL", APPLIED, "0"))
                unfinished = await self.blocking(self.topics.unfinished, self.cluster.prefix + "transform", applied)
                if not unread and not unfinished:
                    return
                unread = "%s unread, %s unfinished" % (unread, unfinished)
            except Exception as error:  # noqa: BLE001 - Kafka may still be away; what it says is worth a line at the end only
                unread = error
            if time.monotonic() > end:
                raise Broken("not all requests were finished within %d s: %s" % (self.given.deadline, unread))
            await asyncio.sleep(0.3)

    async def renewed(self):
        await self.blocking(self.topics.follow, "requests")

    # The phases.

    async def run(self):
        given = self.given
        self.say(seed=given.seed, minutes=given.minutes, requests=given.requests, faults=given.faults, kinds=",".join(given.kinds),
                 folder=self.folder)
        for fault in self.faults:
            self.say(planned=str(fault))
        await self.cluster.start()
        self.say(started="%d brokers, %d transforms, %d fan-outs, %d devices" % (
            given.brokers, given.transforms, given.fan_outs, given.devices))
        plan = Plan(given.seed, given.devices)
        self.verdict = Verdict(plan, os.path.join(self.folder, "devices"), given.devices,
                               has_losses=any(kind in schedule.LOSSES for kind in given.kinds), has_eras=any(kind in schedule.NEW_TOPICS for kind in given.kinds))
        self.topics = await self.blocking(Topics, self.cluster.kafka.servers, self.cluster.prefix)
        self.producer = Producer(
            self.cluster.kafka.servers, self.cluster.prefix + "requests", plan, given.requests / (given.minutes * 60))
        self.nemesis = Nemesis(self.cluster, self.producer, self.accounted, self.renewed, self.say)
        self.verdict.bombs = self.nemesis.bombs
        reading = asyncio.create_task(self.read())
        work = [asyncio.create_task(self.producer.run(given.requests)), asyncio.create_task(self.nemesis.run(self.faults)), reading]
        await self.all_of(work[:2], reading)
        self.say(healed="all faults are over", published=self.producer.taken)
        await self.settle()
        self.is_reading = False
        await reading
        return await self.judge()

    async def all_of(self, tasks, reading):
        """All of the tasks; the first error ends the wait."""
        pending = set(tasks)
        while pending:
            done, _ = await asyncio.wait(pending | {reading}, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
            pending -= done

    async def settle(self):
        """All come back, and everything comes to its end: nothing uncommitted, nothing unread, every mailbox empty, nothing missing."""
        given, end = self.given, time.monotonic() + self.given.deadline
        self.cluster.crowd.child.stdin.write(b'{"settle": true}\n')
        await self.cluster.until(self.cluster.all_ready, given.deadline, "all workers are ready again")
        self.say(ready="all workers")
        await self.cluster.until(lambda: self.cluster.devices["connected"] == given.devices, given.deadline, "all devices are connected")
        self.say(connected=given.devices)
        await self.accounted()
        self.say(finished="all requests")
        wait = 1
        while True:
            self.violations = self.verdict.judge()
            self.mailboxes = [key for key in (await self.cluster.redis.ask("--scan", "--pattern", "m{*")).split() if key]
            unread = await self.blocking(self.topics.unread, "events") + await self.blocking(self.topics.unread, "journal")
            if not self.violations and not self.mailboxes and not unread:
                break
            if time.monotonic() > end or self.verdict.certain:
                self.say(overdue=len(self.violations), mailboxes=len(self.mailboxes), unread=unread)
                break
            await asyncio.sleep(wait)
            wait = min(wait * 1.3, 10)
        # What would be shown twice or late has a while to come.
        await asyncio.sleep(given.quiet_seconds)
        self.say(settled=True)

    async def judge(self):
        given, verdict = self.given, self.verdict
        while await self.read_once():
            pass
        violations = verdict.judge()
        for key in (await self.cluster.redis.ask("--scan", "--pattern", "m{*")).split():
            token = key.split("}", 1)[1]
            violations.append({"violation": "left in the mailbox", "device": verdict.tokens.get(token), "key": key})
        violations += [{"violation": "a worker ended by itself", **crash} for crash in self.cluster.crashes]
        violations += [{"violation": "Kafka refused a request", "error": error} for error in self.producer.refused]
        for request in verdict.plan.requests:
            if request.is_taken and request.number not in verdict.at:
                violations.append({"violation": "Kafka has lost a request", "number": request.number})
        audit = await self.audit()
        if audit and audit["code"]:
            violations.append({"violation": "carillon audit", **audit})
        for place, violation in enumerate(violations[:100]):
            self.say(**violation)
            if place < 6:
                await self.explain(violation)
        proxy = await self.cluster.proxy.do(count=True)
        result = "broken" if violations else "held"
        tally, kinds = verdict.tally, {}
        for violation in violations:
            kinds[violation["violation"]] = kinds.get(violation["violation"], 0) + 1
        self.say(
            result=result, seed=given.seed, requests=tally["requests"], deliveries=tally["shown"], faults=sum(self.nemesis.done.values()),
            injected=self.nemesis.done, connections_cut=sum(link["cut"] for link in proxy.values()),
            connections_dropped=sum(link["dropped"] for link in proxy.values()),
            worker_starts=sum(worker.starts for worker in self.cluster.workers.values()), sessions=tally["sessions"],
            programs=self.cluster.devices.get("programs"), program_kills=self.cluster.devices.get("kills"),
            repeats_suppressed=tally["dropped.known"] + tally["event.duplicate"],
            stale_dropped=tally["dropped.stale"] + tally["event.collapsed"], expired=tally["event.expired"],
            evicted=tally["event.evicted"],
            firings=tally["firings"], occurrences=tally["occurrences"], canceled=tally["event.canceled"], filtered=tally["event.filtered"], rejected=tally["event.rejected"], responses=len(verdict.accepted),
            late_journal=tally["journal.late"],
            lost=kinds.get("lost", 0), violations=kinds, audit=audit and audit["code"],
            seconds_in_all=round(time.monotonic() - self.began, 1))
        return not violations

    async def audit(self):
        """What the program itself finds in the topics; None while it has no such tool."""
        code, _, _ = await self.cluster.tool("audit", "--help", check=False)
        if code:
            return None
        code, out, errors = await self.cluster.tool(
            "audit", "--kafka", self.cluster.kafka.servers, "--topic-prefix", self.cluster.prefix, "--json",
            seconds=1800, check=False)
        with open(os.path.join(self.folder, "audit.log"), "w") as file:
            file.write(out + errors)
        return {"code": code, "lines": out.splitlines()[:20], "errors": errors.splitlines()[-5:]}

    async def explain(self, violation):
        """The device's log lines and the events of what a violation is about."""
        number, device, name = violation.get("number"), violation.get("device"), violation.get("id")
        request = self.verdict.plan.requests[number] if isinstance(number, int) else None
        wanted = {value for value in (name, violation.get("response"), request and request.collapse) if value}
        if device is not None and wanted:
            with open(os.path.join(self.folder, "devices", "%04d.log" % device)) as file:
                lines = [line.strip() for line in file if any('"%s"' % value in line for value in wanted) or '"welcome"' in line]
            for line in lines[-40:]:
                self.say(log=line)
        ids = [value.encode() for value in (name, violation.get("response")) if value]
        if not ids and number in self.verdict.at:
            _, partition, offset = self.verdict.at[number][0]
            ids = [b'"partition":%d,"offset":%d,' % (partition, offset)]
        if ids:
            token = next((token for token, place in self.verdict.tokens.items() if place == device), "").encode()
            messages = await self.blocking(self.topics.again, "events", lambda m: any(i in m.value() for i in ids) and token in m.value())
            for message in sorted(messages, key=lambda m: m.timestamp()[1])[:40]:
                self.say(event=dict(message.headers())["ce_type"].decode(), time=message.timestamp()[1], value=message.value().decode())


async def main(given):
    run = Run(given)
    held, ending = False, asyncio.current_task()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ending.cancel)
    try:
        held = await run.run()
    except Broken as error:
        run.say(result="broken", why=str(error), seed=given.seed)
    finally:
        await run.cluster.end()
        if held and not given.keep:
            shutil.rmtree(run.folder, ignore_errors=True)
        else:
            print("nemesis: everything that was logged is in %s" % run.folder, file=sys.stderr)
    return 0 if held else 1


if __name__ == "__main__":
    GIVEN = arguments()
    if GIVEN.plan:
        for planned in schedule.plan(GIVEN.seed, GIVEN.faults, GIVEN.minutes * 60, GIVEN.kinds):
            print(planned)
        sys.exit(0)
    sys.exit(asyncio.run(main(GIVEN)))
