"""A build that a gate blocks, or whose input is refused, names what was found and what to run next."""

import hashlib
import re
import shlex
from pathlib import Path

import pytest

from pipeline.cli.main import main
from pipeline.contracts.gates import GATES
from pipeline.core.registry import Registry
from pipeline.store.store import Store
from tests.pipeline.cli.conftest import Run
from tests.pipeline.cli.own_builds import CODE, build, local_tree, make_archive, write_pins


def test_an_empty_name_of_a_corpus_is_refused(run: Run, tmp_path: Path) -> None:
    code, answer, _ = run("build", "--recipe", "tiny", "--corpus", "")

    assert (code, answer["error"]) == (1, "ParamsError")
    assert "corpus '': it is not a valid name" in answer["message"]
    assert not (tmp_path / "store").exists()


def test_an_unknown_recipe_names_those_that_exist(run: Run) -> None:
    code, answer, _ = run("build", "--recipe", "huge")

    assert code == 1
    assert "tiny, quick, full" in answer["message"]


def test_offline_with_an_empty_store_names_every_missing_archive(run: Run) -> None:
    code, answer, _ = run("build", "--recipe", "quick", "--offline", "--workers", "1")

    assert code == 1
    for name in (
        "awkward_cpp-57.tar.gz",
        "ducc0-0.42.0.tar.gz",
        "iminuit-2.33.0.tar.gz",
        "python_rapidjson-1.25.tar.gz",
    ):
        assert name in answer["message"]
    assert "every_pin_verified BLOCKED: num_failed_sources is 4, must be at most 0" in answer["message"]


def test_a_wrong_digest_shows_both_and_the_other_source_is_collected(run: Run, tmp_path: Path) -> None:
    archive = make_archive(tmp_path / "other.tar", "project/a.c", CODE.encode())
    wrong = f'name = "other"\nkind = "archive"\npath = "{archive}"\nsha256 = "{"1" * 64}"\ndeclared_license = "MIT"'
    code, answer, _ = build(run, write_pins(tmp_path, local_tree(tmp_path, run, main_c=CODE), wrong))
    found = hashlib.sha256(archive.read_bytes()).hexdigest()

    assert code == 1
    assert "1" * 64 in answer["message"]
    assert found in answer["message"]
    assert Store(tmp_path / "store").refs("mine") == {"last": answer["id"]}
    assert list((tmp_path / "store" / "objects" / "collect" / "part").iterdir())

    assert list(run("show", "last", "--corpus", "mine")[1]["failures"]) == ["other"]
    code, answer, _ = run("why", "other", "a.c", "--corpus", "mine", "--of", "last")
    assert code == 1
    assert "source other: it failed in this build: its bytes have sha256" in answer["message"]
    assert found in answer["message"]


