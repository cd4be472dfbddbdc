"""Environments of other projects: declared once, pinned, with rows and tests that exist; and what a row says without one."""

from pathlib import Path

import pytest

from tests.benchmarks import __main__ as benchmarks
from tests.benchmarks.figure import NOT_MEASURED, Figure
from tests.benchmarks.pipeline import same_blocks
from tests.benchmarks.pipeline.duplicates import near_duplicates, signatures
from tests.benchmarks.trainer import reading
from tests.tools import other_environments
from tests.tools.other_environments import CONSUMERS, PEERS, ROOT, OtherEnvironment, make, peer_python


def test_every_package_is_pinned_and_serves_a_row_or_a_test() -> None:
    for environment in [*PEERS, *CONSUMERS]:
        assert environment.used_by
        assert all("==" in requirement for requirement in environment.requirements)
    assert {row for peer in PEERS for row in peer.used_by} <= set(benchmarks.BENCHMARKS)
    assert all((ROOT / test).exists() for consumer in CONSUMERS for test in consumer.used_by)


def test_a_registered_peer_of_the_loader_gets_a_row_and_is_named_to_be_made() -> None:
    with PEERS.registered(OtherEnvironment("planted", ("planted==1.0",), ("loader",))):
        assert "planted" in reading.peers_of_loader()
        assert reading.beside_peers(1e6, {"planted": None})[0].peer == "planted==1.0: not installed: make peers"


def test_an_environment_counts_only_when_it_was_made_whole_and_with_these_pins(tmp_path: Path) -> None:
    place = tmp_path / ".peers" / "rensa"
    (place / "bin").mkdir(parents=True)
    assert peer_python("rensa", tmp_path) is None
    (place / "pins.txt").write_text("rensa==0.0.1\n")
    assert peer_python("rensa", tmp_path) is None
    (place / "pins.txt").write_text("\n".join(PEERS["rensa"].requirements) + "\n")
    assert peer_python("rensa", tmp_path) == place / "bin/python"


def test_a_package_that_no_python_here_can_hold_is_reported(tmp_path: Path) -> None:
    environment = OtherEnvironment("old", ("old==1",), ("loader",), python="2.1")

    assert "no python2.1 was found" in make(tmp_path, environment)
    assert not (tmp_path / "old").exists()


def test_a_row_without_its_peer_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (same_blocks, signatures, near_duplicates):
        monkeypatch.setattr(module, "peer_python", lambda name: None)
    monkeypatch.setattr(same_blocks, "sample", lambda *_: ["int a;"])
    monkeypatch.setattr(same_blocks, "_ours", lambda texts: 1.0)
    (blocks,) = same_blocks.same_blocks()
    rensa = signatures._rensa([], 1.0)
    beside = near_duplicates._beside("near-duplicates/quick/0.8-1/text-dedup", "of 2 pairs", set(), None, 1.0)

    for figure in (blocks, rensa, beside):
        assert figure.holds is None
        assert figure.as_json()["holds"] == NOT_MEASURED
        assert f"| {NOT_MEASURED} |" in benchmarks._row(figure)
        assert "yes" not in benchmarks._row(figure)
        assert "make peers" in (figure.peer or "")
    assert rensa.value is beside.value is None


def test_the_best_peer_is_claimed_of_all_and_missed_by_one() -> None:
    holds = {
        name: [figure.holds for figure in reading.beside_peers(10.0, peers)]
        for name, peers in {
            "all": {"torchdata": 1.0, "litdata": 2.0},
 "one absent": {"torchdata": 1.0, "litdata": None}, "missed": {"torchdata": 5.0, "litdata": None}
        }.items()
    }  # fmt: skip

    assert holds == {"all": [True, True], "one absent": [None, None], "missed": [False, None]}


def test_a_figure_that_is_not_measured_neither_holds_nor_misses(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    figures = {"loss": None, "graph": True, "packing": False}
    for name, holds in figures.items():
        monkeypatch.setitem(benchmarks.BENCHMARKS, name, lambda holds=holds: [Figure("x", 1.0, "s", "< 2", holds)])
    codes = {}
    for name in figures:
        monkeypatch.setattr("sys.argv", ["benchmarks", name, "--json"])
        codes[name] = benchmarks.main()

    assert codes == {"loss": 0, "graph": 0, "packing": 1}
    assert '"holds": "not measured"' in capsys.readouterr().out


def test_peers_that_are_made_are_below_a_folder_that_git_ignores() -> None:
    ignored = (ROOT / ".gitignore").read_text().splitlines()

    assert {".peers/", ".consumers/"} <= set(ignored)
    assert other_environments.find_python("2.1") is None
