"""REUSE.toml and dep5: which statement holds for which file."""

import pytest

from pipeline.stages.normalize.license.reuse import Precedence, closest, read_dep5, read_reuse_toml


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
