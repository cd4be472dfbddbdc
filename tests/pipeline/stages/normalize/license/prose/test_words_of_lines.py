"""Words and sentences of comments, read line by line and remembered: those of expressions over the whole text."""

import random
import re
from collections.abc import Iterator

import pytest

from pipeline.stages.normalize.license.prose import words
from pipeline.stages.normalize.license.prose.clauses import sentences_of
from pipeline.stages.normalize.license.prose.words import plain_words

_PIECES = (
    *(
        "Copyright",
        "(c)",
        "(C) 2020",
        "©",
        "&copy; 1999",
        "by A. Person",
        "all rights reserved",
        "All Rights Reserved.",
        "permission",
    ),
    *(
        "is granted",
        "licensed under",
        "redis-\n * tribution",
        "well-\nknown",
        "1.",
        "(2)",
        "a)",
        "ii.",
        "version 2.",
        "v1.2.",
        "o",
        "o x",
    ),
    *(
        "file(s)",
        "Licence",
        "owners",
        "the end.",
        "e.g.",
        "...",
        "!?",
        '"so."',
        "etc.)",
        "：",
        "終わり。",
        "次；",
        "é",
        "ß",
        "İ",
        "Σ",
        "<b>",
    ),
    *(
        "</p>",
        "<!--",
        "*",
        "//",
        "///<",
        "#",
        ";;",
        "--",
        "|",
        "/**",
        "*/",
        "=====",
        "x",
        "may",
        "not",
        "only",
        "\u2028",
        "\x0b",
        "\r",
    ),
    *(" ", "  ", "\t", "\n", "\n", "\n * ", "\n// ", "\n\n", "\n *\n * "),
)
_LINE = re.compile(r"(?m)^[ \t]*(?:/[/*]+[!<]*|\*+/?|#+|;+|--+|\|+)?[ \t]*([^\n]*)$")
_SENTENCE_END = re.compile(r"(?<![.!?;:])[.!?;:]+[\"')\]]*(?:\s|$)|(?<![。！？；])[。！？；]+")


def made_comments(number: int) -> Iterator[str]:
    drawn = random.Random(7)
    for _ in range(number):
        separator = drawn.choice(("", " ", " "))
        yield separator.join(drawn.choices(_PIECES, k=drawn.randrange(1, 40)))


def words_of_whole(text: str, hyphen: str, with_copyright_lines: bool) -> str:
    lowered = words._LINE_BREAK_HYPHEN.sub(hyphen, words.folded(text.lower()))
    if "<" in lowered:
        lowered = words._MARKUP.sub(" ", lowered)
    kept = lowered if with_copyright_lines else words._COPYRIGHT_LINE.sub("", lowered)
    found = words._WORD.findall(words._BULLET.sub(" ", kept).replace("(s)", ""))
    return " ".join(map(words._EQUIVALENT.get, found, found))


def sentences_of_whole(text: str) -> Iterator[str]:
    for start, stop in spans_of_whole(text):
        yield " ".join(_LINE.sub(r"\1", text[start:stop]).split())


def spans_of_whole(text: str) -> Iterator[tuple[int, int]]:
    start: int | None = None
    last, stop = "", 0
    for match in _LINE.finditer(text):
        line = match[1].strip(" \t*/#=-|")
        goes_on = start is not None and line and (line[0].islower() or (len(last) > 50 and last[-1] not in ".:;!?"))
        if start is not None and not goes_on:
            yield from divided(text, start, stop)
            start = None
        if line and start is None:
            start = match.start(1)
        last, stop = line, match.end(1)
    if start is not None:
        yield from divided(text, start, stop)


def divided(text: str, start: int, stop: int) -> Iterator[tuple[int, int]]:
    at = start
    for match in _SENTENCE_END.finditer(text[start:stop]):
        yield at, start + match.end()
        at = start + match.end()
    if at < stop:
        yield at, stop


@pytest.mark.parametrize("hyphen", ["-", ""])
@pytest.mark.parametrize("with_copyright_lines", [False, True])
def test_words_of_lines_are_those_of_the_whole_text(hyphen: str, with_copyright_lines: bool) -> None:
    for text in made_comments(3_000):
        expected = words_of_whole(text, hyphen, with_copyright_lines)
        assert plain_words(text, hyphen, with_copyright_lines=with_copyright_lines) == expected, text


def test_sentences_of_lines_are_those_of_the_whole_text() -> None:
    for text in made_comments(3_000):
        assert sentences_of(text) == tuple(sentences_of_whole(text)), text
