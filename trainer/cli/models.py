"""The commands about models: `presets`, `memory`, `export`, `evaluate` and `sample`."""

import argparse
import sys
from collections.abc import Collection
from dataclasses import asdict
from typing import Any

from pipeline.core.command_line import STEPS_ARGUMENT, amount, output_path, whole_number
from pipeline.core.errors import TrainingError
from trainer.cli.arguments import SEED_ARGUMENT, add_command, open_store, report
from trainer.cli.configuration import add_recipe_arguments, training_config


def add_commands(commands: Any) -> None:
    """Declare the commands of this group."""
    presets = add_command(commands, "presets", _presets, "the named models and their sizes", needs_store=False)
    presets.add_argument("--name", action="append", help="only this preset; may be repeated")
    presets.add_argument("--vocabulary-size", type=whole_number(2, 2**24), help="overrides the preset's")
    _add_memory(commands)
    export = add_command(commands, "export", _export, "write a checkpoint as a folder for transformers")
    export.add_argument("--checkpoint", required=True, help="a checkpoint id, or RUN@STEP")
    export.add_argument("--out", type=output_path, required=True, help="the folder, which must not exist yet")
    evaluate = add_command(commands, "evaluate", _evaluate, "score a checkpoint on held-out rows")
    evaluate.add_argument("--checkpoint", required=True, help="a checkpoint id, or RUN@STEP")
    evaluate.add_argument(
        "--rows",
        type=STEPS_ARGUMENT,
        default=64,
        help="maximum number of held-out rows to read, spread over all in proportion to source, lane and license",
    )
    evaluate.add_argument("--middles", type=whole_number(0, 100_000), default=16, help="number of pieces to infill")
    evaluate.add_argument(
        "--samples", type=whole_number(0, 100_000), default=4, help="number of completions to compile"
    )
    evaluate.add_argument(
        "--tokens", type=whole_number(1, 2**20), default=48, help="maximum number of tokens of a completion"
    )
    evaluate.add_argument("--seed", type=SEED_ARGUMENT, default=42)
    evaluate.add_argument(
        "--by",
        choices=("lane", "license", "source"),
        help="the held-out loss of each of them too, over --rows rows of it",
    )
    _add_sample(commands)


def _add_memory(commands: Any) -> None:
    text = "what a training step on one device holds when, and whether that fits; nothing is allocated"
    memory = add_command(commands, "memory", _memory, text, needs_store=False)
    naming = add_recipe_arguments(memory)
    naming.add_argument("--preset", dest="recipe", default=argparse.SUPPRESS, help="the recipe of a preset")
    memory.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="whose operations are planned")
    memory.add_argument("--device-memory", type=amount, metavar="GB", help="memory of the device, refused if too small")
    memory.add_argument("--row-tokens", type=whole_number(1, 2**20), default=4096, help="tokens of a packed row")
    memory.add_argument("--vocabulary-size", type=whole_number(2, 2**24), help="overrides the preset's")


def _add_sample(commands: Any) -> None:
    sample = add_command(commands, "sample", _sample, "complete a prompt with a checkpoint")
    sample.add_argument("--checkpoint", required=True, help="a checkpoint id, or RUN@STEP")
    prompts = sample.add_mutually_exclusive_group()
    prompts.add_argument("--prompt", default="#include <vector>\n\n")
    prompts.add_argument("--prompt-ids", metavar="IDS", help="token ids, separated by commas, in place of a text")
    sample.add_argument("--tokens", type=whole_number(1, 2**20), default=48, help="maximum number of tokens to sample")
    sample.add_argument(
        "--seed", type=SEED_ARGUMENT, default=42, help="seed of the first completion; each further one adds 1"
    )
    sample.add_argument("--temperature", type=amount, default=0.7, help="0 is greedy decoding")
    sample.add_argument(
        "--top-k", type=whole_number(1, 2**24), help="sample from this many of the most probable tokens"
    )
    sample.add_argument(
        "--top-p", type=amount, help="nucleus sampling: the most probable tokens up to this probability, 0-1"
    )
    sample.add_argument(
        "--best-of", type=whole_number(1, 256), default=1, help="print the most probable of this many completions"
    )
    sample.add_argument(
        "--until-closed",
        action="store_true",
        help="end a completion with the last open brace; of several, those that close all are printed first",
    )


