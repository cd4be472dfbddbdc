"""Mutations of audits: each check of `pipeline/build/audit.py` and of its oracles is left out, and a canary must be missed."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from pipeline.build import audit
from pipeline.build.oracles import audited_files
from tests.mutations import plant
from tests.mutations.bench import Bench
from tests.mutations.mutation import Kind, Mutation

_ORACLES = "pipeline.build.oracles."
_AUDIT, _FILES = "pipeline.build.audit:", "pipeline.build.oracles.audited_files:"


def mutations() -> Iterator[Mutation]:
    """Return a mutation for each check of an audit, and for each reason of drops that is judged again."""
    for name, (planted, canary, change) in CHECKS.items():
        yield Mutation(f"audit/{name}", Kind.STAGE, planted, (f"canary:*/{canary}",), partial(_run, change))
    for reason in reasons():
        planted = f"a drop as {reason} is never judged again"
        expected = f"canary:*/*{reason}*_without_cause_in_*"
        yield Mutation(f"audit/{reason}", Kind.STAGE, planted, (expected,), partial(_run, partial(_believe, reason)))


def reasons() -> list[str]:
    """Return the reasons of drops that audits judge again."""
    return sorted(audited_files.JUDGED_REASONS)


def _run(change: Callable[[], None], bench: Bench) -> None:
    change()
    bench.send_canaries()


def _believe(reason: str) -> None:
    """Have drops of one reason believed."""

    def make(misjudged: Any) -> Any:
        return lambda dropped, *given: misjudged([row for row in dropped if row["reason"] != reason], *given)

    for name in ("misjudged_drops", "miscalled_drops"):
        plant.wrap(f"{_FILES}{name}", make)


def _first_part(population: Any) -> Any:
    """Return what the first of the parts keeps and drops."""
    return lambda parts, *given, **named: population(dict(sorted(parts.items())[:1]), *given, **named)


def _all_listed(match: Any) -> Any:
    """Return what a listing names as if no kind of source had one."""
    return lambda after, found, request: match(after, found, {**request, "listed": []})


def _held_out_as_labeled(checks: Any) -> Any:
    """Return the measures of columns as if the held-out sources were those that the snapshot names."""

    def made(job: Any, after: Any) -> Any:
        if "snapshot" in after:
            names = after["snapshot"].json("snapshot.json")["held_out"]
            rule = {**job.identity["held_out"], "sources": names}
            job = replace(job, identity={**job.identity, "held_out": rule})
        return checks(job, after)

    return made


CHECKS: dict[str, tuple[str, str, Callable[[], None]]] = {
    "misread-files": (
        "no file is compared with its digests",
        "content_beside_other_digests",
        partial(plant.constant, f"{_FILES}misread_files", ()),
    ),
    "misnamed-documents": (
        "no document is compared with its name",
        "document_of_another_name",
        partial(plant.constant, f"{_FILES}misnamed_documents", ()),
    ),
    "history": (
        "no link, drop or evidence of a history is compared with git",
        "histories_that_git_does_not_give",
        partial(plant.constant, f"{_ORACLES}audited_history:misrecorded_history", ()),
    ),
    "tree": (
        "no file for a build is compared with its listing",
        "histories_that_git_does_not_give",
        partial(plant.constant, f"{_FILES}misread_tree", ()),
    ),
    "evaluation-items": (
        "no part is compared with the evaluation items of the request",
        "evaluation_items_of_another_build",
        partial(plant.constant, f"{_ORACLES}audited_decisions:uncompared_items", ()),
    ),
    "misstated-drops": (
        "no drop is compared with its file",
        "drops_*",
        partial(plant.constant, f"{_FILES}misstated_drops", ()),
    ),
    "redactions": (
        "no placeholder is compared with its file",
        "more_placeholders_than_were_counted",
        partial(plant.change_result, f"{_ORACLES}audited_redactions:_compare", lambda found: (found[0], True)),
    ),
    "details": (
        "no detail of a document is looked at",
        "details_of_nothing",
        partial(plant.constant, f"{_ORACLES}audited_details:misdetailed_documents", []),
    ),
    "altered-contents": (
        "no content is compared with that of the stage before",
        "*_of_another_file",
        partial(plant.constant, f"{_AUDIT}_altered", ()),
    ),
    "order": (
        "no row is compared with the one before it",
        "rows_in_reverse_in_*",
        partial(plant.constant, f"{_AUDIT}_misplaced", ()),
    ),
    "copies": (
        "no copy is compared with its keeper",
        "copies_of_*",
        partial(plant.constant, f"{_FILES}misjudged_copies", ()),
    ),
    "listing-missing": (
        "files of a source that no listing names are taken to be listed",
        "files_that_no_listing_names",
        partial(plant.wrap, f"{_AUDIT}_match_listed", _all_listed),
    ),
    "failed-sources": (
        "pins without a part are not counted",
        "source_that_was_not_read",
        partial(plant.constant, f"{_AUDIT}_not_collected", []),
    ),
    "held-out-list": (
        "the held-out sources are those that the snapshot names",
        "held_out_source_that_is_trained_on",
        partial(plant.wrap, f"{_AUDIT}_checks", _held_out_as_labeled),
    ),
    "rows-of-splits": (
        "no row is compared with the split of its source",
        "*rows_of_another_split",
        partial(plant.constant, f"{_AUDIT}num_in_another_split", 0),
    ),
    "revisions": (
        "no revision is compared with that of its pin",
        "file_without_revision",
        partial(plant.constant, f"{_AUDIT}_num_of_other_revision", 0),
    ),
    "provenance": (
        "no provenance of a document is looked at",
        "document_without_provenance",
        partial(plant.constant, f"{_AUDIT}_num_without_provenance", 0),
    ),
    "codes-of-provenance": (
        "every code is a provenance",
        "code_of_no_provenance",
        lambda: setattr(
            audit, "PROVENANCE_CODES", {number: number for number in range(256)}
        ),  # other modules keep theirs
    ),
    "misreported-rows": (
        "no report is compared with the tables",
        "drop_without_row_in_*",
        partial(plant.constant, "pipeline.build.build_context:_num_misreported", 0),
    ),
    "first-part": (
        "only the first part of each stage is read",
        "row_lost_in_*",
        partial(plant.wrap, f"{_AUDIT}population", _first_part),
    ),
}
"""Name -> what is planted, the canary that must be missed, and how it is planted."""
