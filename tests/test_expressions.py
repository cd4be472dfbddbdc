"""Every regular expression of the pipeline takes time in proportion to its text, also on texts made against it."""

import pkgutil
import re
from time import process_time

import pytest

import pipeline
from tests.support.expressions import Expression, expressions, made_of_values
from tests.support.pumping import pumping_strings

SHORT, LONG = 2_000, 8_000
_NOTICEABLE = 0.02
"""Seconds of processor below which a text costs too little for its growth to be seen."""
_TOO_LONG = 2.0
"""Seconds of processor after which a short text is enough: the long one could take hours."""
_MAX_GROWTH = 10.0
"""Four times the text takes four times the time; sixteen times, where the matcher goes back."""
_NUM_ROUNDS = 7
"""Times that both are measured, where the growth seems too much."""
_NUM_TRIED = 12
"""Texts of an expression whose growth is measured: those that cost the most when they are short."""

BOUNDED = {
    "pipeline.stages.enrich.compiler.compile_commands:_COMPILERS": "the name of a program, as a whole",
    "pipeline.stages.enrich.compiler.local_paths:_SLASH": "the name of a character",
    "pipeline.lineage.report_page:_svg": "a page of the project's own",
    "pipeline.stages.collect.repositories.history:_CHORES": "the beginning of a subject",
    "pipeline.stages.normalize.scrub.addresses.emails:_WORD_OF_SIGN": "an address",
    "pipeline.stages.normalize.scrub.addresses.network_addresses:_NUMBERED": "the characters before an address, of its line",
    "pipeline.stages.normalize.scrub.credential_signs.own_statement:_TOKEN": "the characters before a literal, at most 1,500",
    "pipeline.stages.normalize.scrub.credential_signs.password_values:_CALL": "a value, as a whole",
    "pipeline.stages.normalize.scrub.credentials.passwords:_judge": "what stands between a name and its value",
    "pipeline.stages.normalize.scrub.credentials.passwords:_DECLARED": "what stands before a name",
    "pipeline.stages.normalize.scrub.credentials.service_credentials:_BEFORE": "what stands before a name",
    "pipeline.stages.normalize.scrub.credentials.service_credentials:_IDENTIFIER": "a value, of at most 200 characters",
}
"""Expressions that never see a long text, and why."""
MADE_OF_VALUES = {
    "pipeline.removal.named_author:_ascii_key": "a word of an author, of at most 200 characters",
    "pipeline.removal.named_author:_expression": "escaped words of an author, of at most 200 characters",
    "pipeline.stages.enrich.compiler.definition_scrubber:scrub_definition": "escaped names and folders",
    "pipeline.stages.enrich.compiler.local_paths:count_local": "escaped names",
    "pipeline.stages.normalize.scrub.credential_signs.password_columns:_of_structure": "a name, of letters, digits and underscores",
    "pipeline.stages.normalize.scrub.named_parts:find_named_parts": "a name, of letters, digits and underscores",
    "pipeline.stages.normalize.scrub.vendor_tokens:_expressions": "shapes of a table, tried at one place each",
    "pipeline.stages.tokenize.encode:__init__": "the pattern of a vocabulary, which is the project's own",
}
"""Functions that make an expression of `re` of what they are given, and of what."""


def cost(expression: Expression, text: str) -> float:
    """Return the seconds of processor that the slowest way of trying a text takes."""
    seconds = []
    for run in expression.runs():
        start = process_time()
        run(text)
        seconds.append(process_time() - start)
    return max(seconds)


@pytest.mark.slow
@pytest.mark.parametrize("room", sorted(found.name for found in pkgutil.iter_modules(pipeline.__path__)))
def test_time_grows_with_the_text_alone(room: str) -> None:
    """By rooms, as looking for the expressions takes seconds, which each worker that collects this would pay."""
    found = [each for each in expressions() if each.where.startswith((f"pipeline.{room}.", f"pipeline.{room}:"))]

    slow = {each.where: text for each in found if each.where not in BOUNDED and (text := text_of_too_long(each))}
    assert slow == {}


def test_every_expression_is_in_a_room() -> None:
    rooms = {found.name for found in pkgutil.iter_modules(pipeline.__path__)}

    assert {each.where.split(":")[0].split(".")[1] for each in expressions()} <= rooms
    assert len(expressions()) > 300


def text_of_too_long(expression: Expression) -> str:
    """Return the beginning of a text on which an expression takes more time than in proportion; empty if there is none."""
    try:
        pairs = zip(
            pumping_strings(expression.text, expression.flags, SHORT),
            pumping_strings(expression.text, expression.flags, LONG),
            strict=True,
        )
        costs = []
        for short, long in pairs:
            costs.append((cost(expression, short), short, long))
            if costs[-1][0] > _TOO_LONG:
                return short[:60]
        for seconds_of_short, short, long in sorted(costs, reverse=True)[:_NUM_TRIED]:
            if seconds_of_short <= _NOTICEABLE / 8:
                continue
            # Again and in turns where it seems too slow: what else the machine does only ever adds, to either.
            if cost(expression, long) > max(_NOTICEABLE, _MAX_GROWTH * seconds_of_short / 2):
                rounds = [(cost(expression, short), cost(expression, long)) for _ in range(_NUM_ROUNDS)]
                least_of_short, least_of_long = map(min, zip(*rounds, strict=True))
                if least_of_long >= _MAX_GROWTH * least_of_short:
                    return long[:60]
    except re.error:
        assert "re2" in type(expression.pattern).__module__, "an expression of `re` can be parsed"
    return ""


def test_an_expression_that_goes_back_is_seen() -> None:
    found = Expression("here", re.compile(r"a*b"), frozenset({"search"}))
    texts = zip(pumping_strings("a*b", 0, SHORT), pumping_strings("a*b", 0, LONG), strict=True)

    assert max(cost(found, long) / cost(found, short) for short, long in texts) > _MAX_GROWTH
    assert text_of_too_long(Expression("here", re.compile(r"(?:ab|a)*c"), frozenset({"search"}))).startswith("a")


def test_bounded_expressions_are_there() -> None:
    assert BOUNDED.keys() <= {each.where for each in expressions()}


def test_what_makes_an_expression_of_values_is_known() -> None:
    assert made_of_values() == MADE_OF_VALUES.keys()
