"""Files and archives as canaries: their number, and how a rule that no longer detects anything shows."""

from pathlib import Path

import pytest

from pipeline.build.canaries import file_canaries, sound_sources
from pipeline.build.canaries.file_canaries import CONTROLS, planted, send_archives, send_files
from pipeline.build.recipes import CorpusParams, recipe_of
from pipeline.core.settings.overrides import setting
from pipeline.pins.decisions import Decision
from pipeline.stages.normalize.filters.filters import FILTERS
from pipeline.stages.normalize.params import DuplicateParams, FilterParams, ScrubParams
from pipeline.stages.normalize.scrub.detectors import DETECTORS, Detector, example
from pipeline.stages.normalize.scrub.shown_text import ShownText


def test_each_is_caught_by_sound_rules(tmp_path: Path) -> None:
    files, archives = (send(tmp_path / send.__name__, CorpusParams()) for send in (send_files, send_archives))

    assert len(files) >= 30
    assert len(archives) >= 5
    assert {name for name, seen in (files | archives).items() if not seen} == CONTROLS
    assert files.keys() | archives.keys() == planted(CorpusParams())


def test_each_filter_has_a_file_that_it_drops() -> None:
    """A file over the limit of `too_large` would cost more than all others together; its audit judges sizes."""
    outcomes = {outcome for canary in file_canaries._plant(ScrubParams()) for outcome in canary.outcomes}

    assert set(FILTERS.names) - outcomes == {"too_large"}


def test_each_detector_that_is_on_has_a_file_and_one_that_finds_nothing_shows(tmp_path: Path) -> None:
    rings = example("// {}", ("ring_bell",))
    blind = Detector("ring", lambda text: (), "ring", rings)
    switched_off = Detector("bell", lambda text: (), "ring", rings, param="redact_author_names")
    with DETECTORS.registered(blind), DETECTORS.registered(switched_off):
        caught = send_files(tmp_path, CorpusParams())

    assert {f"canary-secrets/{each.name}.cpp" for each in DETECTORS if each.is_on(ScrubParams())} <= caught.keys()
    assert {name for name, seen in caught.items() if not seen} - CONTROLS == {"canary-secrets/ring.cpp"}
    assert "canary-secrets/bell.cpp" not in caught


def test_no_limit_of_a_recipe_misses_one(tmp_path: Path) -> None:
    names = ("duplicates.min_jaccard_between_sources=0.95", "filters.max_longest_line=120", "scrub.redact_emails=false")
    layers = (setting(f"normalize.{name}") for name in (*names, "filters.max_num_bytes=20000"))
    caught = send_files(tmp_path / "files", recipe_of("tiny", *layers).params)

    assert {name for name, seen in caught.items() if not seen} == CONTROLS & caught.keys()


def test_a_threshold_that_was_moved_lets_the_near_twin_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    moved = DuplicateParams(min_jaccard_between_sources=0.75)
    monkeypatch.setattr(sound_sources, "DuplicateParams", lambda: moved)
    caught = send_files(tmp_path / "files", CorpusParams())

    assert {name for name, seen in caught.items() if not seen} - CONTROLS == {"canary-twins/near_copy.cpp"}


@pytest.mark.parametrize(
    ("limit", "path"),
    [
        ("max_numeric_fraction", "numbers.c"),
        ("max_string_fraction", "strings.c"),
        ("max_table_fraction", "rows.c"),
        ("max_foreign_line_fraction", "script.c"),
        ("max_generated_markers", "parser.c"),
    ],
)
def test_a_filter_that_drops_nothing_misses_its_blob(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, path: str
) -> None:
    tables = {"max_table_fraction": 1.0} if limit in ("max_numeric_fraction", "max_string_fraction") else {}
    moved = FilterParams().model_copy(update={limit: 1, **tables})
    monkeypatch.setattr(sound_sources, "FilterParams", lambda: moved)
    caught = send_files(tmp_path / "files", CorpusParams())

    assert f"canary-blobs/{path}" in [name for name, seen in caught.items() if not seen]


def test_decisions_that_are_ignored_or_that_cover_every_file_are_seen(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    missed = {}
    for name, is_matched in (("none", False), ("all", True)):
        monkeypatch.setattr(Decision, "matches", lambda self, path, found=is_matched: found)
        monkeypatch.setattr(Decision, "is_glob", True)
        caught = send_files(tmp_path / name, CorpusParams())
        missed[name] = {name.partition("/")[2] for name in caught.keys() - CONTROLS if not caught[name]}

    assert missed["none"] == {"released.cpp", "concluded.cpp", "refused.cpp", "waived.cpp"}
    assert {"concluded.cpp", "not_waived.cpp"} <= missed["all"]


def test_a_canary_that_is_lost_is_missed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(file_canaries, "_outcomes", lambda build: {})

    assert not any(send_files(tmp_path / "files", CorpusParams()).values())


def test_a_scrubber_that_finds_no_secret_misses_every_planted_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from pipeline.stages.normalize.scrub.scrub import Scrubber

    monkeypatch.setattr(Scrubber, "_find", lambda self, path, text, waived: [])
    caught = send_files(tmp_path / "files", CorpusParams())
    of_secrets = {name for name in caught if name.startswith("canary-secrets/")} | {"canary-licenses/secret.cpp"}
    of_secrets |= {"canary-decided/waived.cpp", "canary-decided/not_waived.cpp"}

    assert {name for name, seen in caught.items() if not seen} - CONTROLS == of_secrets


def test_a_secret_in_a_path_that_nobody_looks_at_is_missed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(ShownText, "holds_secret", lambda self, name: False)
    caught = send_files(tmp_path / "files", CorpusParams())
    missed = {name for name, seen in caught.items() if not seen} - CONTROLS

    assert len(missed) == 2
    assert all(name.startswith("canary-secrets/withheld-path-sha256:") for name in missed)
