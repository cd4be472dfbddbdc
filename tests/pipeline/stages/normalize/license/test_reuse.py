"""REUSE.toml and dep5: which statement holds for which file."""

import pytest

from pipeline.stages.normalize.license.reuse import (
    MAX_ANNOTATIONS,
    MAX_GLOB,
    Precedence,
    closest,
    read_dep5,
    read_reuse_toml,
)


def reuse_toml(*entries: tuple[str, str, str]) -> bytes:
    tables = [
        f'[[annotations]]\npath = {path}\nprecedence = "{precedence}"\nSPDX-License-Identifier = "{expression}"\n'
        for path, precedence, expression in entries
    ]
    return "\n".join(["version = 1", *tables]).encode()


GLOBS = [
    ('"src/*.c"', "src/a.c", True),
    ('"src/*.c"', "src/b/a.c", False),
    ('"src/**"', "src/b/a.c", True),
    ('"**/a.c"', "src/b/a.c", True),
    ('"a.c"', "src/a.c", False),
    (r"'a\*.c'", "a*.c", True),
    (r"'a\*.c'", "ab.c", False),
    ('["x.c", "src/*.c"]', "src/a.c", True),
    ('"a.c"', "axc", False),
]


@pytest.mark.parametrize(("glob", "path", "covered"), GLOBS)
def test_a_glob_covers_what_the_specification_says(glob: str, path: str, covered: bool) -> None:
    annotations = read_reuse_toml("REUSE.toml", reuse_toml((glob, "closest", "MIT")))
    assert (closest(annotations, path) is not None) == covered


def test_the_last_annotation_of_the_deepest_file_holds() -> None:
    annotations = [
        *read_reuse_toml("REUSE.toml", reuse_toml(('"**"', "closest", "MIT"), ('"**.c"', "closest", "ISC"))),
        *read_reuse_toml("lib/REUSE.toml", reuse_toml(('"*.c"', "aggregate", "Zlib"))),
    ]
    found = {path: closest(annotations, path) for path in ("a.h", "a.c", "lib/a.c", "lib/a.h", "library/a.c")}
    assert {path: each.expressions for path, each in found.items() if each} == {
        "a.h": ("MIT",),
        "a.c": ("ISC",),
        "lib/a.c": ("Zlib",),
        "lib/a.h": ("MIT",),
        "library/a.c": ("ISC",),
    }


def test_the_highest_override_beats_what_is_deeper() -> None:
    annotations = [
        *read_reuse_toml("REUSE.toml", reuse_toml(('"lib/**"', "override", "ISC"))),
        *read_reuse_toml("lib/REUSE.toml", reuse_toml(('"**"', "override", "Zlib"))),
    ]
    found = closest(annotations, "lib/a.c")
    assert found is not None
    assert (found.expressions, found.where) == (("ISC",), "REUSE.toml: annotation 1")


def test_a_list_of_licenses_is_kept_whole() -> None:
    content = b'[[annotations]]\npath = "a.c"\nSPDX-License-Identifier = ["MIT", "ISC"]\n'
    (annotation,) = read_reuse_toml("REUSE.toml", content)
    assert (annotation.expressions, annotation.precedence) == (("MIT", "ISC"), Precedence.CLOSEST)


@pytest.mark.parametrize(
    "content",
    [
        b"not toml [",
        b"\xff\xfe",
        b'annotations = "x"',
        b"\xef\xbb\xbfannotations = 3",
        b'[[annotations]]\nSPDX-License-Identifier = "MIT"\n',
        b'[[annotations]]\npath = "a.c"\nprecedence = ["closest"]\nSPDX-License-Identifier = "MIT"\n',
        b'[[annotations]]\npath = "a.c"\nprecedence = "loudest"\nSPDX-License-Identifier = "MIT"\n',
    ],
)
def test_a_broken_file_states_nothing_and_names_its_problem_for_what_it_covers(content: bytes) -> None:
    (found,) = read_reuse_toml("lib/REUSE.toml", content)
    assert (found.expressions, bool(found.problem)) == ((), True)
    assert (found.covers("lib/a.c"), found.covers("a.c")) == (True, False)


def test_an_entry_about_copyright_alone_states_nothing() -> None:
    assert read_reuse_toml("REUSE.toml", b'[[annotations]]\npath = "a.c"\nSPDX-FileCopyrightText = "2020 X"\n') == []


DEP5 = b"""Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: x

Files: *
Copyright: 2020 X
License: MIT

Files: src/*.c
       include/a?.h
Copyright: 2020 Y
License: BSD-3-Clause or GPL-2+
 Redistribution and use in source and binary forms ...
 .
 License: not this one
"""


def test_the_last_stanza_of_dep5_holds_and_globs_cross_folders() -> None:
    annotations = read_dep5(".reuse/dep5", DEP5)
    found = {path: closest(annotations, path) for path in ("x.h", "src/b/a.c", "include/ab.h", "include/abc.h")}
    assert {path: each.expressions for path, each in found.items() if each} == {
        "x.h": ("MIT",),
        "src/b/a.c": ("BSD-3-Clause or GPL-2+",),
        "include/ab.h": ("BSD-3-Clause or GPL-2+",),
        "include/abc.h": ("MIT",),
    }


HOSTILE = {
    "a long glob": reuse_toml((f'"{"*a" * MAX_GLOB}"', "closest", "MIT")),
    "a glob of stars alone": reuse_toml((f'"{"*" * 100_000}"', "closest", "MIT")),
    "many paths": reuse_toml((str([str(n) for n in range(MAX_ANNOTATIONS + 1)]), "closest", "MIT")),
    "many annotations": reuse_toml(*((f'"{n}"', "closest", "MIT") for n in range(MAX_ANNOTATIONS + 1))),
    "a long number": b"version = " + b"9" * 5_000,
    "a key of many parts": b"a" + b".a" * 50_000 + b" = 1",
    "deep nesting": b"a = " + b"[" * 100_000,
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_file_made_against_its_reader_states_nothing(content: bytes) -> None:
    (annotation,) = read_reuse_toml("REUSE.toml", content)
    assert annotation.problem
    assert len(annotation.problem) < 200
    assert annotation.covers("a.c")


@pytest.mark.parametrize("globs", ["*a" * MAX_GLOB, " ".join(f"a{n}" for n in range(MAX_ANNOTATIONS + 1))])
def test_stanzas_made_against_their_reader_state_nothing(globs: str) -> None:
    (annotation,) = read_dep5(".reuse/dep5", f"Files: {globs}\nLicense: MIT\n".encode())
    assert annotation.problem


def test_stars_that_follow_each_other_are_two() -> None:
    (annotation,) = read_reuse_toml("REUSE.toml", reuse_toml((f'"{"*" * MAX_GLOB}"', "closest", "MIT")))
    assert annotation.covers("a/b.c")
