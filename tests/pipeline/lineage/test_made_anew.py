"""Stages to make anew are found by the keys of parts: none for a limit of a gate, and all that follow for a rule."""

import json
import re
from pathlib import Path

import pytest

from pipeline.build.recipes import QUICK, TINY, recipe_document, recipe_of, recipe_values
from pipeline.core.errors import ParamsError
from pipeline.core.settings.overrides import at, setting, settings_of
from pipeline.lineage.made_anew import MadeAnew, made_anew
from pipeline.pins.pins import pin_toml
from pipeline.stages.stages import STAGES
from pipeline.store.store import Store
from tests.benchmarks.assets.field_walk import wanted
from tests.pipeline.lineage.keys_of_builds import made_by_build


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("normalize.drop_bands.binary=0.5", MadeAnew((), (), ("normalize",))),
        ("tokenize.row_length=64", MadeAnew(("tokenize", "verify"), (), ())),
        (
            "normalize.duplicates.min_containment=0.9",
            MadeAnew(("normalize",), ("enrich", "tokenize", "verify"), ()),
        ),
        *(
            (text, MadeAnew(("normalize", "enrich", "tokenize", "verify"), (), (), ("collect",)))
            for text in ("normalize.filters.min_num_bytes=50", 'held_out=["odds"]', "held_out.hash_fraction=0.5")
        ),
    ],
)
def test_a_difference_makes_anew_what_depends_on_it(text: str, expected: MadeAnew) -> None:
    assert made_anew(TINY, recipe_of("tiny", setting(text))) == expected


_FITTING: dict[str, tuple[str, ...]] = {
    "held_out.globs": ('held_out.globs=["odds/**"]',),
    "held_out.hash_of": ("held_out.hash_fraction=0.2", "held_out.hash_of=repository", "held_out.hash_salt=made"),
    "held_out.sources": ('held_out.globs=["heron/**"]',),
    "normalize.decontamination.items_folder": ("normalize.decontamination.items_folder={folder}",),
    "normalize.filters.min_num_bytes": ("normalize.filters.min_num_bytes=99",),
    "tokenize.vocabulary": ("tokenize.vocabulary=cpp-32768",),
}
"""Settings of fields that take more than any value within their bounds; for sources another rule that holds out the same."""


def test_what_is_made_anew_for_each_field_is_what_the_keys_of_a_build_say(tiny_store: Store, tmp_path: Path) -> None:
    (tmp_path / "items").mkdir()
    item = {"id": "mine/1", "prompt": "// Add.", "solution": " + ".join(map(str, range(40)))}
    (tmp_path / "items" / "mine.jsonl").write_text(json.dumps(item))
    before, differing = recipe_of("tiny"), []
    document = recipe_document()
    for name, together in wanted(document, recipe_values(before)).items():
        if name.partition(".")[0] not in ("held_out", *STAGES.names):
            continue
        given = [
            text for path, value in together.items() for text in settings_of(at(path.split("."), value, "").values)
        ]
        texts = [text.replace("{folder}", str(tmp_path / "items")) for text in _FITTING.get(name, given)]
        now = recipe_of("tiny", *map(setting, texts))
        made, told = made_by_build(tiny_store, "tiny", now, tmp_path / name), made_anew(before, now)
        if (told.made_anew, told.made_where_changed, told.audited_again) != made:
            differing.append((name, made, told))

    assert not differing


@pytest.mark.parametrize(
    "line", ["", "weight = 2.0", "languages = {cpp = [0.0, 0.9]}", 'upstreams = {"x/**" = "lantern"}']
)
def test_what_is_made_anew_for_each_line_of_a_pin_is_what_the_keys_of_a_build_say(
    tiny_store: Store, tmp_path: Path, line: str
) -> None:
    assert TINY.pins is not None
    text = re.sub(r'path = "(.*?)"', lambda found: f'path = "{TINY.pins.parent / found[1]}"', TINY.pins.read_text())
    (tmp_path / "pins.toml").write_text(text.replace('name = "odds"', f'name = "odds"\n{line}'))
    now = TINY.model_copy(update={"pins": tmp_path / "pins.toml"})

    made, told = made_by_build(tiny_store, "tiny", now, tmp_path / "scratch"), made_anew(TINY, now)
    assert told.made_anew + told.made_where_changed == made.made + made.made_where_changed
    assert told.audited_again == made.audited
    assert told.pins_changed == (("odds",) if line else ())


