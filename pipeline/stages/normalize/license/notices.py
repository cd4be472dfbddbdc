"""Notices that put a file under a license without its text: the standard headers of Apache, MPL, Boost, GNU.

Sources: the appendix of Apache-2.0, exhibit A of MPL-2.0, the Boost license page, "How to apply" of the GNU licenses.
"""

import re

from pipeline.stages.normalize.license.words import plain_words

_UNDER = (
    r"\b(?:licensed|distributed|released|available(?: as open source)?|provided|modify it|code is|file is) (?:to you )?under "
    r"(?:the )?(?:terms of )?(?:the )?"
)
_NOTICES = (
    (
        "Apache-2.0 WITH LLVM-exception",
        re.compile(r"\bunder the apache license v(?:ersion)? ?2 0 with llvm exceptions\b"),
    ),
    (
        "Apache-2.0",
        re.compile(
            rf"{_UNDER}apache (?:software )?license (?:version |v ?)2 0\b(?! with)"
            r"|\bunder the apache license version 2 0 the license you may not use this file except in compliance\b"
        ),
    ),
    (
        "MPL-2.0-no-copyleft-exception",
        re.compile(
            r"\bthis source code form is incompatible with secondary licenses as defined by the mozilla public\b"
        ),
    ),
    ("MPL-2.0", re.compile(r"\bthis source code form is subject to the terms of the mozilla public license v 2 0\b")),
    (
        "BSL-1.0",
        re.compile(
            rf"(?:{_UNDER}|\b(?:is|are) subject to the |\buse modification and distribution (?:is|are) subject to the )"
            r"boost software license version 1 0\b"
        ),
    ),
    ("MIT", re.compile(rf"{_UNDER}(?:mit|expat) license\b")),
    ("BSD-3-Clause", re.compile(rf"{_UNDER}(?:3 clause bsd|bsd 3 clause|new bsd|modified bsd) license\b")),
    ("BSD-2-Clause", re.compile(rf"{_UNDER}(?:2 clause bsd|bsd 2 clause|simplified bsd) license\b")),
    ("ISC", re.compile(rf"{_UNDER}isc license\b")),
    ("Zlib", re.compile(rf"{_UNDER}zlib license\b")),
)
_GNU = re.compile(
    r"\bunder the terms of (?:version (?P<before>\d(?: \d)?) of )?the gnu (?P<kind>affero |lesser |library |)general public license"
    r" (?:version (?P<plain>\d(?: \d)?)|as published by the free software foundation,?"
    r" (?:either )?version (?P<version>\d(?: \d)?)(?: of the license)?)(?P<later> or (?:at your option )?any later version)?"
)
_GNU_NAMES = {"": "GPL", "affero ": "AGPL", "lesser ": "LGPL", "library ": "LGPL"}


def find_notices(header: str) -> tuple[str, ...]:
    """Return the expressions that a file's leading comments put it under, sorted. All hold.

    A notice may begin in the line of the copyright: `(C) Copyright A 1999. Distributed under the Boost`.
    """
    return _find_in(plain_words(header)) or _find_in(plain_words(header, with_copyright_lines=True))


def _find_in(words: str) -> tuple[str, ...]:
    found = {license for license, pattern in _NOTICES if pattern.search(words)}
    found.update(_gnu_expression(match) for match in _GNU.finditer(words))
    return tuple(sorted(found))


def _gnu_expression(match: re.Match[str]) -> str:
    version = (match["version"] or match["plain"] or match["before"] or "2").replace(" ", ".")
    version = version if "." in version else f"{version}.0"
    return f"{_GNU_NAMES[match['kind']]}-{version}-{'or-later' if match['later'] else 'only'}"
