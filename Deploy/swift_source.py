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
