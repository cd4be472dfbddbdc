"""A run that follows a ref repeats exactly: stopped anywhere, resumed, or repeated after the ref has moved on."""

import json
import math
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from pipeline.core.durable import write_synced
from pipeline.core.params import canonical_json
from pipeline.formats.snapshot_json import SNAPSHOT_FILE
from pipeline.store.snapshot import open_snapshot
from pipeline.store.store import Store
from tests.support.made.made_rows import CONFIG, LAYOUT, place_at, sources_of
from trainer.__main__ import main
from trainer.checkpoint.checkpoint import load
from trainer.checkpoint.stored_state import read_state
from trainer.data.loader import Loader, Source, Start
from trainer.data.small_snapshot import shorten
from trainer.train import child_session

STEPS = 12
SAME = (*child_session.SAME, "loader", "adoptions")


@pytest.fixture(scope="module")
def store(tiny_store: Store, tmp_path_factory: pytest.TempPathFactory) -> Store:
    root = tmp_path_factory.mktemp("following") / "store"
    shutil.copytree(tiny_store.root, root)
    return Store(root)


@pytest.fixture(scope="module")
def snapshots(store: Store) -> list[str]:
    """Of 3, 4 and 2 rows a source."""
    return [shorten(store, store.ref("tiny", "live") or "", num_rows) for num_rows in (3, 4, 2)]


def point(store: Store, snapshot_id: str) -> None:
    store.move_ref("tiny", "live", store.ref("tiny", "live"), snapshot_id, "a test")


def train(store: Store, run: str, stop_after: int, *more: str, out: str = "") -> dict[str, Any]:
    folder = store.root / "out" / (out or run)
    corpus = [] if "--mix" in more else ["--corpus", "tiny"]
    line = ["train", "--store", str(store.root), *corpus, "--run", run, "--out", str(folder)]
    assert main([*line, "--stop-after", str(stop_after), "--save-every", "50", *more]) == 0
    answer: dict[str, Any] = json.loads((folder / "result.json").read_text())
    return answer


def metrics_of(store: Store, run: str) -> dict[int, dict[str, Any]]:
    lines = (store.root / "out" / run / "metrics.jsonl").read_text().splitlines()
    return {line["step"]: line for line in map(json.loads, lines)}


@pytest.fixture(scope="module")
def straight(store: Store, snapshots: list[str]) -> dict[str, Any]:
    """Begun with the first snapshot; the ref names the second when the epoch turns, and never moves."""
    point(store, snapshots[1])
    return train(store, "straight", STEPS, "--snapshot", snapshots[0], "--follow", "live")


def test_the_snapshot_is_adopted_with_the_first_batch_after_the_epoch(
    store: Store, snapshots: list[str], straight: dict[str, Any]
) -> None:
    num_rows = sum(source.num_rows_train for source in open_snapshot(store, snapshots[0]).sources)
    step = math.ceil(num_rows / 4)
    adopted = {"position": 4 * step, "old": snapshots[0], "new": snapshots[1]}

    assert straight["adoptions"] == [adopted]
    assert straight["snapshot_id"] == snapshots[0]
    assert [
        (number, line["adopted"]) for number, line in metrics_of(store, "straight").items() if "adopted" in line
    ] == [(step, adopted)]
    assert len(json.dumps(straight["loader"])) < 200
    alone = train(store, "alone", step + 1, "--snapshot", snapshots[0])
    assert alone["losses"][:step] == straight["losses"][:step]
    assert alone["losses"][step] != straight["losses"][step]


def test_interrupted_resumed_and_repeated_after_the_ref_moved_is_the_same_run(
    store: Store, snapshots: list[str], straight: dict[str, Any]
) -> None:
    point(store, snapshots[1])
    early = train(store, "stopped", 1, "--snapshot", snapshots[0], "--follow", "live")
    step = straight["adoptions"][0]["position"] // 4
    train(store, "stopped", step, "--follow", "live", "--resume", "latest")
    point(store, snapshots[2])  # a recorded adoption is not read from the ref again
    again = train(store, "stopped", STEPS, "--follow", straight["checkpoint_id"], "--resume", "latest")
    from_early = ["--follow", "live", "--resume", early["checkpoint_id"]]
    after_record = train(store, "stopped", STEPS, *from_early, out="from-early")
    repeated = train(store, "repeated", STEPS, "--follow", straight["checkpoint_id"])

    for found in (again, after_record, repeated):
        assert {name: found[name] for name in SAME} == {name: straight[name] for name in SAME}


