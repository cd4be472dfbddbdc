"""Words of license prose, without what the SPDX matching guidelines ignore, and with names in one spelling.

Source: SPDX License List Matching Guidelines, v3: white space, case, punctuation, quotes, copyright lines, bullets,
equivalent words, and the replaceable text of the common templates (who disclaims, who may not be named). Nothing that
grants, limits or forbids is replaceable: a slot for a name takes at most 25 words, none of them one that could.
"""

import re
import unicodedata
from functools import lru_cache

import re2

_OPERATIVE = r"permission\b|redistribution\b|this software\b|this is free and unencumbered\b|licensed under\b"
"""The first words of a text, also in the line of a copyright."""
_COPYRIGHT_LINE = re.compile(
    r"^[^\w\n©(]*(?:portions |parts )?(?:(?:copyright\b|\(c\)|©|&copy;).*?(?:\d{4}|\(c\)|©|<year>|\[yyyy\]| by )"
    rf".*?(?:(?=\b(?:{_OPERATIVE}))|$)"
    r"|all rights reserved\W*$)",
    re.MULTILINE,
)
_OF_COPYRIGHT_LINES = ("copyright", "(c)", "©", "&copy;", "all rights reserved")
_BULLET = re.compile(
    r"(?<![\w.-])(?<!version )\(?\d{1,2}[.)](?=\s)|(?:^[^\w\n(]*|\()(?:[a-hivx]|ii|iii|iv|vi)[.)](?=\s)"
    r"|^[^\w\n]*o(?=[ \t])",
    re.MULTILINE,
)
_END_OF_BULLET = re.compile(r"[.)]\s")
_ROUND_BULLET = re.compile(r"[^\w\n]*o[ \t]")
"""Necessary conditions of a bullet in a line."""
_MARKUP = re.compile(r"</?(?:h\d|center|b|i|p|br|tt|pre|strong)>|<!--|&copy;")
_WORD = re.compile(r"[a-z0-9]+")
_NUM_LINES = 1 << 15
"""Lines whose words are remembered: the headers of a source differ in few."""
_LINE_BREAK_HYPHEN = re.compile(r"(?<=[a-z])-\n[^\w\n]*(?=[a-z])")
_FORBIDDEN_IN_NAMES = "not|except|unless|only|if|must|shall|license|licenses|without|permission|granted|fee|provided"
_NAME = rf"(?:(?!(?:{_FORBIDDEN_IN_NAMES}) )[a-z0-9]+ ){{1,25}}?"
_FOLDED = {
    code: unicodedata.normalize("NFKD", chr(code)).encode("ascii", "ignore").decode().lower() or None
    for code in (*range(0xC0, 0x250), *range(0x1E00, 0x1F00))
    if unicodedata.normalize("NFKD", chr(code))[0].isascii()
} | {ord("ß"): "ss", ord("ł"): "l", ord("ø"): "o", ord("đ"): "d", ord("ı"): "i", ord("æ"): "ae"}
_EQUIVALENT = {
    "licence": "license",
    "licences": "licenses",
    "licenced": "licensed",
    "sublicence": "sublicense",
    "expressed": "express",
    "https": "http",
    "owner": "holder",
    "owners": "holders",
    "cancelled": "canceled",
    "acknowledgment": "acknowledgement",
    "noninfringment": "noninfringement",
}
_REPLACEABLE = (
    (rf"\bin no event shall {_NAME}be liable\b", "in no event shall someone be liable"),
    (rf"\b(?:is|are) provided by {_NAME}as is\b", "is provided as is"),
    (rf"\bas is and {_NAME}disclaims? all\b", "as is and someone disclaims all"),
    (
        rf"\b(?:neither (?:the |my )?(?:names? )?{_NAME}n?or (?:the )?names? of {_NAME}may"
        rf"|(?:the )?names? {_NAME}(?:may|must)(?: not)?"
        r"|[a-z0-9]+ s name may not) be used to endorse or promote products derived from this software without (?:specific"
        rf" )?prior written permission(?: of(?: (?!(?:{_FORBIDDEN_IN_NAMES}) )[a-z0-9]+){{1,4}}(?= this software is)"
        r"| for written permission please contact [a-z0-9]+ [a-z0-9]+ [a-z]+)?\b",
        "no name may be used to endorse",
    ),
    (r"\bno name may be used to endorse (?:no name may be used to endorse )+", "no name may be used to endorse "),
    (
        r"\bthat both (?:that )?(?:the |that )?copyright notice and this permission notice\b",
        "that both the copyright notice and this permission notice",
    ),
    (
        rf"\bthat the names? {_NAME}not be used in advertising or publicity pertaining to distribution"
        rf" of the software without"
        r" specific written prior permission\b",
        "that no name be used in advertising",
    ),
    (
        rf"\bused in advertising {_NAME}(disclaims?|makes) (all|no) (warranties|representations)\b",
        r"used in advertising someone \1 \2 \3",
    ),
    (r"\bthis software and or associated documentation files\b", "this software and associated documentation files"),
    (r"\bcopyright notice s\b", "copyright notice"),
    (r"\bnon infringement\b", "noninfringement"),
    (r"\bredistribution (of source code|in binary form) must\b", r"redistributions \1 must"),
    (r"\bandor\b", "and or"),
    (
        rf"\bredistribution and use of {_NAME}in source and binary forms\b",
        "redistribution and use in source and binary forms",
    ),
    (r"\bused to endorse disclaimer this software is provided\b", "used to endorse this software is provided"),
    (
        rf"\bsource and binary forms of {_NAME}with or without modification\b",
        "source and binary forms with or without modification",
    ),
    (r"\bwithout limitation on the rights\b", "without limitation the rights"),
    (
        r"\babove copyright notice (?:as well as )?this permission notice (?:and the (?:below|following) disclaimer )?shall\b",
        "above copyright notice and this permission notice shall",
    ),
    (
        rf"\bexcept as contained in this notice the names? {_NAME}shall not be used in advertising or otherwise to promote the sale"
        r" use or other dealings in (?:this|the|these) (?:software|data files or software) without (?:specific )?prior written"
        r" authorization\b",
        "except as contained in this notice no name be used in advertising",
    ),
    (r"\bappear in (all copies|supporting documentation)\b", r"appears in \1"),
    (rf"\bexpress or implied warranty {_NAME}disclaims? all\b", "express or implied warranty someone disclaims all"),
    (r"\bin advertising someone disclaim all\b", "in advertising someone disclaims all"),
    (rf"\beven if {_NAME}has been advised\b", "even if someone has been advised"),
    (rf"\bof such damage {_NAME}specifically disclaims? any\b", "of such damage someone specifically disclaims any"),
    (rf"\bbasis and {_NAME}has no obligations? to provide\b", "basis and someone has no obligations to provide"),
    (r"\bpermission notice including the next paragraph shall\b", "permission notice shall"),
    (r"\bcopy modify and (?:or )?distribute\b", "copy modify and distribute"),
    (
        r"\b(copyright notice)s? (?:unmodified|immediately at the beginning of the file without"
        r" modification) (this list)",
        r"\1 \2",
    ),
    (
        r"\b(this list of conditions and the) (?:disclaimer below|following disclaimer in this position and unchanged)\b",
        r"\1 following disclaimer",
    ),
    (
        r"\bpermitted provided that the following condition is met\b",
        "permitted provided that the following conditions are met",
    ),
    (
        r"\bcopyright notice this condition and the following disclaimer\b",
        "copyright notice this list of conditions and the following disclaimer",
    ),
    (r"\bpermit persons to do so subject\b", "permit persons to whom the software is furnished to do so subject"),
    # What an author asks or explains within a license text, and does not demand.
    (
        r"\bpermission notice shall be included in all copies or substantial portions of the software if you wish to use our"
        r" (?:amazon )?freertos name please do so in a fair use way that does not cause confusion\b",
        "permission notice shall be included in all copies or substantial portions of the software",
    ),
    (
        r" any person wishing to distribute modifications to the software is (?:asked|requested|encouraged) to send the"
        r" modifications to the original (?:developer|author)s? so that they can be incorporated into the canonical version"
        r"(?: this is however not a binding provision of this license)?\b",
        "",
    ),
    (
        r" third party software included in this distribution is subject to the additional license terms as defined in the docs"
        r" licenses directory\b",
        "",
    ),
    (r"\bin no event will the author be held\b", "in no event will the authors be held"),
    (r"\bsub license\b", "sublicense"),
    (r"\boriginal copyright notice\b", "above copyright notice"),
    # The heading above the terms of the GNU licenses is optional, and the Lesser license was the Library license once.
    (
        r"\bgnu (?:lesser |library )?general public license terms and conditions for copying\b",
        "terms and conditions for copying",
    ),
    (r"\bgnu library general public license instead\b", "gnu lesser general public license instead"),
)
_DEFINED = re.compile(
    r"\bassociated documentation files the (materials?|works?|library|program|product|package|code) to deal in the \1\b"
)
"""Other words for "the software" in the template of MIT."""
_OF_TEMPLATES = re2.compile(
    r"\b(?:as is|liable|advised|promote|permission|permitted|disclaims?|infringement|copyright notices?"
    r"|library general|lesser general|general public)\b"
)
"""Words without which none of the expressions below matches."""


