"""What the gates check-imports, check-names, check-outcomes, check-articles and check-pace share: how they read Swift without a compiler.

Each says in its `READ` which folders it reads and what it extracts from a file. `facts` does that for one gate, or in one pass for several.
What was extracted is remembered by the file's content and by the code that extracted it.
"""

import contextlib
import functools
import os
import re

from gate import ROOT, Memory, digest


class Source:
    """A Swift file: its path, its text, and its text without comments and string literals."""

    def __init__(self, path, text):
        self.path, self.text = path, text

    @functools.cached_property
    def code(self):
        return without_comments_and_strings(self.text)


def swift_files(root, folders):
    """The paths of the Swift files of folders, in their order; a file stands for itself."""
    for top in folders:
        if os.path.isfile(os.path.join(root, top)):
            yield top
        for folder, inner, files in os.walk(os.path.join(root, top)):
            inner.sort()
            for file in sorted(files):
                if file.endswith(".swift"):
                    yield os.path.relpath(os.path.join(folder, file), root)


def facts(root, *reads):
    """What gates extract from the Swift files of a tree: for each gate a dictionary by path.

    A gate's `READ` is the name of its file, the folders that it reads, and a function that answers what a `Source` has for it. The answer
    depends on the source alone, and JSON can express it.
    """
    with contextlib.ExitStack() as stack:
        gates = []
        for name, folders, extract in reads:
            memory = stack.enter_context(Memory(name, is_kept=root == ROOT))
            code = digest(*(open(os.path.join(ROOT, "Deploy", each), "rb").read() for each in (name, "swift_source.py")))
            gates.append((memory, code, set(swift_files(root, folders)), extract, {}))
        for path in sorted(set().union(*(paths for _, _, paths, _, _ in gates))):
            with open(os.path.join(root, path), encoding="utf-8") as file:
                source = Source(path, file.read())
            content = digest(path, source.text)
            for memory, code, paths, extract, found in gates:
                if path in paths:
                    found[path] = memory.answer(content + code, functools.partial(extract, source))
    return [found for *_, found in gates]


# Where a comment or a literal begins. The frequent ones are matched up to their end; of the others `opening` is only the beginning.
SKIPPED = re.compile(r'//[^\n]*|"(?!"")[^"\\\n]*(?:\\[^(\n][^"\\\n]*)*"|(?P<opening>/\*|"""|"|#{1,7}"(?:"")?)')
COMMENT_MARK = re.compile(r"/\*|\*/")
INTERPOLATION_MARK = re.compile(r'["()]')


def without_comments_and_strings(text):
    """The text with comments and string literals blanked; lines keep their numbers."""
    out, place = [], 0
    while match := SKIPPED.search(text, place):
        start, stop = match.span()
        if opening := match["opening"]:
            stop = comment_end(text, stop) if opening == "/*" else string_end(text, stop, opening)
        out += (text[place:start], " ", "\n" * text.count("\n", start, stop))
        place = stop
    out.append(text[place:])
    return "".join(out)


def comment_end(text, place):
    """The place behind a comment, which may have others in it, whose content begins at a place."""
    depth = 1
    while match := COMMENT_MARK.search(text, place):
        depth, place = depth + (1 if match[0] == "/*" else -1), match.end()
        if not depth:
            return place
    return len(text)


@functools.cache
def string_mark(opening):
    """What ends a literal, by what opens it: its end, an escape, and the end of the line where it has but one."""
    quotes = opening.lstrip("#")
    hashes = "#" * (len(opening) - len(quotes))
    return re.compile("|".join([re.escape(quotes + hashes), rf"(?P<escape>\\{hashes})"] + [r"(?P<line>\n)"] * (len(quotes) == 1)))


def string_end(text, place, opening):
    """The place behind a literal whose content begins at a place."""
    mark = string_mark(opening)
    while match := mark.search(text, place):
        place = match.end()
        if match["escape"]:
            place = interpolation_end(text, place + 1) if text.startswith("(", place) else place + 1
        elif match.lastgroup == "line":
            return match.start()  # not a literal after all, such as a quote within a regular expression
        else:
            return place
    return len(text)


def interpolation_end(text, place):
    """The place behind an interpolation whose content begins at a place."""
    depth = 1
    while match := INTERPOLATION_MARK.search(text, place):
        place = match.end()
        if match[0] == '"':
            opening = '"""' if text.startswith('"""', match.start()) else '"'
            place = string_end(text, match.start() + len(opening), opening)
            continue
        depth += 1 if match[0] == "(" else -1
        if not depth:
            return place
    return len(text)


SUITE_MARK = re.compile(
    r"(?P<attribute>@Suite|@Test)\b|\b(?:struct|class|enum|actor|extension)\s+(?P<type>[A-Z][\w.]*)|\bfunc\s+(?P<function>`[^`]+`|\w+)|[{}]")


