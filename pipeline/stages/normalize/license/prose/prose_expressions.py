"""Expressions over the words of comments: with the memory that long alternations need, or searched alternative by alternative."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import re2

_MAX_MEMORY = 128 << 20
"""Bytes of the automaton of one expression. Beyond it the search is slower, and linear all the same."""


def compile_prose(pattern: str, *, is_longest: bool = False) -> Any:
    """Compile an expression of RE2. `is_longest` prefers the longest match to the first alternative."""
    options = _options()
    options.longest_match = is_longest
    return re2.compile(pattern, options)


def _options() -> Any:
    options = re2.Options()
    options.max_mem = _MAX_MEMORY
    options.log_errors = False
    return options


class Alternatives:
    """An expression of many alternatives, most of which nothing matches.

    The automaton of all of them has a state for each place in every alternative that a text may be at: what takes long is to make
    it, not to run it. So a text is searched for the literals of all, and with each alternative alone where its literals are.
    """

    def __init__(self, patterns: Sequence[str]) -> None:
        self._patterns = tuple(patterns)
        self._possible = re2.Filter()
        for each in self._patterns:
            self._possible.Add(each, _options())
        self._possible.Compile()
        self._each: dict[int, Any] = {}

    def search(self, text: str) -> Any:
        """Return what the whole expression matches first in a text, or None."""
        for index in self._possible.Match(text, potential=True) or ():
            if self._alone(index).search(text):
                return self._whole.search(text)
        return None

    def _alone(self, index: int) -> Any:
        if index not in self._each:
            self._each[index] = compile_prose(self._patterns[index])
        return self._each[index]

    @cached_property
    def _whole(self) -> Any:
        return compile_prose("|".join(f"(?:{each})" for each in self._patterns))