def test_a_ref_that_moves_again_is_adopted_at_the_next_turn(
    store: Store, snapshots: list[str], straight: dict[str, Any]
) -> None:
    point(store, snapshots[2])
    later = train(store, "straight", STEPS * 2, "--follow", "live", "--resume", "latest", out="later")
    assert [adoption["new"] for adoption in later["adoptions"]] == snapshots[1:]
    kept = store.read(later["checkpoint_id"]).manifest.inputs.values()
    assert set(kept) == set(snapshots), "what a checkpoint has read must not be reclaimed"
    assert read_state(store.read(later["checkpoint_id"]))["adoptions"] == later["adoptions"]
    assert load(store, later["checkpoint_id"]).identity["snapshot_id"] == snapshots[0]


def test_resumed_under_another_name_or_set_back_it_repeats_what_was_adopted_since(
    store: Store, snapshots: list[str], straight: dict[str, Any], capfd: pytest.CaptureFixture[str]
) -> None:
    point(store, snapshots[1])
    train(store, "begun", 1, "--snapshot", snapshots[0], "--follow", "live")
    train(store, "begun", STEPS, "--follow", "live", "--resume", "latest", out="begun-more")
    point(store, snapshots[2])
    from_first, said_before = ["--resume", "begun@1"], capfd.readouterr().err
    other = train(store, "other", STEPS, "--follow", "live", *from_first)
    said = capfd.readouterr().err
    not_following = train(store, "not-following", STEPS, "--snapshot", snapshots[0], *from_first)
    train(store, "stepwise", 2, "--follow", "live", *from_first)
    stepwise = train(store, "stepwise", STEPS, "--follow", "live", "--resume", "latest", out="stepwise-more")
    train(store, "begun", 2, "--follow", "live", *from_first, out="set-back")
    set_back = train(store, "begun", STEPS, "--follow", "live", "--resume", "latest", out="set-back-more")

    for found in (other, not_following, stepwise, set_back):
        assert {name: found[name] for name in SAME} == {name: straight[name] for name in SAME}
    assert "adopts" not in said_before
    record = f"{snapshots[1][:12]} at position {straight['adoptions'][0]['position']}"
    assert f"adopts {record}, as {straight['checkpoint_id'][:12]} of run begun records, and a ref only after it" in said
    later = train(store, "other", STEPS * 2, "--follow", "live", "--resume", "latest", out="other-later")
    assert [adoption["new"] for adoption in later["adoptions"]] == snapshots[1:], "after the record the ref is read"