def tests(text):
    """The suites and tests of a text without comments and strings: each one's suite with those around it, its name, and its traits.

    Of a suite the name is empty. A name in backticks stands without them.
    """
    found, around, attribute, kind = [], [], None, None
    for mark in SUITE_MARK.finditer(text):
        traits = text[attribute:mark.start()] if attribute is not None else ""
        if mark["attribute"]:
            attribute, kind = mark.start(), None
        elif mark["type"]:
            kind, attribute = mark["type"].replace(".", "/"), None
            if traits.startswith("@Suite"):
                found.append({"suite": "/".join([each for each in around if each] + [kind]), "name": "", "traits": traits})
        elif mark["function"]:
            if traits.startswith("@Test"):
                found.append({"suite": "/".join(each for each in around if each), "name": mark["function"].strip("`"), "traits": traits})
            attribute = None
        elif mark[0] == "{":
            around.append(kind)
            kind = None
        elif around:
            around.pop()
    return found


def enclosing(text, place):
    """The types and functions around a place of a text without comments and strings, outermost first, each with its attribute before it."""
    around, attribute, next_one = [], None, None
    for mark in SUITE_MARK.finditer(text):
        if mark.start() >= place:
            break
        if mark["attribute"]:
            attribute = mark.start()
        elif mark["type"] or mark["function"]:
            traits = text[attribute:mark.start()] if attribute is not None else ""
            next_one, attribute = ((mark["type"] or mark["function"]).strip("`"), traits), None
        elif mark[0] == "{":
            around.append(next_one)
            next_one = None
        elif around:
            around.pop()
    return [each for each in around if each]


MODIFIERS = r"(?:(?:public|package|internal|fileprivate|private|final|indirect|nonisolated|static|mutating|lazy|weak)(?:\(\w+\))?\s+)*"
TYPE = re.compile(rf"(?P<modifiers>{MODIFIERS})\b(?P<kind>class|struct|enum|actor|protocol|extension)\s+(?P<name>[A-Z]\w*(?:\.[A-Z]\w*)*)[^{{}}]*{{")
MEMBER = re.compile(rf"(?P<modifiers>{MODIFIERS})\b(?P<kind>func|var|let|typealias|init|subscript)\b\s*(?P<names>`?\w+`?(?:\s*,\s*\w+)*)?")
CASES = re.compile(r"^\s*(?:indirect\s+)?case\s+([^\n]*(?:,\s*\n[^\n]*)*)", re.MULTILINE)


def public_symbols(text, found, prefix="", is_type=None):
    """Adds the types of a text without comments and strings to `found`, by their full names: whether each is public, its public members,
    and the labels of those that are called.

    What a public protocol asks for and the cases of a public enum are public.
    """
    place, outside = 0, []
    while match := TYPE.search(text, place):
        outside.append(text[place:match.start()])
        end = closing(text, match.end())
        is_extension = match["kind"] == "extension"
        name = prefix + match["name"]
        known = found.setdefault(name, {"public": False, "members": [], "calls": {}})
        known["public"] |= "public" in match["modifiers"] and not is_extension
        public_symbols(text[match.end():end], found, f"{name}.", (known, match["kind"], "public" in match["modifiers"]))
        place = end + 1
    outside.append(text[place:])
    if not is_type:
        return
    known, kind, is_public = is_type
    direct = "".join(outside)
    if not is_public and "public" not in direct:
        return
    direct = without_braces(direct)
    for match in MEMBER.finditer(direct):
        if "public" in match["modifiers"].split() or is_public and kind == "protocol":
            names = match["names"] if match["kind"] not in ("init", "subscript") else match["kind"]
            known["members"] += [each.strip(" `") for each in (names or "").split(",")]
            if match["kind"] in ("func", "init", "subscript"):
                known["calls"].setdefault((names or "").strip("`"), []).append(labels(direct, match.end()))
    if is_public and kind == "enum":
        for line in CASES.findall(without_braces(direct, "()")):
            known["members"] += re.findall(r"(?:^|,)\s*`?(\w+)", line)


def labels(text, place):
    """The labels of the parameters that begin at a place, behind generic ones."""
    found, depth, is_first = [], 0, False
    for match in re.compile(r"->|[\[(<>)\],]|\w+").finditer(text, place):
        token = match[0]
        if token == "->":
            continue
        depth += {"(": 1, "[": 1, "<": 1, ")": -1, "]": -1, ">": -1}.get(token, 0)
        if token == ")" and depth == 0:
            return found
        is_parameter = token == "(" and depth == 1 or token == "," and depth == 1 and found
        if is_first and depth == 1 and re.match(r"\w", token):
            found.append(token)
        is_first = is_parameter
    return found


@functools.cache
def marks(pair):
    return re.compile(f"[{re.escape(pair)}]")


def closing(text, place, pair="{}"):
    """The place of the bracket that closes the one before a place; the text's end where there is none."""
    depth = 1
    for match in marks(pair).finditer(text, place):
        depth += 1 if match[0] == pair[0] else -1
        if not depth:
            return match.start()
    return len(text)


def without_braces(text, pair="{}"):
    """The text without what is in braces."""
    out, depth, place = [], 0, 0
    for match in marks(pair).finditer(text):
        if depth == 0:
            out.append(text[place:match.start()])
        depth, place = depth + (1 if match[0] == pair[0] else -1), match.end()
    return "".join(out + [text[place:]] * (depth == 0))
