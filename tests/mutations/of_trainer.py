"""Mutations of a training and of its certificate: a resume, a comparison or the loading of a checkpoint must go red.

certificate/FIELD       a field of a stored checkpoint or of its history changed, with digests that fit
chain/NAME              a part of what the chains are made of left out
trainer/NAME            a resumed or repeated training that computes something else
"""

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from pipeline.store.store import Store
from tests.mutations.bench import Bench
from tests.mutations.certificate_chains import CHAINS
from tests.mutations.mutation import Kind, Mutation
from tests.mutations.plant import NotPlantedError, change_result, constant, wrap
from tests.mutations.stored import forge

STEPS, SAVED = 8, 4
_HISTORY = ("losses", "batches", "skipped", "state_steps", "state_digests", "state_tensors")
_STATE = (
    "format_version",
    "step",
    "identity",
    "loader",
    "environment",
    "packing",
    "forks",
    "adoptions",
    "certificate",
    "parameters_sha256",
    "optimizer_sha256",
)
_ADDED = {
    "forks": {"step": 1, "fields": {"config.batch_rows": [4, 8]}},
    "adoptions": {"position": 4, "old": "0" * 64, "new": "1" * 64},
}
"""Entry that is added to a list that is empty."""
_SEEN = ("load", "resume", "compare")


def mutations() -> Iterator[Mutation]:
    """Return the mutations of the certificate's fields, of the chains, and of the training."""
    for name in (*_HISTORY, *_STATE, "parameters", "optimizer"):
        planted = f"{name} of a stored checkpoint changed, with digests that fit"
        yield Mutation(f"certificate/{name}", Kind.CERTIFICATE, planted, _SEEN, partial(_altered, name))
    for name in ("parameters", "optimizer"):
        planted = f"{name} of a stored checkpoint changed, and {name}_sha256 with them"
        yield Mutation(
            f"certificate/{name}-with-digest", Kind.CERTIFICATE, planted, _SEEN, partial(_altered_whole, name)
        )
    for name, (planted, plant) in CHAINS.items():
        yield Mutation(f"chain/{name}", Kind.CERTIFICATE, planted, _SEEN, partial(_trained, plant, True))
    for name, (planted, plant) in RESUMED.items():
        yield Mutation(f"trainer/{name}", Kind.TRAINER, planted, _SEEN, partial(_trained, plant, True))
    for name, (planted, plant) in REPEATED.items():
        yield Mutation(f"trainer/{name}", Kind.TRAINER, planted, _SEEN, partial(_trained, plant, False))


def train_base(folder: Path) -> None:
    """Train two equal runs, one to its end and one to its half, in a store of made rows."""
    from tests.support.made.made_snapshot import commit_made

    store = Store(folder / "store")
    snapshot_id = commit_made(store)
    straight = _train(store, snapshot_id, "straight", STEPS)
    stopped = _train(store, snapshot_id, "stopped", SAVED)
    found = {"snapshot_id": snapshot_id, "straight": straight["checkpoint_id"], "stopped": stopped["checkpoint_id"]}
    (folder / "trained.json").write_text(json.dumps(found))


def _train(store: Store, snapshot_id: str, run: str, stop_after: int, resume: str | None = None) -> dict[str, Any]:
    from trainer.config.training_config import training_recipe
    from trainer.train.loop import train
    from trainer.train.session import RunInputs, TrainSession

    config = training_recipe("tiny").model_copy(update={"certify_every": 2, "num_threads": 1})
    session = TrainSession(
        RunInputs(snapshot_id, config, 42),
        "tiny",
        stop_after,
        SAVED,
        store.root.parent / "out" / run,
        run=run,
        resume=resume,
        has_telemetry=False,
    )
    return train(store, session)


class _Trained:
    """A copy of the store of the two runs, and the ids of their checkpoints."""

    def __init__(self, bench: Bench) -> None:
        base = bench.base / "trained"
        shutil.copytree(base / "store", bench.folder / "trained" / "store")
        self.store = Store(bench.folder / "trained" / "store")
        found = json.loads((base / "trained.json").read_bytes())
        self.snapshot_id, self.straight, self.stopped = found["snapshot_id"], found["straight"], found["stopped"]

    def check(self, bench: Bench, resume: bool) -> None:
        """Load the checkpoint, train to the end, and compare with the run that was not changed."""
        from trainer.checkpoint.checkpoint import load
        from trainer.proof.comparison import compare_trainings, read_record

        if resume and bench.attempt("load", lambda: load(self.store, self.stopped)) is None:
            return
        run, origin = ("stopped", "latest") if resume else ("again", None)
        result = bench.attempt("resume", lambda: _train(self.store, self.snapshot_id, run, STEPS, origin))
        if result is None:
            return
        ids = (self.straight, result["checkpoint_id"])
        records = bench.attempt("load", lambda: [read_record(each, self.store) for each in ids])
        if records is None:
            return
        found = compare_trainings(*records)
        if not found.is_equal or found.settings:
            bench.say("compare", "; ".join(found.lines[:3]))


