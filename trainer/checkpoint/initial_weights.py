"""InitialWeights: what a run begins with in place of drawn values, and every snapshot that ever shaped it.

    checkpoint    an id, or RUN@STEP, of this store
    folder        model.safetensors, config.json and tokenizer.json, as `python -m trainer export` writes them

The values are those of the weights; a larger vocabulary, of which that of the weights is the beginning, adds rows that the run's
seed draws. Optimizer, schedule and data begin anew. Only safetensors and JSON are read; no pickle is ever loaded.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from pydantic import ValidationError
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from pipeline.core.errors import MissingError, TrainingError
from pipeline.core.params import flat, parse_json
from pipeline.store.snapshot import Snapshot, open_snapshot
from pipeline.store.store import Store
from pipeline.store.store_layout import is_id
from trainer.checkpoint.stored_state import (
    checkpoint_id,
    open_stored,
    read_state,
    refuse_withdrawn_weights,
    training_place,
)
from trainer.checkpoint.tensor_files import PARAMETERS, digest_tensors
from trainer.config.model import ModelConfig
from trainer.config.training_config import TrainingConfig
from trainer.model.hybrid import HybridModel
from trainer.model.initialization import ParameterKind, initial_value, parameter_specs

WEIGHTS, CONFIG, TOKENIZER = "model.safetensors", "config.json", "tokenizer.json"
MAY_DIFFER = (
    "loss_chunk_tokens",
    "max_row_tokens",
    "attention.rotary_base",
    "experts.capacity_factor",
    "experts.z_loss_weight",
    "mamba3.chunk_size",
)
"""Fields of a model that mean the same weights with any value. The others must be those that the weights were trained with."""
_HASH_SIZE = "attention.engram.hash_vocabulary_size"
_EXPORT = "Export the checkpoint again by `python -m trainer export --checkpoint RUN@STEP --out FOLDER`."
_GROWING = (ParameterKind.EMBEDDING, ParameterKind.HEAD)


@dataclass(frozen=True)
class InitialWeights:
    """The weights that a run begins with, as its identity names them: the same for a checkpoint and for its export."""

    parameters_sha256: str
    checkpoint_id: str
    snapshots: tuple[str, ...]
    """Every snapshot that ever shaped them, sorted."""

    @property
    def identity(self) -> dict[str, Any]:
        """The fields as a checkpoint stores them."""
        return {**vars(self), "snapshots": list(self.snapshots)}

    @classmethod
    def of_identity(cls, identity: Mapping[str, Any] | None) -> "InitialWeights | None":
        """Read what `identity` gave; None for a run that began with drawn values."""
        return None if identity is None else cls(**{**identity, "snapshots": tuple(identity["snapshots"])})


class Spellings(NamedTuple):
    """The spelling of each id of a vocabulary, and its merges."""

    tokens: tuple[str, ...]
    merges: tuple[Any, ...]


@dataclass(frozen=True)
class WeightsSource:
    """Source of initial weights: its `name` in messages, the files of their tensors, their model and their vocabulary."""

    name: str
    initial: InitialWeights
    model: ModelConfig
    files: tuple[Path, ...]
    tokenizer: Path

    def continued(self, config: TrainingConfig, snapshot: Snapshot) -> TrainingConfig:
        """Return the configuration of a run that begins with these weights on a snapshot.

        Raises TrainingError for another model, or for a vocabulary that does not begin with that of the weights.
        """
        old = read_spellings(self.tokenizer, self.name)
        new = read_spellings(snapshot.tokenizer_file, f"snapshot {snapshot.snapshot_id[:12]}")
        refuse_other_vocabulary(self.name, old, new)
        hash_size = self.model.attention.engram.hash_vocabulary_size or len(old.tokens)
        engram = config.model.attention.engram
        if engram.layers and engram.hash_vocabulary_size is None and hash_size != len(new.tokens):
            config = _with_hash_size(config, hash_size)
        wanted, found = (flat(model.model_dump(mode="json")) for model in (config.model, self.model))
        if engram.layers:
            wanted, found = (
                {_HASH_SIZE: size, **fields} for size, fields in ((len(new.tokens), wanted), (hash_size, found))
            )
        names = sorted((wanted.keys() | found.keys()) - {*MAY_DIFFER})
        differing = [name for name in names if wanted.get(name) != found.get(name)]
        if differing:
            values = "; ".join(f"model.{name} {found.get(name)}" for name in differing)
            expected = "; ".join(f"{wanted.get(name)}" for name in differing)
            raise TrainingError(self.name, f"it has {values}", f"{expected}, as in the recipe", _OTHER_MODEL)
        return config

    def read(self) -> dict[str, Tensor]:
        """Read the tensors. Raises TrainingError for a damaged file, or for other values than those of the run's identity."""
        tensors = _read_tensors(self.files, self.name)
        if (found := digest_tensors(tensors)) != self.initial.parameters_sha256:
            expected = f"{self.initial.parameters_sha256[:12]}"
            raise TrainingError(self.name, f"its tensors have the digest {found[:12]}", expected, _EXPORT)
        return tensors


