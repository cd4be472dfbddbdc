"""The commands about models: what presets there are, and what a checkpoint writes. Each returns what `--json` prints."""

import argparse
import sys
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from pipeline.core.errors import TrainingError
from pipeline.store.store import Store
from trainer.config.presets import PRESETS, preset
from trainer.inference import sampling, scores
from trainer.inference.huggingface import export_model
from trainer.model import parameter_count


def presets(options: argparse.Namespace) -> list[dict[str, Any]]:
    """The presets, or those that are named, with their counts and the distance to the counts they were made for."""
    for name in options.name or ():
        preset(name)
    described = [parameter_count.describe_preset(name, options.vocabulary_size) for name in options.name or PRESETS]
    _say(parameter_count.sentence(entry) for entry in described)
    return described


def draw_samples(options: argparse.Namespace) -> dict[str, Any]:
    """The likeliest of the completions, and all of them beside it."""
    draw = sampling.Draw(
        num_tokens=options.tokens,
        seed=options.seed,
        temperature=options.temperature,
        top_k=options.top_k,
        top_p=options.top_p,
        num_completions=options.best_of,
    )
    prompt = options.prompt if options.prompt_ids is None else _ids(options.prompt_ids)
    completions = sampling.sample(Store(options.store), options.checkpoint, prompt, draw)
    if not options.json:
        print((prompt if isinstance(prompt, str) else "") + completions[0].text)
    completion = completions[0].text
    return {"prompt": prompt, "completion": completion, "completions": [asdict(found) for found in completions]}


def export(options: argparse.Namespace) -> dict[str, Any]:
    """Write a checkpoint as a folder for transformers."""
    answer = export_model(Store(options.store), options.checkpoint, options.out)
    _say([f"{answer['folder']}: {', '.join(answer['files'])}, {answer['num_bytes'] / 1e6:.1f} MB"])
    return answer


def evaluate(options: argparse.Namespace) -> dict[str, Any]:
    """Held-out bits a byte, middles that were written exactly, and completions that a compiler takes."""
    size = scores.Extent(options.rows, options.middles, options.samples, options.tokens, options.seed)
    answer = scores.evaluate(Store(options.store), options.checkpoint, size)
    _say(scores.sentences(answer))
    return answer


def _ids(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",") if part.strip()]
    except ValueError as error:
        raise TrainingError("--prompt-ids", repr(text), "whole numbers, separated by commas") from error


def _say(lines: Iterable[str]) -> None:
    for line in lines:
        print(line, file=sys.stderr, flush=True)
