"""Notices that put a file under licenses without their texts: a relation such as `licensed under`, then names.

Sources: the appendix of Apache-2.0, exhibit A of MPL-2.0, the Boost license page, "How to apply" of the GNU licenses, and
the standard headers of the SPDX list. Names with `or` between them, `either`, `dual`, `at your option` are a choice.
"""

import re
from dataclasses import dataclass
from functools import cache
from typing import Any

import re2

from pipeline.stages.normalize.license.prose.names import (
    ANY_VERSION,
    PUBLIC_DOMAIN,
    TOKEN,
    foreign_phrases,
    ids_as_words,
    with_tokens,
)
from pipeline.stages.normalize.license.prose.prose_expressions import compile_prose
from pipeline.stages.normalize.license.prose.words import plain_words

_FILL = (
    "the|a|an|terms?|conditions?|provisions?|and|of|either|both|any|all|one|two|three|following"
    "|version|standard|permissive|open|source|free"
    "|software|unmodified|very|liberal|osi|approved|your|choice|with|license|licenses|licence|licensed|dual"
    "|file|code|simple|new|its|own|these|those"
    "|this|in|accordance|to|you|or|option|by|restrictive|different|compatible|is|are|as|foss|same|general|form"
)
_JOIN = (
    "or|and|alternatively|the|a|an|at|your|option|choice|under|terms|of|either|licensed|license"
    "|licenses|also|available|dual|as|well|with"
    "|conditions|it|is|may|be|used|distributed|can|you|this|file|software|code|by|see|http|com"
    "|org|txt|html|in|its|if|prefer|later|which"
)
_VERBS = (
    "licensed|relicensed|distributed|redistributed|redistributable|redistribute|distribute|released|available"
    "|provided|published|offered|covered|governed"
    "|use|used|usable|contributed|shared|subject|permitted|modify|copy|made|placed|protected|licensing"
    "|regulated|adheres|issued|granted|put"
)
_BEFORE = (
    rf"(?:(?:use|usage|copying|distribution) of (?:this|the)(?: \w+){{1,2}} (?:is|are) )?"
    rf"(?:(?:use|usage|reuse|copying|modification|distribution|redistribution|reproduction|and|or|is|are) )*"
    rf"(?:dual |dually |triple |tri |double |multi )?(?:(?:{_VERBS})(?: \w+){{0,3}} )?(?:under|governed"
    rf" by|covered by|choose between|subject to|according to|accordance with|pursuant to|licensed (?:by|with|as"
    rf"|to you under)"
    rf"|(?:terms|conditions|licensing)(?: (?:and|of|for|use|distribution|copying|conditions|license)){{0,4}} see"
    rf"|distributed (?:with|by)|released (?:as|with|by|to)|available (?:as|with|via|through)|alternative [ab12]|licen[sc]es?(?:"
    rf" (?:is|are|type|name|info|iden\w+|id|expression|s))?|uses|follows|spdx|protected by)"
    rf"(?: (?:{_FILL}))* "
)
_LIST = rf"{TOKEN}(?: (?:(?:{_JOIN}) )*{TOKEN})*"
_LISTS = rf"{TOKEN}(?: (?:(?:{_JOIN}) )*{TOKEN})+"
_MANIFOLD = r"(?:dual|dually|double|tri|triple|multi) licen[sc](?:es?|ed|ing)"
_AFTER = (
    r"(?: (?:licen[sc]es?|at your (?:option|choice|discretion)|whichever you prefer|choose whichever you prefer)){0,2}"
)
_DENIED = (
    r"\b(?:not|never|no longer|nor|isn t|formerly|previously|originally|instead of|rather than)(?:"
    r" (?:be|been|being|is|are|currently|yet|to be|was)){0,2} "
)
_OF_HPND = (
    r"this software(?: and its documentation)? for any purpose (?:and )?(?:without fee )?is hereby granted(?: without fee)?"
    r" provided that the above copyright notice appears? in all copies(?: and that both (?:that |the )?(?:above )?copyright"
    r" notice and this permission notice appears? in supporting documentation)?(?: and that the names? of (?:\w+ ){1,12}not be"
    r" used in advertising or publicity pertaining to distribution of the software without (?:specific |written |prior ){2,3}"
    r"permission)?"
)
"""The words that the historical permission notices have in common."""
_STANDARD = {
    "CC0-1.0": r"to the extent possible under law (?:\w+ ){1,12}?ha(?:s|ve) (?:waived|dedicated) all copyright and related"
    r" (?:and|or) neighboring rights to (?:(?:\w+ ){1,4}?to the public domain"
    r" worldwide|(?:\w+ ){1,6}?(?:work|software|file))(?: this software is distributed"
    r" without any warranty)?(?: permission to use copy modify (?:and or |and )?distribute this (?:software|code|file|work) for any"
    r" purpose with or without fee is hereby granted)?(?: you should have received a copy of the cc0"
    r" public domain dedication along with this \w+ if not see)?"
    r"(?: (?:see )?http creativecommons org publicdomain zero 1 0(?: legalcode)?)?"
    r"|(?:creative commons )?cc ?0 1 0(?: universal)?(?: public domain dedication)? no rights reserved"
    r"|licen[sc]ed cc ?0 1 0(?: universal)?",
    "Unicode-3.0": r"(?:unicode inc and others )?licen[sc]e terms of use http www unicode org (?:copyright html|terms of use html)"
    r"(?: licen[sc]e)?",
    "blessing": r"(?:the )?authors? disclaims? copyright to this source code in place of a legal notice here is a blessing"
    r"(?: may you do good and not evil)?(?: may you find forgiveness for yourself and forgive others)?"
    r"(?: may you share freely never taking more than you give)?",
    "Beerware": r"(?:the )?beer ?ware license(?: revision \d+)?(?: \w+){0,8} wrote this (?:file|code|software|program)"
    r" as long as you retain this notice you can do whatever you want with this stuff if we meet some day and you think"
    r" this stuff is worth it you can buy me a beer in return",
    "Unlicense": r"this is free and unencumbered software released into the public domain(?: anyone is free to copy modify publish"
    r" use compile sell or distribute this software(?: either in source code form or as a compiled binary for any purpose"
    r" commercial or non commercial and by any means)?)?(?: for more information please refer to http unlicense org)?",
    "HPND": rf"permission to use copy modify (?:and )?distribute {_OF_HPND}",
    "HPND-sell-variant": rf"permission to use copy modify (?:and )?distribute (?:and )?sell {_OF_HPND}",
    "curl": r"this software is licensed as described in the file copying which you should have received as part of this"
    r" distribution the terms are also available at http curl (?:haxx )?se docs copyright html(?: you may opt to use copy"
    r" modify merge publish distribute and or sell copies of the software and permit persons to whom the software is"
    r" furnished to do so under the terms of the copying file)?",
    "IJG": r"(?:this file (?:is|was)(?: \w+){0,3} part of the independent jpeg group s software(?: \w+){0,150}? )?"
    r"for conditions of distribution and use see the accompanying readme ijg(?: file)?"
    r"|this file (?:is|was)(?: \w+){0,3} part of the independent jpeg group s software(?: \w+){0,150}? "
    r"for conditions of distribution and use see the accompanying readme(?: file)?",
    "TCL": r"the authors hereby grant permission to use copy modify distribute and license this software and its documentation for"
    r" any purpose provided that existing copyright notices are retained in all copies and that this notice(?: and the following"
    r" disclaimer)? (?:is|are) included verbatim in any distributions no written agreement license or royalty fee is required for"
    r" any of the authorized uses(?: modifications to this software may be copyrighted by their authors and need not follow the"
    r" licensing terms described here provided that the new terms are clearly indicated on the first page of each file where they"
    r" apply)?"
    r"|see the file license terms for information on usage and redistribution of this file and for a disclaimer of all warranties",
    "Libpng": r"for conditions of distribution and use see (?:the )?(?:copyright notice|disclaimer and licen[sc]e) in png h",
    "Zlib": r"for conditions of distribution and use see (?:the )?copyright notice in zlib h",
}
"""Standard headers that name their license by what they say, over plain words; the first paragraphs of short texts among them."""
_MAY_BE_STANDARD = re2.compile(
    r"neighboring|cc ?0 1 0|blessing|beer ?ware|unicode org|unencumbered|permission to use|grant permission"
    r"|conditions of distribution|curl|license terms"
)
_NUMBERED = re2.compile(r"(?i)\b(terms of (?:either|one)(?: of)?)[\s:*/#]{1,100}\(?[1a][.)]")
"""The beginning of a numbered choice, whose numbers plain words do not have."""
_FIELD = re2.compile(
    r"(?i)\b(?:lizenz|licencia|licenza|licença|licentie|licencja|lisans|lisenssi|licens|licence|licență|licenc|licenca"
    r"|licencija|lisens|llicència)[ \t]*[:：][ \t]*"
    r"|(?:许可证|許可證|许可|授权|授權|ライセンス|使用許諾|許諾|라이선스|라이센스|лицензия|ліцензія|άδεια"
    r"|giấy phép|رخصة|الترخيص|רישיון)[ \t]*[:：][ \t]*"
)
"""Names of the field of a license in the languages that comments are written in."""
_CHANGE_FIELD = re2.compile(
    r"(?im)^[^\pL\pN\n]*change[ \t]+license[ \t]*:[^\n]*"
    r"|(?:licensed work|additional use grant)\b[^\n]*?\bchange (?:date|license)[ \t]*:[^\n]*"
)
"""The fields of the Business Source License that name what becomes of it: the license that holds until then is that one."""
_FOREIGN_NAMES = r"(?:mit|isc|zlib|boost|bsd(?: [23] clause)?|apache(?: (?:v(?:ersion)? ?)?2(?: 0)?)?)"
_FOREIGN = re2.compile(
    r"\b(?P<denied>(?:nicht|kein\w*|no|non|pas|nao)(?: mehr| plus| ya)? )?(?:(?:lizen[sz]iert|veroffentlicht|freigegeben"
    r"|publicado|distribuido|publie|distribue|distribuito|rilasciato|licenciado|steht|bajo|sous|sob|con|sotto|segun|selon"
    r"|unter|der|la|los terminos de|a|i termini della|onder|de|na|sob a|pod|under|gepubliceerd|uitgegeven|gelicentieerd|wydany\w*"
    r"|udostepnion\w+|objet\w*|altinda|lisansli\w*|utgitt|slappt|julkaistu|sota) )*"
    rf"(?:(?P<before>{_FOREIGN_NAMES}) (?:lizenz|licentie|licens|licensen|lisensen|lisansi|lisensi|lisenssi\w*|licenc)"
    rf"|(?:licencia|licenza|licenca|licentie|licencj[aąi]|licenci|licencie|licent[ae]|licenta|llicencia)"
    rf" (?P<after>{_FOREIGN_NAMES}))\b"
)
"""A short name beside the word for a license in another language, and the words that put something under it."""
_FOUND_IN = re.compile(
    r" (?:which (?:is|can be) )?(?:found|contained) in the (?:licen[sc]e|copying)(?: txt| md)? file(?: in the root directory of"
    r" this source tree)?(?= and| or)"
)
"""The place of a license's text between the names of two."""
_ASIDE = re.compile(
    r" which is an? (?:\w+ ){0,3}(?:bsd|mit|gpl|apache) (?:like|style|compatible) licen[sc]e(?: that allows(?: \w+){0,6} software)?"
)
"""An aside about the kind of the license that was named."""
_CC0 = re2.compile(
    r"\bpublic domain (?:(?:under|via|by|with|using) )?(?:the )?(?:creative commons )?(?:cc0|cc zero)(?: 1 0)?(?: universal)?\b"
)
_MAX_TITLE = 120
_MEMORY_OF_PHRASES = 64 << 20
"""Bytes of the automaton of one phrase in another script: with the 8 MiB that RE2 gives, it says so in the log of a long text."""
_MONTH = "january|february|march|april|may|june|july|august|september|october|november|december"
_MAY_BE_TITLE = re2.compile(r"(?i)licen[sc]|\bor\b|gpl|mpl|mit|bsd|apache|public|cc0|wtf|cc[- ]by")
_OF_A_CHOICE = re2.compile(r"(?i)\b(?:mit|isc|bsd|gpl|unlicense|cc0)\b")
"""Names of a license alone, one of which a choice without further words must hold."""
_CHOICE = re2.compile(
    r"\b(?:or|either|dual|dually|triple|tri|double|multi|choose|choice|option|alternatively|whichever|alternative)\b"
)
_DUAL = re.compile(r"^dual(?:ly)? (?:licensed |license )?(?:under )?(?:the )?")
_CHOICE_OF_ALL = re2.compile(
    r"\b(?:(?:choose|select) (?:whichever|one|either|between)|whichever you (?:prefer|like|want)|at your "
    r"(?:option|choice)|your choice|alternative [ab12] N?"
    r"|under either licen[sc]e|choice of (?:one of )?(?:the )?(?:two|2|three|3|these|following)(?: \w+)? licen[sc]es"
    r"|dual(?:ly)? licen[sc]\w+|(?:available|licensed|released|distributed|provided)(?: \w+){0,3}"
    r" (?:two|2|three|3|multiple) (?:\w+ )?licen[sc]es"
    r"|(?:may|can) (?:pick|choose|select|use|take) (?:either|any one|one|whichever)|(?:pick|take) either|take your pick"
    r"|(?:either|one) of the(?: \w+){0,3} licen[sc]es|option [12ab]|alternatively)\b"
)
_PUBLIC_DOMAIN = (
    r"(?:(?:is )?dual licensed to the public domain and under the following license you are granted a perpetual irrevo[ck]able"
    r" license to copy modify(?: publish)? and distribute this file as you see fit"
    r"|(?:is|are|be|been|as|into|to|in|under|code|file|of) (?:\w+ ){0,3}(?:the )?public domain|public"
    r" domain(?: \w+){0,3} (?:by|code|file|software|dedication|notice|work|implementation|header)"
    r"|(?:(?:i|we|(?:the )?authors?) )?(?:hereby )?(?:dedicate[sd]?|place[sd]?|release[sd]?|donate[sd]?|puts?|contribute[sd]?"
    r"|commit\w*|belongs?|grant\w*|waive\w*)(?: \w+){0,14} public domain"
    r"|public domain no rights|(?:license|licence|copyright|status) (?:none )?public domain|^public domain$|no copyright"
    r" is claimed|(?:author|authors) (?:hereby )?disclaims? copyright(?: to this source code)?)"
)


