"""Processes that are measured: Redis, the roles of `carillon`, and what the kernel says of their CPU."""
import ctypes
import glob
import json
import os
import select
import signal
import socket
import subprocess
import time
import urllib.request

TICKS = os.sysconf("SC_CLK_TCK")


def ends_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(port):
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise SystemExit(f"nothing listens at port {port}")


def cpu_of(path):
    """CPU microseconds that a `stat` file of a process or a thread tells."""
    with open(path) as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) * 1e6 / TICKS


def cpu(pid):
    return cpu_of(f"/proc/{pid}/stat") if pid else 0.0


def listener(port):
    """The process on this machine that listens at a port; None when it is on another one, or somebody else's."""
    inodes = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with open(table) as file:
            for line in list(file)[1:]:
                fields = line.split()
                if fields[3] == "0A" and int(fields[1].rsplit(":", 1)[1], 16) == port:
                    inodes.add(f"socket:[{fields[9]}]")
    for descriptor in glob.glob("/proc/[0-9]*/fd/*"):
        try:
            if os.readlink(descriptor) in inodes:
                return int(descriptor.split("/")[2])
        except OSError:
            continue
    return None


class Cores:
    """One core for what is measured, and the others for all else."""

    def __init__(self):
        cores = sorted(os.sched_getaffinity(0))
        self.server = str(cores[0])
        self.others = ",".join(map(str, cores[1:] or cores))


class Redis:
    """A private server that can go back to a snapshot."""

    def __init__(self, folder):
        self.folder = folder
        self.port = free_port()
        self.process = None

    def start(self):
        self.process = subprocess.Popen(
            ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir", self.folder, "--dbfilename", "dump.rdb",
             "--hash-max-listpack-value", "1024", "--loglevel", "warning"],
            stdout=subprocess.DEVNULL, preexec_fn=ends_with_parent)
        for _ in range(200):
            if self.call("ping") == "PONG":
                return
            time.sleep(0.05)
        raise SystemExit("redis-server did not start")

    def call(self, *words):
        return subprocess.run(["redis-cli", "-p", str(self.port), *words], capture_output=True, text=True).stdout.strip()

    def memory(self):
        """The bytes that it uses."""
        info = self.call("info", "memory")
        return int(next(line for line in info.splitlines() if line.startswith("used_memory:")).split(":")[1])

    def keep(self, name):
        self.call("save")
        os.replace(os.path.join(self.folder, "dump.rdb"), os.path.join(self.folder, name))

    def restore(self, name):
        self.stop()
        path = os.path.join(self.folder, "dump.rdb")
        if os.path.exists(path):
            os.remove(path)
        os.link(os.path.join(self.folder, name), path)
        self.start()

    def empty(self):
        self.stop()
        path = os.path.join(self.folder, "dump.rdb")
        if os.path.exists(path):
            os.remove(path)
        self.start()

    def stop(self):
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None

    @property
    def pid(self):
        return self.process.pid

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"


class Carillon:
    """A role, or `up`, as a process of its own; it is ready when this returns."""

    def __init__(self, binary, *words, pin=None, environment=None):
        command = (["taskset", "-c", pin] if pin else []) + [binary, *words, "--json", "--log-level", "error"]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, preexec_fn=ends_with_parent, env=dict(os.environ, **(environment or {})))
        is_said = select.select([self.process.stdout], [], [], 60)[0]
        line = self.process.stdout.readline() if is_said else None
        if not line:
            raise SystemExit(f"{' '.join(words)} did not become ready")
        self.addresses = json.loads(line)

    @property
    def pid(self):
        return self.process.pid

    @property
    def device_port(self):
        return self.addresses["devices"].split(":")[2].split("/")[0]

    def metrics(self):
        text = urllib.request.urlopen(self.addresses["admin"] + "/metrics", timeout=10).read().decode()
        found = {}
        for line in text.splitlines():
            if line and not line.startswith("#"):
                name, value = line.rsplit(" ", 1)
                found[name] = float(value)
        return found

    def total(self, name):
        """A metric, over all its labels."""
        return sum(value for key, value in self.metrics().items() if key.split("{")[0] == name)

    def labels(self, name):
        """A metric with one label: its values that are not 0, by the label's."""
        return {key.split('"')[1]: value for key, value in self.metrics().items() if key.startswith(name + "{") and value}

    def thread_cpu(self, name):
        base = f"/proc/{self.pid}/task"
        return sum(cpu_of(f"{base}/{task}/stat") for task in os.listdir(base) if open(f"{base}/{task}/comm").read().strip() == name)

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
