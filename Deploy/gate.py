"""What the gates check-deployment and check-monitoring share: how they read, what they have found, and the proof that they find it.

They import it from the folder that they lie in, so they work from anywhere, and in a copy of that folder.
"""

import os
import shutil
import sys
import tempfile

import yaml

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return file.read()


def write(root, path, text):
    with open(os.path.join(root, path), "w", encoding="utf-8") as file:
        file.write(text)


def load(text):
    return yaml.load(text, LOADER)


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