def open_weights(store: Store, text: str) -> WeightsSource:
    """Open a checkpoint or a folder. Raises MissingError, DamagedError, or TrainingError for what cannot be used."""
    path = Path(text)
    if path.is_file():
        raise TrainingError(f"--init-from {text}", "it is a file", "a checkpoint, or a folder of an export", _EXPORT)
    source = _of_folder(path) if path.is_dir() else _of_checkpoint(store, _known(store, text))
    _refuse_other_ancestry(store, source)
    refuse_withdrawn_weights(store, source.name, source.initial.snapshots, "Begin with other weights")
    return source


def fit(tensors: Mapping[str, Tensor], model: HybridModel, seed: int, subject: str) -> dict[str, Tensor]:
    """Return weights as a model's own; rows of more ids are drawn by the seed. Raises TrainingError naming what does not fit."""
    own, specs = model.state_dict(), {name: spec for name, _, spec in parameter_specs(model)}
    for found, names in (("lacks", own.keys() - tensors.keys()), ("has also", tensors.keys() - own.keys())):
        if names:
            raise TrainingError(
                subject, f"it {found} {_some(names)}", f"the {len(own)} tensors of the model", _OTHER_MODEL
            )
    fitted = dict(tensors)
    for name, value in sorted(own.items()):
        given, rows = tensors[name], value.shape[0] if value.ndim else 0
        if name in specs and specs[name].kind in _GROWING and given.shape[1:] == value.shape[1:] and len(given) < rows:
            drawn = initial_value(seed, name, value.shape, specs[name].initializer)
            given = fitted[name] = torch.cat([given, drawn[len(given) :].to(given.dtype)])
        if (given.shape, given.dtype) != (value.shape, value.dtype):
            found, expected = f"{name} is {_described(given)}", _described(value)
            raise TrainingError(subject, found, f"{expected}, as in the model", _OTHER_MODEL)
        if not bool(torch.isfinite(given).all()):
            raise TrainingError(subject, f"{name} holds values that are not finite", "finite numbers", _EXPORT)
    return fitted


