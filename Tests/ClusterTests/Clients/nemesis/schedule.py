"""The nemesis' plan: which fault comes when, made from the seed alone, so that a seed replays a run."""
import random

# What each kind does is said at its function in faults.py. LOSSES take away what Redis or Kafka had, THREE_BROKERS need as many, and TWO_PROGRAMS
# a former program.
ALWAYS = [
    "kill-transform", "kill-fan-out", "freeze-transform", "freeze-fan-out", "storm", "rolling-transform", "rolling-fan-out",
    "kafka-kill", "kafka-freeze", "kafka-freeze-kill", "redis-kill", "redis-freeze", "redis-freeze-kill", "redis-full",
    "cut-devices", "cut-redis", "stall-devices", "stall-redis", "journal-refused", "events-refused", "transactions", "bomb", "damaged-markers",
    "redis-denies", "holes",
]
NEW_TOPICS = ["topic-anew", "late-worker"]
LOSSES = ["redis-older", "redis-failover", "redis-flush", *NEW_TOPICS]
THREE_BROKERS = ["journal-away"]
TWO_PROGRAMS = ["exchange"]
KINDS = ALWAYS + LOSSES + THREE_BROKERS + TWO_PROGRAMS

# How often a kind comes beside the others: what stands still for long would fill a short run.
WEIGHTS = {"kill-transform": 2, "kill-fan-out": 2, "cut-devices": 3, "cut-redis": 3}


class Fault:
    """One fault: when, in seconds from the start of the nemesis, what, and its dice, which its function throws as it likes."""

    def __init__(self, number, at, kind, dice):
        self.number, self.at, self.kind, self.dice = number, at, kind, dice

    def random(self):
        return random.Random(self.dice)

    def __str__(self):
        return "%3d %7.1f s  %s" % (self.number, self.at, self.kind)


def plan(seed, count, seconds, kinds):
    """Faults over so many seconds: each kind comes once before any comes again, as its weight says."""
    dice = random.Random("nemesis %d" % seed)
    deck, faults = [], []
    for number in range(count):
        if not deck:
            deck = [kind for kind in kinds for _ in range(WEIGHTS.get(kind, 1))]
            dice.shuffle(deck)
        at = (number + dice.random()) * seconds / count
        faults.append(Fault(number, at, deck.pop(), dice.getrandbits(64)))
    return sorted(faults, key=lambda fault: fault.at)