@dataclass(frozen=True)
class Notices:
    """The expressions that words put a file under, and the words without them, ` / ` in their place.

    `is_choice` says that all that was found beside each other is a choice. `names` are the licenses that the other words
    only mention, by token.
    """

    licenses: tuple[str, ...]
    left: str
    is_choice: bool
    names: tuple[str, ...]


def find_notices(header: str) -> tuple[str, ...]:
    """Return the expressions that a file's leading comments put it under, sorted. All hold.

    A notice may begin in the line of the copyright: `(C) Copyright A 1999. Distributed under the Boost`.
    """
    header = plus_as_words(header)
    return (
        split_notices(plain_words(header)).licenses
        or split_notices(plain_words(header, with_copyright_lines=True)).licenses
    )


def title_of(text: str) -> tuple[str, ...]:
    """Return the licenses of a line that is nothing but names: `MIT License`, `Apache-2.0 OR BSL-1.0`."""
    for line in text.splitlines():
        if len(line) > _MAX_TITLE or not _MAY_BE_TITLE.search(line):
            continue
        words, naming = with_tokens(plain_words(line))
        if naming.ids and _title().fullmatch(words) and not ANY_VERSION.keys() & set(naming.ids):
            ids = tuple(dict.fromkeys(naming.license_of(token) for token in re.findall(TOKEN, words)))
            return (" OR ".join(ids),) if len(ids) > 1 and _CHOICE.search(words) else ids
    return ()


