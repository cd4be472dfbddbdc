"""Sections about the license in README files: where they are, and what they say beyond the licenses of their folder.

Such a section grants nothing, as the text is elsewhere; one that names another license, or limits what it allows, makes
the folder unclear.
"""

import re
from collections.abc import Iterable, Set
from pathlib import PurePosixPath

from pipeline.pins.selection import is_readme
from pipeline.stages.normalize.license.text_limits import limit_of_sentence, names_in, speaks_of_others, whole_sentences

_MAX_NUM_LINES = 60
"""Lines of a section that are read: a longer one is a text, which stands in its own file too."""
_TITLE = re.compile(
    r"(?:\d+[.)]?\s+)?(?:the\s+)?(?:software\s+|project\s+)?(?:licen[cs]e|licen[cs]ing|copyright"
    r"|legal|terms of use|usage terms)\b[^.]{0,40}",
    re.IGNORECASE,
)
_MARKED = re.compile(r"#{1,6}")
_UNDERLINE = re.compile(r"([=\-~^\"'*+])\1{2,}[ \t]*")
_LICENSE_ID = re.compile(r"[\w.+-]+")
_MARKUP = re.compile(r"!?\[([^\[\]\n]*)\]\([^\[)\n]*\)|`([^`\n]*)`_*|<[^<>\n]*>|[*_`|]+")
"""Links, code, tags and emphasis; none begins again within another, so that each sign is read once."""


def license_section(text: str) -> str:
    """Return the sections of a README whose heading is about the license, without markup."""
    lines = text.splitlines()
    headings = [*_headings(lines)]
    found = []
    for place, (start, level, title) in enumerate(headings):
        if _TITLE.fullmatch(title):
            stops = (begin for begin, other, _ in headings[place + 1 :] if other <= level)
            stop = min(next(stops, len(lines)), start + _MAX_NUM_LINES)
            found += [line for line in lines[start + 1 : stop] if not _UNDERLINE.fullmatch(line)]
    return _MARKUP.sub(r" \1\2 ", "\n".join(found))


def said_beyond(section: str, stated: Set[str]) -> str | None:
    """Return a license that a section names and its folder has not, or the words by which it limits."""
    families = {_family(license) for license in stated}
    for sentence in whole_sentences(section):
        if not speaks_of_others(sentence) and (found := _other_name(sentence, families) or limit_of_sentence(sentence)):
            return found
    return None


def _other_name(sentence: str, families: Set[str]) -> str | None:
    """Return a license that a sentence names and that is of none of some families."""
    names = {part for each in names_in(sentence) for part in _LICENSE_ID.findall(each)} - {"AND", "OR", "WITH"}
    return next((each for each in sorted(names) if _family(each) not in families), None)


def readmes_of(paths: Iterable[str]) -> dict[str, list[str]]:
    """Return the READMEs in each folder, sorted."""
    found: dict[str, list[str]] = {}
    for path in sorted(filter(is_readme, paths)):
        found.setdefault(str(PurePosixPath(path).parent), []).append(path)
    return found


def _headings(lines: list[str]) -> Iterable[tuple[int, int, str]]:
    """Yield line, level and title of each heading: marked by signs, or underlined."""
    for number, line in enumerate(lines):
        if marked := _MARKED.match(line):
            yield number, marked.end(), line[marked.end() :].lstrip(" \t").rstrip(" \t#")
        elif line.strip() and number + 1 < len(lines) and (under := _UNDERLINE.fullmatch(lines[number + 1])):
            yield number, "=-~^\"'*+".index(under[1]), line.strip()


def _family(license: str) -> str:
    return license.removeprefix("LicenseRef-").split("-")[0].lower()
