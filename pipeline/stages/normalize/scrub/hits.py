"""Hits: the lines of a text on which a necessary condition holds. Expressions that see the detail are run on these alone.

PossibleFinders says which conditions of many hold somewhere in a text, in one pass over it for all that are short.
"""

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

import re2

_MAX_MEMORY = 256 << 20
"""Bytes of the automaton of one expression, or of many together."""
_MAX_TOGETHER = 1_500
"""Signs of a condition that is searched together with others: the states of a longer one would be multiplied by theirs."""


@cache
def condition(*expressions: str) -> Any:
    """Return an expression of RE2 that is true of bytes where one of several is."""
    return re2.compile("|".join(f"(?:{each})" for each in expressions), search_options())


def search_options() -> Any:
    """Return options of RE2 for expressions, or sets of them, of which many are joined."""
    options = re2.Options()
    options.max_mem = _MAX_MEMORY
    return options


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


def _conditions(expressions: Iterable[str]) -> Any:
    """Return the set of expressions: to ask which of them hold it takes one call, and an expression's `search` a dozen."""
    found = re2.Set.SearchSet(search_options())
    for each in expressions:
        found.Add(each)
    found.Compile()
    return found


class PossibleFinders:
    """Conditions of functions, by their index: expressions that every text matches in which one finds something.

    A function with an empty condition is always called.
    """

    def __init__(self, conditions: tuple[str, ...]) -> None:
        self._always = frozenset(index for index, each in enumerate(conditions) if not each)
        self._indices: dict[str, list[int]] = {}
        for index, each in enumerate(conditions):
            if each:
                self._indices.setdefault(each, []).append(index)
        self._short = [each for each in self._indices if len(each) <= _MAX_TOGETHER]
        self._conditions = _conditions(self._short)
        self._long = {each: _conditions([each]) for each in self._indices if len(each) > _MAX_TOGETHER}

    def of(self, text: str) -> frozenset[int]:
        """Return the indices of the functions that may find something in a text."""
        content = text.encode()
        holding = [self._short[number] for number in self._conditions.Match(content) or ()]
        holding += [each for each, alone in self._long.items() if alone.Match(content)]
        return self._always.union(*map(self._indices.__getitem__, holding))


@cache
def possible_finders(conditions: tuple[str, ...]) -> PossibleFinders:
    """Return the possible finders for conditions, once in a process: their automaton grows with the texts it has read."""
    return PossibleFinders(conditions)