def title_in_words(plain: str) -> tuple[str, ...]:
    """Return the licenses of plain words that are nothing but names, of any version where they say none."""
    words, naming = with_tokens(plain)
    if not naming.ids or not _words_of_titles().fullmatch(words):
        return ()
    return tuple(dict.fromkeys(naming.license_of(token) for token in re.findall(TOKEN, words)))


def choice_of(line: str) -> str | None:
    """Return the choice that a short line of names and `or` is: `MIT or Zlib`. One of them must be the name of nothing else."""
    if len(line) > _MAX_TITLE or not ("/" in line or " or " in line.lower()) or not _OF_A_CHOICE.search(line):
        return None
    if len(title_of(line.replace("/", " "))) == 1:
        return None  # one license with two names
    named = _DUAL.sub("", plain_words(ids_as_words(line.replace("/", " or "))))
    words, naming = with_tokens(f"either {named}")
    ids = tuple(dict.fromkeys(naming.license_of(token) for token in re.findall(TOKEN, words)))
    is_choice = len(ids) > 1 and re.fullmatch(rf"either {TOKEN}(?: or {TOKEN})+(?: licen[sc]es?)?", words)
    return " OR ".join(ids) if is_choice else None


def plus_as_words(text: str) -> str:
    """Return a text with the plus sign of `GPL-2.0+` in words, which plain words would lose, and `license` in English."""
    text = re.sub(r"(?<=[0-9])\+", " or later ", text) if "+" in text else text
    text = _NUMBERED.sub(r"\1 your choice ", text)
    if _CHANGE_FIELD.search(text):
        text = _CHANGE_FIELD.sub("Licensed under the Business Source License 1.1.", text)
    if not text.isascii():
        for expression in _in_scripts():
            text = expression.sub(lambda match: f" licensed under the {match['name']} license ", text)
    return str(_FIELD.sub("License: ", text))


