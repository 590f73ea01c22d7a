"""What the gates share: how they read, what they remember of former runs, what they have found, and the proof that they find it.

They import it from the folder that they lie in, so they work from anywhere, and in a copy of that folder.
"""

import atexit
import contextlib
import functools
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return file.read()


def write(root, path, text):
    with open(os.path.join(root, path), "w", encoding="utf-8") as file:
        file.write(text)


def load_all(text):
    """The documents of a YAML file. They are shared by all who load the same text, and nobody changes them."""
    import yaml

    return _load_all(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))


@functools.lru_cache(maxsize=256)
def _load_all(text, loader):
    import yaml

    return list(yaml.load_all(text, loader))


def load(text):
    return load_all(text)[0]


def digest(*parts):
    """A sum of texts or bytes, which differs where one of them or their number does."""
    sums = (hashlib.sha256(part.encode(errors="surrogateescape") if isinstance(part, str) else part).digest() for part in parts)
    return hashlib.sha256(b"".join(sums)).hexdigest()


def program(name):
    """What tells one version of an installed program from another; the name alone where it is not installed."""
    path = os.path.realpath(shutil.which(name) or name)
    with contextlib.suppress(OSError):
        status = os.stat(path)
        return f"{path} {status.st_size} {status.st_mtime_ns}"
    return name


class Memory:
    """Answers of former runs, by a sum of all that they depend on, in a file of the tree's folder .build/gates.

    The file begins with a sum of the rest, and is replaced as a whole. One that is damaged is read as an empty one. What another run has
    written in the meantime is kept, and what is lost nevertheless is computed once more.
    """

    # More than twice the files of the tree. What was used last stays.
    MAXIMUM = 4096

    def __init__(self, name, is_kept=True, folder=os.path.join(ROOT, ".build/gates")):
        self.path, self.is_kept = os.path.join(folder, f"{name}.json"), is_kept
        self.known, self.used, self.is_new = self.stored() if is_kept else {}, {}, False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.keep()

    def stored(self):
        with contextlib.suppress(OSError, ValueError):
            with open(self.path, "rb") as file:
                if file.readline().decode().strip() == hashlib.sha256(body := file.read()).hexdigest():
                    return json.loads(body)
        return {}

    def knows(self, key):
        return key in self.known

    def answer(self, key, compute, lasts=lambda answer: True):
        """What `compute` answers, or has answered for the same key: something that JSON can express, and remembered where it lasts."""
        if key not in self.known:
            # Through JSON, so that a new answer is what a remembered one is.
            answer = json.loads(json.dumps(compute()))
            if not lasts(answer):
                return answer
            self.known[key], self.is_new = answer, True
        self.used[key] = self.known[key]
        return self.used[key]

    def keep(self):
        if not (self.is_new and self.is_kept):
            return
        others = {key: answer for key, answer in self.stored().items() if key not in self.used}
        kept = list((others | self.used).items())[-self.MAXIMUM:]
        body = json.dumps(dict(kept), separators=(",", ":")).encode()
        # Without a folder to write into there is nothing to remember.
        with contextlib.suppress(OSError):
            os.makedirs(os.path.dirname(self.path), exist_ok=True)
            with open(f"{self.path}.{os.getpid()}", "wb") as file:
                file.write(hashlib.sha256(body).hexdigest().encode() + b"\n" + body)
            os.replace(file.name, self.path)


