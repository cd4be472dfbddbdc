"""The oracle of the lexer: one regular expression, and hashes by Python's unbounded integers."""

import re

RAW = re.compile(
    r'(?P<prefix>(?:u8?|[LU])?R)"(?P<delimiter>[^ ()\\\t\n\x80-\U0010ffff]{0,16})\((?P<content>[\s\S]*?)\)(?P=delimiter)"'
)
OPENS_RAW = re.compile(r'R"[^ ()\\\t\n\x80-\U0010ffff]{0,16}\(')
WORD = re.compile(r"[^\W\d]\w*")
COMMENT = re.compile(r"//[^\n\\]*(?:\\[\s\S][^\n\\]*)*|/\*[^*]*(?:\*(?!/)[^*]*)*(?:\*/|\Z)")
BLANK = re.compile(r"\s|\\\n")
OTHER = re.compile(
    r"\.?\d(?:[eEpP][+-]|'\w|[\w.])*"
    r'|"(?:[^"\\\n]|\\[\s\S])*"?'
    r"|'(?:[^'\\\n]|\\[\s\S])*'?"
    r"|<<=|>>=|<=>|->\*|\.\.\.|::|->|\+\+|--|&&|\|\||[-+*/%&|^!=<>]=|<<|>>|\.\*|##"
    r"|[^\s\w]"
)


def plain_lex(text: str) -> tuple[list[str], list[tuple[int, int]]]:
    """Tokens, raw strings without delimiters; and the spans of the comments."""
    found: list[str] = []
    comments: list[tuple[int, int]] = []
    at, has_raw = 0, True
    while at < len(text):
        if match := BLANK.match(text, at):
            at = match.end()
        elif match := COMMENT.match(text, at):
            comments.append(match.span())
            at = match.end()
        elif has_raw and (match := RAW.match(text, at)):
            found.append(f'{match["prefix"]}"{match["content"]}"')
            at = match.end()
        elif match := WORD.match(text, at):
            is_prefix = match[0] in ("R", "LR", "uR", "UR", "u8R")
            has_raw = has_raw and not (is_prefix and OPENS_RAW.match(text, match.end() - 1))
            found.append(match[0])
            at = match.end()
        else:
            match = OTHER.match(text, at)
            assert match, text[at:]
            found.append(match[0])
            at = match.end()
    return found, comments


def plain_hash(token: str) -> int:
    """FNV-1a over the bytes, then MurmurHash3's 64-bit finalizer."""
    value = 0xCBF29CE484222325
    for byte in token.encode("utf-8", "surrogatepass"):
        value = (value ^ byte) * 0x100000001B3 % 2**64
    for multiplier in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        value = (value ^ value >> 33) * multiplier % 2**64
    return value ^ value >> 33


def plain_bare(text: str, comments: list[tuple[int, int]]) -> str:
    """Comments without markers and margins, one behind the other."""
    bodies = []
    for start, end in comments:
        body = text[start:end]
        if body.startswith("/*") and len(body) >= 4:
            body = body.removesuffix("*/")
        bodies.append("\n".join(line.lstrip(" \t*/") for line in body.split("\n")) + "\n")
    return "".join(bodies)
