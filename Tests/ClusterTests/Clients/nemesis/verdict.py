"""What must hold: judged from the requests as Kafka has them, the devices' own logs, the events, and the journal.

It knows of a device only what stands in its log, and of a request only what the producer meant and where Kafka has put it.
"""
import collections
import json
import math
import os
import time

import confluent_kafka
import journal
from common import is_fickle, token_of, users_of

# Events that end a request at a device, or tell that it has it; and what the journal says: that it is in the device's mailbox.
TOLD = {"delivered": 1, "updated": 2, "collapsed": 4, "expired": 8, "evicted": 16, "removed": 32, "duplicate": 64, "filtered": 128,
        "unregistered": 256, "rejected": 512, "kept": 1024, "canceled": 2048}
HAS_IT = TOLD["delivered"] | TOLD["updated"] | TOLD["collapsed"] | TOLD["evicted"] | TOLD["filtered"] | TOLD["expired"]
ENDED = TOLD["evicted"]
# How much later than it was sent a notification may arrive, in seconds: a worker or a connection may stand still in between.
ON_THE_WAY = 60
# Between a device's look at the clock and the line in its log, in seconds.
WRITTEN = 0.05
# How long a device's former session may live beside its new one, in seconds, when the worker that holds it cannot be reached.
SUPERSEDED = 30
# How far the order of two partitions may be from that of their timestamps, in milliseconds.
BESIDE = 10_000


class Topics:
    """Follows the topics of a run, each from its beginning."""

    def __init__(self, kafka, prefix):
        self.kafka, self.prefix, self.consumers, self.ends = kafka, prefix, {}, {}
        for name in ("requests", "events", "journal", "dead-letters"):
            self.follow(name)

    def follow(self, name):
        consumer = confluent_kafka.Consumer({
            "bootstrap.servers": self.kafka, "group.id": "verdict", "enable.auto.commit": False, "fetch.wait.max.ms": 100,
            # A transaction's control record at the end of a partition is told by the end alone.
            "enable.partition.eof": True,
            # A client that asked a broker which was just starting may take a partition for unknown until what it knows is too old.
            "reconnect.backoff.max.ms": 1000, "topic.metadata.refresh.interval.ms": 2000, "metadata.max.age.ms": 6000, "logger": None,
            "log_level": 0})
        topic = self.prefix + name
        self.ends = {place: end for place, end in self.ends.items() if place[0] != topic}
        partitions = persistently(lambda: consumer.list_topics(topic, 30).topics[topic].partitions)
        consumer.assign([confluent_kafka.TopicPartition(topic, number, 0) for number in partitions])
        self.consumers[name] = consumer

    def read(self, name, most=5000):
        consumer, found = self.consumers[name], []
        for message in consumer.consume(most, 0.05):
            place = confluent_kafka.TopicPartition(message.topic(), message.partition(), message.offset())
            if message.error() is None:
                found.append(message)
            elif message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF:
                self.ends[place.topic, place.partition] = place.offset
            elif message.error().code() == confluent_kafka.KafkaError._BAD_COMPRESSION:
                # Alone in its batch, as `Producer.bomb` publishes it.
                place.offset += 1
                consumer.seek(place)
        return found

    def unread(self, name):
        """How many records of the topic have not been read yet."""
        consumer, left = self.consumers[name], 0
        for place in consumer.position(consumer.assignment()):
            read = max(place.offset, self.ends.get((place.topic, place.partition), 0), 0)
            left += max(0, ends_of(consumer, place)[1] - read)
        return left

    def unfinished(self, group, applied):
        """How many requests the transform workers have not finished: by the group's offsets, and by the markers in Redis."""
        consumer = confluent_kafka.Consumer({"bootstrap.servers": self.kafka, "group.id": group, "logger": None, "log_level": 0})
        try:
            places = [confluent_kafka.TopicPartition(place.topic, place.partition) for place in self.consumers["requests"].assignment()]
            left, ends = 0, 0
            for place in persistently(lambda: consumer.committed(places, timeout=30)):
                low, end = ends_of(consumer, place)
                left += end - (place.offset if place.offset >= 0 else low)
                ends += end
            return max(left, ends - applied)
        finally:
            consumer.close()

    def again(self, name, wanted):
        """Reads a topic once more from its beginning: the records that `wanted` picks."""
        self.follow(name)
        found = []
        while self.unread(name):
            found += [message for message in self.read(name) if wanted(message)]
        return found


