"""What the clients ask of the machine they run on."""
import contextlib
import os
import random
import socket
import subprocess


def free_port():
    """Below those of Deploy/kafka, and those that the system gives to whoever asks for any, so that nobody takes it meanwhile by chance."""
    while True:
        port = random.randrange(15_000, 20_000)
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port


def kafka_script(folder):
    """The script that starts brokers, from the Kafka in this folder."""
    os.environ["TESTS_KAFKA_FOLDER"] = os.path.abspath(folder)
    return os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../Deploy/kafka"))


def certificate_flags(folder):
    """Makes a certificate for this machine, which signs itself, and its key; the flags that give both to a worker, and the certificate's path."""
    certificate, key = (os.path.join(folder, name) for name in ("certificate.pem", "key.pem"))
    made = subprocess.run(
        ["openssl", "req", "-x509", "-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-days", "30", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate], capture_output=True, text=True)
    if made.returncode:
        raise RuntimeError("openssl makes no certificate: %s" % made.stderr[-600:])
    return ["--tls-certificate", certificate, "--tls-key", key], certificate


def has_stopped(pid):
    """Whether each thread of a process has: on a busy machine a signal reaches them only when they get a turn."""
    tasks = "/proc/%d/task" % pid
    # A thread may end before it is read.
    with contextlib.suppress(OSError):
        return {open("%s/%s/stat" % (tasks, each)).read().rpartition(")")[2].split()[0] for each in os.listdir(tasks)} == {"T"}
    return False
