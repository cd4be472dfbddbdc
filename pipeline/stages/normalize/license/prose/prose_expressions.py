"""Expressions over the words of comments, with the memory that long alternations need."""

from typing import Any

import re2

_MAX_MEMORY = 128 << 20
"""Bytes of the automaton of one expression. Beyond it the search is slower, and linear all the same."""


def compile_prose(pattern: str, *, is_longest: bool = False) -> Any:
    """Compile an expression of RE2. `is_longest` prefers the longest match to the first alternative."""
    options = re2.Options()
    options.longest_match = is_longest
    options.max_mem = _MAX_MEMORY
    options.log_errors = False
    return re2.compile(pattern, options)
