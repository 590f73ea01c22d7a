"""What the gates check-imports, check-names, check-outcomes and check-articles share: how they read a Swift file without a compiler."""

import functools
import re


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
        end, depth = match.end(), 1
        while end < len(text) and depth:
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        is_extension = match["kind"] == "extension"
        name = prefix + match["name"]
        known = found.setdefault(name, {"public": False, "members": set(), "calls": {}})
        known["public"] |= "public" in match["modifiers"] and not is_extension
        public_symbols(text[match.end():end - 1], found, f"{name}.", (known, match["kind"], "public" in match["modifiers"]))
        place = end
    outside.append(text[place:])
    if not is_type:
        return
    known, kind, is_public = is_type
    direct = without_braces("".join(outside))
    for match in MEMBER.finditer(direct):
        if "public" in match["modifiers"].split() or is_public and kind == "protocol":
            names = match["names"] if match["kind"] not in ("init", "subscript") else match["kind"]
            known["members"].update(each.strip(" `") for each in (names or "").split(","))
            if match["kind"] in ("func", "init", "subscript"):
                known["calls"].setdefault((names or "").strip("`"), []).append(labels(direct, match.end()))
    if is_public and kind == "enum":
        for line in CASES.findall(without_braces(direct, "()")):
            known["members"].update(re.findall(r"(?:^|,)\s*`?(\w+)", line))


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


def without_braces(text, pair="{}"):
    """The text without what is in braces."""
    out, depth = [], 0
    for character in text:
        depth += {pair[0]: 1, pair[1]: -1}.get(character, 0)
        if depth == 0 and character != pair[1]:
            out.append(character)
    return "".join(out)
