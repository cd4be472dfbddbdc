"""Names of licenses in plain words, each replaced by one token, so that the grammar of notices sees licenses and not words.

`license_names.toml` lists the names. A full name is a license wherever it occurs; a short one, such as `mit` or `apache`,
only beside words that say so. Names of the GNU licenses carry version and `or later`.
"""

import re
import tomllib
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

import re2
from license_expression import get_spdx_licensing

from pipeline.stages.normalize.license.prose.prose_expressions import compile_prose
from pipeline.stages.normalize.license.prose.words import plain_words

NAMES_FILE = "license_names.toml"
TOKEN = r"N\d+"
"""The word that stands for a name: an upper-case word, which plain words never are."""
PUBLIC_DOMAIN = "LicenseRef-scancode-public-domain"
"""The id of scancode for dedications without a text of their own: SPDX has none."""
_GNU = (
    r"(?:version (?P<before>\d(?: \d)?)(?P<before_later> or (?:at your option )?(?:any )?later"
    r"(?: versions?)?)?(?: only)? of (?:the )?)?"
    r"(?P<name>gnu (?:affero |lesser |library )?(?:general )?public li[cs]en[cs]e"
    r"|(?:affero|lesser) (?:general )?(?:public )?licen[sc]e"
    r"|library (?:general |public |general public )licen[sc]e"
    r"|general public licen[sc]e|gnu (?:copyleft|licen[sc]e)|(?:gnu )?[al]?gpl)"
    r"(?: (?:licen[sc]e|[al]?gpl|gnu|as published by the free software foundation(?: inc)?|as published by the fsf))*"
    r"(?: ?(?:(?:either |the )*(?:version|ver|v|versions) ?)?(?P<after>\d(?: \d)?)(?: \d)?(?: of"
    r" (?:the|that) licen[sc]e)?)?"
    r"(?P<later> (?:or|and)(?: at your (?:option|choice))? (?:any )?(?:later|newer|higher|greater"
    r"|subsequent|above)(?: versions?)?| plus)?(?: only)?"
)
_GNU_KINDS = (("affero", "AGPL"), ("agpl", "AGPL"), ("lesser", "LGPL"), ("library", "LGPL"), ("lgpl", "LGPL"))
_LICENSE_LINE = re2.compile(
    r"(?im)^[^\pL\pN\n@\\]*(?:[@\\]licen[cs]e[ \t:]|licen[cs](?:e|ing)(?: (?:terms|type|conditions))?[ \t]*:)[ \t]*"
    r"([^\s:;{}()][^\n;{}]{0,60}?)[\s*/.]*$"
)
"""A line that names a license and nothing else: a tag of documentation, or a field of a header."""
_ELSEWHERE = re2.compile(
    r"\b(?:files?|copying|licen[cs]es?|readme|notice|copyrights?|legal|https?|www|above|below|following|this|public domain"
    r"|(?:headers?|top|bottom|end|beginning)(?: of)?|same$|same (?:as|terms)(?: as)?(?: the| this| of| rest| main| whole| parent)*"
    r"(?:$| (?:project|library|package|repository|program|software|distribution|module|source))"
    r"|(?:see|the) (?:\w+ )?(?:project|library|package|repository|distribution)"
    r"|siehe|voir|vea|vease|ver|veja|vedi|zie|zobacz|patrz|viz|datei|fichier|archivo|fichero|arquivo|bestand|plik|soubor)\b"
)
"""Words of a field that says where the license stands: in the file itself, or where the project has it."""
_OF_A_SCRIPT = re2.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Cyrillic}\p{Greek}\p{Arabic}\p{Hebrew}]")
_ELSEWHERE_AS_WRITTEN = re2.compile(
    "(?i)[见見看同]|参|參|文件|ファイル|下記|以下|上記|파일|참조|참고|см|файл|смотр|тот же|дивись"
)
"""The same in other scripts: see, the file, below, as."""
_HYPHENATED = re.compile(r"(?<![\w.-])[A-Za-z0-9]+(?:[.-][A-Za-z0-9]+)+")
_OF_CODE = re.compile(
    r"\b(?!(?:LICEN[CS]E|DUAL|SPDX|GNU|CC)_)[A-Z][A-Z0-9]{2,30}(?:_[A-Z0-9]{1,30}){0,6}_(?:[AL]?GPL|BSD|MIT|APACHE)\b"
)
"""An identifier of code that ends in the name of a license: `EXPORT_SYMBOL_GPL`."""
_PRODUCT = re.compile(
    r"(?i)(?:python|php|unicode|bzip2|libpng|apache|sendmail|zimbra|openpbs|tcp|net|ruby|sax)-|info-zip$"
)
_BESIDE_ID = re.compile(r"(?i)licen|under|terms")
_ID = "spdxid"
"""The word for an identifier that no name covers, with its place in the list: plain words lose its hyphens."""
_NAME_IN_SCRIPT = r"(?P<name>[A-Za-z][A-Za-z0-9 .+-]{1,40}?)"
"""A name in Latin letters between words of another script."""
_GOES_ON = re.compile(r" (?:under|by|to|as|with|in)\b")
_STYLE = r"(?: (?:style|like|type|variant|open source|public|software|permissive|free software))*"
_BESIDE = r"(?:or|and|and or|or the|and the|or at your option|) ?"
_AGREEMENT = r" ?licen[sc](?:es?|ed|ing)(?: agreement)?(?: (?:version|v) \d(?: \d)?| v\d)?"