def split_notices(words: str) -> Notices:
    """Find the notices in plain words."""
    found: list[str] = []
    if _MAY_BE_STANDARD.search(words):
        for license in _STANDARD:
            words, number = _standard(license).subn(" / ", words)
            found += [license] * bool(number)
    words = _ASIDE.sub("", _FOUND_IN.sub("", words))
    words = _CC0.sub("public domain under the cc0 license", words)
    words = _FOREIGN.sub(_in_english, words.replace("gnu org licenses gpl faq", "/"))
    words, naming = with_tokens(_without_exceptions(words))
    is_choice = bool(_CHOICE_OF_ALL.search(words.partition("as a special exception")[0]))

    def taken(match: Any) -> str:
        if _denied().search(match[0]):
            return str(match[0])
        ids = tuple(dict.fromkeys(naming.license_of(token) for token in re.findall(TOKEN, match[0])))
        if "Unlicense" in ids:
            ids = tuple(each for each in ids if each != PUBLIC_DOMAIN)  # what it says of itself
        found.extend((" OR ".join(ids),) if _CHOICE.search(match[0]) else ids)
        return " / "

    words = _notice().sub(taken, words)
    if "public domain" in words or "copyright" in words:
        words = _public_domain().sub(lambda match: _dedicated(match, found), words)
    names = tuple(naming.license_of(token) for token in re.findall(TOKEN, words))
    return Notices(tuple(sorted(set(found))), words, is_choice, names)