def read_spellings(path: Path, subject: str) -> Spellings:
    """Read the vocabulary of a tokenizer.json. Raises TrainingError for another file."""
    try:
        model = parse_json(path.read_bytes())["model"]
        tokens = sorted(model["vocab"], key=model["vocab"].__getitem__)
        if [model["vocab"][token] for token in tokens] != list(range(len(tokens))):
            raise ValueError("its ids are not 0, 1, 2 and so on")
        return Spellings(tuple(tokens), tuple(tuple(merge) for merge in model["merges"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        found = f"its {TOKENIZER} is no vocabulary ({error})"
        raise TrainingError(subject, found, "the vocabulary of the weights", _EXPORT) from error


def refuse_other_vocabulary(subject: str, old: Spellings, new: Spellings) -> None:
    """Raise TrainingError unless a vocabulary begins with all that the weights know: the same ids and merges."""
    if len(old.tokens) > len(new.tokens):
        found, expected = f"its vocabulary has {len(old.tokens)} ids", f"at most the {len(new.tokens)} of the snapshot"
        raise TrainingError(subject, found, expected, _OTHER_VOCABULARY)
    for what, before, after in (("id", old.tokens, new.tokens), ("merge", old.merges, new.merges)):
        place = next(
            (place for place, (one, other) in enumerate(zip(before, after, strict=False)) if one != other), None
        )
        if place is not None:
            found, expected = f"{what} {place} is {before[place]!r} there", f"{after[place]!r}, as in the snapshot"
            raise TrainingError(subject, found, expected, _OTHER_VOCABULARY)


def _known(store: Store, text: str) -> str:
    try:
        return checkpoint_id(store, text)
    except MissingError as error:
        expected = f"a folder, or {error.expected}"
        raise MissingError(f"--init-from {text}", f"{error.found}", expected, error.remedy) from error


def _of_checkpoint(store: Store, found_id: str) -> WeightsSource:
    stored, subject = open_stored(store, found_id), f"checkpoint {found_id[:12]}"
    place, state = training_place(stored), read_state(stored)
    names = sorted(entry.name for entry in stored.manifest.files if entry.name.startswith(f"{PARAMETERS}-"))
    snapshots = tuple(sorted(set(place.snapshots.values())))
    return WeightsSource(
        subject,
        InitialWeights(state["parameters_sha256"], found_id, snapshots),
        _model(place.identity["config"]["model"], subject),
        tuple(stored.file(name) for name in names),
        open_snapshot(store, place.last_snapshot).tokenizer_file,
    )


def _of_folder(folder: Path) -> WeightsSource:
    subject = f"folder {folder}"
    missing = [name for name in (WEIGHTS, CONFIG, TOKENIZER) if not (folder / name).is_file()]
    if missing:
        expected = f"{WEIGHTS}, {CONFIG} and {TOKENIZER}, as an export has"
        raise TrainingError(subject, f"it has no {missing[0]}", expected, f"No pickle is ever loaded. {_EXPORT}")
    try:
        config = parse_json((folder / CONFIG).read_bytes())
        kind, name, snapshots = config["model_type"], config["checkpoint_id"], config["snapshots"]
        exported = config["parameters_sha256"]
        is_named = kind == "sluice" and is_id(name) and bool(snapshots) and all(map(is_id, snapshots))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        found = f"its {CONFIG} cannot be used ({type(error).__name__}: {error})"
        raise TrainingError(subject, found, "that of an export", _EXPORT) from error
    if not is_named:
        found = f"its {CONFIG} names no model, checkpoint and snapshots of ours"
        raise TrainingError(subject, found, "`sluice`, an id, and ids", _EXPORT)
    digest = digest_tensors(_read_tensors([folder / WEIGHTS], subject))
    if digest != exported:
        found = f"its tensors have the digest {digest[:12]}: another program has changed them"
        expected = f"{str(exported)[:12]}, as its {CONFIG} says of checkpoint {name[:12]}"
        raise TrainingError(subject, found, expected, _EXPORT)
    initial = InitialWeights(digest, name, tuple(sorted(set(snapshots))))
    return WeightsSource(
        subject, initial, _model(config.get("model"), subject), (folder / WEIGHTS,), folder / TOKENIZER
    )


def _model(fields: Any, subject: str) -> ModelConfig:
    try:
        return ModelConfig.model_validate(fields)
    except ValidationError as error:
        found = f"its model is of another version ({error.errors()[0]['msg']})"
        raise TrainingError(subject, found, "a model that this program can build", _EXPORT) from error


def _read_tensors(files: Sequence[Path], subject: str) -> dict[str, Tensor]:
    try:
        return {name: tensor for file in files for name, tensor in load_file(str(file)).items()}
    except (SafetensorError, OSError, ValueError, KeyError) as error:
        found = f"it cannot be read as tensors ({error})"
        raise TrainingError(subject, found, "safetensors, whole", _EXPORT) from error


def _refuse_other_ancestry(store: Store, source: WeightsSource) -> None:
    """Raise TrainingError if a folder leaves out a snapshot by which the store knows that its checkpoint was shaped."""
    name, snapshots = source.initial.checkpoint_id, source.initial.snapshots
    known = set(training_place(open_stored(store, name)).snapshots.values()) if store.locate(name) else set()
    if missing := sorted(known - set(snapshots)):
        found = f"its {CONFIG} does not name snapshot {missing[0][:12]}"
        raise TrainingError(source.name, found, f"all that shaped checkpoint {name[:12]} of this store", _EXPORT)


def _with_hash_size(config: TrainingConfig, hash_size: int) -> TrainingConfig:
    """Return a configuration whose Engram hashes as the weights were trained with."""
    engram = config.model.attention.engram.model_copy(update={"hash_vocabulary_size": hash_size})
    attention = config.model.attention.model_copy(update={"engram": engram})
    return config.model_copy(update={"model": config.model.model_copy(update={"attention": attention})})


def _some(names: Sequence[str] | set[str]) -> str:
    ordered = sorted(names)
    return ", ".join(ordered[:3]) + (f" and {len(ordered) - 3} more" if len(ordered) > 3 else "")


def _described(tensor: Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} {list(tensor.shape)}"


_OTHER_MODEL = "Begin with weights of this model, or set the recipe's `model` to theirs."
_OTHER_VOCABULARY = (
    "Build the corpus with the vocabulary of the weights, or with one that begins with it: "
    "`python -m pipeline vocabulary NAME --train --extends` makes one."
)
