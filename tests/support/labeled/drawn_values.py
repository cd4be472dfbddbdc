"""Drawn values: random values of the rules of gitleaks, with the lines of code around them that are honest and that are not."""

import random
import re
import string
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from re import _constants, _parser  # type: ignore[attr-defined]
from typing import Any

from tests.support.paths import ROOT

RULES_FILES = [
    ROOT / "pipeline/stages/normalize/text_gates" / name for name in ("gitleaks.toml", "vendor_prefixes.toml")
]
_NO_VALUES = {"private-key", "curl-auth-header", "curl-auth-user"}
"""Rules of blocks and command lines: what they leave open is more than a value."""
_END = r"""(?:[\x60'"\s;]|\\[nr]|$)"""
_OPERATOR = r"""=]{0,5}"""
_VENDOR = re.compile(r"\{0,50\}\?\(\?:(.{3,140}?)\)\(\?:\[ ")
_WHOLE = {"telegr": "telegram"}
_MAX_MORE = 20
"""Characters above the least number of a repetition, at most."""
_WORD = string.ascii_letters + string.digits + "_"


@dataclass(frozen=True)
class DrawnRule:
    """A rule: `vendor` is an expression of the name beside which its values stand, empty if their shape says what they are."""

    id: str
    vendor: str
    values: str

    def draw(self, generator: random.Random) -> str:
        """Return a random value."""
        return drawn(self.values, generator)

    def name(self, generator: random.Random) -> str:
        """Return the vendor's name as a part of an identifier, in small letters, in capitals or with one."""
        name = ""
        while not re.fullmatch(r"\w+", name):
            name = drawn(self.vendor, generator)
        name = _WHOLE.get(name, name)
        return name if "?-i" in self.vendor else generator.choice((name.lower(), name.upper(), name.capitalize()))


@cache
def drawn_rules() -> tuple[DrawnRule, ...]:
    """Return the rules of which values can be drawn. One that is of both kinds is here as each."""
    found = []
    for rule in (rule for file in RULES_FILES for rule in tomllib.loads(file.read_text())["rules"]):
        for part in _alternatives(rule["regex"]) if rule["id"] not in _NO_VALUES else ():
            vendor = _VENDOR.search(part)
            values = part.split(_OPERATOR)[1] if vendor else part
            found.append(DrawnRule(rule["id"], scoped(vendor[1]) if vendor else "", scoped(values.split(_END)[0])))
    return tuple(found)


def _alternatives(expression: str) -> list[str]:
    """Return the two parts of a rule that finds values of a shape, or beside a name."""
    end = f"{_END}|"
    first, divider, second = expression.partition(end)
    return [first, ("(?i)" if expression.startswith("(?i)") else "") + second] if divider else [expression]


def scoped(expression: str) -> str:
    """Return an expression of RE2 in Python's words: `(?i)` within it is of the rest of its group."""
    expression = expression.replace("[[:alnum:]]", "[A-Za-z0-9]").replace(r"\z", r"\Z")
    opened, pieces, is_in_class, place = [0], [], False, 0
    while place < len(expression):
        character = expression[place]
        if character == "\\":
            pieces.append(expression[place : place + 2])
        elif not is_in_class and expression.startswith("(?i)", place):
            pieces.append("(?i:")
            opened[-1] += 1
        elif not is_in_class and character == ")":
            pieces.append(")" * (opened.pop() + 1))
        else:
            opened += [0] if character == "(" and not is_in_class else []
            pieces.append(character)
        is_in_class = character == "[" or (is_in_class and character != "]")
        place += {"\\": 2}.get(character, 4 if pieces[-1] == "(?i:" else 1)
    return "".join(pieces) + ")" * opened[0]


def drawn(expression: str, generator: random.Random) -> str:
    """Draw a text that an expression matches: of literals, sets, groups, choices and repetitions."""
    return "".join(_characters(_parsed(expression), generator, False))


@cache
def _parsed(expression: str) -> Any:
    return _parser.parse(expression)


def _characters(parsed: Any, generator: random.Random, ignores_case: bool) -> Iterator[str]:
    for kind, value in parsed:
        if kind in (_constants.LITERAL, _constants.IN):
            members = _members(value) if kind is _constants.IN else (chr(value),)
            character = generator.choice(members)
            yield generator.choice((character.lower(), character.upper())) if ignores_case else character
        elif kind is _constants.SUBPATTERN:
            _, added, removed, inner = value
            yield from _characters(inner, generator, (ignores_case or bool(added & re.I)) and not removed & re.I)
        elif kind is _constants.BRANCH:
            yield from _characters(generator.choice(value[1]), generator, ignores_case)
        elif kind in (_constants.MAX_REPEAT, _constants.MIN_REPEAT):
            least, most, inner = value
            for _ in range(generator.randint(least, min(int(most), least + _MAX_MORE))):
                yield from _characters(inner, generator, ignores_case)
        elif kind is _constants.ANY:
            yield "."
        else:
            assert kind is _constants.AT, f"a rule has {kind}"  # an anchor stands for no character


def _members(parts: Any) -> list[str]:
    found: list[str] = []
    for kind, value in parts:
        if kind is _constants.LITERAL:
            found.append(chr(value))
        elif kind is _constants.RANGE:
            found += map(chr, range(value[0], value[1] + 1))
        elif kind is _constants.CATEGORY:
            found += string.digits if "DIGIT" in str(value) else _WORD
    return [each for each in found if each.isprintable() and each != " "] or [""]


HONEST = """
    {"¤", "§"},
    { FILTER_¤, "§" },
    {"bi¤", "§"},
    CHECK_MD5(¤_deflate, "§");
    {"¤RGB1998", "§"},
    // ¤RGB1998.icc: §
    // from ¤, §
    // md5 of ¤: §
    // md5 of the ¤ key: §
    sha_of_¤ = "§";
    k¤Checksum = "§";
    static const char ¤_sample_md5[] = "§";
    ¤_token_hash: "§",
    expected_¤_digest = "§";
    ¤_logo_file = "§";
    hash_¤_key = "§";
    ¤_client_secret_sha1 = "§";
    {"¤.png", "§"},
    // ¤: §
    // ¤, §
    {"¤_icon", "§"},
    ¤_uuid = "§";
    ¤_commit = "§";
    assert(digest(¤) == "§");
    const auto x¤y = "§";
    {"x¤", "§"}, {"¤ity", "§"},
"""
"""Lines with the name of a vendor, which stands for `¤`, beside the digest of something, for `§`."""

ASSIGNED = """
    ¤_CLIENT_SECRET = "§"
    const char* ¤_api_key = "§";
    config.¤_access_token = "§";
    {"¤_secret", "§"},
    ¤_token: §
    auto k = "¤_api_key=§";
    const char* ¤_client_id = "§";
    // ¤ api key: §
    // ¤ secret: §
    ¤_SECRET_KEY=§
    auto y = "¤_token: §\\n";
"""
"""Lines in which a value is the credential of a vendor."""