def _always_held(pattern: str) -> str:
    """Return the longest run of letters that every match of an expression holds: in no group and not optional."""
    outside: list[str] = []
    depth = 0
    for sign in re.findall(r"\\.|.", pattern):
        depth += (sign == "(") - (sign == ")")
        if sign in "?*{":
            outside[-1] = "/"
        outside.append(sign if depth == 0 and re.fullmatch("[a-z ]", sign) else "/")
    return max("".join(outside).split("/"), key=len)


_SUBSTITUTIONS = tuple((_always_held(pattern), re.compile(pattern), plain) for pattern, plain in _REPLACEABLE)
"""Replacements: words without which there is nothing to replace, the expression, and what replaces it."""


@lru_cache(maxsize=4)  # a header is searched for texts, then for notices
def plain_words(text: str, hyphen: str = "-", *, with_copyright_lines: bool = False) -> str:
    """Return the words of a text, in lower case and one space apart: no copyright lines, bullets, punctuation or margins.

    `hyphen` replaces a hyphen at a line's end: itself, or nothing where it only divides a word.
    """
    lowered = folded(text.lower())
    if "-\n" in lowered:
        lowered = _LINE_BREAK_HYPHEN.sub(hyphen, lowered)
    is_marked_up = "<" in lowered
    *lines, last = lowered.split("\n")
    words = [_words_of_line(f"{line}\n", with_copyright_lines, is_marked_up) for line in lines]
    words.append(_words_of_line(last, with_copyright_lines, is_marked_up))
    return " ".join(filter(None, words))


