"""The commands that train: `train` and `smoke`."""

import argparse
import sys
from typing import TYPE_CHECKING, Any

from pipeline.core.command_line import STEPS_ARGUMENT, file_path, given_name, output_path, whole_number
from pipeline.core.errors import ParamsError
from trainer.checkpoint.resume_rules import allowable_names
from trainer.cli.arguments import (
    SEED_ARGUMENT,
    add_command,
    add_retention,
    add_snapshot_arguments,
    open_store,
    retention,
    snapshot_id,
)
from trainer.cli.configuration import add_recipe_arguments, training_config
from trainer.train.tracking.trackers import TRACKERS, require_trackers

if TYPE_CHECKING:
    from pipeline.store.store import Store


def add_commands(commands: Any) -> None:
    """Declare the commands of this group."""
    train = add_command(commands, "train", _train, "train to a step, saving checkpoints on the way")
    _add_data(train)
    _add_run(train)
    _add_configuration(train)
    add_retention(train)
    smoke = add_command(commands, "smoke", _smoke, "one step of the smallest model on a snapshot; nothing is kept")
    add_snapshot_arguments(smoke, "quick")


def _add_data(train: argparse.ArgumentParser) -> None:
    train.add_argument(
        "--corpus", type=given_name, help="the corpus whose refs `live` and `candidate` are; quick unless given"
    )
    train.add_argument("--snapshot", type=given_name, help="live (the default), candidate, last or a snapshot id")
    data = "a bundle that `python -m pipeline snapshot export` wrote: its rows are imported, and it is the snapshot"
    train.add_argument("--data", type=file_path, metavar="BUNDLE", help=data)
    train.add_argument(
        "--follow",
        type=given_name,
        metavar="REF",
        help="live or candidate: at the end of an epoch, continue with the snapshot that the ref names then; "
        "or a checkpoint id, whose adoptions are repeated",
    )
    train.add_argument(
        "--mix",
        action="append",
        default=[],
        metavar="NAME=WEIGHT",
        help="read several snapshots: a corpus (its live), CORPUS/candidate or a snapshot id, and the weight of its rows; or "
        "shares of one snapshot's tokens, [lane:|source:|license:]NAME=SHARE,NAME=SHARE",
    )
    train.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="lane|source|license=VALUES",
        help="draw these rows alone: sources, lanes, licenses by SPDX expression or class (permissive, weak_copyleft)",
    )
    train.add_argument(
        "--workers",
        type=whole_number(0, 256),
        default=0,
        help="loader processes; the batches are the same for any number",
    )


def _add_run(train: argparse.ArgumentParser) -> None:
    train.add_argument(
        "--stop-after",
        type=STEPS_ARGUMENT,
        default=20,
        help="step at which this session ends, from the start of the run",
    )
    train.add_argument("--save-every", type=STEPS_ARGUMENT, default=10, help="steps between checkpoints")
    train.add_argument("--out", type=output_path, required=True, help="folder for metrics.jsonl and result.json")
    train.add_argument("--seed", type=SEED_ARGUMENT, default=42)
    train.add_argument(
        "--resume",
        type=given_name,
        help="`latest`, which starts a new run where there is no checkpoint, a checkpoint id, or RUN@STEP",
    )
    train.add_argument(
        "--init-from",
        type=given_name,
        metavar="CHECKPOINT|FOLDER",
        help="begin with the weights of a checkpoint (an id, or RUN@STEP) or of a folder that `export` wrote; the schedule, "
        "the optimizer and the data begin anew",
    )
    restart = "begin a run anew whose checkpoints are of another seed, snapshot or configuration"
    train.add_argument("--restart", action="store_true", help=restart)
    train.add_argument("--run", type=given_name, help="name of the run; made from its configuration unless given")
    train.add_argument(
        "--allow-drift",
        action="append",
        default=[],
        metavar="FIELD",
        help=f"{', '.join(allowable_names())}, or a field below one of them; recorded",
    )
    train.add_argument("--telemetry", choices=("on", "off"), default="on", help="metrics, TensorBoard file, progress")
    train.add_argument(
        "--track",
        action="append",
        default=[],
        choices=TRACKERS.names,
        help="record the metrics by this library too, below --out; may be repeated",
    )
    train.add_argument(
        "--track-online",
        action="store_true",
        help="let it send them to where its own settings say; else nothing is sent",
    )
    train.add_argument(
        "--evaluate-every", type=STEPS_ARGUMENT, metavar="N", help="evaluate held-out rows every N steps"
    )
    train.add_argument(
        "--evaluate-rows",
        type=STEPS_ARGUMENT,
        default=32,
        metavar="N",
        help="held-out rows to evaluate, the same each time: spread over all in proportion to source, lane and license",
    )


