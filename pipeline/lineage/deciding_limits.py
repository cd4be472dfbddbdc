"""Limits by which a step kept or dropped a file: the fields of the recipe with their values, or the rule that has none."""

import json
from collections.abc import Mapping
from typing import Any

from pipeline.core.change_text import MAX_DIFF_CHARS, MAX_FILES_IN_COMMIT, MIN_DIFF_CHARS, changed_file
from pipeline.core.params import Params, flat
from pipeline.lineage.queries import QueryRow

_LICENSE = ("licenses.license_evidence", "licenses.keep_tagged")
_NEAR = ("duplicates.min_jaccard_between_sources", "duplicates.min_jaccard_inside_source")
_INSIDE = ("duplicates.min_containment", "duplicates.min_num_contained", "duplicates.max_num_sharing")
_FIELDS: Mapping[str, tuple[str, ...]] = {
    "license_refused": _LICENSE,
    "license_quarantined": (*_LICENSE, "licenses.vendored_roots"),
    "license_unknown": _LICENSE,
    "contaminated": ("decontamination.min_overlap", "decontamination.min_jaccard"),
    "near_duplicate": _NEAR,
    "copyleft_copy": _NEAR,
    "contained": _INSIDE,
    "container": _INSIDE,
    "degraded": ("syntax.max_error_fraction", "syntax.max_num_bytes", "syntax.max_operations_per_byte"),
}
"""Reason -> the fields of its stage that decide it. Filters name their own."""
_OF_PIN = {"excluded": ("include", "exclude"), "withdrawn": ("withdrawn",), "bad_line": ("path_field", "text_field")}
_RULES = {
    "other_language": "read are files of a declared language and license texts",
    "link": "no link is followed: regular files alone are read",
    "special": "regular files alone are read",
    "submodule": "a commit's own files alone are read",
    "binary": "a text holds no NUL and no control character",
    "undecodable": "a text is valid in the encoding that it is of, in a likely language",
    "unscrubbable": "nothing is found in a text that was scrubbed, and no secret in a path",
    "not_modified": "a change is a file of which a commit has another version than its parent, under the same path",
    "large_commit": f"a commit touches at most {MAX_FILES_IN_COMMIT} files of source code",
    "routine_commit": "a subject does not say that code was formatted or a version raised",
    "small_change": f"hunks have at least {MIN_DIFF_CHARS} characters",
    "large_change": f"hunks have at most {MAX_DIFF_CHARS:,} characters",
    "undecodable_change": "hunks are UTF-8, and a subject is in the encoding that its commit names",
    "marked_change": "no line of a change begins as its marks do, and a subject is one line",
    "line_end_change": "hunks differ in more than the ends of lines",
    "binary_change": "both versions of a changed file are texts",
    "exact_duplicate": "equal texts: of each one is kept",
}
"""Reason -> the rule of it where no field of a recipe decides."""


def deciding_limits(stage: str, reason: str, params: Params, identity: Mapping[str, Any], row: QueryRow) -> str:
    """Return by which limits the stage with these `params` dropped a file; empty for a reason that a program added without any.

    `row` has the file's source and what its drop shows; `identity` is that of the part: of a collected source its pin, and what is
    withdrawn from it.
    """
    values = flat(params.model_dump(mode="json"))
    if reason in _OF_PIN:
        given = {field: identity.get(field) for field in _OF_PIN[reason]}
        return ", ".join(f"{field} of the pin is {value}" for field, value in given.items() if value)
    if reason == "too_large" and "max_file_bytes" in values:
        return f"num_bytes is {row.get('num_bytes')}, {stage}.max_file_bytes is {values['max_file_bytes']}"
    if reason == "near_duplicate" and _is_of_same_chains(row):
        return "equal hunks: of the changes of one source the first is kept"
    if reason in _FIELDS:
        # Of one source, texts of the two splits are compared as those of two sources are: a drop does not say its split.
        is_between = row.get("keeper_source") not in (None, row["source"])
        fields = [field for field in _FIELDS[reason] if not (is_between and field == _NEAR[1])]
        return ", ".join(f"{stage}.{field} is {values[field]}" for field in fields)
    return _RULES.get(reason) or _of_filter(stage, reason, params)


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
    found = next((each for each in _filters() if each.name == reason), None)
    limit = None if found is None else found.limit_of(params.filters)  # type: ignore[attr-defined]
    return "" if found is None else f"{stage}.filters.{found.limit} is {limit:g}"


def _filters() -> Any:
    from pipeline.stages.normalize.filters.filters import FILTERS  # other files do not wait for it

    return FILTERS