@lru_cache(maxsize=_NUM_LINES)
def _words_of_line(line: str, with_copyright_lines: bool, is_marked_up: bool) -> str:
    """Return the words of a line with its end. What reaches beyond a line, the signs after `all rights reserved`, has no words."""
    if is_marked_up:
        line = _MARKUP.sub(" ", line)
    if not with_copyright_lines and any(map(line.__contains__, _OF_COPYRIGHT_LINES)):
        line = _COPYRIGHT_LINE.sub("", line)
    if _END_OF_BULLET.search(line) or _ROUND_BULLET.match(line):
        line = _BULLET.sub(" ", line)
    words = _WORD.findall(line.replace("(s)", ""))
    return " ".join(map(_EQUIVALENT.get, words, words))


def copyright_words(text: str) -> str:
    """Return the plain words of the lines that `plain_words` leaves out, ` / ` between them: a notice may go on in such a line."""
    found = (_WORD.findall(match[0].lower()) for match in _COPYRIGHT_LINE.finditer(folded(text.lower())))
    return " / ".join(" ".join(map(_EQUIVALENT.get, words, words)) for words in found)


def as_written(words: str, text: str) -> str:
    """Return plain words as a text has them, where it has them in a row: `owner` for the `holder` that is compared."""
    own = _WORD.findall(folded(text.lower()))
    plain, wanted = list(map(_EQUIVALENT.get, own, own)), words.split()
    first = wanted[0] if wanted else ""
    for start in (place for place, word in enumerate(plain) if word == first):
        if plain[start : start + len(wanted)] == wanted:
            return " ".join(own[start : start + len(wanted)])
    return words


def folded(text: str) -> str:
    """Return a text whose letters of Latin alphabets have no accents."""
    return text if text.isascii() else text.translate(_FOLDED)


def license_words(text: str, hyphen: str = "-") -> str:
    """Return the plain words of a license text with its replaceable text in one spelling."""
    words = plain_words(text, hyphen)
    if not _OF_TEMPLATES.search(words):
        return words
    if defined := _DEFINED.search(words):
        words = f"{words} ".replace(f" {defined[1]} ", " software ").rstrip()
    for held, pattern, plain in _SUBSTITUTIONS:
        if held in words:
            words = pattern.sub(plain, words)
    return words
