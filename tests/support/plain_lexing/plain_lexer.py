"""Oracle of the lexer: regular expressions, and hashes by Python's unbounded integers."""

import re
from collections.abc import Iterator

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
    """Return the tokens, raw strings without delimiters, and the spans of the comments."""
    found = list(plain_scan(text))
    tokens = [(kind, text[start:end]) for kind, start, end in found if kind != "comment"]
    texts = [RAW.sub(r'\g<prefix>"\g<content>"', token) if kind == "raw" else token for kind, token in tokens]
    return texts, [(start, end) for kind, start, end in found if kind == "comment"]


def plain_blanked(text: str, is_short: bool = False) -> str:
    """Return the text with spaces for comments and literals: one for each byte but line ends, or if short one for each."""
    pieces, done = [], 0
    # What is not ASCII counts as a letter.
    for kind, start, end in plain_scan(re.sub(r"[^\x00-\x7f]", "a", text)):
        if kind != "code":
            spaces = re.sub(
                r"[^\n]", lambda match: " " * len(match[0].encode("utf-8", "surrogatepass")), text[start:end]
            )
            pieces += [text[done:start], " " if is_short else spaces]
            done = end
    return "".join([*pieces, text[done:]])


def plain_scan(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield what a text consists of, blanks aside: "comment", "raw", "literal" or "code", its start and its end."""
    at, has_raw = 0, True
    while at < len(text):
        if match := BLANK.match(text, at):
            at = match.end()
            continue
        kind, start = "code", at
        if match := COMMENT.match(text, at):
            kind = "comment"
        elif has_raw and (match := RAW.match(text, at)):
            kind = "raw"
        elif match := WORD.match(text, at):
            is_prefix = match[0] in ("R", "LR", "uR", "UR", "u8R")
            has_raw = has_raw and not (is_prefix and OPENS_RAW.match(text, match.end() - 1))
        else:
            match = OTHER.match(text, at)
            assert match, text[at:]
            kind = "literal" if match[0][0] in "\"'" else "code"
        at = match.end()
        yield kind, start, at


def plain_hash(token: str) -> int:
    """FNV-1a over the bytes, then MurmurHash3's 64-bit finalizer."""
    value = 0xCBF29CE484222325
    for byte in token.encode("utf-8", "surrogatepass"):
        value = (value ^ byte) * 0x100000001B3 % 2**64
    for multiplier in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        value = (value ^ value >> 33) * multiplier % 2**64
    return value ^ value >> 33


def plain_bare(text: str, comments: list[tuple[int, int]]) -> str:
    """Return the comments without markers and margins, one after the other."""
    bodies = []
    for start, end in comments:
        body = text[start:end]
        if body.startswith("/*") and len(body) >= 4:
            body = body.removesuffix("*/")
        bodies.append("\n".join(line.lstrip(" \t*/") for line in body.split("\n")) + "\n")
    return "".join(bodies)
