"""Pins: every kind is read, its identity is fixed, and bad entries are refused with a remedy."""

import contextlib
import datetime
import itertools
import math
import tomllib
from pathlib import Path
from typing import Any

import pytest
from license_expression import get_spdx_licensing

import pipeline.pins
from pipeline.core.errors import PinError
from pipeline.core.params import canonical_json, digest
from pipeline.lexing.languages import LANGUAGES
from pipeline.pins.catalog import CatalogEntry
from pipeline.pins.local_tree import tree_digest
from pipeline.pins.pins import load_pins, parse_pin, pin_toml
from pipeline.stages.collect.kinds.archive import ArchivePin
from pipeline.stages.collect.kinds.local import LocalPin
from pipeline.stages.collect.kinds.sdist import SdistPin
from pipeline.stages.collect.kinds.source_kind import SourceKind
from pipeline.stages.collect.kinds.source_kinds import SOURCE_KINDS

HEX = "a" * 64
COMMIT = "b" * 40
PINS = Path(pipeline.pins.__file__).parent
SDIST = f"""
kind = "sdist"
project = "demo"
version = "1.0"
file_name = "demo-1.0.tar.gz"
sha256 = "{HEX}"
"""


def pins_file(folder: Path, *entries: str) -> Path:
    path = folder / "pins.toml"
    path.write_text("".join(f"[[pin]]\n{entry}\n" for entry in entries))
    return path


def refusal(path: Path) -> str:
    with pytest.raises(PinError) as caught:
        load_pins(path, SOURCE_KINDS)
    return str(caught.value)


def test_pins_are_sorted_by_name_whatever_their_order_in_the_file(tmp_path: Path) -> None:
    path = pins_file(tmp_path, 'name = "zeta"' + SDIST, 'name = "alpha"' + SDIST)
    assert [pin.name for pin in load_pins(path, SOURCE_KINDS)] == ["alpha", "zeta"]


def test_every_kind_is_valid_with_its_own_locator(tmp_path: Path) -> None:
    path = pins_file(
        tmp_path,
        'name = "a"' + SDIST,
        f'name = "b"\nkind = "archive"\nurl = "https://example.com/b.tar.xz"\nsha256 = "{HEX}"',
        f'name = "c"\nkind = "git"\nurl = "https://example.com/c.git"\ncommit = "{COMMIT}"',
        f'name = "d"\nkind = "local"\npath = "tree"\ndigest = "{HEX}"',
        f'name = "e"\nkind = "jsonl"\npath = "e.jsonl"\nsha256 = "{HEX}"\ntext_field = "code"',
    )
    assert [(pin.kind, pin.revision) for pin in load_pins(path, SOURCE_KINDS)] == [
        ("sdist", HEX),
        ("archive", HEX),
        ("git", COMMIT),
        ("local", HEX),
        ("jsonl", HEX),
    ]


@pytest.mark.parametrize(
    ("entry", "parts"),
    [
        (SDIST, ["entry 1", "`name` is missing"]),
        ('name = "Demo"' + SDIST, ["Demo", "name is 'Demo'", "lower-case letters, digits and single hyphens"]),
        ('name = "demo"', ["demo", "`kind` is missing", "one of sdist, archive, git, local, jsonl"]),
        ('name = "demo"\nkind = "svn"', ["kind is 'svn'", "one of sdist, archive, git, local, jsonl"]),
        ('name = "demo"' + SDIST.replace(HEX, "abc123"), ["sha256 is 'abc123'", "64 lower-case hex", "sha256sum"]),
        ('name = "demo"' + SDIST.replace(HEX, HEX.upper()), ["sha256 is 'AAA", "64 lower-case hex digits"]),
        ('name = "demo"' + SDIST.replace(f'sha256 = "{HEX}"', ""), ["`sha256` is missing", "package index"]),
        ('name = "demo"\nbranch = "main"' + SDIST, ["`branch` is not a known field"]),
        ('name = "demo"\nweight = 0' + SDIST, ["weight is 0", "above 0"]),
        ('name = "demo"\nweight = "2"' + SDIST, ["weight is '2'", "above 0"]),
        ('name = "demo"\ninherit_license = "yes"' + SDIST, ["inherit_license is 'yes'", "boolean"]),
        ('name = "demo"\nexclude = ["/etc/*"]' + SDIST, ["exclude is '/etc/*'"]),
        ('name = "demo"\ninclude = "src/**"' + SDIST, ["include is 'src/**'"]),
        (f'name = "demo"\nkind = "archive"\nsha256 = "{HEX}"', ["either `url` or `path`"]),
        (
            f'name = "demo"\nkind = "archive"\nsha256 = "{HEX}"\nurl = "https://me:word@example.com/x.zip"',
            ["url is 'https://***@example.com/x.zip'"],
        ),
        (
            f'name = "demo"\nkind = "archive"\nsha256 = "{HEX}"\nurl = "https://example.com/x"\npath = "x"',
            ["either `url` or `path`, and not both"],
        ),
    ],
)
def test_a_bad_entry_is_refused_with_what_was_found_and_how_to_correct_it(
    tmp_path: Path, entry: str, parts: list[str]
) -> None:
    message = refusal(pins_file(tmp_path, entry))
    for part in [str(tmp_path / "pins.toml"), *parts]:
        assert part in message


