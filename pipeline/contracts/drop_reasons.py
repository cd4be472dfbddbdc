"""Drop reasons of the stages: each with what decides it, from which `why` tells the limit that a file did not keep."""

from dataclasses import dataclass

from pipeline.core.change_text import MAX_DIFF_CHARS, MAX_FILES_IN_COMMIT, MIN_DIFF_CHARS


@dataclass(frozen=True)
class DropReason:
    """Reason for which a stage drops a file, or keeps it as something less, and what decides it: Params, the pin, or a rule.

    A filter declares its own, in FILTERS.
    """

    name: str
    fields: tuple[str, ...] = ()
    """Fields of the Params of the stage, as `section.field`."""
    of_pin: tuple[str, ...] = ()
    """Fields of the identity of a collected source."""
    measured: tuple[str, ...] = ()
    """Columns of the drop that hold what was measured."""
    rule: str = ""
    """Rule that decides, before the fields that it reads, as a sentence without its period."""
    next_step: str = ""
    """Advice for who pins a source with such files: what they are, and what to do."""
    is_copy: bool = False
    """True where the file is a copy or a part of another that is kept."""


_BETWEEN_SOURCES = "duplicates.min_jaccard_between_sources"
INSIDE_SOURCE = "duplicates.min_jaccard_inside_source"
_LICENSE = ("licenses.license_evidence", "licenses.keep_tagged")
_CONTAINED = ("duplicates.min_containment", "duplicates.min_num_contained", "duplicates.max_num_sharing")

OF_COLLECT = (
    DropReason("excluded", of_pin=("include", "exclude")),
    DropReason("withdrawn", of_pin=("withdrawn",)),
    DropReason("bad_line", of_pin=("path_field", "text_field"), next_step="no record: correct them"),
    DropReason(
        "too_large",
        ("max_file_bytes",),
        measured=("num_bytes",),
        next_step="larger than collect.max_file_bytes, a field of the recipe",
    ),
    DropReason("other_language", rule="read are files of a declared language and license texts"),
    DropReason(
        "link",
        rule="no link is followed: regular files alone are read",
        next_step="none is followed: copy what they lead to into the source, if it belongs there",
    ),
    DropReason("special", rule="regular files alone are read", next_step="no file: leave them out"),
    DropReason("submodule", rule="a commit's own files alone are read", next_step="another repository: pin it too"),
    DropReason(
        "not_modified",
        rule="a change is a file of which a commit has another version than its parent, under the same path",
    ),
    DropReason("large_commit", rule=f"a commit touches at most {MAX_FILES_IN_COMMIT} files of source code"),
    DropReason("routine_commit", rule="a subject does not say that code was formatted or a version raised"),
    DropReason("small_change", rule=f"hunks have at least {MIN_DIFF_CHARS} characters"),
    DropReason("large_change", rule=f"hunks have at most {MAX_DIFF_CHARS:,} characters"),
    DropReason("undecodable_change", rule="hunks are UTF-8, and a subject is in the encoding that its commit names"),
    DropReason("marked_change", rule="no line of a change begins as its marks do, and a subject is one line"),
    DropReason("line_end_change", rule="hunks differ in more than the ends of lines"),
    DropReason("binary_change", rule="both versions of a changed file are texts"),
)
OF_NORMALIZE = (
    DropReason("license_refused", _LICENSE, rule="the license policy allows the license of a file, and its exception"),
    DropReason(
        "license_quarantined",
        ("licenses.license_evidence",),
        rule="a license is stated in a file, or is that of clear texts or of a package which it is not apart from, as below a "
        "vendored root, and no comment of the file asks for more",
    ),
    DropReason("license_unknown", rule="a license is an SPDX expression of known identifiers"),
    DropReason("contaminated", ("decontamination.min_overlap", "decontamination.min_jaccard")),
    DropReason("binary", rule="a text holds no NUL and no control character"),
    DropReason("undecodable", rule="a text is valid in the encoding that it is of, in a likely language"),
    DropReason("unscrubbable", rule="nothing is found in a text that was scrubbed, and no secret in a path"),
    DropReason("exact_duplicate", rule="equal texts: of each one is kept", is_copy=True),
    DropReason("near_duplicate", (_BETWEEN_SOURCES, INSIDE_SOURCE), is_copy=True),
    DropReason("copyleft_copy", (_BETWEEN_SOURCES, INSIDE_SOURCE), is_copy=True),
    DropReason("contained", _CONTAINED, is_copy=True),
    DropReason("container", _CONTAINED, is_copy=True),
)
OF_ENRICH = (
    DropReason("degraded", ("syntax.max_error_fraction", "syntax.max_num_bytes", "syntax.max_operations_per_byte")),
)