def _add_configuration(train: argparse.ArgumentParser) -> None:
    add_recipe_arguments(train)
    auto = "auto is a GPU where there is one, else the CPU"
    train.add_argument("--device", default="auto", help=f"{auto}; cpu, cuda (under torchrun each rank's own) or cuda:N")
    train.add_argument(
        "--shard",
        action="store_true",
        help="shard parameters and optimizer state over torchrun's ranks; results stay equal bit for bit",
    )


def _train(options: argparse.Namespace) -> dict[str, Any]:
    from pipeline.core.settings.recipe_files import name_of
    from pipeline.store.snapshot import open_usable
    from trainer.checkpoint.stored_state import checkpoint_id, find
    from trainer.cli.row_shares import row_selection
    from trainer.cli.snapshot_names import DEFAULT_CORPUS, import_data, resolve_snapshots
    from trainer.config.mix import divide_mix
    from trainer.train.determinism import choose_device, refuse_device

    if options.track_online and not options.track:
        found, remedy = "no `--track` names a library", "Add `--track`, or leave out `--track-online`."
        raise ParamsError("--track-online", found, f"one of {', '.join(TRACKERS.names)}", remedy)
    require_trackers(tuple(options.track), options.telemetry == "on")
    store = open_store(options)
    mix = divide_mix(options.mix)
    if options.data is not None:
        options.snapshot = import_data(store, options.data, (options.snapshot, options.follow, *mix.snapshots))
    snapshots = resolve_snapshots(store, options.corpus, options.snapshot, options.follow, mix.snapshots)
    if options.snapshot == "last" and not options.quiet:
        _say_whether_blocked(store, options.corpus or DEFAULT_CORPUS, snapshots.snapshot_id)
    opened = {name: open_usable(store, name) for name in sorted({snapshots.snapshot_id, *dict(snapshots.mixture)})}
    selection = row_selection(list(opened.values()), options.only, mix.shares)
    refuse_device(options.device)
    config = training_config(options)
    if options.run:
        find(store, options.run, "latest")  # a name that is none is refused
    if options.resume not in (None, "latest"):
        find(store, options.run, options.resume) if options.run else checkpoint_id(store, options.resume)
    # Only what is not refused waits for torch.
    from trainer.train.evaluation import EvaluationSchedule
    from trainer.train.loop import train
    from trainer.train.session import RunInputs, TrainSession

    options.device, device_reason = choose_device(options.device)
    if options.device.startswith("cuda") and not options.shard:
        _require_memory(config, opened[snapshots.snapshot_id], options)
    session = TrainSession(
        inputs=RunInputs(snapshots.snapshot_id, config, options.seed, snapshots.mixture, selection=selection),
        recipe=name_of(options.recipe),
        stop_after=options.stop_after,
        save_every=options.save_every,
        out=options.out,
        run=options.run,
        follow=snapshots.follow,
        resume=options.resume,
        is_restart=options.restart,
        num_workers=options.workers,
        device=options.device,
        device_reason=device_reason,
        keep=retention(options),
        allowed_drift=tuple(options.allow_drift),
        has_telemetry=options.telemetry == "on",
        evaluation=EvaluationSchedule(options.evaluate_every, options.evaluate_rows),
        trackers=tuple(dict.fromkeys(options.track)),
        is_tracked_online=options.track_online,
        init_from=options.init_from,
        is_sharded=options.shard,
    )
    return train(store, session)


def _say_whether_blocked(store: "Store", corpus: str, snapshot_id: str) -> None:
    """Print that a build is no candidate, which each becomes whose gates pass."""
    from pipeline.store.snapshot import REFS

    if snapshot_id not in [store.ref(corpus, name) for name in REFS]:
        show = f"`python -m pipeline show --corpus {corpus} --of last` names the gate that blocked it"
        print(f"snapshot {snapshot_id[:12]} is neither {' nor '.join(REFS)}: {show}.", file=sys.stderr)


def _require_memory(config: Any, snapshot: Any, options: argparse.Namespace) -> None:
    """Print what a step holds when, and refuse one that the device does not hold."""
    import torch

    from trainer.bench.memory_plan import plan_memory, require_fit

    plan = plan_memory(config, snapshot.vocabulary["size"], snapshot.row_length, is_on_gpu=True)
    for line in () if options.quiet else (*plan.lines(), plan.sentence()):
        print(line, file=sys.stderr)
    memory = torch.cuda.get_device_properties(options.device).total_memory
    require_fit(plan, memory, f"{options.device} of {memory / 1e9:.1f} GB")


def _smoke(options: argparse.Namespace) -> dict[str, Any]:
    from trainer.config.training_config import training_recipe

    store = open_store(options)
    snapshot = snapshot_id(options)
    from trainer.train.session import RunInputs
    from trainer.train.training_state import Training

    training = Training(store, RunInputs(snapshot, training_recipe("tiny"), seed=42))
    metrics = training.step(training.loader.batch_at(0, training.config.num_micro_batches))
    return {"losses": [metrics["loss"]], "snapshot_id": snapshot}