HOSTILE: list[Any] = [
    *(0, -1, 10**400, math.nan, math.inf, True, [], ["a"], [[]], {}, {"a": 1}, datetime.date(2026, 1, 1)),
    *(
        "",
        "  ",
        "a\0b",
        "a\x1b[2J",
        "a\nb",
        "a\u202eb",
        "x" * 100_000,
        "../../a",
        "/dev/zero",
        "https://u:p@h/x",
        "file:///a",
    ),
]


@pytest.mark.parametrize("kind", SOURCE_KINDS, ids=lambda kind: kind.name)
def test_whatever_a_field_holds_it_is_accepted_or_refused_in_printable_words(
    kind: SourceKind[Any], tmp_path: Path
) -> None:
    fields = kind.pin.model_fields
    entry = {
        "name": "a",
        "project": "a",
        "version": "1",
        "file_name": "a.zip",
        "path": "a",
        "text_field": "a",
        "digest": HEX,
    }
    entry |= {"sha256": HEX, "commit": COMMIT, "url": "https://example.com/a"}
    sound = {name: entry[name] for name in fields if name in entry} | {"kind": kind.name}
    if "path" in sound:
        sound.pop("url", None)
    parse_pin(sound, "a", tmp_path, SOURCE_KINDS)
    for name, value in itertools.product(fields, HOSTILE):
        with contextlib.suppress(PinError):
            parse_pin({**sound, name: value}, "a", tmp_path, SOURCE_KINDS)
            continue
        with pytest.raises(PinError, match=r"^a: [ -~]*; expected [ -~]*$"):
            parse_pin({**sound, name: value}, "a", tmp_path, SOURCE_KINDS)


@pytest.mark.parametrize("commit", ["main", "v1.2.3", "tip", "HEAD", "b" * 12, "B" * 40, "b" * 41])
def test_a_branch_tag_or_abbreviated_commit_is_refused_with_the_command_that_prints_the_full_one(
    tmp_path: Path, commit: str
) -> None:
    entry = f'name = "demo"\nkind = "git"\nurl = "https://example.com/d.git"\ncommit = "{commit}"'
    message = refusal(pins_file(tmp_path, entry))
    assert f"demo: commit is '{commit}'" in message
    assert "full commit id of 40 or 64 lower-case hex digits" in message
    assert "git ls-remote https://example.com/d.git" in message


def test_a_git_pin_without_a_commit_is_refused_with_the_same_command(tmp_path: Path) -> None:
    message = refusal(pins_file(tmp_path, 'name = "demo"\nkind = "git"\nurl = "https://example.com/d.git"'))
    assert "`commit` is missing" in message
    assert "git ls-remote https://example.com/d.git" in message


def test_two_entries_of_one_name_are_refused(tmp_path: Path) -> None:
    message = refusal(pins_file(tmp_path, 'name = "demo"' + SDIST, 'name = "demo"' + SDIST))
    assert "demo: 2 entries have this name" in message


@pytest.mark.parametrize(
    ("content", "part"),
    [
        ("[[pin]\n", "is not TOML"),
        ("", "holds no [[pin]] table"),
        ("pin = 3\n", "holds no [[pin]] table"),
        ("[settings]\nx = 1\n", "holds 'settings'"),
        ("\xff", "is not TOML"),
    ],
)
def test_a_file_of_anything_else_is_refused(tmp_path: Path, content: str, part: str) -> None:
    path = tmp_path / "pins.toml"
    path.write_bytes(content.encode("latin-1"))
    message = refusal(path)
    assert part in message
    assert "[[pin]] tables and nothing else" in message


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    message = refusal(tmp_path / "none.toml")
    assert str(tmp_path / "none.toml") in message
    assert "No such file" in message


@pytest.mark.parametrize("digest", ["", 'digest = "tip"'])
def test_a_local_pin_without_its_digest_is_refused_with_the_one_to_paste(tmp_path: Path, digest: str) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "a.cpp").write_text("int a;\n")
    message = refusal(pins_file(tmp_path, f'name = "demo"\nkind = "local"\npath = "tree"\n{digest}'))
    assert f'digest = "{tree_digest(tree)}"' in message


def test_a_local_pin_of_a_path_that_is_not_a_folder_is_refused(tmp_path: Path) -> None:
    for name, found in (("nowhere", "is not there"), ("pins.toml", "is not a folder")):
        assert found in refusal(pins_file(tmp_path, f'name = "demo"\nkind = "local"\npath = "{name}"'))


