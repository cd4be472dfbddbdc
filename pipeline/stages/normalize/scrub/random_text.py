"""Random text: how to tell characters that a generator chose from words, names, sequences and fillers.

A value is compared with English: half the pairs of letters in words and in identifiers are among its fifty most common, of
random letters one in fourteen.

Source: Norvig, English letter frequency counts (the most common bigrams).
"""

import re
from itertools import pairwise

_BIGRAMS = """
    th he in er an re on at en nd ti es or te of ed is it al ar st to nt ng se ha as ou io le ve co me de hi ri ro ic ne ea
    ra ce li ch ll be ma si om ur
"""
_COMMON_BIGRAMS = frozenset(_BIGRAMS.split())
_MAX_WORDY = 0.3
"""Share of common pairs from which a text is made of words: of 30 random characters one text in 100 000 has it."""
_UNUSUAL_FOLLOWERS = """
    a:oq b:bfghkmnqvwxz c:bdfgnqvwxz d:kqxz f:bcdhjkmnqvwxz g:bcdfjkpqvwxz h:bcfghjklpqvwxz i:iqw j:bcdfghjklmnpqrtvwxyz
    k:bcfgjkmqvwxz l:jqrwxz m:cfghjkqrtvwxz n:wx o:q p:bfjnqvwxz q:abcdefghijklmnopqrstvwxyz r:jqxz s:bdjqvxz t:bgjkqvz
    u:hjquwyz v:bcfghjkmnpqrtvwxyz w:bcdfgjkmpqtuvxyz x:bdfghjklmnoqrsuvwxyz y:bdfghjkqruvwxyz z:bcdfgjklmnpqrstuvwxyz
"""
"""Letters, each with those that come after it less than once in 10,000 pairs of the words in comments of C and C++."""
_UNUSUAL_BIGRAMS = frozenset(
    first + second
    for entry in _UNUSUAL_FOLLOWERS.split()
    for first, _, seconds in [entry.partition(":")]
    for second in seconds
)
_HUMP = re.compile(r"[A-Z][a-z](?=[A-Z])")
_MIN_UNUSUAL = 2
_FILLER_WORD = re.compile(
    r"example|sample|placeholder|dummy|your|redacted|insert|replace|changeme|change_me|secret_?here|(?:token|key)_?here",
    re.IGNORECASE,
)
_FILLER_RUN = re.compile(r"(.)\1{7}|xxxx|XXXX|0000000|\.\.\.|\*\*\*")
_MIN_BEFORE_RUN, _MIN_DISTINCT_BEFORE_RUN = 16, 10
_UUID_AT_END = re.compile(r"(?i)-(?:[0-9a-f]{4}-){2}[0-9a-f]{12}\Z")
PLAIN_UUID = re.compile(r"(?i)[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
_RANDOM = re.compile(r"[A-Za-z0-9+/=_.\-]{16,}")
_RUNS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_DIGIT = re.compile(r"[0-9]")
_SEPARATORS = re.compile(r"[-_./+=]+")
_HEXADECIMAL = re.compile(r"[0-9a-fA-F]+")
_MIN_COUNTED = 16
_MIN_DISTINCT, _MIN_SEGMENT, _MIN_MEAN_SEGMENT, _MIN_LETTERS = 8, 10, 6, 20
_MAX_RUN, _MAX_RUN_OF_ONE_CASE = 2.9, 3.6


def is_filler(value: str) -> bool:
    """Return whether a value stands for a secret in documentation: one character repeated, or such a word.

    What repeats after random characters is a margin that they are glued to.
    """
    if len(set(value)) < min(6, len(value)) or any(map(_is_written, _FILLER_WORD.finditer(value))):
        return True
    run = _FILLER_RUN.search(value)
    return run is not None and not _is_generated(value[: run.start()])


def _is_written(word: re.Match[str]) -> bool:
    """Return whether a word has the capitals of one: random letters that spell it have not."""
    return word[0].islower() or word[0].isupper() or word[0].istitle()


def _is_generated(value: str) -> bool:
    is_varied = len(value) >= _MIN_BEFORE_RUN and len(set(value)) >= _MIN_DISTINCT_BEFORE_RUN
    return is_varied and not is_in_order(value) and not is_wordy(value)


def is_wordy(value: str) -> bool:
    """Return whether a value is made of words, as names and sentences are. Where cases change, a word is in one run of letters."""
    is_mixed = value != value.lower() and value != value.upper()
    parts = _RUNS.findall(value) if is_mixed else (value,)
    return sum(map(_num_common, parts)) > _MAX_WORDY * max(1, len(value) - 1)


def is_unlike_words(value: str) -> bool:
    """Return whether letters follow each other as in no words: of eight random letters four in five do, of words one in fifty.

    A capital begins a word; a small letter between two capitals is none.
    """
    pairs = (first.lower() + second for first, second in pairwise(value) if first.isalpha() and second.islower())
    num_unusual = sum(map(_UNUSUAL_BIGRAMS.__contains__, pairs)) + len(_HUMP.findall(value))
    return num_unusual >= _MIN_UNUSUAL


def is_in_order(value: str) -> bool:
    """Return whether most characters are followed by a neighbor, as in an alphabet; of random ones, one in 32 is.

    Bytes in hexadecimal that count up or down in equal steps are in order too: keys of test vectors are.
    """
    if len(value) >= _MIN_COUNTED and len(value) % 2 == 0 and _HEXADECIMAL.fullmatch(value):
        steps = [(after - before) % 256 for before, after in pairwise(bytes.fromhex(value))]
        if steps.count(steps[0]) == len(steps):
            return True
    return sum(abs(ord(after) - ord(before)) == 1 for before, after in pairwise(value)) > len(value) / 2


def is_random(value: str) -> bool:
    """Return whether a value of at least 16 characters is random: letters, capitals and digits alternate as in no name.

    Runs of one kind are 1.6 to 2.5 characters long in random text, the words of names four and more.
    """
    if _RANDOM.fullmatch(value) is None or len(set(value)) < _MIN_DISTINCT:
        return False
    runs = _RUNS.findall(value)
    is_mixed = value.lower() != value and value.upper() != value
    has_digit = _DIGIT.search(value) is not None
    has_letter = is_mixed or value.lower() != value.upper()
    max_run = _MAX_RUN if is_mixed and has_digit else _MAX_RUN_OF_ONE_CASE
    mean_run = sum(map(len, runs)) / len(runs)
    if not has_letter or mean_run > max_run or not (has_digit or (is_mixed and len(value) >= _MIN_LETTERS)):
        return False
    segments = _SEPARATORS.split(value)
    is_dotted = max(map(len, segments)) < _MIN_SEGMENT or len(value) < _MIN_MEAN_SEGMENT * len(segments)
    if is_dotted or _UUID_AT_END.search(value) or is_filler(value) or is_in_order(value):
        return False
    return _num_common(value) / (len(value) - 1) <= (0.15 if mean_run > max_run - 0.5 else 0.25)


def _num_common(value: str) -> int:
    return sum(map(_COMMON_BIGRAMS.__contains__, map("".join, pairwise(value.lower()))))