def _presets(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Describe presets: their parameter counts, and how far those are from the published ones."""
    from trainer.config.presets import PRESETS
    from trainer.model import parameter_count

    presets = [PRESETS[name] for name in options.name or PRESETS.names]
    described = [parameter_count.describe_preset(preset, options.vocabulary_size) for preset in presets]
    report(parameter_count.sentence(entry) for entry in described)
    return described


def _memory(options: argparse.Namespace) -> dict[str, Any]:
    """Report what a step of a recipe holds, and refuse a device that does not hold it."""
    config = training_config(options)
    from trainer.bench.memory_plan import plan_memory, require_fit
    from trainer.config.presets import PRESETS

    target = PRESETS[options.recipe if options.recipe in PRESETS else "small"].target
    size = options.vocabulary_size or target.vocabulary_size
    plan = plan_memory(config, size, options.row_tokens, options.device == "cuda")
    report([*plan.lines(), plan.sentence()])
    if options.device_memory is not None:
        subject = f"a device of {options.device_memory:g} GB"
        require_fit(plan, round(options.device_memory * 1e9), subject)
    return {**asdict(plan), "needed": plan.needed, "vocabulary_size": size}


def _sample(options: argparse.Namespace) -> dict[str, Any]:
    named = _checkpoint_with_warning(options)
    from trainer.inference import sampling

    sampling_options = sampling.SamplingOptions(
        num_tokens=options.tokens,
        seed=options.seed,
        temperature=options.temperature,
        top_k=options.top_k,
        top_p=options.top_p,
        num_completions=options.best_of,
        until_closed=options.until_closed,
    )
    prompt = options.prompt if options.prompt_ids is None else _ids(options.prompt_ids)
    completions = sampling.sample(open_store(options), named, prompt, sampling_options)
    completion = completions[0].text
    if not options.json:
        print((prompt if isinstance(prompt, str) else "") + completion)
    return {"prompt": prompt, "completion": completion, "completions": [asdict(found) for found in completions]}


def _export(options: argparse.Namespace) -> dict[str, Any]:
    from trainer.checkpoint.stored_state import refuse_withdrawn_weights

    named, snapshots = _checkpoint(options)
    refuse_withdrawn_weights(open_store(options), f"checkpoint {named[:12]}", snapshots)
    from trainer.inference.transformers_export import export_model

    answer = export_model(open_store(options), named, options.out)
    report([f"{answer['folder']}: {', '.join(answer['files'])}, {answer['num_bytes'] / 1e6:.1f} MB"])
    return answer


def _evaluate(options: argparse.Namespace) -> dict[str, Any]:
    """Report held-out bits per byte, the share of middles infilled exactly, and completions that compile."""
    named = _checkpoint_with_warning(options)
    from trainer.inference import scores

    by = options.by and scores.Dimension(options.by)
    size = scores.ScoreOptions(options.rows, options.middles, options.samples, options.tokens, options.seed, by)
    answer = scores.evaluate(open_store(options), named, size)
    report(scores.sentences(answer))
    return answer


def _checkpoint(options: argparse.Namespace) -> tuple[str, Collection[str]]:
    """Return the id of the checkpoint that a command names, and the snapshots that shaped it.

    Nothing heavy is loaded for one that is not there.
    """
    from trainer.checkpoint.stored_state import checkpoint_id, open_stored, training_place

    store = open_store(options)
    named = checkpoint_id(store, options.checkpoint)
    return named, training_place(open_stored(store, named)).snapshots.values()


def _checkpoint_with_warning(options: argparse.Namespace) -> str:
    """Return the id of the checkpoint that a command names, and say on stderr what of its data is withdrawn."""
    from trainer.checkpoint.stored_state import TRAIN_AGAIN, withdrawn_from

    named, snapshots = _checkpoint(options)
    found = withdrawn_from(open_store(options), snapshots)
    if found is not None:
        print(f"warning: checkpoint {named[:12]}: {found}. {TRAIN_AGAIN}.", file=sys.stderr)
    return named


def _ids(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",") if part.strip()]
    except ValueError as error:
        remedy = "Give a text by --prompt."
        raise TrainingError("--prompt-ids", repr(text), "whole numbers, separated by commas", remedy) from error
