"""Licence prose as the words that matter: what the SPDX matching guidelines say to ignore is gone, names have one spelling.

Source: SPDX License List Matching Guidelines, v3: white space, case, punctuation, quotes, copyright lines, bullets,
equivalent words, and the replaceable text of the common templates (who disclaims, who may not be named). Nothing that
grants, limits or forbids is replaceable: a slot for a name takes at most 25 words, none of them one that could.
"""

import re

_COPYRIGHT_LINE = re.compile(
    r"^[^\w\n©(]*(?:portions |parts )?(?:(?:copyright\b|\(c\)|©|&copy;).*?(?:\d{4}|\(c\)|©|<year>|\[yyyy\]| by ).*"
    r"|all rights reserved\W*)$",
    re.MULTILINE,
)
_BULLET = re.compile(
    r"(?<![\w.])\(?\d{1,2}[.)](?=\s)|(?:^[^\w\n(]*|\()(?:[a-hivx]|ii|iii|iv|vi)[.)](?=\s)", re.MULTILINE
)
_WORD = re.compile(r"[a-z0-9]+")
_LINE_BREAK_HYPHEN = re.compile(r"(?<=[a-z])-\n[^\w\n]*(?=[a-z])")
_FORBIDDEN_IN_NAMES = "not|except|unless|only|if|must|shall|license|licenses|without|permission|granted|fee|provided"
_NAME = rf"(?:(?!(?:{_FORBIDDEN_IN_NAMES}) )[a-z0-9]+ ){{1,25}}?"
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
        rf"\b(?:neither (?:the |my )?names? {_NAME}nor (?:the )?names? of {_NAME}may|the names? of {_NAME}may not)"
        r" be used to endorse or promote products derived from this software without (?:specific )?prior written permission\b",
        "no name may be used to endorse",
    ),
    (r"\bpermission notice including the next paragraph shall\b", "permission notice shall"),
    (r"\bcopy modify and (?:or )?distribute\b", "copy modify and distribute"),
    (r"\boriginal copyright notice\b", "above copyright notice"),
    # The heading above the terms of the GNU licences is optional, and the Lesser licence was the Library licence once.
    (
        r"\bgnu (?:lesser |library )?general public license terms and conditions for copying\b",
        "terms and conditions for copying",
    ),
    (r"\bgnu library general public license instead\b", "gnu lesser general public license instead"),
)
_SUBSTITUTIONS = tuple((re.compile(pattern), plain) for pattern, plain in _REPLACEABLE)


def plain_words(text: str) -> str:
    """The words of a text, in lower case and one space apart: no copyright lines, bullets, punctuation or margins."""
    lowered = _LINE_BREAK_HYPHEN.sub("-", text.lower())
    lowered = _BULLET.sub(" ", _COPYRIGHT_LINE.sub("", lowered))
    return " ".join(_EQUIVALENT.get(word, word) for word in _WORD.findall(lowered))


def licence_words(text: str) -> str:
    """The plain words of a licence text with its replaceable text in one spelling."""
    words = plain_words(text)
    for pattern, plain in _SUBSTITUTIONS:
        words = pattern.sub(plain, words)
    return words