def _trained(plant: Callable[[], None], resume: bool, bench: Bench) -> None:
    import trainer.checkpoint.checkpoint
    import trainer.proof.comparison
    import trainer.train.loop  # noqa: F401  # so that every name is bound before one is altered

    trained = _Trained(bench)
    plant()
    trained.check(bench, resume)


def _altered(name: str, bench: Bench) -> None:
    """Change one field of the checkpoint from which the run resumes."""
    trained = _Trained(bench)
    stored = trained.store.read(trained.stopped)
    if name in _HISTORY:
        edits = {"history.safetensors": _changed_tensors(stored.path / "history.safetensors", name)}
    elif name in _STATE:
        state = json.loads((stored.path / "state.json").read_bytes())
        if name not in state:
            raise NotPlantedError(f"state.json has no {name}")
        value = [*state[name], _ADDED[name]] if name in _ADDED else _other(state[name])
        edits = {"state.json": json.dumps(state | {name: value}, sort_keys=True).encode()}
    else:
        edits = _changed_file(stored.path, name)
    _forge(trained, edits)
    trained.check(bench, resume=True)


def _altered_whole(name: str, bench: Bench) -> None:
    """Change a tensor of the checkpoint and the digest in its state."""
    from trainer.checkpoint.checkpoint import load
    from trainer.checkpoint.tensor_files import digest_tensors

    trained = _Trained(bench)
    path = trained.store.read(trained.stopped).path
    edits = _changed_file(path, name)
    tensors = dict(getattr(load(trained.store, trained.stopped), name))
    for content in edits.values():
        from safetensors.torch import load as load_bytes

        tensors |= load_bytes(content)
    state = json.loads((path / "state.json").read_bytes()) | {f"{name}_sha256": digest_tensors(tensors)}
    _forge(trained, {**edits, "state.json": json.dumps(state, sort_keys=True).encode()})
    trained.check(bench, resume=True)


def _forge(trained: _Trained, edits: Mapping[str, bytes]) -> None:
    # Checkpoints share files by links: the other run keeps its own.
    path = trained.store.read(trained.stopped).path
    for name in edits:
        content = (path / name).read_bytes()
        (path / name).unlink()
        (path / name).write_bytes(content)
    new = forge(trained.store, {trained.stopped: edits})
    trained.stopped = new[trained.stopped]


def _changed_file(path: Path, kind: str) -> dict[str, bytes]:
    found = sorted(path.glob(f"{kind}-*.safetensors"))[0]
    return {found.name: _changed_tensors(found, None)}


def _changed_tensors(path: Path, name: str | None) -> bytes:
    """Return a file of tensors with another first element in one of them."""
    from safetensors.torch import load_file, save

    tensors = load_file(str(path))
    chosen = name or sorted(tensors)[0]
    values = tensors[chosen].reshape(-1)
    values[0] = ~values[0] if str(values.dtype) == "torch.bool" else values[0] + 1
    return save(tensors)


def _other(value: Any) -> Any:
    """Return another JSON value of the same type."""
    match value:
        case dict():
            first = sorted(value)[0]
            return {**value, first: _other(value[first])}
        case bool():
            return not value
        case int() | float():
            return value + 1
        case str():
            return ("b" if value.startswith("a") else "a") + value[1:]
    return 1


def _after_restore(change: Callable[[Any], None]) -> Callable[[], None]:
    """Return a change of what a resume restores."""

    def plant() -> None:
        def make(restore: Any) -> Any:
            def restored(self: Any, *given: Any, **named: Any) -> None:
                restore(self, *given, **named)
                change(self)

            return restored

        wrap("trainer.train.training_state:Training.restore", make)

    return plant


def _move(number: int) -> Callable[[], None]:
    def change(training: Any) -> None:
        training.position += number

    return _after_restore(change)


def _optimizer_state(change: Callable[[str, Any], None]) -> Callable[[], None]:
    """Return a change of the entries of the optimizer's state after a resume."""

    def changed(training: Any) -> None:
        for state in training.optimizer.state.values():
            for key, value in state.items():
                change(key, value)

    return _after_restore(changed)


def _forget(prefix: str) -> Callable[[], None]:
    return _optimizer_state(lambda key, value: value.zero_() if key.startswith(prefix) else None)


def _forget_parameter(training: Any) -> None:
    parameter = sorted(training.model.named_parameters())[-1][1]
    parameter.data.mul_(1.001)


def _forget_buffers(training: Any) -> None:
    found = [buffer for name, buffer in sorted(training.model.named_buffers()) if buffer.is_floating_point()]
    if not found:
        raise NotPlantedError("the model has no buffer")
    for buffer in found:
        buffer.zero_().add_(0.01)


def _forget_history(training: Any) -> None:
    training.history.losses[:] = [*training.history.losses[:-1], 0.0]


def _rates(change: Callable[[Any, int, Any], float]) -> Callable[[], None]:
    return lambda: wrap(
        "trainer.optim.schedule:learning_rate", lambda rate: lambda step, config: change(rate, step, config)
    )


