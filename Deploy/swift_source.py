"""What the gates check-imports, check-names, check-outcomes and check-articles share: how they read a Swift file without a compiler."""

import re


def without_comments_and_strings(text):
    """The text with comments and string literals blanked; lines keep their numbers."""
    out, i, end = [], 0, len(text)

    def skip_string(i):
        hashes = 0
        while text[i] == "#":
            hashes, i = hashes + 1, i + 1
        quote = '"""' if text.startswith('"""', i) else '"'
        i += len(quote)
        closing, escape = quote + "#" * hashes, "\\" + "#" * hashes
        while i < end:
            if text.startswith(closing, i):
                return i + len(closing)
            if text.startswith(escape, i):
                i += len(escape)
                if i < end and text[i] == "(":
                    depth = 0
                    while i < end:
                        if text[i] == '"':
                            i = skip_string(i)
                            continue
                        depth += {"(": 1, ")": -1}.get(text[i], 0)
                        i += 1
                        if depth == 0:
                            break
                else:
                    i += 1
                continue
            if text[i] == "\n" and len(quote) == 1:
                return i  # not a literal after all, such as a quote within a regular expression
            i += 1
        return end

    while i < end:
        if text.startswith("//", i):
            stop = text.find("\n", i)
            stop = end if stop < 0 else stop
        elif text.startswith("/*", i):
            depth, stop = 1, i + 2
            while stop < end and depth:
                step = {"/*": 1, "*/": -1}.get(text[stop:stop + 2], 0)
                depth, stop = depth + step, stop + (2 if step else 1)
        elif text[i] == '"' or re.match(r'#+"', text[i:i + 8]):
            stop = skip_string(i)
        else:
            out.append(text[i])
            i += 1
            continue
        out.append(" " + "\n" * text.count("\n", i, stop))
        i = stop
    return "".join(out)


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