def test_a_relative_path_counts_from_the_pins_file_and_stays_out_of_the_identity(tmp_path: Path) -> None:
    entry = f'name = "demo"\nkind = "local"\npath = "tree"\ndigest = "{HEX}"'
    (pin,) = load_pins(pins_file(tmp_path, entry), SOURCE_KINDS)
    assert isinstance(pin, LocalPin)
    assert pin.path == tmp_path / "tree"
    assert str(tmp_path) not in canonical_json(pin.identity()).decode()
    assert pin.identity()["revision"] == HEX


def test_identity_ignores_weight_and_place_and_nothing_else() -> None:
    pin = ArchivePin(name="demo", url="https://example.com/x.zip", sha256=HEX)
    same = ArchivePin(name="demo", url="https://example.org/y.zip", sha256=HEX, weight=3.0)
    assert pin.identity() == same.identity()
    for other in ({"exclude": ("doc/**",)}, {"declared_license": "MIT"}, {"inherit_license": False}, {"name": "other"}):
        assert pin.model_copy(update=other).identity() != pin.identity()


def test_identities_never_move(tmp_path: Path) -> None:
    """The digest covers a pin of each kind: the ids of all collected sources depend on these bytes."""
    path = pins_file(
        tmp_path,
        'name = "a"' + SDIST,
        f'name = "b"\nkind = "archive"\nurl = "https://example.com/b.tar.xz"\nsha256 = "{HEX}"\nbuild = {{ cmake = true }}',
        f'name = "c"\nkind = "git"\nurl = "https://example.com/c.git"\ncommit = "{COMMIT}"\nweight = 2.0',
        f'name = "d"\nkind = "local"\npath = "tree"\ndigest = "{HEX}"\ninherit_license = false',
        f'name = "e"\nkind = "jsonl"\npath = "e.jsonl"\nsha256 = "{HEX}"\ntext_field = "code"',
    )
    assert (
        digest([pin.identity() for pin in load_pins(path, SOURCE_KINDS)])
        == "53ecbd12faac3f8aa72339acff566d0856b7494e304218c21539c925c8a8c5a1"
    )


def test_the_operational_slice_is_22_sdists_whose_declared_licenses_are_spdx() -> None:
    licensing = get_spdx_licensing()
    pins = load_pins(PINS / "operational.toml", SOURCE_KINDS)
    assert len(pins) == 22
    for pin in pins:
        assert isinstance(pin, SdistPin)
        assert licensing.validate(pin.declared_license, strict=True).errors == []
    assert sorted({pin.revision for pin in pins}) == sorted(pin.revision for pin in pins)


def test_the_operational_file_is_sorted_by_name() -> None:
    names = [pin["name"] for pin in tomllib.loads((PINS / "operational.toml").read_text())["pin"]]
    assert names == sorted(names)


def test_a_catalog_can_never_reach_a_run() -> None:
    message = refusal(PINS / "catalog.toml")
    assert "holds 'source'" in message
    locators = {"sha256", "digest", "commit", "url", "path", "file_name", "version"}
    assert not locators & set(CatalogEntry.model_fields)


@pytest.mark.parametrize(
    "path", ["plain", "emo\U0001f600ji", 'quo"te', "back\\slash", "tab\there", "del\x7fete", "line\nend"]
)
def test_an_entry_as_toml_is_read_back_as_it_was(path: str) -> None:
    entry = {"name": "mine", "path": path}

    assert tomllib.loads(pin_toml(entry)) == {"pin": [entry]}


def test_an_entry_that_no_toml_can_hold_is_refused() -> None:
    with pytest.raises(PinError, match="UTF-8"):
        pin_toml({"name": "mine", "path": "\udcff"})


def test_an_upstream_is_another_pin_of_the_file_and_bands_begin_before_they_end(tmp_path: Path) -> None:
    zlib = 'name = "zlib"' + SDIST
    good = 'name = "a"' + SDIST + 'upstreams = { "third_party/zlib/**" = "zlib" }\nlanguages = { cpp = [0.5, 1.0] }'
    (first, second) = load_pins(pins_file(tmp_path, good, zlib), SOURCE_KINDS)
    assert first.upstreams == {"third_party/zlib/**": "zlib"}
    assert first.identity() | {"name": "zlib"} == second.identity()
    assert "upstreams names zlib; expected names of other pins" in refusal(pins_file(tmp_path, good))
    itself = 'name = "a"' + SDIST + 'upstreams = { "**/zlib/**" = "a" }'
    assert "upstreams names a" in refusal(pins_file(tmp_path, itself, zlib))
    backwards = 'name = "a"' + SDIST + "languages = { cpp = [0.9, 0.1] }"
    assert "the lower bound of the band of cpp to be at most the upper one" in refusal(pins_file(tmp_path, backwards))
    unknown = 'name = "a"' + SDIST + "languages = { unheard_of = [0.0, 0.1] }"
    assert f"expected bands of {', '.join(LANGUAGES.names)}, not of unheard_of" in refusal(pins_file(tmp_path, unknown))
