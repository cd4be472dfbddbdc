"""Placed passwords: literals that are passwords by their place: an option's default, what a function returns or
writes into a buffer, what an input is compared with, a column of a table.

One search for the words of all of them goes over a text; the lines that it hits are read in detail.
"""

from collections.abc import Iterator

from pipeline.stages.normalize.scrub.credential_signs.compared_inputs import COMPARED_CONDITION, compared_inputs
from pipeline.stages.normalize.scrub.credential_signs.filled_buffers import FILL_CONDITION, filled_buffers
from pipeline.stages.normalize.scrub.credential_signs.option_defaults import OPTION_CONDITION, option_defaults
from pipeline.stages.normalize.scrub.credential_signs.password_columns import COLUMN_CONDITION, password_columns
from pipeline.stages.normalize.scrub.credential_signs.returned_passwords import RETURN_CONDITION, returned_passwords
from pipeline.stages.normalize.scrub.finding import Finding
from pipeline.stages.normalize.scrub.hits import condition, hit_lines

_CONDITIONS = (OPTION_CONDITION, RETURN_CONDITION, FILL_CONDITION, COMPARED_CONDITION, rf"(?m:{COLUMN_CONDITION})")
_FINDERS = (option_defaults, returned_passwords, filled_buffers, compared_inputs, password_columns)


def find_placed_passwords(text: str) -> Iterator[Finding]:
    """Yield the literals that are passwords by their place, each once."""
    found: dict[Finding, None] = {}
    for start, end in hit_lines(text, condition(*_CONDITIONS)):
        for find in _FINDERS:
            found.update(dict.fromkeys(find(text, start, end)))
    yield from found
