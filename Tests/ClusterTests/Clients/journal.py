"""Reads `notifications.journal` as its layout is documented in the contract: what the transform workers say of their verdicts."""

KEPT, SCHEDULED = 0, 10
RUN, PAGES, EXTENSIONS, UNREADABLE = 0x0F, (0x80, 0x81), 0x82, 0x83
REVISION, OTHER = 0x10, 0x20
STATES = (None, "modified", "unchanged", "best-attempt", "original", "timed-out", "failed", "overloaded")


class Bytes:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        if self.at + count > len(self.data):
            raise ValueError("the journal's record ends too early")
        self.at += count
        return self.data[self.at - count:self.at]

    def byte(self):
        return self.take(1)[0]

    def varint(self):
        value, shift = 0, 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def zigzag(self):
        value = self.varint()
        return value >> 1 ^ -(value & 1)

    def parts(self, head):
        for _ in range((head & REVISION != 0) + (head & OTHER != 0)):
            self.zigzag(), self.varint(), self.varint()
        if head & OTHER:
            self.take(16)


def entries(value, passed=None):
    """Each verdict of a record: the request's offset and timestamp, a person's device or None, the verdict.

    What it says of service extensions is put into `passed`: by the request's offset, the name, state and milliseconds of each.

    A page of a person's devices has an entry of its own before those of its devices, of which there may be none: without a verdict."""
    data = Bytes(value)
    data.varint()
    offset, timestamp = data.varint(), data.zigzag()
    while data.at < len(data.data):
        head = data.byte()
        offset += data.zigzag()
        if head == RUN:
            for number in range(data.byte()):
                offset += number > 0
                timestamp += data.zigzag()
                yield offset, timestamp, None, KEPT
            continue
        timestamp += data.zigzag()
        if head == UNREADABLE:
            # So many offsets from this one on: no request lies there.
            data.varint()
            continue
        if head == EXTENSIONS:
            steps = []
            for _ in range(data.byte()):
                state = STATES[data.byte()]
                steps.append((data.take(data.byte()).decode(), state, data.varint()))
            if passed is not None:
                passed[offset] = steps
            continue
        if head not in PAGES:
            data.parts(head)
            yield offset, timestamp, None, head & 0x0F
            continue
        yield offset, timestamp, None, None
        for _ in range(data.varint()):
            token = data.take(data.varint()).hex()
            verdict = data.byte()
            data.parts(verdict)
            yield offset, timestamp, token, verdict & 0x0F
        if head == PAGES[1]:
            data.varint(), data.take(8)
