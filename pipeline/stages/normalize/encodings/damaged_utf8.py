"""Damaged UTF-8: text with bytes that are not, cut or mixed with another encoding, and text that was encoded twice.

Twice means that UTF-8 was read as another encoding and written as UTF-8 again: `Ã©` for `é`, `â€™` for an apostrophe.
"""

import re
import unicodedata

import re2

_EAST_ASIAN = ("cp932", "gbk", "big5", "cp949")
READ_AS = (
    *("cp1252", "cp1250", "cp1251", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "cp874", "koi8_r"),
    *("cp437", "cp850", "cp852", "cp866", "mac_roman", "iso8859_15", *_EAST_ASIAN),
)
"""Encodings that UTF-8 is mistaken for. Those with C1 controls (`latin_1`) are refused for these."""

MIN_SEQUENCES, MAX_BAD_SHARE = 4, 0.15
"""Least sequences and most bytes of none by which a whole text was encoded twice, whatever its words are."""

_MAX_OFFSETS = 10
_FIRST_SIGNS = frozenset("ÃÂĂГВ├┬┼√¬цбﾃﾂ")
"""Characters that the first byte of most accents and symbols becomes."""
_CLOSING, _WITHIN_WORDS = "»”“’…\u00a0", "’´·-"
"""Signs that follow a word of capitals, whatever its last letter is, and that stand within words."""
_RUNS = re.compile(r"[^\x00-\x7f]+")
_WIDE = re.compile("[\u3400-\udfff\uff61-\U0010ffff]+")
_SOUND_LINE = re2.compile(
    r"(?m)^[A-Za-z]*[\x{a0}-\x{17f}\x{218}-\x{21b}\x{370}-\x{45f}\x{490}\x{491}\x{5d0}-\x{5ea}\x{621}-\x{64a}\x{67e}-\x{6cc}\x{e01}-\x{e4e}"
    r"\x{1ea0}-\x{1ef9}\x{2010}-\x{2026}\x{2030}-\x{203a}\x{20ac}\x{2116}\x{2122}\x{2190}-\x{2193}\x{2212}\x{2248}-\x{2265}"
    r"\x{2500}-\x{25ff}\x{3001}-\x{30ff}\x{4e00}-\x{9fff}\x{ac00}-\x{d7a3}\x{ff01}-\x{ff1f}]+[A-Za-z]*$"
)
_LOST = re2.compile(r"(.?)(\x{fffd}+)(.?)")
_CODE_OF_LOST = re2.compile(r"(?i)fffd")
_SAYS_REPLACED = re2.compile(r"(?i)replac.*\n?.*\x{fffd}|\x{fffd}.*\n?.*replac")
_QUOTES = {'"': '"', "'": "'", "`": "`", "(": ")"}
MAX_LOST_PER_CODE = 4
"""Replacement characters at most for each time that a text names their code, as tests and tables of decoders do."""


def describe_damage(content: bytes) -> str:
    """Return how many bytes are no UTF-8, with offsets."""
    text = content.decode("utf_8", "surrogateescape")
    num_foreign = len(content) - sum(map(str.isascii, text))
    offsets = _bad_offsets(text)
    shown = ", ".join(map(str, offsets[:_MAX_OFFSETS]))
    more = f" and {len(offsets) - _MAX_OFFSETS} more" if len(offsets) > _MAX_OFFSETS else ""
    return f"UTF-8 with damage: {len(offsets)} of {num_foreign} bytes beyond ASCII are invalid, at bytes {shown}{more}"


def _bad_offsets(text: str) -> list[int]:
    """Return the offsets of invalid bytes in a text that has them as surrogates."""
    offsets, position = [], 0
    for piece in text.splitlines(keepends=True):
        sizes = len(piece.encode("utf_8", "surrogateescape"))
        if not piece.isascii():
            at = position
            for character in piece:
                if "\udc80" <= character <= "\udcff":
                    offsets.append(at)
                    at += 1
                else:
                    at += len(character.encode())
        position += sizes
    return offsets


def find_doubling(text: str) -> str | None:
    """Return what shows that a text was encoded twice, or lost characters before; None for a text that was not."""
    runs = sorted(set(_RUNS.findall(text)))
    if not runs:
        return None
    if "\ufffd" in text and (num_lost := _num_lost(text)):
        return f"replacement characters stand where words were, {num_lost} times: the text was lost before"
    for encoding in READ_AS:
        if _is_mostly_doubled(runs, encoding):
            return f"encoded twice, as UTF-8 that was read as {encoding}: {''.join(runs)[:20]!r}"
        doubled = _doubled_runs(runs, encoding)
        if not doubled:
            continue
        doubled = [(run, before) for run, before in doubled if not _is_documented(run, before, text)]
        strong = next((run for run, before in doubled if _is_strong(run, before, text)), None)
        weak = [
            run for run, before in doubled if ord(run[0]) < 0x2E80 or (before < "\u0180" and _touches_letter(run, text))
        ]
        if strong is not None or (len(weak) > 1 and 2 * len(weak) > len(runs)):
            run, before = next(each for each in doubled if (strong or weak[0]) == each[0])
            return f"encoded twice, as UTF-8 that was read as {encoding}: {run[:20]!r} stands for {before[:20]!r}"
    return None