def _global_generator() -> None:
    """Have a step draw from torch's generator, which no checkpoint holds."""
    import torch

    def make(step: Any) -> Any:
        def stepped(self: Any, batch: Any) -> Any:
            with torch.no_grad():
                sorted(self.model.named_parameters())[0][1].add_(torch.rand(1).item() * 1e-4)
            return step(self, batch)

        return stepped

    wrap("trainer.train.training_state:Training.step", make)


def _changed_loader(**changes: Any) -> Callable[[], None]:
    """Return a change of the loader's configuration."""

    def plant() -> None:
        def make(init: Any) -> Any:
            def initialized(self: Any, snapshot: Any, mixture: Any, config: Any, *given: Any, **named: Any) -> None:
                init(self, snapshot, mixture, config.model_copy(update=changes), *given, **named)

            return initialized

        wrap("trainer.train.run_data:RunData.__init__", make)

    return plant


def _rules_ignored() -> None:
    constant("trainer.checkpoint.resume_rules:check_resume", {})
    _changed_loader(seed=7)()


def _stepped_twice(optimizer: Any) -> Any:
    """Return an optimizer each of whose steps is taken twice."""
    step = optimizer.step
    optimizer.step = lambda: (step(), step())[1]
    return optimizer


def _nothing_infilled() -> None:
    from trainer.config.training_config import InfillingParams

    _changed_loader(infilling=InfillingParams(rate=0.0))()


def _without_gradient() -> None:
    """Have one parameter keep its value."""

    def make(clip: Any) -> Any:
        def clipped(parameters: Any, max_norm: float) -> Any:
            found = list(parameters)
            found[0][1].grad = found[0][1].grad * 0
            return clip(found, max_norm)

        return clipped

    wrap("trainer.optim.clipping:clip_gradients", make)


def _scaled_gradients() -> None:
    """Have every gradient half as large."""

    def make(clip: Any) -> Any:
        def clipped(parameters: Any, max_norm: float) -> Any:
            found = list(parameters)
            for _, parameter in found:
                parameter.grad = parameter.grad * 0.5
            return clip(found, max_norm)

        return clipped

    wrap("trainer.optim.clipping:clip_gradients", make)


def _masked_loss(batch: Any) -> Any:
    """Return a batch whose loss is of every slot, padding included."""
    return batch._replace(loss_mask_BT=batch.loss_mask_BT | True)


RESUMED: dict[str, tuple[str, Callable[[], None]]] = {
    "row-skipped": ("a row skipped after a resume", _move(1)),
    "row-repeated": ("a row repeated after a resume", _move(-1)),
    "batch-skipped": ("a batch skipped after a resume", _move(4)),
    "batch-repeated": ("a batch repeated after a resume", _move(-4)),
    "from-the-start": (
        "a resume that reads from the first row",
        _after_restore(lambda training: setattr(training, "position", 0)),
    ),
    "loader-seed": ("another seed of the loader in a resumed session", _changed_loader(seed=43)),
    "no-optimizer-state": (
        "the optimizer's state not restored",
        lambda: constant("trainer.checkpoint.checkpoint:restore_optimizer", None),
    ),
    "no-first-moments": ("the first moments not restored", _forget("exp_avg")),
    "no-momentum": ("the momentum not restored", _forget("momentum")),
    "no-step-counters": ("the optimizer's step counters not restored", _forget("step")),
    "no-parameters": (
        "the parameters not restored",
        lambda: constant("trainer.checkpoint.checkpoint:restore_model", None),
    ),
    "one-parameter": ("one parameter restored a thousandth larger", _after_restore(_forget_parameter)),
    "no-buffers": ("the experts' biases not restored", _after_restore(_forget_buffers)),
    "loss-of-history": ("the last loss of the history not restored", _after_restore(_forget_history)),
    "rate-starts-again": (
        "the schedule starts again after a resume",
        _rates(lambda rate, step, config: rate(step % SAVED, config)),
    ),
    "global-generator": ("a step that draws from a generator that is not restored", _global_generator),
    "rules-ignored": ("a resume that compares no setting, with another seed", _rules_ignored),
}
REPEATED: dict[str, tuple[str, Callable[[], None]]] = {
    "weights-seed": (
        "another seed of the weights",
        lambda: wrap(
            "trainer.train.build_model:build_model",
            lambda build: lambda config, size, seed, placement: build(config, size, seed + 1, placement),
        ),
    ),
    "repeated-seed": ("another seed of the loader", _changed_loader(seed=43)),
    "no-infilling": ("nothing is infilled", _nothing_infilled),
    "rate-later": ("the schedule one step late", _rates(lambda rate, step, config: rate(max(0, step - 1), config))),
    "half-gradients": ("gradients half as large, and clipped", _scaled_gradients),
    "one-parameter-frozen": ("the gradient of one parameter lost", _without_gradient),
    "padding-trained": (
        "the loss of every slot, padding included",
        lambda: change_result("trainer.train.step:to_device", _masked_loss),
    ),
    "no-balance": (
        "the experts' biases never move",
        lambda: constant("trainer.model.hybrid:HybridModel.balance_experts", None),
    ),
    "stepped-twice": (
        "each step of the optimizer taken twice",
        lambda: change_result("trainer.optim.optimizer:build_optimizer", _stepped_twice),
    ),
}