def test_a_checkpoint_from_which_runs_went_on_apart_is_resumed_by_the_name_of_one(
    store: Store, snapshots: list[str], straight: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    point(store, snapshots[1])
    early = train(store, "apart", 1, "--snapshot", snapshots[0], "--seed", "7")
    train(store, "apart", STEPS, "--snapshot", snapshots[0], "--seed", "7", "--resume", "latest", out="apart-more")
    train(store, "parted", 1, "--snapshot", snapshots[0], "--seed", "7", "--follow", "live")
    parted = train(store, "parted", STEPS, "--seed", "7", "--follow", "live", "--resume", "latest", out="parted-more")
    capsys.readouterr()
    folder = store.root / "out" / "undecided"
    line = ["train", "--store", str(store.root), "--corpus", "tiny", "--run", "undecided", "--out", str(folder)]
    line += ["--stop-after", str(STEPS), "--seed", "7", "--follow", "live", "--json"]
    assert main([*line, "--resume", early["checkpoint_id"]]) == 1
    message = json.loads(capsys.readouterr().out)["message"]
    assert "run apart went on from it and adopted nothing; run parted went on from it and adopted" in message
    assert "--resume apart@1 or --resume parted@1" in message
    assert not folder.exists()
    named = train(store, "undecided", STEPS, "--seed", "7", "--follow", "live", "--resume", "parted@1")
    assert {name: named[name] for name in SAME} == {name: parted[name] for name in SAME}


@pytest.mark.parametrize(
    ("field", "message"), [("row_length", "its row length is 64"), ("vocabulary", "its vocabulary is ffff")]
)
def test_a_snapshot_that_does_not_fit_is_named_and_the_run_continues_with_its_own(
    store: Store, snapshots: list[str], field: str, message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    stored = open_snapshot(store, snapshots[1]).stored
    content = stored.json(SNAPSHOT_FILE)
    content[field] = 64 if field == "row_length" else {**content["vocabulary"], "sha256": "f" * 64}
    with store.writer("other", "a test") as scratch:
        (scratch / "snapshot").mkdir()
        write_synced(scratch / "snapshot" / SNAPSHOT_FILE, canonical_json(content))
        point(store, store.commit(scratch / "snapshot", stored.manifest.kind, {"of": field}, {}))
    found = train(store, f"other-{field}", 5, "--snapshot", snapshots[0], "--follow", "live")
    alone = train(store, f"alone-{field}", 5, "--snapshot", snapshots[0])

    assert found["adoptions"] == []
    assert found["checkpoint_id"] == alone["checkpoint_id"]
    assert message in capfd.readouterr().err
    assert any(message in line.get("refused", "") for line in metrics_of(store, f"other-{field}").values())


def test_the_epoch_changes_when_the_slowest_source_was_read_once_more() -> None:
    heavy, light = sources_of(heron=10, lantern=10)
    loader = Loader([Source("heron", heavy.rows, 3.0), light], LAYOUT, CONFIG)
    read: Counter[tuple[int, int]] = Counter()
    for position in range(130):
        counts = [read[source, row] for source in range(2) for row in range(10)]
        assert loader.finished_epochs(position) == min(counts)
        sample = place_at(loader, position)
        read[sample.source, sample.row] += 1
        assert loader.started_epochs(position + 1) == max(read.values())


def test_an_adopted_snapshot_continues_counting_epochs_from_its_position() -> None:
    sources = sources_of(heron=23, quarry=700)
    first, adopted = Loader(sources, LAYOUT, CONFIG), Loader(sources, LAYOUT, CONFIG, start=Start(1001, 2))
    assert {origin.epoch for origin in adopted.batch_at(1001, 723).row_origins} == {3}
    beside = first.batch_at(2 * 723, 723)  # the same epoch of the same rows, without an adoption
    assert adopted.batch_at(1001, 723).row_origins == beside.row_origins
    assert adopted.batch_at(1001 + 600, 9).row_origins == beside.row_origins[600:609]
    assert adopted.mixture_digest != first.mixture_digest
    with pytest.raises(Exception, match="at 1001 or later"):
        adopted.batch_at(1000, 4)


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        (["--mix", "tiny=0"], "its weight is 0; expected"),
        (["--mix", "tiny=-1"], "its weight is -1"),
        (["--mix", "tiny=nan"], "its weight is nan"),
        (["--mix", "tiny=inf"], "its weight is inf"),
        (["--mix", "tiny"], "its weight is tiny"),
        (["--mix", "tiny="], "its weight is missing"),
        (["--mix", "tiny=1", "--mix", "tiny/live=2"], "named twice"),
        (["--mix", "tiny/newest=1"], "no ref newest"),
        (["--mix", "nowhere=1"], "snapshot live of corpus nowhere"),
        (["--mix", "tiny=1", "--follow", "live"], "expected --mix alone"),
        (["--follow", "f" * 64], "not in the store"),
        (["--follow", "newest"], "it is not an id"),
    ],
)
def test_what_cannot_be_meant_is_refused_by_name(
    store: Store, tmp_path: Path, more: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    line = ["train", "--store", str(store.root), "--out", str(tmp_path / "out"), "--json"]
    assert main([*line, *more]) == 1
    assert reason in json.loads(capsys.readouterr().out)["message"]
    assert not (tmp_path / "out").exists()


def test_a_mixture_is_part_of_what_a_run_is(store: Store, snapshots: list[str]) -> None:
    mixed = ["--mix", f"{snapshots[1]}=0.25", "--mix", f"{snapshots[2]}=1"]
    whole = train(store, "mixed", 4, *mixed, "--evaluate-every", "2")
    half = train(store, "mixed-stopped", 2, *mixed)
    resumed = train(store, "mixed-stopped", 4, *mixed[2:], *mixed[:2], "--resume", half["checkpoint_id"])

    assert {name: resumed[name] for name in SAME} == {name: whole[name] for name in SAME}
    assert whole["mixture"] == {snapshots[1]: 0.25, snapshots[2]: 1.0}
    inputs = store.read(whole["checkpoint_id"]).manifest.inputs
    assert set(inputs.values()) == {*snapshots[1:]}
    line = ["train", "--store", str(store.root), "--run", "mixed", "--out", str(store.root / "out" / "other")]
    assert main([*line, "--resume", "latest", *mixed[:2], "--mix", f"{snapshots[2]}=2"]) == 1