def _num_lost(text: str) -> int:
    """Return how many runs of replacement characters a text has, but for one within quotes; 0 where it is about them."""
    found = [each for each in _LOST.findall(text) if each[1] != "\ufffd" or _QUOTES.get(each[0]) != (each[2] or " ")]
    most = MAX_LOST_PER_CODE * len(_CODE_OF_LOST.findall(text)) + len(_SAYS_REPLACED.findall(text))
    return 0 if len(found) <= most else len(found)


def _is_mostly_doubled(runs: list[str], encoding: str) -> bool:
    """Return whether nearly all that is not ASCII, several sequences, is UTF-8 in the bytes of an encoding."""
    joined = "\n".join(runs)
    # Letters of other scripts have double bytes there that resemble UTF-8.
    if encoding in _EAST_ASIAN and 2 * len(_WIDE.sub("", joined)) > len(joined):
        return False
    content = joined.encode(encoding, "replace")
    sound = content.decode("utf_8", "ignore")
    num_bad = len(content) - len(sound.encode()) + content.count(b"?")
    num_sequences = len(sound) - len(sound.encode("ascii", "ignore"))
    return num_sequences >= MIN_SEQUENCES and num_bad <= MAX_BAD_SHARE * (len(content) - len(runs))


def _doubled_runs(runs: list[str], encoding: str) -> list[tuple[str, str]]:
    """Return the runs that are UTF-8 of usual characters in the bytes of an encoding, with these characters."""
    lines = "\n".join(runs).encode(encoding, "replace").decode("utf_8", "replace").split("\n")
    if len(lines) != len(runs):
        return []
    return [
        (run, line)
        for run, line in zip(runs, lines, strict=True)
        if "\ufffd" not in line and "?" not in line and line != run and _is_long(run) and _SOUND_LINE.search(line)
    ]


def _is_long(run: str) -> bool:
    """Return whether a run has at least two bytes in the encodings that it is tried in."""
    return len(run) > 1 or 0x2E80 <= ord(run) < 0xFF00


def _is_strong(run: str, before: str, text: str) -> bool:
    """Return whether a run cannot be what somebody wrote: a character of three bytes, several characters, or within a word."""
    sequences = [character for character in before if not character.isascii()]
    wide = [character for character in sequences if character >= "\u0800"]
    if len(wide) == len(sequences) == 1 and wide[0] < "\u3000":
        return unicodedata.category(wide[0])[0] in "PS" and (ord(run[0]) < 0x2E80 or _touches_letter(run, text))
    if len(wide) > 1 or (len(sequences) > 1 and ord(run[0]) < 0x2E80 and not wide):
        return len({*map(_block, sequences)} - {0}) < 2 or len(sequences) > 3
    if wide or not before:
        return False
    is_within = _is_within_word(run, text)
    if 0x3000 <= ord(run[0]) < 0xFF00:
        return before.isalpha() and before.islower() and max(before) < "\u0180" and is_within
    if len(sequences) > 1 or (run[-1] in _CLOSING and _follows_capital(run, text)):
        return False
    is_accented = run[0].isalpha() and not run[-1].isalpha() and run[-1] not in _WITHIN_WORDS
    if is_accented and (is_within or (run[-1] not in _CLOSING and _precedes_small(run, text))):
        return True
    # No language writes these letters before a sign.
    is_bare = run[0] in "ÃÂ" and (not run[1].isalpha() or run[1] in "ªºµ")
    return run[0] in _FIRST_SIGNS and (is_bare or _touches_letter(run, text) or not before.isalpha())


def _block(character: str) -> int:
    """Return a number for the script of a letter, one for kana and ideographs; 0 for symbols."""
    if unicodedata.category(character)[0] not in "LM":
        return 0
    if character < "\u0250":
        return 1
    return min(ord(character) >> 8, 0x30) if character < "\uac00" else 0xAC


def _is_documented(run: str, before: str, text: str) -> bool:
    """Return whether a line of a text that has a run has what it stands for too, by itself, as one about wrong decoding has."""
    alone = re2.compile(rf"(?:^|[^A-Za-z\x80-\x{{10ffff}}]){re2.escape(before)}(?:$|[^A-Za-z\x80-\x{{10ffff}}])")
    return all(alone.search(line) for line in text.split("\n") if run in line)


def _follows_capital(run: str, text: str) -> bool:
    return re2.search(f"[A-Z]{re2.escape(run)}", text) is not None


def _precedes_small(run: str, text: str) -> bool:
    return re2.search(f"{re2.escape(run)}[a-z]", text) is not None


def _touches_letter(run: str, text: str) -> bool:
    at = text.find(run)
    around = (text[at - 1 : at], text[at + len(run) : at + len(run) + 1])
    return any(character.isascii() and unicodedata.category(character)[0] == "L" for character in around if character)


def _is_within_word(run: str, text: str) -> bool:
    return re2.search(f"[A-Za-z]{run}[a-z]", text) is not None
