"""`train` refuses what it cannot do in one sentence, before it makes anything, and names a damaged file."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from pipeline.core.errors import TrainingError
from pipeline.store.bundles.export_bundle import export_bundle
from pipeline.store.fsck import fsck
from pipeline.store.snapshot import open_snapshot
from pipeline.store.store import Store
from tests.faults.injected_faults import flip
from tests.trainer.cli.conftest import Command
from trainer.__main__ import build_parser, main
from trainer.cli.snapshot_names import import_data
from trainer.config.choices import AttentionChoice, CompileBackend, CompileMode, Precision
from trainer.train.determinism import ENVIRONMENT_VARIABLES


def test_a_step_without_compilation_loads_neither_the_compiler_nor_pandas(tiny_store: Store) -> None:
    line = ["smoke", "--store", str(tiny_store.root), "--snapshot", str(tiny_store.ref("tiny", "live")), "--json"]
    code = f"import sys; from trainer.__main__ import main; assert main({line!r}) == 0; print(*sorted(sys.modules))"
    environment = {**os.environ, **ENVIRONMENT_VARIABLES}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    loaded = done.stdout.splitlines()[-1].split()

    assert "torch" in loaded
    assert {"torch._dynamo", "torch.distributed.fsdp", "sympy", "pandas"} & set(loaded) == set()


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--seed", "-1"],
        ["--seed", str(2**63)],
        ["--workers", "-1"],
        ["--workers", "1000"],
        ["--stop-after", "0"],
        ["--stop-after", "ten"],
        ["--save-every", "-1"],
        *([option, ""] for option in ("--init-from", "--resume", "--run", "--corpus", "--snapshot", "--follow")),
    ],
)
def test_wrong_usage_is_exit_code_2_and_one_json_value(command: Command, tmp_path: Path, arguments: list[str]) -> None:
    code, answer = command("train", *arguments, *(["--out", str(tmp_path / "out")] if arguments else []))

    assert (code, answer["error"]) == (2, "UsageError")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--run", "a/b"], "run 'a/b': it is not a valid name"),
        (["--run", "../x"], "run '../x': it is not a valid name"),
        (["--corpus", "../x"], "corpus '../x': it is not a valid name"),
        (["--snapshot", "live?"], "it is not an id"),
        (["--mix", "tiny=1"], "--corpus is given too"),
        (["--recipe", "huge"], "expected one of tiny, small, base, nam52, nam56r"),
    ],
)
def test_odd_values_are_refused_by_name(command: Command, tmp_path: Path, arguments: list[str], message: str) -> None:
    code, answer = command("train", "--corpus", "tiny", "--out", str(tmp_path / "out"), *arguments)

    assert code == 1
    assert message in answer["message"]
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("device", ["tpu", "meta", "cuda:", "cuda:x", "cuda:99", "cuda"])
def test_a_device_that_is_missing_is_named(command: Command, copied: Store, tmp_path: Path, device: str) -> None:
    if device in ("cuda", "cuda:") and torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    code, answer = command(
        "train", "--corpus", "tiny", "--out", str(tmp_path / "out"), "--device", device, store=copied.root
    )

    assert code == 1
    assert f"device {device}" in answer["message"].replace("'", "")
    assert not (tmp_path / "out").exists()


def test_a_build_that_a_gate_blocked_is_named_before_it_is_trained_on(
    command: Command, copied: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = ["train", "--corpus", "tiny", "--snapshot", "last", "--out", str(tmp_path / "out"), "--device", "cuda:99"]
    main([*line, "--store", str(copied.root)])
    promoted = capsys.readouterr().err
    for name in ("candidate", "live"):
        copied.remove_ref("tiny", name, "as if it had never been one")
    main([*line, "--store", str(copied.root)])

    assert "blocked" not in promoted
    assert (
        "neither live nor candidate: `python -m pipeline show --corpus tiny --of last` names the gate"
        in capsys.readouterr().err
    )


def test_an_attention_backend_that_cannot_run_here_is_refused(command: Command, copied: Store, tmp_path: Path) -> None:
    line = ["train", "--corpus", "tiny", "--out", str(tmp_path / "out"), "--attention", "flex"]
    code, answer = command(*line, store=copied.root)

    assert code == 1
    assert "attention flex: the device is cpu; expected a CUDA device" in answer["message"]
    assert "--attention math" in answer["message"]
    assert not (tmp_path / "out").exists()


def test_a_place_that_cannot_be_written_is_one_json_value(command: Command, copied: Store, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    out = str(tmp_path / "file" / "out")
    code, answer = command("train", "--corpus", "tiny", "--stop-after", "1", "--out", out, store=copied.root)

    assert code == 1
    assert "Not a directory" in answer["message"]


def test_a_second_training_of_one_run_is_refused_and_names_the_first(
    command: Command, copied: Store, tmp_path: Path
) -> None:
    with copied.writer("runs/mine", "training mine"):
        code, answer = command(
            "train", "--corpus", "tiny", "--run", "mine", "--out", str(tmp_path / "out"), store=copied.root
        )

    assert code == 1
    assert "run mine: it is being written by training mine" in answer["message"]


def test_a_run_of_other_inputs_begins_anew_only_if_told(
    command: Command, trained: tuple[Path, str], tmp_path: Path
) -> None:
    root, checkpoint_id = trained
    line = [
        "train",
        "--corpus",
        "tiny",
        "--run",
        "one",
        "--stop-after",
        "1",
        "--seed",
        "7",
        "--out",
        str(tmp_path / "out"),
    ]
    code, answer = command(*line, store=root)

    assert (code, answer["error"]) == (1, "TrainingError")
    assert f"checkpoint {checkpoint_id[:12]} is of another configuration: seed was 42, is now 7;" in answer["message"]
    copy = shutil.copytree(root, tmp_path / "copied")
    assert command(*line, "--restart", store=copy)[0] == 0


@pytest.mark.parametrize("line", ["no json", "[]", "{}", '{"step": "one"}', "\udcff"])
def test_a_broken_line_of_metrics_is_dropped(command: Command, copied: Store, tmp_path: Path, line: str) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "metrics.jsonl").write_text(f"{line}\n", errors="surrogateescape")
    code, _ = command("train", "--corpus", "tiny", "--stop-after", "1", "--out", str(out), store=copied.root)

    assert code == 0
    assert [json.loads(text)["step"] for text in (out / "metrics.jsonl").read_text().splitlines()] == [1]


@pytest.mark.parametrize(
    "name", ["parameters-layers.1.safetensors", "optimizer-small.safetensors", "history.safetensors", "state.json"]
)
@pytest.mark.parametrize("damage", ["flipped", "empty", "gone"])
def test_a_damaged_checkpoint_is_refused_and_its_file_named(
    command: Command, trained: tuple[Path, str], tmp_path: Path, name: str, damage: str
) -> None:
    root, checkpoint_id = trained
    place = Store(root).read(checkpoint_id).path / name
    content = place.read_bytes()
    try:
        if damage == "gone":
            place.unlink()
        else:
            flipped = bytes([content[0] ^ 1]) + content[1:]
            place.write_bytes(b"" if damage == "empty" else flipped)
        line = ["train", "--corpus", "tiny", "--run", "one", "--stop-after", "2", "--out", str(tmp_path / "out")]
        code, answer = command(*line, "--resume", "latest", store=root)
    finally:
        place.write_bytes(content)

    assert (code, answer["error"]) == (1, "DamagedError")
    assert name in answer["message"]


def _files_of(store: Store) -> list[Path]:
    """Return the training rows of the first two sources that have some."""
    snapshot = open_snapshot(store, store.ref("tiny", "live") or "")
    sources = [source for source in snapshot.sources if source.num_rows_train]
    folders = [store.read(source.rows).path for source in sources[:2]]
    return [next(path for path in sorted(folder.iterdir()) if path.name.startswith("rows_train")) for folder in folders]


def _swap(path: Path, other: Path) -> None:
    first, second = path.read_bytes(), other.read_bytes()
    path.write_bytes(second)
    other.write_bytes(first)


DAMAGES_OF_ROWS: dict[str, Callable[[Path, Path], object]] = {
    "truncated": lambda path, _: path.write_bytes(path.read_bytes()[:-64]),
    "flipped": lambda path, _: flip(path),
    "swapped": _swap,
    "empty": lambda path, _: path.write_bytes(b""),
    "gone": lambda path, _: path.unlink(),
}


@pytest.mark.parametrize("damage", DAMAGES_OF_ROWS)
def test_a_damaged_shard_is_named_and_no_step_is_taken(
    command: Command, copied: Store, tmp_path: Path, damage: str
) -> None:
    first, second = _files_of(copied)
    DAMAGES_OF_ROWS[damage](first, second)
    for line in (["train", "--out", str(tmp_path / "out"), "--stop-after", "1"], ["observe"]):
        code, answer = command(*line, "--corpus", "tiny", store=copied.root)
        assert code == 1
        assert first.name in answer["message"]
    assert not (tmp_path / "out" / "metrics.jsonl").exists()


def test_every_seed_is_in_the_result_and_the_checkpoint(command: Command, copied: Store, tmp_path: Path) -> None:
    line = ["train", "--corpus", "tiny", "--out", str(tmp_path / "out"), "--stop-after", "1", "--seed", "77"]
    assert command(*line, store=copied.root)[0] == 0
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    assert result["seeds"] == {"global": 77, "weights": 77, "loader": 77}
    state = json.loads((copied.read(result["checkpoint_id"]).path / "state.json").read_text())
    assert (state["identity"]["seed"], state["loader"]["seed"]) == (77, 77)


def test_the_choices_of_an_argument_are_those_of_the_configuration() -> None:
    train = next(action for action in build_parser()._actions if action.choices).choices["train"]  # type: ignore[union-attr]
    choices = {action.dest: action.choices for action in train._actions}
    enums = {
        "dtype": Precision,
        "attention": AttentionChoice,
        "compile": CompileMode,
        "compile_backend": CompileBackend,
    }

    assert {name: tuple(choices[name]) for name in enums} == {name: tuple(enum) for name, enum in enums.items()}


PIPELINES_OWN = (
    *("dagster", "duckdb", "tree_sitter", "detect_secrets", "numba", "re2", "license_expression", "tokenizers", "rich"),
    *(f"pipeline.{room}" for room in ("build", "cli", "export", "lexing", "lineage", "pins", "stages")),
)
"""Libraries and rooms that a machine which only trains may lack."""


def test_a_bundle_is_trained_on_without_the_pipelines_libraries_as_its_snapshot_is(
    trained: tuple[Path, str], tmp_path: Path
) -> None:
    store, checkpoint_id = Store(trained[0]), trained[1]
    snapshot = open_snapshot(store, store.ref("tiny", "live") or "")
    export_bundle(snapshot, tmp_path / "rows.bundle", "# A card", is_rows_only=True)
    line = ["train", "--data", str(tmp_path / "rows.bundle"), "--run", "one", "--stop-after", "1"]
    line += ["--out", str(tmp_path / "out"), "--store", str(tmp_path / "store")]
    missing = f"import sys; sys.modules |= dict.fromkeys({PIPELINES_OWN!r})"
    code = f"{missing}; from trainer.__main__ import main; sys.exit(main({line!r}))"
    environment = {**os.environ, **ENVIRONMENT_VARIABLES}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
    other = Store(tmp_path / "store")
    assert other.ref("runs/one", "latest") == checkpoint_id
    assert other.ref("imported", "candidate") == snapshot.snapshot_id
    assert fsck(other) == []


def test_a_bundle_is_judged_by_what_is_withdrawn_before_it_is_stored(
    trained: tuple[Path, str], store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    built, bundle = Store(trained[0]), tmp_path / "rows.bundle"
    export_bundle(open_snapshot(built, built.ref("tiny", "live") or ""), bundle, "# A card", is_rows_only=True)
    store.log_withdrawal("lantern/src/**", "its owner asked")

    line = ["train", "--data", str(bundle), "--out", str(tmp_path / "out"), "--store", str(store.root)]
    assert main(line) == 1
    assert "documents are withdrawn by lantern/src/**" in " ".join(capsys.readouterr().err.split())
    assert [*store.root.glob("objects/*/*/*")] == []
    store.log_withdrawal("lantern/src/**", "a mistake", is_undone=True)
    digest = f"sha256:{'a' * 64}"
    store.log_withdrawal(digest, "its owner asked")
    with pytest.raises(
        TrainingError, match=r"nothing in the store tells whether it holds what sha256:aaaa.*whole bundle"
    ):
        import_data(store, bundle, ())
    store.log_withdrawal(digest, "a mistake", is_undone=True)
    store.log_withdrawal("elsewhere", "its owner asked")
    assert import_data(store, bundle, ()) == built.ref("tiny", "live")