def test_a_blocked_build_names_the_rule_some_files_and_what_to_run_next(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    long_line = f"int b = {' + '.join(map(str, range(900)))};\n"
    files = {f"{name}_c": f"int {name};\n{long_line}" for name in "abcde"}
    code, answer, _ = build(run, write_pins(tmp_path, local_tree(tmp_path, run, **files)))

    assert (code, answer["error"]) == (1, "BlockedError")
    assert "documents_are_kept BLOCKED: rows_out is 0, must be at least 1" in answer["message"]
    assert [verdict["outcome"] for verdict in answer["verdicts"]] == ["failed"] * len(answer["verdicts"])
    assert answer["id"][:12] in answer["message"]
    assert len(re.findall(r"mine/[a-e]\.c", answer["message"])) == 3
    *files_asked, report = [shlex.split(command)[3:-2] for command in answer["next"]]
    for command in files_asked:
        code, found, said = run(*command)
        assert (code, found["steps"][-1]["reason"]) == (0, "long_line")
        assert found["build"]["id"] == answer["id"]
        assert "build last of corpus mine was blocked: normalize" in said
    assert run(*report)[1]["rules"][0]["reason"] == "long_line"
    arguments = ["build", "--recipe", "tiny", "--corpus", "mine", "--pins", str(tmp_path / "pins.toml")]
    assert main([*arguments, "--store", str(tmp_path / "store"), "--quiet"]) == 1
    said = capsys.readouterr()
    assert "Blocked at normalize" in Path(said.out.splitlines()[-1].removeprefix("the report is ")).read_text()
    assert said.err.startswith("error BlockedError: "), "--quiet leaves the error alone"


def test_a_build_that_keeps_nothing_inside_its_bands_names_files_too(run: Run, tmp_path: Path) -> None:
    pins = write_pins(tmp_path, local_tree(tmp_path, run, a_c="int a;\n", b_c="int b;\n"))
    wide = ("--set", "normalize.drop_bands.too_small=1.0", "--set", "normalize.filters.min_num_bytes=690")
    code, answer, _ = build(run, pins, *wide)

    assert [each["gate"] for each in answer["verdicts"]] == ["documents_are_kept"]
    assert "No document is kept: most were dropped as too_small. Dropped: 2 as too_small." in answer["message"]
    assert (code, [shlex.split(each)[3] for each in answer["next"]]) == (1, ["why", "why", "report"])


def test_a_build_blocked_by_what_was_replaced_names_the_files_and_what_stands_for_it(run: Run, tmp_path: Path) -> None:
    comment = "/* {0}: write to someone.{0}@corporation.org or to other.{0}@corporation.org about it */\n"
    files = {f"{name}_c": CODE.replace("int f", f"int {name}") + comment.format(name) for name in "abcd"}
    pins = write_pins(tmp_path, local_tree(tmp_path, run, **files))
    code, answer, _ = build(run, pins, "--set", "normalize.max_redacted_fraction=0.001")

    assert code == 1, answer
    assert [verdict["gate"] for verdict in answer["verdicts"]] == ["redactions_are_few"]
    assert "bytes, most in a.c (48 bytes: 2 of email), b.c" in answer["message"]
    assert "mine/a.c, mine/b.c, mine/c.c" in answer["message"]
    found = run(*shlex.split(answer["next"][0])[3:-2])[1]["steps"]
    normalized = next(step["evidence"] for step in found if step["stage"] == "normalize")
    assert normalized["placeholders"] == ["<redacted-email-1>", "<redacted-email-2>"]


def test_a_pin_that_is_a_branch_is_refused_with_the_fix(run: Run, tmp_path: Path) -> None:
    pins = write_pins(tmp_path, 'name = "mine"\nkind = "git"\nurl = "https://forge.test/mine.git"\ncommit = "main"')
    code, answer, _ = build(run, pins)

    assert code == 1
    assert "mine" in answer["message"]
    assert "main" in answer["message"]
    assert "40" in answer["message"]


@pytest.mark.parametrize(
    ("member", "word"),
    [("project/../../x.c", ".."), ("/etc/x.c", "/etc/x.c"), ("C:/x.c", "C:")],
    ids=["climbs", "absolute", "drive"],
)
def test_a_hostile_archive_is_refused_by_its_member(run: Run, tmp_path: Path, member: str, word: str) -> None:
    archive = make_archive(tmp_path / "hostile.tar", member, b"int x;\n")
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    entry = f'name = "hostile"\nkind = "archive"\npath = "{archive}"\nsha256 = "{digest}"\ndeclared_license = "MIT"'
    code, answer, _ = build(run, write_pins(tmp_path, entry))

    assert code == 1
    assert "hostile" in answer["message"]
    assert word in answer["message"]


def test_a_missing_pins_file_is_one_line(run: Run, tmp_path: Path) -> None:
    code, answer, text = build(run, str(tmp_path / "nowhere.toml"))

    assert code == 1
    assert "nowhere.toml" in answer["message"]
    assert "Traceback" not in text


def test_a_gate_that_crashes_fails_loudly_and_moves_nothing(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dataclasses import replace

    from pipeline.contracts import gates

    broken = replace(GATES["documents_are_kept"], measure="no_such_measure")
    others = [gate for gate in GATES if gate.name != broken.name]
    monkeypatch.setattr(gates, "GATES", Registry("gate", *others, broken))
    code, answer, _ = run("build", "--recipe", "tiny", "--workers", "1")

    assert code == 1
    assert answer["error"] == "MeasureError"
    assert "documents_are_kept" in answer["message"]
    assert set(Store(tmp_path / "store").refs("tiny")) == {"collect", "last"}


def test_what_verify_has_blocked_is_exported_with_that_word_and_bundled_by_none(run: Run, tmp_path: Path) -> None:
    assert run("build", "--recipe", "tiny", "--workers", "1", "--set", "verify.min_bytes_per_token=15")[0] == 1

    code, answer, said = run("export", "megatron", "--corpus", "tiny", "--of", "last", "--out", str(tmp_path / "out"))
    assert code == 0, answer
    assert "was blocked: verify, " in " ".join(said.split())
    assert "was blocked: verify, " in " ".join(run("card", "--corpus", "tiny", "--of", "last")[2].split())
    code, answer, _ = run("snapshot", "export", str(tmp_path / "bundle"), "--corpus", "tiny", "--of", "last")
    assert code == 1
    assert (
        "no verify stage is recorded that its gates let pass. Where a gate blocked it, correct that"
        in answer["message"]
    )