def memory_faults():
    """What is wrong with `Memory`: what it forgets, what it believes of a damaged file, and what two at once do to each other."""
    found = []

    def expect(what, condition):
        found.extend([] if condition else [f"a memory does not hold: {what}"])

    with tempfile.TemporaryDirectory() as folder:
        def remember(*keys, answer="sound"):
            with Memory("a", folder=folder) as memory:
                return [memory.answer(key, lambda: answer) for key in keys]

        remember("a")
        expect("what was answered is remembered", remember("a", "b", answer="new") == ["sound", "new"])
        with open(os.path.join(folder, "a.json"), "rb") as file:
            whole = file.read()
        for what, damaged in (("cut", whole[:-3]), ("changed", whole.replace(b"sound", b"wrong")), ("empty", b""), ("no text", b"\xff\n\xff")):
            with open(os.path.join(folder, "a.json"), "wb") as file:
                file.write(damaged)
            expect(f"a file that is {what} is as good as none", remember("a", answer="again") == ["again"])
        with Memory("a", folder=folder) as one, Memory("a", folder=folder) as other:
            one.answer("one", lambda: 1)
            other.answer("other", lambda: 2)
        expect("what two at once have answered is remembered", remember("one", "other", answer=0) == [1, 2])
        with Memory("a", folder=folder) as memory:
            expect("what does not last is not remembered", memory.answer("c", lambda: 1, lasts=lambda _: False) == 1 and not memory.knows("c"))
        remember(*map(str, range(Memory.MAXIMUM)))
        with Memory("a", folder=folder) as memory:
            memory.answer("c", lambda: 3)
        with Memory("a", folder=folder) as memory:
            expect("the oldest is forgotten beyond the bound", len(memory.known) == Memory.MAXIMUM and memory.knows("c") and not memory.knows("a"))
        with Memory("a", folder=os.path.join(folder, "a.json", "b")) as memory:
            expect("without a folder it answers", memory.answer("a", lambda: 4) == 4)
        expect("only its file is left", os.listdir(folder) == ["a.json"])
    return found


@functools.cache
def answers():
    """What other programs and libraries have answered this gate, which is kept when it ends."""
    memory = Memory(os.path.basename(sys.argv[0]))
    atexit.register(memory.keep)
    return memory


def ran(words, folder, content):
    """How a program has ended in a folder, and what it has said: that depends on its version, on its words and on `content`."""
    def run():
        made = subprocess.run(words, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        return made.returncode, made.stdout, made.stderr

    # One that was killed has not answered.
    return answers().answer(digest(program(words[0]), *words, *content), run, lasts=lambda made: 0 <= made[0] < 128)


class Findings:
    """What was found to be wrong in a folder, and what could not be looked at."""

    def __init__(self, root):
        self.root, self.found, self.notes = root, [], []

    def say(self, place, what):
        self.found.append(f"{place}: {what}")


def copy(root, paths, folder):
    for path in paths:
        source, target = os.path.join(root, path), os.path.join(folder, path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        (shutil.copytree if os.path.isdir(source) else shutil.copy)(source, target)


def self_test(paths, faults, find, programs):
    """Plants one fault after the other, each into a copy of what is there; answers the exit code.

    `paths` are all that the gate reads. A fault is a tuple: what it takes beside the checks that take nothing, and None where they are
    enough; what is planted; in which file; what stands there (its first place); what takes its place; what must be found. What it takes
    begins with a word, and the fault is left out where that is one of `programs` and not installed. `find` answers what is found in a
    folder, given what a fault takes.
    """
    gate = os.path.basename(sys.argv[0])
    unchanged = find(ROOT, None)
    for line in unchanged:
        print(f"{gate}: nothing planted, and found {line}", file=sys.stderr)
    failed, missing = 0, []
    for needs, name, path, old, new, expected in faults:
        program = needs.split()[0] if needs else None
        if program in programs and not shutil.which(program):
            missing.append(program)
            continue
        with tempfile.TemporaryDirectory() as folder:
            copy(ROOT, paths, folder)
            text, found = read(folder, path), [f"{path} has no {old!r}"]
            if old in text:
                write(folder, path, text.replace(old, new, 1))
                found = find(folder, needs)
        if not any(expected in line for line in found):
            failed += 1
            print(f"{gate}: self-test '{name}' expected {expected}, found {found or 'nothing'}", file=sys.stderr)
    planted = len(faults) - len(missing)
    left_out = f"; {len(missing)} were left out, for {' and '.join(sorted(set(missing)))} is missing" if missing else ""
    print(f"{gate}: {planted - failed} of {planted} self-tests hold{left_out}")
    return 1 if failed or unchanged else 0


def main(documentation, check, more):
    """Runs a gate with the words that it was given; answers its exit code.

    Without any it checks; `more` has what else it can be asked for, by its flag, each answering an exit code.
    """
    words = sys.argv[1:]
    if len(words) == 1 and words[0] in more:
        return more[words[0]]()
    if words:
        print(documentation, file=sys.stderr)
        return 2
    findings = check(ROOT)
    for line in findings.found:
        print(line, file=sys.stderr)
    for line in findings.notes:
        print(f"{os.path.basename(sys.argv[0])}: {line}")
    return 1 if findings.found else 0
