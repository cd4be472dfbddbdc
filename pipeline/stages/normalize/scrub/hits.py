"""Hits: the lines of a text on which a necessary condition holds. Expressions that see the detail are run on these alone."""

from collections.abc import Iterator
from functools import cache
from typing import Any

import re2


@cache
def condition(*expressions: str) -> Any:
    """Return an expression of RE2 that is true of bytes where one of several is."""
    options = re2.Options()
    options.max_mem = 256 << 20
    return re2.compile("|".join(f"(?:{each})" for each in expressions), options)


def hit_lines(text: str, expression: Any) -> Iterator[tuple[int, int]]:
    """Yield where each line begins and ends in which a match of an expression of bytes begins, in characters."""
    content = text.encode()
    is_ascii = len(content) == len(text)
    position, counted, characters = 0, 0, 0
    while position < len(content) and (match := expression.search(content, position)):
        start = content.rfind(b"\n", 0, match.start()) + 1
        end = content.find(b"\n", match.start())
        end = len(content) if end < 0 else end
        if is_ascii:
            yield start, end
        else:
            characters += len(content[counted:start].decode())
            counted = start
            yield characters, characters + len(content[start:end].decode())
        position = end + 1
