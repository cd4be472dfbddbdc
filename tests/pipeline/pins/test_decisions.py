"""A file of decisions is read strictly: whatever is wrong with an entry is one error that names it and what to do."""

from pathlib import Path

import pytest

from pipeline.core.errors import DecisionError
from pipeline.pins.decisions import Decision, load_decisions

WHO = 'reason = "Read."\nperson = "A. Reader"\n'
OF = 'source = "mine"\npath = "src/a.c"\n'
DIGEST = "ab" * 32


def written(tmp_path: Path, *entries: str) -> Path:
    path = tmp_path / "decisions.toml"
    path.write_text("".join(f"[[decision]]\n{entry}\n" for entry in entries))
    return path


def test_each_kind_of_decision_is_read_in_order_of_files(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        'source = "mine"\npath = "src/*.c"\nwaive = "secret"\nline = 3\n' + WHO,
        OF + f'sha256 = "{DIGEST}"\nrelease = ["license_quarantined", "generated"]\n' + WHO,
        OF + 'license = "MIT"\ndate = 2026-05-03\n' + WHO,
    )

    first, second, third = load_decisions(path, ["mine"])

    assert first.text == "waiver of secret on line 3, decided by A. Reader: Read."
    assert second.text == "license MIT, decided by A. Reader on 2026-05-03: Read."
    assert third.what == "release of license_quarantined, generated"
    assert third.as_json()["sha256"] == DIGEST
    assert second.facts() == {"source": "mine", "path": "src/a.c", "license": "MIT"}
    assert [Decision.model_validate(each.as_json()) for each in (first, second, third)] == [first, second, third]


def test_a_file_without_entries_decides_nothing(tmp_path: Path) -> None:
    assert load_decisions(written(tmp_path), ["mine"]) == ()


@pytest.mark.parametrize(
    ("glob", "path", "is_matched"),
    [
        ("src/a.c", "src/a.c", True),
        ("src/*.c", "src/a.c", True),
        ("src/*.c", "src/b/a.c", False),
        ("**/a.c", "a.c", True),
        ("src/**", "src/b/a.c", True),
        ("src/[a].c", "src/a.c", False),
        ("src/[a].c", "src/[a].c", True),
        ("src/?.c", "src/?.c", True),
    ],
)
def test_a_path_is_matched_as_in_a_pin(glob: str, path: str, is_matched: bool) -> None:
    decision = Decision(source="mine", path=glob, license="MIT", reason="Read.", person="A. Reader")

    assert decision.matches(path) is is_matched


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (OF + WHO, "one of `license`, `release` and `waive`"),
        (OF + 'license = "MIT"\nrelease = ["generated"]\n' + WHO, "one of `license`, `release` and `waive`"),
        (OF + 'waive = "secret"\n' + WHO, "a waiver is of one finding"),
        (OF + 'license = "MIT"\nline = 3\n' + WHO, "only together with `waive`"),
        (OF + 'license = "MIT"\nreason = "Read."\n', "`person` is missing; expected a name"),
        (OF + 'license = "MIT"\nperson = "A. Reader"\nreason = " "\n', "`reason` to be one line of words"),
        (OF + 'license = "MIT"\nperson = "A. Reader"\nreason = "a\\u001b[31m"\n', "`reason` to be one line of words"),
        (OF + f'license = "MIT"\nperson = "A. Reader"\nreason = "{"a" * 501}"\n', "at most 500 characters"),
        (OF + 'license = "MIT"\nbecause = "x"\n' + WHO, "`because` is not a known field"),
        (OF + 'license = "MIT"\ndate = "soon"\n' + WHO, "a date such as 2026-05-03"),
        (OF + 'license = "MIT"\nsha256 = "ab"\n' + WHO, "Run sha256sum on the file"),
        ('source = "mine"\npath = "/etc"\nlicense = "MIT"\n' + WHO, "a path inside the source"),
        ('source = "other"\npath = "a.c"\nlicense = "MIT"\n' + WHO, "source is 'other'; expected one of mine, more"),
    ],
)
def test_a_bad_entry_is_refused_with_what_to_do(entry: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(DecisionError) as caught:
        load_decisions(written(tmp_path, entry), ["more", "mine"])

    assert "decisions.toml: entry 1: " in str(caught.value)
    assert message in str(caught.value)
    assert len(str(caught.value)) <= 2_000


def test_a_value_in_place_of_its_digest_is_not_shown(tmp_path: Path) -> None:
    value = "hunter" + "2" * 8
    path = written(tmp_path, OF + f'waive = "password"\nvalue_sha256 = "{value}"\n' + WHO)

    with pytest.raises(DecisionError, match="it may be the value") as caught:
        load_decisions(path, ["mine"])

    assert value not in str(caught.value)


@pytest.mark.parametrize("entry", ['source = "{}"', '"{}" = 1', 'line = "{}"'])
def test_a_secret_in_a_wrong_place_is_not_shown(entry: str, tmp_path: Path) -> None:
    value = "ghp_" + "aB3" * 12
    path = written(tmp_path, (OF if "source" not in entry else 'path = "a.c"\n') + entry.format(value) + "\n" + WHO)

    with pytest.raises(DecisionError, match="not shown") as caught:
        load_decisions(path, ["mine"])

    assert value not in str(caught.value)


@pytest.mark.parametrize(
    ("entry", "found"),
    [
        ("", "it has path, person, reason, source"),
        ('license = "MIT"\nwaive = "secret"\nline = 3\n', "it has license, line, path, person, reason, source, waive"),
    ],
)
def test_an_entry_that_decides_nothing_or_two_things_is_told_what_it_needs(
    entry: str, found: str, tmp_path: Path
) -> None:
    with pytest.raises(DecisionError, match=r"one of `license`, `release` and `waive`") as caught:
        load_decisions(written(tmp_path, OF + entry + WHO), ["mine"])

    assert found in str(caught.value)
    assert "not known" not in str(caught.value)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ('license = "MIT"\n', 'license = "ISC"\n'),
        ('license = "MIT"\n', f'license = "ISC"\nsha256 = "{DIGEST}"\n'),
        ('release = ["generated"]\n', 'release = ["too_small", "generated"]\n'),
        ('waive = "secret"\nline = 3\n', 'waive = "secret"\nline = 3\n'),
    ],
)
def test_two_decisions_about_the_same_are_refused(first: str, second: str, tmp_path: Path) -> None:
    with pytest.raises(DecisionError, match="entry 2: another entry decides about the"):
        load_decisions(written(tmp_path, OF + first + WHO, OF + second + WHO), ["mine"])


def test_decisions_about_other_bytes_or_other_things_are_kept_apart(tmp_path: Path) -> None:
    entries = [
        OF + f'license = "MIT"\nsha256 = "{DIGEST}"\n' + WHO,
        OF + f'license = "ISC"\nsha256 = "{"0" * 64}"\n' + WHO,
        OF + 'waive = "secret"\nline = 3\n' + WHO,
        OF + 'waive = "secret"\nline = 4\n' + WHO,
    ]

    assert len(load_decisions(written(tmp_path, *entries), ["mine"])) == 4


@pytest.mark.parametrize("content", ["decision = 3\n", "[decision]\n", "[[pin]]\n", "[[decision", "decision = [3]\n"])
def test_another_file_is_refused_as_what_it_is(content: str, tmp_path: Path) -> None:
    (tmp_path / "decisions.toml").write_text(content)

    with pytest.raises(DecisionError, match="tables and nothing else"):
        load_decisions(tmp_path / "decisions.toml", ["mine"])