def test_a_rule_that_no_build_takes_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(ParamsError, match=r"no pin is named odd; expected heron, .*Did you mean odds\?"):
        made_anew(TINY, recipe_of("tiny", setting('held_out=["odd"]')))


def test_an_equal_recipe_makes_nothing_anew() -> None:
    anew = made_anew(TINY, recipe_of("tiny"))

    assert anew == MadeAnew((), (), ())
    assert anew.sentences() == ["nothing is made anew"]


def test_what_a_compiler_is_told_is_seen_too() -> None:
    built = recipe_of("tiny", setting("builds.odds.cmake=true"))

    assert made_anew(built, recipe_of("tiny", setting("builds.odds.cmake=true"))) == MadeAnew((), (), ())
    slower = recipe_of("tiny", setting("builds.odds.cmake=true"), setting("enrich.compiler.unit_cpu_seconds=5"))
    assert made_anew(built, slower) == MadeAnew(("enrich", "tokenize", "verify"), (), ())


def test_what_a_compiler_is_told_by_a_pin_is_seen_too(tmp_path: Path) -> None:
    pin = {"name": "mine", "kind": "archive", "url": "https://a.b/c", "sha256": "0" * 64}
    for name, options in (("one", '["-DA=B"]'), ("two", "[]")):
        (tmp_path / f"{name}.toml").write_text(f"{pin_toml(pin)}\n[pin.build]\ncmake = true\noptions = {options}\n")
    mine, other = (recipe_of("quick", pins_file=tmp_path / f"{name}.toml") for name in ("one", "two"))

    for field in ("unit_cpu_seconds=5", "unit_memory_megabytes=4096"):
        slower = recipe_of("quick", setting(f"enrich.compiler.{field}"), pins_file=tmp_path / "one.toml")
        assert made_anew(mine, slower) == MadeAnew(("enrich", "tokenize", "verify"), (), ())
    assert made_anew(mine, other).sources_added == ("mine",)
    told = recipe_of("tiny", setting("builds.odds.cmake=true"))
    assert made_anew(TINY, told).sources_added == ("odds",), "of the others nothing is collected anew"


def test_a_recipe_by_which_nothing_comes_through_is_compared_from_the_other_side() -> None:
    closed = recipe_of("tiny", setting("collect.max_members=1"))
    assert made_anew(closed, TINY) == made_anew(TINY, closed) == MadeAnew(tuple(STAGES.names), (), ())

    other = recipe_of("tiny", setting("collect.max_members=1"), setting("tokenize.row_length=64"))
    with pytest.raises(ParamsError, match="recipes tiny and tiny: by neither do small sources come through"):
        made_anew(closed, other)


def test_sources_that_come_and_go_are_named_and_all_sources_are_compared_again(tmp_path: Path) -> None:
    (tmp_path / "pins.toml").write_text(
        pin_toml({"name": "mine", "kind": "archive", "url": "https://a.b/c", "sha256": "0" * 64})
    )
    mine = recipe_of("quick", pins_file=tmp_path / "pins.toml")
    two = recipe_of("quick", setting('sources=["ducc0", "iminuit"]'))
    later = ("normalize", "enrich", "tokenize", "verify")

    anew = made_anew(QUICK, two)
    assert (anew.sources_added, anew.sources_removed) == ((), ("awkward-cpp", "python-rapidjson"))
    assert (anew.made_anew, anew.made_where_changed, anew.judged_again) == ((), later, ())
    assert made_anew(two, QUICK).sources_added == anew.sources_removed
    assert (
        made_anew(QUICK, mine).sentences()[0]
        == "sources that come, or are read otherwise, made anew from collect on: mine"
    )
    assert made_anew(QUICK, recipe_of("quick", setting("pins=none.toml"))).unread_pins.endswith(
        "cannot be read (No such file or directory)"
    )


def test_a_copy_of_the_pins_changes_nothing_and_another_weight_is_seen(tmp_path: Path) -> None:
    path = QUICK.pins
    assert path is not None
    copied, weighted = tmp_path / "copied.toml", tmp_path / "weighted.toml"
    copied.write_text(path.read_text())
    weighted.write_text(path.read_text().replace('name = "ducc0"', 'name = "ducc0"\nweight = 2.0'))

    quick = QUICK.model_copy(update={"pins": copied})
    assert made_anew(QUICK, quick) == MadeAnew((), (), ())
    assert made_anew(quick, quick.model_copy(update={"pins": weighted})) == MadeAnew(
        (), ("verify",), (), pins_changed=("ducc0",)
    )