@cache
def _in_scripts() -> tuple[Any, ...]:
    options = re2.Options()
    options.max_mem = _MEMORY_OF_PHRASES
    return tuple(re2.compile(each, options) for each in foreign_phrases())


def _in_english(match: Any) -> str:
    name = match["before"] or match["after"]
    return f"{'not ' if match['denied'] else ''}licensed under the {name} license"


def _without_exceptions(words: str) -> str:
    """Return plain words without permissions to link with OpenSSL, which name its license and put nothing under it."""
    return str(_linking().sub(" / ", words)) if "special exception" in words else words


@cache
def _linking() -> Any:
    return re2.compile(
        r"\b(?:in addition )?as a special exception(?: \w+){1,8} permission to link(?: \w+){1,40} (?:openssl|library)\b"
        r"(?: \w+){0,30} (?:including the two|license as openssl|two)\b"
    )


def _dedicated(match: Any, found: list[str]) -> str:
    if _denied().search(match[0]):
        return str(match[0])
    found.append(PUBLIC_DOMAIN)
    return " / "


@cache
def _standard(license: str) -> Any:
    return re2.compile(rf"\b(?:{_STANDARD[license]})\b")


@cache
def _notice() -> Any:
    named = rf"{_BEFORE}{_LIST}{_AFTER}|{_LIST} see (?:(?:the|file) )*(?:licen[sc]e|copying)"
    named += rf"|see (?:the )?{_LIST} for (?:the )?(?:terms|conditions|licensing)"
    named += rf"|(?:choose|pick|select)(?: (?:either|between|from|the))* {_LISTS}"
    named += rf"|{_MANIFOLD} {_LISTS}|{_LISTS} {_MANIFOLD}|either {_LISTS} (?:at your (?:option|choice)|whichever you prefer)"
    return compile_prose(rf"(?:{_DENIED})?(?:alternatively (?:\w+ ){{0,10}})?\b(?:{named})\b")


@cache
def _title() -> Any:
    dated = rf"(?: (?:version|v|\d{{1,4}}(?:st|nd|rd|th)?|{_MONTH}))*"
    return re2.compile(rf"(?:(?:the|a|license|licence|c|under) )*{_LIST}{_AFTER}{dated}")


@cache
def _words_of_titles() -> Any:
    other = rf"the|an?|and|or|licen[sc]es?|agreement|version|v|\d{{1,4}}(?:st|nd|rd|th)?|{_MONTH}|title|name|file|text"
    return re2.compile(rf"(?:(?:{TOKEN}|{other})(?: |$))+")


@cache
def _denied() -> Any:
    return re2.compile(_DENIED)


@cache
def _public_domain() -> Any:
    return re2.compile(rf"(?:{_DENIED})?\b{_PUBLIC_DOMAIN}\b")
