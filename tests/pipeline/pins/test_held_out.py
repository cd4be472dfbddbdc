"""Rules of what is held out: sources, globs and hashes, each as an oracle judges it, and rules that decide nothing."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from pipeline.build.oracles.snapshots.held_out_documents import held_out_sources, split_of_file
from pipeline.core.errors import ParamsError, StageError
from pipeline.core.records import Split
from pipeline.pins.held_out import HeldOut

NAMES = [f"source-{number}" for number in range(1000)]
_WORD = st.text("ab?*.", min_size=1, max_size=4)
_GLOBS = st.lists(st.lists(_WORD | st.just("**"), min_size=1, max_size=4).map("/".join), max_size=3)
_PATHS = st.lists(st.text("ab.", min_size=1, max_size=4), min_size=1, max_size=4).map("/".join)


@settings(max_examples=300)
@given(_GLOBS, st.sampled_from(["a", "b", "ab"]), _PATHS, st.sampled_from([None, 0.3]), st.booleans())
def test_the_oracle_and_the_rule_decide_alike(
    globs: list[str], source: str, path: str, fraction: float | None, is_of_files: bool
) -> None:
    hashed = {"hash_fraction": fraction, "hash_of": "file" if is_of_files else "repository"}
    rule = HeldOut.model_validate({"globs": globs, **(hashed if fraction else {})})
    found = rule.split(source, path)
    assert found == split_of_file(rule.model_dump(mode="json"), source, path)
    assert rule.holds_out(source) == bool(held_out_sources(rule.model_dump(mode="json"), [source]))
    of_files = rule.of_files(source)
    if not rule.holds_out(source):
        assert found == (of_files.split(source, path) if of_files else Split.TRAIN)


def test_a_hash_holds_out_about_its_share_and_the_smaller_share_is_in_the_larger() -> None:
    def held_out(fraction: float, salt: str = "") -> set[str]:
        rule = HeldOut(hash_fraction=fraction, hash_of="repository", hash_salt=salt)
        return {name for name in NAMES if rule.split(name, "a.c") == Split.HELD_OUT}

    assert 60 < len(held_out(0.1)) < 140
    assert held_out(0.1) < held_out(0.3)
    assert held_out(0.3) != held_out(0.3, "another")


def test_a_list_of_names_is_a_rule_by_source_in_any_order() -> None:
    assert HeldOut.model_validate(["b", "a"]) == HeldOut(sources=("a", "b"))
    assert HeldOut(sources=("a", "b")).among(["b", "c"]) == HeldOut(sources=("b",))


@pytest.mark.parametrize(
    "fields",
    [
        *({"hash_fraction": 0}, {"hash_fraction": 1}, {"hash_of": "line"}, {"globs": [""]}),
        *({"hash_salt": "2026"}, {"hash_of": "repository", "globs": ["a/**"]}),
    ],
)
def test_values_out_of_bounds_are_refused(fields: dict[str, object]) -> None:
    with pytest.raises(ValidationError, match=next(iter(fields))):
        HeldOut.model_validate(fields)


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (HeldOut(sources=("minee",)), "no pin is named minee; expected mine, yours. Did you mean mine?"),
        (HeldOut(sources=("mine", "yours")), "the rule holds out all sources: mine, yours"),
        (
            HeldOut(globs=("mien/**",)),
            "'mien/**' is of no pin; expected a glob that begins with a source: mine, yours. Did",
        ),
        (
            HeldOut(globs=("m*/*.c", "*.c")),
            "'*.c' is of no pin; expected a glob that begins with a source: mine, yours. Write",
        ),
        *(
            (
                HeldOut(globs=(glob,)),
                f"{glob!r} is of a source, and of no file; expected a glob over `source/path`: {all_}",
            )
            for glob, all_ in (("mine", "mine/**"), ("yours/", "yours/**"), ("mi*", "mi*/**"))
        ),
        (HeldOut(globs=("**",)), "the rule holds out all sources: mine, yours"),
        (HeldOut(sources=("mine",), globs=("y*/**/*",)), "the rule holds out all sources: mine, yours"),
        (HeldOut(hash_fraction=1e-9, hash_of="repository"), "the hash of 2 names holds out none"),
        (HeldOut(hash_fraction=1 - 1e-9, hash_of="repository"), "the rule holds out all sources"),
    ],
)
def test_a_rule_over_names_that_holds_out_nothing_or_everything_is_refused(rule: HeldOut, words: str) -> None:
    with pytest.raises(ParamsError, match=re.escape(words)):
        rule.refuse_idle_sources(["mine", "yours"])
    HeldOut(sources=("mine",), globs=("y*/*.c", "**/a.c", "mine/**")).refuse_idle_sources(["mine", "yours"])


def test_a_fraction_that_holds_out_none_is_refused_with_the_least_that_holds_out_one() -> None:
    for number in range(200):
        files = [("mine", f"{number}-{place}.c") for place in range(2 + number % 5)]
        with pytest.raises(StageError) as refused:
            HeldOut(hash_fraction=1e-9).refuse_idle_files(files)
        (told,) = re.findall(r"to (0\.\d+), which holds out one", str(refused.value))
        rule = HeldOut(hash_fraction=float(told))
        rule.refuse_idle_files(files)
        assert [rule.split(*file) for file in files].count(Split.HELD_OUT) == 1
        less = float(told) - 10.0 ** (2 - len(told))
        assert less <= 0 or all(HeldOut(hash_fraction=less).split(*file) == Split.TRAIN for file in files)


def test_a_glob_of_which_only_what_is_withdrawn_is_left_is_told_and_stops_no_build() -> None:
    files, rule = [("mine", "a.c"), ("mine", "b.c")], HeldOut(globs=("mine/tests/**", "yours/t.c", "mine/a.c"))
    told = rule.refuse_idle_files(files, ["mine/tests/t.c"], ["yours"])
    assert [each.partition(" matches no file that is left")[0] for each in told] == [
        "held_out: 'mine/tests/**'",
        "held_out: 'yours/t.c'",
    ]
    with pytest.raises(StageError, match=re.escape("'yours/t.c' matches none of 2 collected files")):
        rule.refuse_idle_files(files, ["mine/tests/t.c", "yours/u.c"])
    with pytest.raises(
        StageError, match="all of 1 collected files; 1 files are withdrawn; withdrawn as a whole: yours"
    ):
        HeldOut(globs=("mine/a.c",)).refuse_idle_files(files[:1], ["mine/b.c"], ["yours"])
    hashed = HeldOut(hash_fraction=0.01)
    chosen = next(
        name for name in (f"{number}.c" for number in range(9_999)) if hashed.split("mine", name) == Split.HELD_OUT
    )
    assert hashed.refuse_idle_files(files, [f"mine/{chosen}"]) == ()
