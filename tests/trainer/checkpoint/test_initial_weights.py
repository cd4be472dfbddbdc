"""A run begins with the weights of a checkpoint or of its export, and every checkpoint after it names what shaped them."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from pipeline.core.errors import SluiceError, TrainingError
from pipeline.store.fsck import fsck
from pipeline.store.log import Holding
from pipeline.store.snapshot import open_snapshot
from pipeline.store.store import Store
from tests.support.made.made_snapshot import commit_extended, commit_made
from trainer.checkpoint.checkpoint import load
from trainer.checkpoint.initial_weights import InitialWeights, open_weights, read_spellings, refuse_other_vocabulary
from trainer.checkpoint.stored_state import open_stored, training_place
from trainer.checkpoint.tensor_files import digest_tensors
from trainer.config.training_config import TrainingConfig, training_recipe
from trainer.inference.transformers_export import export_model
from trainer.proof.rerun import inputs_of, start_again
from trainer.train.loop import train
from trainer.train.session import RunInputs, TrainSession

TINY = training_recipe("tiny")
NUM_MORE = 3


class Line(NamedTuple):
    """A store with two snapshots, the second of a larger vocabulary, and three runs, each with the weights of the one before."""

    store: Store
    snapshots: tuple[str, str]
    parent: dict[str, Any]
    child: dict[str, Any]
    grandchild: dict[str, Any]
    folder: Path


def session(snapshot_id: str, run: str, out: Path, init_from: str | None = None, **changes: Any) -> TrainSession:
    config = TrainingConfig.model_validate({**dict(TINY), **changes})
    return TrainSession(RunInputs(snapshot_id, config, 42), "tiny", 2, 2, out / run, run=run, init_from=init_from)


@pytest.fixture(scope="module")
def line(tmp_path_factory: pytest.TempPathFactory) -> Line:
    root = tmp_path_factory.mktemp("initial")
    store = Store(root / "store")
    first, second = commit_made(store), commit_extended(store, NUM_MORE)
    parent = train(store, session(first, "parent", root))
    child = train(store, session(second, "child", root, "parent@2", batch_rows=2))
    grandchild = train(store, session(second, "grandchild", root, child["checkpoint_id"]))
    export_model(store, parent["checkpoint_id"], root / "folder")
    return Line(store, (first, second), parent, child, grandchild, root / "folder")


def test_a_run_begins_with_the_weights_and_at_step_zero(line: Line, tmp_path: Path) -> None:
    began = start_again(line.store, load(line.store, line.child["checkpoint_id"]))
    again = train(line.store, session(line.snapshots[0], "same", tmp_path, line.parent["checkpoint_id"]))
    began.begin_with(open_weights(line.store, line.parent["checkpoint_id"]))

    assert (began.num_steps, began.position) == (0, 0)
    before, after = load(line.store, line.parent["checkpoint_id"]).parameters, began.model.state_dict()
    for name, value in before.items():
        assert torch.equal(after[name][: len(value)] if value.ndim else after[name], value), name
    assert again["losses"][0] != line.parent["losses"][0]
    assert again["initial"]["parameters_sha256"] == line.parent["parameters_sha256"]


def test_an_export_is_the_same_weights_as_its_checkpoint(line: Line, tmp_path: Path) -> None:
    by_folder = train(line.store, session(line.snapshots[1], "folder", tmp_path, str(line.folder), batch_rows=2))

    for name in ("certificate", "checkpoint_id", "initial"):
        assert by_folder[name] == line.child[name], name


def test_rows_of_more_ids_are_drawn_by_the_seed_and_what_is_known_is_scored_alike(line: Line) -> None:
    weights = open_weights(line.store, line.parent["checkpoint_id"])
    child = load(line.store, line.child["checkpoint_id"])
    grown, other, plain = (start_again(line.store, child) for _ in range(3))
    other.inputs = RunInputs(line.snapshots[1], other.config, 43, initial=weights.initial)
    for each in (grown, other):
        each.begin_with(weights)
    small = start_again(line.store, load(line.store, line.parent["checkpoint_id"]))
    small.model.load_state_dict(dict(load(line.store, line.parent["checkpoint_id"]).parameters))
    ids_BT = torch.randint(20, 1024, (2, 12), generator=torch.Generator().manual_seed(0))
    documents = torch.ones_like(ids_BT)

    assert grown.model.vocabulary_size == 1024 + NUM_MORE
    assert torch.equal(grown.model.embedding_VD[1024:], plain.model.embedding_VD[1024:])
    assert not torch.equal(grown.model.embedding_VD[1024:], other.model.embedding_VD[1024:])
    assert torch.equal(grown.model(ids_BT, documents), small.model(ids_BT, documents))


def test_every_snapshot_that_ever_shaped_the_weights_is_named(line: Line) -> None:
    first, second = line.snapshots
    stored = open_stored(line.store, line.grandchild["checkpoint_id"])

    assert training_place(stored).snapshots == {"snapshot": second, f"ancestor/{first}": first}
    assert set(stored.manifest.inputs.values()) == {first, second}
    assert line.grandchild["initial"]["checkpoint_id"] == line.child["checkpoint_id"]
    assert line.store.refs("runs/grandchild")["initialized-from"] == line.child["checkpoint_id"]
    engram = line.grandchild["config"]["model"]["attention"]["engram"]
    assert engram["hash_vocabulary_size"] == 1024, "as the first of them was trained"
    assert inputs_of(load(line.store, line.grandchild["checkpoint_id"])).initial == InitialWeights.of_identity(
        line.grandchild["initial"]
    )


def test_what_was_read_before_a_resume_with_other_rows_is_an_ancestor(line: Line) -> None:
    before = load(line.store, line.parent["checkpoint_id"])
    left = {"mixture": {"b" * 64: 1.0}, "initial": {"snapshots": ["c" * 64]}}
    training = start_again(line.store, before)
    training.restore(replace(before, identity={**before.identity, **left}), {f"mixture.{'b' * 64}": [1.0, None]})

    assert set(training.checkpoint().snapshots.values()) == {line.snapshots[0], "b" * 64, "c" * 64}


def test_an_ancestor_that_is_gone_is_no_damage_of_the_store(line: Line, tmp_path: Path) -> None:
    store = Store(shutil.copytree(line.store.root, tmp_path / "store"))
    before = fsck(store)
    shutil.rmtree(store.read(line.snapshots[0]).path)

    lost = [text for text in fsck(store) if text not in before]
    assert lost
    assert not any(line.grandchild["checkpoint_id"][:12] in text for text in lost)


def test_weights_that_a_withdrawn_snapshot_shaped_are_refused(line: Line, tmp_path: Path) -> None:
    store = Store(shutil.copytree(line.store.root, tmp_path / "store"))
    store.log_withdrawal("made/src/**", "its owner asked", holding=Holding(frozenset({line.snapshots[0]})))

    for name in (line.grandchild["checkpoint_id"], str(line.folder)):
        with pytest.raises(TrainingError, match=r"which shaped its weights, holds what made/src/\*\* withdraws"):
            open_weights(store, name)
    store.log_withdrawal("made/src/**", "a mistake", is_undone=True)
    assert open_weights(store, str(line.folder)).initial.snapshots == (line.snapshots[0],)


def edited(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    def edit(path: Path) -> None:
        content = json.loads(path.read_text())
        change(content)
        path.write_text(json.dumps(content))

    return edit


def with_tensors(change: Callable[[dict[str, Tensor]], Any], fits: bool = True) -> Callable[[Path], None]:
    """Change the tensors, and make their digest fit them."""

    def edit(path: Path) -> None:
        tensors = load_file(str(path))
        change(tensors)
        save_file(tensors, str(path))
        if fits:
            digest = digest_tensors(tensors)
            edited(lambda each: each.update(parameters_sha256=digest))(path.with_name("config.json"))

    return edit


def lie(path: Path) -> None:
    """Let the header claim twice as many rows as there are bytes."""
    content = path.read_bytes()
    path.write_bytes(content.replace(b'"shape":[1024,64]', b'"shape":[2048,64]', 1))


def swap(content: dict[str, Any]) -> None:
    spellings = content["model"]["vocab"]
    one, other = (name for name, number in spellings.items() if number in (400, 401))
    spellings[one], spellings[other] = spellings[other], spellings[one]


NORM, EMBEDDING, WEIGHTS = "norm.weight", "embedding_VD", "model.safetensors"
DAMAGE: dict[str, tuple[str, Callable[[Path], Any], str]] = {
    "pickle": (WEIGHTS, lambda path: path.rename(path.with_name("pytorch_model.bin")), "no model.safetensors"),
    "truncated": (WEIGHTS, lambda path: path.write_bytes(path.read_bytes()[:-5]), "cannot be read as tensors"),
    "empty": (WEIGHTS, lambda path: path.write_bytes(b""), "cannot be read as tensors"),
    "a lie": (WEIGHTS, lie, "cannot be read as tensors"),
    "one less": (
        WEIGHTS,
        with_tensors(lambda each: each.pop(NORM)),
        "it lacks norm.weight; expected the [0-9]+ tensors",
    ),
    "one more": (WEIGHTS, with_tensors(lambda each: each.update(x=torch.ones(1))), "it has also x"),
    "shape": (
        WEIGHTS,
        with_tensors(lambda each: each.update({NORM: torch.ones(63)})),
        r"norm.weight is float32 \[63\]",
    ),
    "rows": (WEIGHTS, with_tensors(lambda each: each.update({EMBEDDING: torch.ones(2000, 64)})), r"\[2000, 64\]"),
    "type": (WEIGHTS, with_tensors(lambda each: each.update({NORM: each[NORM].half()})), "float16.*expected float32"),
    "nan": (
        WEIGHTS,
        with_tensors(lambda each: each[NORM].mul_(torch.nan)),
        "norm.weight holds values that are not fin",
    ),
    "other values": (
        WEIGHTS,
        with_tensors(lambda each: each[NORM].mul_(1.5), fits=False),
        "another program has changed them; expected [0-9a-f]{12}, as its config.json says of checkpoint",
    ),
    "no digest": ("config.json", edited(lambda each: each.pop("parameters_sha256")), "KeyError: 'parameters_sha256'"),
    "no JSON": ("config.json", lambda path: path.write_text("{"), "config.json cannot be used"),
    "nested": ("config.json", lambda path: path.write_text("[" * 100_000), "nested too deep"),
    "no snapshots": ("config.json", edited(lambda each: each.pop("snapshots")), "KeyError: 'snapshots'"),
    "no ids": ("config.json", edited(lambda each: each.update(snapshots=["x"])), "names no model, checkpoint and"),
    "an ancestor less": (
        "config.json",
        edited(lambda each: each.update(snapshots=["d" * 64])),
        "its config.json does not name snapshot [0-9a-f]{12}; expected all that shaped checkpoint [0-9a-f]{12} of this",
    ),
    "kind": ("config.json", edited(lambda each: each.update(model_type="llama")), "names no model, checkpoint and"),
    "other model": (
        "config.json",
        edited(lambda each: each["model"].update(width=32)),
        "it has model.width 32; expected 64",
    ),
    "no model": (
        "config.json",
        edited(lambda each: each.update(model={"depth": 0})),
        "its model is of another version",
    ),
    "vocabulary": ("tokenizer.json", edited(swap), "id 400 is .* there; expected .*, as in the snapshot"),
    "no vocabulary": ("tokenizer.json", lambda path: path.write_text("[]"), "its tokenizer.json is no vocabulary"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_weights_that_cannot_be_used_are_refused_and_nothing_is_written(line: Line, name: str, tmp_path: Path) -> None:
    place, damage, message = DAMAGE[name]
    folder = shutil.copytree(line.folder, tmp_path / "folder")
    damage(folder / place)
    before = kept_in(line.store)

    with pytest.raises(SluiceError, match=message) as raised:
        train(line.store, session(line.snapshots[0], "refused", tmp_path, str(folder)))
    assert raised.value.remedy
    assert kept_in(line.store) == before
    assert not (tmp_path / "refused").exists()


def kept_in(store: Store) -> list[Path]:
    return sorted(path for path in store.root.rglob("*") if not {"locks", "tmp", "compiled"} & set(path.parts))


def test_a_larger_vocabulary_of_the_weights_and_other_merges_are_refused(line: Line, tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="its vocabulary has 1027 ids; expected at most the 1024 of the snapshot"):
        train(line.store, session(line.snapshots[0], "smaller", tmp_path, line.child["checkpoint_id"]))
    spellings = read_spellings(open_snapshot(line.store, line.snapshots[0]).tokenizer_file, "it")
    with pytest.raises(TrainingError, match="merge 0 is "):
        refuse_other_vocabulary("it", spellings, spellings._replace(merges=spellings.merges[1:]))


def test_another_order_of_computing_is_the_same_model(line: Line) -> None:
    weights, snapshot = open_weights(line.store, "parent@2"), open_snapshot(line.store, line.snapshots[0])
    longer = TINY.model.model_copy(update={"max_row_tokens": 8192, "loss_chunk_tokens": 7})

    assert weights.continued(TINY.model_copy(update={"model": longer}), snapshot).model == longer


def test_another_hash_than_that_of_the_weights_is_refused(line: Line) -> None:
    weights, snapshot = open_weights(line.store, "parent@2"), open_snapshot(line.store, line.snapshots[1])
    fields = TINY.model_dump()
    fields["model"]["attention"]["engram"]["hash_vocabulary_size"] = 99

    with pytest.raises(TrainingError, match=r"it has model.attention.engram.hash_vocabulary_size 1024; expected 99"):
        weights.continued(TrainingConfig.model_validate(fields), snapshot)


def test_a_run_resumes_with_its_weights_alone(line: Line, tmp_path: Path) -> None:
    for init_from, expected in (
        (None, r"initial\.[a-z0-9_]+ was .*, is now None"),
        (line.grandchild["checkpoint_id"], "initial"),
    ):
        one = session(line.snapshots[1], "child", tmp_path, init_from, batch_rows=2)
        with pytest.raises(TrainingError, match=expected):
            train(line.store, TrainSession(**{**vars(one), "resume": "latest", "stop_after": 3}))
    assert digest_tensors(load(line.store, line.parent["checkpoint_id"]).parameters) == line.parent["parameters_sha256"]
