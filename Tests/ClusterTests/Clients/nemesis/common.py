"""What all devices of the nemesis share: their names, the close codes after which they stay away, and their logs."""
import json
import time

APPLICATION = "com.example.shop"
OPEN, DISMISS = "com.apple.UNNotificationDefaultActionIdentifier", "com.apple.UNNotificationDismissActionIdentifier"
# Close codes after which a device does not come back by itself; nothing that these devices do earns them one, as long as they have no
# later session than that which is closed. Only a hello that has had no welcome may be worked on later than the next one, and take
# its session over.
TAKEN_OVER = 4004
NEVER = (4002, 4003, TAKEN_OVER, 4013)
CATEGORIES = [{
    "identifier": "reply", "options": ["customDismissAction"],
    "actions": [{"identifier": "reply", "title": "Reply", "textInput": {"buttonTitle": "Send", "placeholder": "…"}}]}]


def token_of(number):
    return "%064x" % (0xCA11AB1E0000 + number)


def users_of(number):
    """Two devices to a person; every sixteenth is passed on between two people."""
    return ["person-%d" % (number // 2)] if number % 16 != 15 else ["shared-%d" % number, "guest-%d" % number]


def is_fickle(number):
    """Whether the device allows its application now more, now less."""
    return number % 16 == 7


class Log:
    """What a device did and when: by its own clock (wrong as it may be), by the cluster's as it knows it, and by the one on the wall."""

    def __init__(self, path, skew):
        self.file, self.skew = open(path, "a", buffering=1), skew

    def write(self, what, at=None, **members):
        now = time.time() if at is None else at
        self.file.write(json.dumps({"at": round(now, 4), "own": round(now + self.skew, 4), "what": what, **members}) + "\n")