ANY_VERSION = {"GPL-*": "GPL-1.0-or-later", "LGPL-*": "LGPL-2.0-or-later", "AGPL-*": "AGPL-3.0-or-later"}
"""Identifiers of GNU licenses without a version: any version that was ever published."""


class Naming:
    """The names that were found in words, by token."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self._versions: dict[str, str] = {}
        """License without a version -> the first with one."""

    def token(self, license: str) -> str:
        """Return the token of one more name."""
        self.ids.append(license)
        for each in ANY_VERSION:
            if license.startswith(each[:-1]) and license != each:
                self._versions.setdefault(each, license)
        return f"N{len(self.ids) - 1}"

    def license_of(self, token: str) -> str:
        """Return the license that a token stands for."""
        license = self.ids[int(token[1:])]
        return self._versions.get(license, ANY_VERSION[license]) if license in ANY_VERSION else license


def ids_as_words(text: str) -> str:
    """Return a text whose SPDX identifiers are one word each, where the tables of names would read a part of one."""
    if "_" in text:
        text = _OF_CODE.sub("symbol", text)
    if "-" not in text:
        return text
    return _HYPHENATED.sub(_one_word, text)


def with_tokens(words: str) -> tuple[str, Naming]:
    """Return plain words with a token for each name, and the names."""
    naming = Naming()
    if not _may_name().search(words):
        return words, naming
    words = re.sub(rf"\b{_ID}(\d+)\b", lambda match: naming.token(spdx_ids()[int(match[1])]), words)
    words = _gnu().sub(lambda match: naming.token(_gnu_expression(match)), words)
    words = _full().sub(lambda match: _token_of_name(match, naming), words)
    for expression in _places_of_short_names():
        words = expression.sub(
            lambda match: f"{match['before']}{naming.token(_short_license(match['short']))}{match['rest']}", words
        )
    return words, naming


def foreign_phrases() -> tuple[str, ...]:
    """Return expressions over text as written, in languages of other scripts, for what puts something under a license `name`."""
    return tuple(each.replace("<name>", _NAME_IN_SCRIPT) for each in _table("scripts")["phrases"])


def unknown_name(text: str) -> str | None:
    """Return what a line `License: ...` names, if it is neither a known name nor said elsewhere."""
    for match in _LICENSE_LINE.finditer(text):
        words = plain_words(ids_as_words(match[1]))
        if not words and _OF_A_SCRIPT.search(match[1]) and not _ELSEWHERE_AS_WRITTEN.search(match[1]):
            return str(match[1]).strip()
        if words and not _ELSEWHERE.search(words) and not re.search(TOKEN, with_tokens(f"license {words}")[0]):
            return str(match[1]).strip()
    return None


def _one_word(match: re.Match[str]) -> str:
    """Return the word for an identifier. A product and its version are one beside the word for a license alone."""
    found = _words_of_ids().get(match[0].lower())
    if found is None or _PRODUCT.match(match[0]):
        begin = match.string.rfind("\n", 0, match.start()) + 1
        found = found if found and _BESIDE_ID.search(match.string, begin, match.start()) else match[0]
    return found


def _token_of_name(match: Any, naming: Naming) -> str:
    """Return the token of a name, and what `mit licensed` says besides; a name before `licensed under` is that of a program."""
    name = str(match[0])
    if name.endswith("licensed") and _GOES_ON.match(match.string, match.end()):
        return name
    return ("under " if name.endswith("licensed") else "") + naming.token(_full_license(name))


@cache
def spdx_ids() -> tuple[str, ...]:
    """Return the identifiers of the SPDX license list, without exceptions, in order."""
    return tuple(
        key
        for key, symbol in sorted(get_spdx_licensing().known_symbols.items())
        if not (key.startswith("LicenseRef-") or symbol.is_exception)
    )


@cache
def _words_of_ids() -> dict[str, str]:
    """Return the words for identifiers with a hyphen which the tables do not read as what they are. GNU ones have a grammar."""
    found = {}
    for number, key in enumerate(spdx_ids()):
        if "-" in key and not re.match(r"[AL]?GPL-", key):
            words, naming = with_tokens(f"license {plain_words(key)}")
            if not re.fullmatch(rf"license {TOKEN}|{TOKEN}", words) or naming.ids[0].upper() != key.upper():
                found[key.lower()] = f"{_ID}{number}"
    return found


@cache
def _may_name() -> Any:
    return re2.compile(
        r"spdxid|licen[sc]|gpl|bsl|public domain|opensource org|apache org|cc0|cc by|mpl|cddl|eupl|cecill"
        r"|wtf|sspl|numerical recipes|commons|polyform|noncommercial|unlicense|gnu|under|dual|nvidia"
        r"|creativecommons|boost|apache|bsd|mit |open ?rail|mulan|sax pd"
        r"|odbl|lppl|rpsl|apsl|\bepl\b|artistic|sleepycat|ms [pr]l|spdx|blessing"
    )


@cache
def _gnu() -> Any:
    return compile_prose(rf"\b{_GNU}\b", is_longest=True)


@cache
def _full() -> Any:
    names = [name for each in _table("full").values() for name in each]
    short = [rf"(?:{name}){_STYLE}{_AGREEMENT}" for license in _table("short") for name in _table("short")[license]]
    return compile_prose(rf"\b(?:the )?(?:{'|'.join(names + short)})\b", is_longest=True)


@cache
def _places_of_short_names() -> tuple[Any, ...]:
    """Return the places at which a short name is a license: after a word that says so, or beside a license."""
    short = "|".join(name for each in _table("short").values() for name in each)
    name = rf"(?P<short>{short})"
    said = (
        r"licen[sc]e(?: (?:is|type|id|name|identifier|info|expression))? (?:the )?"
        r"|(?:licensed|released|distributed|available|provided|dual|licenses?|redistributed"
        r"|covered|published) (?:under|by|as)(?: (?:a|an|the|either|both|terms|of|and|conditions"
        r"|your|choice|dual|two|licenses|following)){0,8} "
        r"|(?:under|either|both|dual|dual licensed|triple licensed) (?:the )?(?:terms of )?(?:the )?|spdx "
    )
    after = compile_prose(rf"(?P<before>\b(?:{said})){name}(?P<rest>)\b", is_longest=True)
    beside = compile_prose(rf"(?P<before>\b{TOKEN} {_BESIDE}){name}(?P<rest>)\b", is_longest=True)
    ahead = compile_prose(rf"(?P<before>){name}(?P<rest> {_BESIDE}{TOKEN})\b", is_longest=True)
    return after, beside, ahead, beside


@lru_cache(maxsize=4_096)
def _full_license(words: str) -> str:
    bare = words.removeprefix("the ")
    for license, names in _table("full").items():
        if _whole("|".join(names)).fullmatch(bare) or _whole("|".join(names)).fullmatch(words):
            return license.strip()
    for license, names in _table("short").items():
        if _whole(rf"(?:{'|'.join(names)}){_STYLE}{_AGREEMENT}").fullmatch(bare):
            return license
    raise AssertionError(words)


@lru_cache(maxsize=4_096)
def _short_license(words: str) -> str:
    return next(license for license, names in _table("short").items() if _whole("|".join(names)).fullmatch(words))


@cache
def _whole(pattern: str) -> Any:
    return compile_prose(f"(?:{pattern})", is_longest=True)


@cache
def _table(kind: str) -> dict[str, list[str]]:
    table = tomllib.loads(
        files("pipeline.stages.normalize.license.prose").joinpath(NAMES_FILE).read_text(encoding="utf-8")
    )
    return dict(table[kind])


def _gnu_expression(match: Any) -> str:
    name = match["name"]
    kind = next((kind for word, kind in _GNU_KINDS if word in name), "GPL")
    version = (match["after"] or match["before"] or "").replace(" ", ".")
    if not version:
        return f"{kind}-*"
    version = version if "." in version else f"{version}.0"
    return f"{kind}-{version}-{'or-later' if match['later'] or match['before_later'] else 'only'}"
