"""Limits by which a step kept or dropped a file: the fields of the recipe with their values, or the rule that has none."""

import json
from collections.abc import Mapping
from typing import Any

from pipeline.contracts.drop_reasons import INSIDE_SOURCE
from pipeline.core.change_text import changed_file
from pipeline.core.params import Params, flat
from pipeline.lineage.queries import QueryRow
from pipeline.stages.stages import STAGES


def deciding_limits(stage: str, reason: str, params: Params, identity: Mapping[str, Any], row: QueryRow) -> str:
    """Return by which limits the stage with these `params` dropped a file; empty for a reason that a program added without any.

    `row` has the file's source and what its drop shows; `identity` is that of the part: of a collected source its pin, and what is
    withdrawn from it.
    """
    drop = next((each for each in STAGES[stage].drops if each.name == reason), None)
    if drop is None:
        return _of_filter(stage, reason, params)
    if drop.of_pin:
        given = {field: identity.get(field) for field in drop.of_pin}
        return ", ".join(f"{field} of the pin is {value}" for field, value in given.items() if value)
    if reason == "near_duplicate" and _is_of_same_chains(row):
        return "equal hunks: of the changes of one source the first is kept"
    # Of one source, texts of the two splits are compared as those of two sources are: a drop does not say its split.
    is_between = row.get("keeper_source") not in (None, row["source"])
    values = flat(params.model_dump(mode="json"))
    fields = [field for field in drop.fields if not (is_between and field == INSIDE_SOURCE)]
    told = (f"{stage}.{field} is {values[field]}" for field in fields)
    measured = (f"{name} is {row.get(name)}" for name in drop.measured)
    return "; ".join(filter(None, (drop.rule, ", ".join((*measured, *told)))))


def _is_of_same_chains(row: QueryRow) -> bool:
    """Return whether a drop names a change of its own source as the keeper: those are compared by their digests alone."""
    keeper = row.get("keeper_path") or ""
    return row.get("keeper_source") == row["source"] and changed_file(keeper) != keeper


def filters_passed(params: Params, scores: str) -> list[str]:
    """Return every filter that a document passed, as its scores say, with the measured value and the limit."""
    found: dict[str, float] = json.loads(scores)
    return [
        f"{each.name}: {each.score} is {found[each.score]:g}, {each.limit} is {each.limit_of(params.filters):g}"  # type: ignore[attr-defined]
        for each in _filters()
        if each.score in found
    ]


def _of_filter(stage: str, reason: str, params: Params) -> str:
    filters = getattr(params, "filters", None)
    found = next((each for each in _filters() if filters is not None and each.name == reason), None)
    return "" if found is None else f"{stage}.filters.{found.limit} is {found.limit_of(filters):g}"


def _filters() -> Any:
    from pipeline.stages.normalize.filters.filters import FILTERS  # other files do not wait for it

    return FILTERS