def ends_of(consumer, place):
    """The first and the next offset of a partition."""
    return persistently(lambda: consumer.get_watermark_offsets(place, timeout=30))


def persistently(question):
    """What Kafka answers, asked again for a minute: a broker may have just gone or come back, or a topic may have been made anew."""
    for attempt in range(60):
        try:
            if (answer := question()) or attempt == 59:
                return answer
        except confluent_kafka.KafkaException:
            if attempt == 59:
                raise
        time.sleep(1)


class Shown:
    """What a device has done with one identifier that collapses."""

    __slots__ = ("numbers", "removed")

    def __init__(self):
        self.numbers, self.removed = [], False


class DeviceLog:
    """Follows one device's log."""

    def __init__(self, path):
        self.path, self.offset = path, 0

    def lines(self):
        with open(self.path, "rb") as file:
            file.seek(self.offset)
            data = file.read()
        end = data.rfind(b"\n") + 1
        self.offset += end
        return data[:end].splitlines()


class Verdict:
    """`has_losses`: faults take away what Redis had, so that not every repeat can be known for one; `has_eras`: topics get new
    incarnations, which the cluster may find for some partitions later than for others, so that it may order requests of the same
    millisecond otherwise."""

    def __init__(self, plan, folder, count, has_losses, has_eras):
        self.has_losses, self.has_eras = has_losses, has_eras
        # When each device has taken its last removal of all, and what came long after it though it is older.
        self.cleared, self.below = {}, collections.defaultdict(list)
        self.plan, self.count, self.folder = plan, count, folder
        self.logs = [DeviceLog(os.path.join(folder, "%04d.log" % number)) for number in range(count)]
        self.people = collections.defaultdict(list)
        for number in range(count):
            for user in users_of(number):
                self.people[user].append(number)
        self.tokens = {token_of(number): number for number in range(count)}
        self.numbers, self.places, self.at = {}, {}, {}
        self.shown = [collections.Counter() for _ in range(count)]
        self.collapsing = [collections.defaultdict(Shown) for _ in range(count)]
        self.told, self.buried, self.rejected, self.answers = collections.Counter(), set(), set(), collections.defaultdict(set)
        self.sent, self.accepted, self.withdrawn = {}, set(), set()
        self.tally = collections.Counter()
        self.certain, self.early = [], []
        # Where batches lie that nobody can read, and the ranges of offsets that dead letters tell of.
        self.bombs, self.unreadable = [], []
        # What the journal says of requests: by their places whether there is an entry, and those whose requests were not read yet.
        self.journaled, self.unread = set(), []
        # Of each occurrence the request that scheduled it, its due time in seconds, and where its firings lie; and of the requests how many have
        # fired. By occurrence and device, when it was shown, and how often.
        self.occurrences, self.fired = {}, collections.Counter()
        self.showed_occurrence = collections.defaultdict(dict)
        # Where removals of all lie, by device.
        self.clears = collections.defaultdict(list)
        # The greatest incarnation of the topic that the journal has told of, by partition.
        self.incarnations = collections.Counter()

    # What Kafka has of the requests.

    def request(self, message):
        headers = dict(message.headers() or [])
        place = (message.timestamp()[1], message.partition(), message.offset())
        if "carillon-firing" in headers:
            return self.firing(headers, place)
        number = int(headers["number"])
        request = self.plan.requests[number]
        self.at.setdefault(number, []).append(place)
        self.places[place] = self.places[place[1:]] = number
        if request.id and request.kind != "repeat":
            self.numbers[request.id] = number
        if request.kind == "clear":
            for device in self.devices_of(request):
                self.clears[device].append(place)
        self.tally["requests"] += 1

    def firing(self, headers, place):
        """A record that the cluster has written: an occurrence is due."""
        firing, name = json.loads(headers["carillon-firing"]), headers["apns-id"].decode()
        if not firing["name"]:
            # It fires no occurrence: the schedule is to follow the zones of its devices.
            return
        number = self.numbers[firing["id"]]
        self.numbers[name] = name
        self.occurrences.setdefault(name, (number, firing["due"] / 1000, []))[2].append(place)
        self.fired[number] += 1
        self.places[place] = self.places[place[1:]] = name
        self.tally["firings"] += 1

    def origin(self, number):
        if number in self.occurrences:
            return number
        request = self.plan.requests[number]
        return request.first.number if request.first else number

    def event(self, message):
        headers = dict(message.headers() or [])
        kind = headers["ce_type"].decode().split(".", 1)[1].rsplit(".", 1)[0]
        self.tally["event." + kind] += 1
        value = json.loads(message.value())
        if kind in ("response", "dismissed"):
            self.answers[value["response"]].add(headers["ce_id"])
            return
        if kind in TOLD:
            self.tell(kind, {**value, "apnsId": headers["ce_subject"].decode()})

    def tell(self, kind, value, is_late=False):
        number = self.numbers.get(value.get("apnsId"))
        source = value.get("source") or {}
        if number is None:
            number = self.places.get((source.get("timestamp"), source.get("partition"), source.get("offset")))
        if number is None and is_late:
            # A revision that was raised to the time of another; two topics may have had the same place, so this is the last resort.
            number = self.places.get((source.get("partition"), source.get("offset")))
        if number is None:
            # What is said of a request may be read before the request.
            return self.early.append((kind, value))
        if kind == "rejected":
            self.rejected.add((source["timestamp"], source["partition"], source["offset"]))
        self.told[self.origin(number), self.tokens.get(value.get("device"), -1)] |= TOLD[kind]

    def journal(self, message):
        """An entry whose timestamp is not that of the request at its offset counts for nothing: it finds no request by its place."""
        self.tally["journal"] += 1
        incarnation, partition = int(dict(message.headers())["incarnation"]), message.partition()
        self.tally["journal.late"] += incarnation < self.incarnations[partition]
        self.incarnations[partition] = max(incarnation, self.incarnations[partition])
        for offset, timestamp, token, verdict in journal.entries(message.value()):
            self.entry((timestamp, message.partition(), offset), token, verdict)

    def entry(self, place, token, verdict):
        number = self.places.get(place)
        if number is None:
            return self.unread.append((place, token, verdict))
        self.journaled.add(place)
        if verdict == journal.KEPT:
            scheduled = self.occurrences[number][0] if number in self.occurrences else number
            devices = [self.tokens.get(token, -1)] if token else self.devices_of(self.plan.requests[scheduled])
            for device in devices:
                self.told[self.origin(number), device] |= TOLD["kept"]

    def dead_letter(self, message):
        headers = {name: (value or b"").decode("utf-8", "replace") for name, value in message.headers() or []}
        # What nobody can read has no timestamp either.
        timestamp, partition, offset = (
            int(headers.get("carillon-dead-letter-" + part, -1)) for part in ("timestamp", "partition", "offset"))
        if "carillon-dead-letter-last" in headers:
            self.unreadable.append((partition, offset, int(headers["carillon-dead-letter-last"])))
        self.buried.add((timestamp, partition, offset))

    # What the devices have logged.

    def follow(self):
        early, self.early = self.early, []
        for kind, value in early:
            self.tell(kind, value)
        unread, self.unread = self.unread, []
        for entry in unread:
            self.entry(*entry)
        for number, log in enumerate(self.logs):
            for line in log.lines():
                self.line(number, json.loads(line))

    def line(self, device, line):
        what = line["what"]
        if what in ("shown", "updated"):
            self.tally["shown"] += 1
            self.showed(device, line)
        elif what == "below":
            # A delivery record that was on its way is sent after the removal, which the device knows.
            self.tally["dropped.below"] += 1
            if line["at"] > self.cleared.get(device, 0) + ON_THE_WAY:
                self.below[device].append(line)
        elif what in ("known", "stale", "expired"):
            self.tally["dropped." + what] += 1
            if what == "expired" and line["at"] > line["expiration"] + ON_THE_WAY:
                self.accuse("sent after its expiration", device, line)
        elif what == "removed":
            if not line["identifiers"]:
                self.cleared[device] = line["at"]
                # A removal that Redis has lost before Kafka knew of it takes effect, and is told, once more.
                if self.has_losses:
                    self.below[device].clear()
            for identifier in line["gone"]:
                if identifier in self.collapsing[device]:
                    self.collapsing[device][identifier].removed = True
        elif what == "response":
            self.sent[line["response"]] = device
        elif what == "accepted":
            self.accepted.add(line["response"])
        elif what == "refused":
            self.accuse("refused", device, line)
        elif what == "withdrawn":
            self.sent.pop(line["response"], None)
            self.withdrawn.add(line["response"])
        elif what == "welcome":
            self.tally["sessions"] += 1
        elif what == "closed":
            self.tally["closed.%s" % line["why"]] += 1
        elif what == "banished":
            self.accuse("sent away for good", device, line)
        elif what == "lingered":
            self.tally["superseded"] += 1
            if line["open"] and line["after"] > SUPERSEDED:
                self.accuse("the former session was not closed", device, line)
        elif what == "gap":
            self.tally["gaps"] += 1

    def accuse(self, what, device, line, **more):
        self.certain.append({"violation": what, "device": device, "id": line.get("id"), "number": line.get("number"), "line": line, **more})

    def showed(self, device, line):
        number = line["number"]
        if not isinstance(number, int) or number >= len(self.plan.requests):
            return self.accuse("unknown", device, line)
        request = self.plan.requests[number]
        if request.trigger:
            at, count = self.showed_occurrence[line["id"]].get(device, (line["at"], 0))
            self.showed_occurrence[line["id"]][device] = (at, count + 1)
            if line["id"] == request.id:
                self.accuse("shown though it waits for its time", device, line)
            self.tally["occurrences"] += 1
        else:
            self.shown[device][number] += 1
            count = self.shown[device][number] - 1
        if count:
            self.accuse("twice", device, line)
        if device not in self.devices_of(request):
            self.accuse("wrong device", device, line, target=request.target)
        if request.target.startswith("user:") and request.target != "user:" + line["user"]:
            self.accuse("wrong person", device, line, target=request.target)
        if line["expiration"] and line["at"] >= line["expiration"] + WRITTEN:
            self.accuse("late", device, line)
        if request.collapse and not request.trigger:
            shown = self.collapsing[device][request.collapse]
            shown.numbers.append(number)
            shown.removed = False

    def devices_of(self, request):
        kind, name = request.target.split(":", 1)
        return self.people[name] if kind == "user" else [self.tokens[name]] if name in self.tokens else []

    # The judgement.

    def place(self, number):
        return min(self.at[number])

    def precedes(self, one, other):
        """Whether the one request certainly stands before the other, or is the same."""
        one, other = self.place(one), self.place(other)
        return one <= other and not (self.has_eras and self.tie(one, other))

    @staticmethod
    def tie(one, other):
        return one[0] == other[0] and one[1] != other[1]

    def must(self, request, device):
        """Whether this device has to show it, if nothing newer or later comes between; by the producer's intention."""
        if request.target.startswith("user:") and len(users_of(device)) > 1:
            return "may"
        return "may" if self.is_cleared(device, self.place(request.number)) else request.kind

    def judge(self):
        """All violations, those that time may mend included."""
        early, self.early = self.early, []
        for kind, value in early:
            self.tell(kind, value, is_late=True)
        found = list(self.certain) + [
            {"violation": "sent though all was removed", "device": device, "id": line["id"], "number": line["number"], "line": line}
            for device, lines in self.below.items() for line in lines]
        self.named = collections.defaultdict(list)
        for number in self.at:
            request = self.plan.requests[number]
            if request.collapse and request.kind not in ("bad", "remove", "never"):
                self.named[request.target, request.collapse].append(request)
        removed = {self.plan.requests[number].removes.number for number in self.at if self.plan.requests[number].removes}
        newest = collections.defaultdict(list)
        for number in self.at:
            request = self.plan.requests[number]
            for place in self.at[number]:
                if place not in self.journaled:
                    found.append({"violation": "the journal says nothing of it", "number": number, "id": request.id, "place": place})
            if request.kind == "bad":
                for place in self.at[number]:
                    if place not in self.rejected or place not in self.buried:
                        found.append({"violation": "bad request without its answer", "number": number, "place": place})
            elif request.kind == "unregistered":
                if not self.told[number, -1] & TOLD["unregistered"]:
                    found.append({"violation": "no event of an unregistered device", "number": number, "id": request.id})
            elif len(self.at[number]) > 1 and not self.has_losses and not self.told[number, self.devices_of(request)[0]] & TOLD["duplicate"]:
                found.append({"violation": "published twice, and no event says so", "number": number, "id": request.id})
            elif request.kind in ("once", "repeats"):
                self.judge_scheduled(request, found)
            elif request.kind in ("cancel", "clear"):
                pass
            elif request.removes is None and request.kind != "repeat":
                for device in self.devices_of(request):
                    if request.collapse:
                        newest[device, request.collapse].append(request)
                    else:
                        self.judge_plain(request, device, removed, found)
        for (device, _), requests in newest.items():
            self.judge_collapsing(device, requests, found)
        for device in range(self.count):
            for number in self.shown[device]:
                # What is lost with Redis may expire before the device hears of it again, or somebody else may have signed in there.
                is_optional = self.must(self.plan.requests[number], device) == "may"
                if self.told[number, device] & HAS_IT or self.has_losses and is_optional:
                    continue
                # A removal of all has ended it while it was on its way to the device, which takes it off its list when it hears of the removal.
                if number in self.at and self.told[number, device] & TOLD["canceled"] and self.is_cleared(device, self.place(number)):
                    continue
                # A killed worker may not say of the former of several revisions that it is replaced; what is said of the newer ones tells.
                if not self.is_replaced(number, newest.get((device, self.plan.requests[number].collapse), ()), device):
                    found.append({"violation": "shown, and no event says so", "device": device, "number": number, "id": self.plan.requests[number].id})
        self.judge_occurrences(found)
        for partition, offset in self.bombs:
            if not any(where == partition and first <= offset <= last for where, first, last in self.unreadable):
                found.append({"violation": "unreadable batch without its dead letter", "place": (partition, offset)})
        for response in self.accepted:
            if len(self.answers[response]) != 1:
                found.append({"violation": "accepted response with %d events" % len(self.answers[response]), "response": response,
                              "device": self.sent.get(response)})
        for response, device in self.sent.items():
            if response not in self.accepted:
                found.append({"violation": "response never accepted", "response": response, "device": device})
        for response in set(self.answers) - set(self.sent) - self.withdrawn:
            found.append({"violation": "response of nobody", "response": response})
        return found

    # What is due at a time.

    def ends(self, request):
        """Where the later requests lie that end what this one has scheduled: with its target and identifier, so in its partition."""
        own = self.place(request.number)
        return [place for other in self.named[request.target, request.collapse] if other is not request for place in self.at[other.number]
                if place[1] == own[1] and place > own]

    def judge_scheduled(self, request, found):
        """What is due once and ended by nothing fires. What repeats is ended at last, perhaps before it could fire: the audit finds its gaps."""
        if request.kind == "once" and not self.fired[request.number] and not self.ends(request):
            found.append({"violation": "it never fired", "number": request.number, "id": request.id, "places": self.at[request.number]})

    def judge_occurrences(self, found):
        for name, (number, due, places) in self.occurrences.items():
            request, first = self.plan.requests[number], min(places)
            what = {"number": number, "id": name, "due": due, "places": places}
            found += [{"violation": "the journal says nothing of a firing", **what} for place in places if place not in self.journaled]
            if not self.is_due(request, due):
                found.append({"violation": "due at another time than its trigger says", "scheduled": self.at[number], **what})
            ends = self.ends(request)
            for device, (at, _) in self.showed_occurrence[name].items():
                what["device"] = device
                if at < due - WRITTEN:
                    found.append({"violation": "early", "at": at, **what})
                if any(end[1] == first[1] and end < first for end in ends):
                    found.append({"violation": "fired after its end", "ends": ends, **what})
                if not self.told[name, device] & (HAS_IT | TOLD["kept"]) and not self.has_losses:
                    found.append({"violation": "shown, and no event says so", **what})
            if request.kind != "once" or ends:
                continue
            for device in self.devices_of(request):
                what["device"] = device
                # Another person may have had the device when it fired, or when it was scheduled.
                is_optional = len(users_of(device)) > 1 or self.is_cleared(device, first)
                if not is_optional and device not in self.showed_occurrence[name] and not self.has_ended(name, device):
                    found.append({"violation": "lost", "told": self.names(name, device), **what})

    def is_due(self, request, due):
        if request.kind == "repeats":
            return due % 60 == request.trigger["dateComponents"]["second"]
        interval = math.ceil(request.trigger["timeInterval"] * 1000)
        return any(place[0] + interval == round(due * 1000) for place in self.at[request.number])

    def is_cleared(self, device, place):
        """Whether a removal of all lies behind this place, or beside it in another partition."""
        return any(clear[0] + BESIDE >= place[0] for clear in self.clears[device])

    def has_ended(self, number, device):
        """Whether an event says why the device does not show it."""
        return bool(self.told[number, device] & (ENDED | (TOLD["filtered"] if is_fickle(device) else 0)))

    def is_replaced(self, number, requests, device):
        """Whether the journal says that it was kept for the device, and that a newer revision was."""
        return number in self.at and bool(self.told[number, device] & TOLD["kept"]) and any(
            self.place(request.number) > self.place(number) and self.told[self.origin(request.number), device] & TOLD["kept"]
            for request in requests)

    def judge_plain(self, request, device, removed, found):
        shown, must = self.shown[device][request.number], self.must(request, device)
        if must == "never" and shown:
            found.append({"violation": "shown after its expiration", "device": device, "number": request.number, "id": request.id})
        if must == "must" and not shown and request.number not in removed and not self.has_ended(request.number, device):
            found.append({"violation": "lost", "device": device, "number": request.number, "id": request.id,
                          "told": self.names(request.number, device), "places": self.at[request.number]})

    def judge_collapsing(self, device, requests, found):
        requests.sort(key=lambda request: self.place(request.number))
        identifier = requests[0].collapse
        shown = self.collapsing[device].get(identifier)
        numbers = shown.numbers if shown else []
        for earlier, later in zip(numbers, numbers[1:]):
            if self.precedes(later, earlier):
                found.append({"violation": "stale over newer", "device": device, "identifier": identifier, "number": later, "over": earlier})
        newest = requests[-1]
        must = self.must(newest, device)
        last = numbers[-1] if numbers else None
        is_newest = last == newest.number or last in self.at and not self.precedes(last, newest.number)
        # An occurrence that fires later takes its place.
        is_renewed = any(other.trigger and self.place(other.number) > self.place(newest.number) for other in self.named[newest.target, identifier])
        if must == "must" and not is_newest and not is_renewed and not self.has_ended(newest.number, device):
            found.append({
                "violation": "not the newest", "device": device, "identifier": identifier, "number": newest.number, "id": newest.id,
                "shows": last, "told": self.names(newest.number, device), "places": self.at[newest.number]})
        if must == "remove" and numbers and not shown.removed and not is_newest:
            found.append({"violation": "not removed", "device": device, "identifier": identifier, "number": newest.number, "shows": last})

    def names(self, number, device):
        return [name for name, bit in TOLD.items() if self.told[number, device] & bit]
