"""What a larger mailbox of a connected device costs and saves: a burst while its fan-out worker stands still, and the device acknowledges all."""
import signal
import threading
import time

from .bench import FIRST, ZEROS, log, result
from .processes import cpu

BOUNDS = (100, 1000)
COUNT = 1000
STANDS_STILL = 2


class Burst:
    def __init__(self, bench):
        self.bench = bench

    def run(self):
        rounds = []
        for number in range(self.bench.arguments.rounds):
            rounds.append({bound: self.phase(f"burst-{number}-{bound}", bound) for bound in BOUNDS})
            for bound, found in rounds[-1].items():
                log(f"round {number + 1}, a bound of {bound}: {found}")

        def ratio(part):
            return lambda item: item[BOUNDS[1]][part] / item[BOUNDS[0]][part]

        measures = [(f"bound {bound}: {what}", None, lambda item, bound=bound, part=part: item[bound][part])
                    for bound in BOUNDS for what, part in (
                        ("evicted", "evicted"), ("seconds until Redis has no entry", "seconds"), ("Redis, greatest growth in kB", "kilobytes"),
                        ("Redis, CPU in ms", "cpu"))]
        measures += [("Redis, greatest growth: 1000 ÷ 100", None, ratio("kilobytes")), ("Redis, CPU: 1000 ÷ 100", None, ratio("cpu"))]
        return result("burst", f"{COUNT} requests at once for one device, whose fan-out worker stands still for {STANDS_STILL} s", rounds, measures)

    def phase(self, name, bound):
        bench = self.bench
        bench.begin(name, partitions=1)
        fan_out = bench.fan_out()
        transform = bench.transform(None, "--group", bench.prefix + "transform", "--mailbox-connected-bound", str(bound))
        device = bench.fleet(1, fan_out)
        try:
            while fan_out.total("carillon_fanout_sessions_total") < 1:
                time.sleep(0.2)
            self.publish(1)
            self.until_empty(transform, 1)
            before, busy, peak, ending = self.bench.redis.memory(), cpu(bench.redis.process.pid), [0], threading.Event()
            watch = threading.Thread(target=self.watch, args=(peak, ending))
            watch.start()
            started = time.time()
            fan_out.process.send_signal(signal.SIGSTOP)
            self.publish(COUNT)
            time.sleep(STANDS_STILL)
            fan_out.process.send_signal(signal.SIGCONT)
            self.until_empty(transform, 1 + COUNT)
            seconds = time.time() - started
            ending.set()
            watch.join()
            busy = (cpu(bench.redis.process.pid) - busy) / 1000
            audit = bench.audit()
            if audit["violations"]:
                raise SystemExit(f"the audit says: {audit}")
            return {"evicted": audit["outcomes"].get("evicted", 0), "seconds": seconds, "kilobytes": (peak[0] - before) / 1000, "cpu": busy}
        finally:
            device.kill()
            device.wait()
            transform.end()
            fan_out.end()

    def publish(self, count):
        try:
            from confluent_kafka import Producer
        except ImportError:
            raise SystemExit("'burst' needs a Python with Deploy/test-requirements.txt") from None
        producer = Producer({"bootstrap.servers": self.bench.arguments.kafka, "linger.ms": 5})
        target = f"device:{ZEROS}{FIRST}".encode()
        for _ in range(count):
            # The device acknowledges what has the member `ts`.
            producer.produce(
                self.bench.prefix + "requests", key=target, value=b'{"ts":0,"aps":{"alert":"' + b"x" * 200 + b'"}}',
                headers=[("target", target), ("apns-topic", b"com.example.shop")], partition=0)
        producer.flush(60)

    def until_empty(self, transform, taken):
        """Waits until so many requests were taken and the device has acknowledged each that was not evicted."""
        end = time.time() + 120
        while transform.total("carillon_transform_requests_total") < taken or self.bench.redis.call("keys", "m{*"):
            if time.time() > end:
                raise SystemExit("the device did not get all within two minutes")
            time.sleep(0.05)

    def watch(self, peak, ending):
        while not ending.wait(0.02):
            peak[0] = max(peak[0], self.bench.redis.memory())
