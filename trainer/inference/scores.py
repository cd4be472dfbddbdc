"""Scores of a checkpoint on held-out rows.

    bits per byte   sum of the cross-entropy of held-out tokens / ln 2 / bytes that these tokens spell
    exact middles   share of held-out pieces, infilled once at chunk bounds, whose middle is sampled token for token
    compiled        share of held-out pieces whose first half compiles together with its completion

Rows are spread over all that are held out, in proportion to source, lane and license (`spread_rows`): the same ones each time.
Middles and first halves are of pieces of all of them in a keyed order, one of each row first; decoding is greedy if only one answer
is right.
"""

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

import numpy as np
import torch

from pipeline.core.records import Split
from pipeline.sandbox.compile_check import CompileVerdict, compile_check
from pipeline.store.store import Store
from trainer.config.training_config import InfillingParams
from trainer.data.infilling import Form, Infilling, remap_ids, source_slots
from trainer.data.keyed_hash import mix
from trainer.data.loader import held_out_batches
from trainer.data.mapped_rows import MappedRows
from trainer.data.open_loader import sources_of
from trainer.data.row_layout import RowLayout, infill_rows
from trainer.data.row_selection import Dimension, RowSelection, row_groups, select_rows, spread_rows
from trainer.inference.sampling import SamplingOptions, TrainedModel, load_tokenizer, open_trained, sample_tokens
from trainer.train.step import to_device

ItemT = TypeVar("ItemT")
MIDDLES = InfillingParams(rate=1.0, spm_rate=0.0, chunk_rate=1.0)


@dataclass(frozen=True)
class ScoreOptions:
    """Most rows, middles, samples and tokens to score, and the seed."""

    num_rows: int = 64
    num_middles: int = 16
    num_samples: int = 4
    num_tokens: int = 48
    seed: int = 42
    by: Dimension | None = None
    """Property of rows by whose values the held-out loss is given too, each over as many rows of it."""


def evaluate(store: Store, checkpoint_id: str, options: ScoreOptions) -> dict[str, Any]:
    """Score a checkpoint. A score without data is None."""
    trained = open_trained(store, checkpoint_id, options.seed)
    return {
        "checkpoint_id": checkpoint_id,
        "snapshot_id": trained.snapshot.snapshot_id,
        **held_out_loss(trained, options.num_rows),
        **({"by": {str(options.by): losses_by(trained, options.by, options.num_rows)}} if options.by else {}),
        **exact_middles(trained, options),
        **compiled_samples(trained, options),
    }


def sentences(found: dict[str, Any]) -> list[str]:
    """Return the scores as sentences."""
    bits, middles, rate = found["bits_per_byte"], found["exact_middle_fraction"], found["compiled_fraction"]
    verdicts = ", ".join(f"{count} {verdict}" for verdict, count in found["compile_verdicts"].items())
    by = [
        f"{name} {value}: {_bits(loss)} bits per byte over {loss['num_bytes']:,} bytes"
        for name, losses in found.get("by", {}).items()
        for value, loss in losses.items()
    ]
    return [
        f"held-out bits per byte: {'no held-out rows' if bits is None else f'{bits:.4f}'} over {found['num_bytes']:,} bytes",
        f"middles infilled exactly: {'none to infill' if middles is None else f'{middles:.1%}'} of {found['num_middles']}",
        f"completions that compile: {'unknown' if rate is None else f'{rate:.1%}'} ({verdicts or 'none sampled'})",
        *by,
    ]


def _bits(loss: dict[str, Any]) -> str:
    return "no" if loss["bits_per_byte"] is None else f"{loss['bits_per_byte']:.4f}"


@torch.no_grad()
def held_out_loss(
    trained: TrainedModel, num_rows: int, batch_size: int = 4, selection: RowSelection | None = None
) -> dict[str, Any]:
    """Compute the cross-entropy of the held-out rows, or of a selection, in bits per byte of text and in nats per token."""
    layout = RowLayout.of(trained.snapshot.snapshot_id, trained.snapshot.row_length, trained.specials)
    bytes_V = token_bytes(trained)
    nats, num_tokens, num_bytes = [], 0, 0
    with_structure = trained.model.structure is not None
    sources = sources_of(trained.snapshot, Split.HELD_OUT, with_structure)
    sources = select_rows(sources, selection or RowSelection(), f"snapshot {trained.snapshot.snapshot_id[:12]}")
    for batch in held_out_batches(spread_rows(sources, num_rows), layout, batch_size, with_structure):
        nats.append(float(trained.model.loss(to_device(batch, "cpu"))[1].cross_entropy_sum))
        targets = batch.target_ids_BT[batch.loss_mask_BT]
        num_tokens += len(targets)
        num_bytes += int(bytes_V[targets].sum())
    total = math.fsum(nats)
    return {
        "bits_per_byte": total / math.log(2) / num_bytes if num_bytes else None,
        "nats_per_token": total / num_tokens if num_tokens else None,
        "num_bytes": num_bytes,
        "num_tokens": num_tokens,
    }


def losses_by(trained: TrainedModel, dimension: Dimension, num_rows: int) -> dict[str, dict[str, Any]]:
    """Return the held-out loss of each source, lane or license that has held-out rows, in the order of their names.

    Raises SnapshotError for rows of an earlier version, which have no lane and license.
    """
    subject = f"snapshot {trained.snapshot.snapshot_id[:12]}"
    sources = sources_of(trained.snapshot, Split.HELD_OUT)
    values = sorted({getattr(group, dimension) for source in sources for group in row_groups(source, subject)})
    return {
        value: held_out_loss(trained, num_rows, selection=RowSelection(((dimension, (value,)),))) for value in values
    }


def token_bytes(trained: TrainedModel) -> np.ndarray:
    """Return the number of bytes of each token: in byte-level BPE one per letter; none for special tokens."""
    content = json.loads(trained.snapshot.tokenizer_file.read_bytes())
    counts = np.zeros(trained.model.vocabulary_size, dtype=np.int64)
    for token, id_ in content["model"]["vocab"].items():
        counts[id_] = len(token)
    counts[list(trained.specials.values())] = 0
    return counts


def exact_middles(trained: TrainedModel, options: ScoreOptions) -> dict[str, Any]:
    """Count the middles that greedy decoding infills exactly, in prefix-suffix-middle order."""
    are_exact = []
    for prompt, middle in islice(_middles(trained, options), options.num_middles):
        greedy = SamplingOptions(num_tokens=len(middle), temperature=0.0)
        found = sample_tokens(trained.model, prompt, greedy, options.seed, trained.specials)
        are_exact.append(found.token_ids == middle)
    return {
        "exact_middle_fraction": sum(are_exact) / len(are_exact) if are_exact else None,
        "num_middles": len(are_exact),
    }


def compiled_samples(trained: TrainedModel, options: ScoreOptions) -> dict[str, Any]:
    """Compile the first halves of held-out pieces with their completions."""
    verdicts: Counter[CompileVerdict] = Counter()
    tokenizer = load_tokenizer(trained.snapshot) if options.num_samples else None
    sampling = SamplingOptions(num_tokens=options.num_tokens)
    pieces = (ids for ids in _pieces(trained) if len(ids) // 2 + options.num_tokens <= trained.max_tokens)
    for number, ids in enumerate(islice(pieces, options.num_samples)):
        half = ids[: max(1, len(ids) // 2)]
        sampled = sample_tokens(trained.model, half, sampling, options.seed + number, trained.specials)
        text = tokenizer.decode([*half[1:], *sampled.token_ids], skip_special_tokens=False)
        verdicts[compile_check(text)] += 1
    num_checked = sum(verdicts.values()) - verdicts[CompileVerdict.NO_COMPILER]
    return {
        "compiled_fraction": verdicts[CompileVerdict.COMPILED] / num_checked if num_checked else None,
        "compile_verdicts": {str(verdict): count for verdict, count in sorted(verdicts.items())},
    }


def _middles(trained: TrainedModel, options: ScoreOptions) -> Iterator[tuple[list[int], list[int]]]:
    """Yield prompts that end with the sentinel of a middle, and their middles, as far as they fit: one of each row, then others."""
    yield from _in_turn(_middles_of(row, trained, options) for row in _rows(trained))


def _middles_of(row: MappedRows, trained: TrainedModel, options: ScoreOptions) -> Iterator[tuple[list[int], list[int]]]:
    sentinels = RowLayout.of("", trained.snapshot.row_length, trained.specials).sentinels
    starts_P, ends_P = infill_rows(row, np.ones(1, np.int64), sentinels.eos, options.seed, MIDDLES)[:2]
    for ids, start, end in zip(_split(row), starts_P.tolist(), ends_P.tolist(), strict=True):
        if start < 0 or not 0 < end - start <= options.num_tokens:
            continue
        plain = Infilling(Form.PSM, start, end)
        slots = source_slots(plain, len(ids), has_eos=bool(ids[-1] == sentinels.eos))
        infilled = remap_ids(ids, slots, sentinels).tolist()
        first = infilled.index(sentinels.middle) + 1
        middle = infilled[first : first + end - start]
        if first + len(middle) <= trained.max_tokens:
            yield infilled[:first], middle


def _pieces(trained: TrainedModel) -> Iterator[list[int]]:
    return _in_turn((ids.tolist() for ids in _split(row)) for row in _rows(trained))


def _in_turn(many: Iterable[Iterator[ItemT]]) -> Iterator[ItemT]:
    """Yield the first item of each, then the second ones, and so on; nothing is read before it is asked for."""
    left = many
    while left:
        again = []
        for each in left:
            for item in islice(each, 1):
                again.append(each)
                yield item
        left = again


def _split(row: MappedRows) -> list[np.ndarray]:
    return np.split(np.asarray(row.input_ids[0]), np.cumsum(row.lengths_P))[:-1]


def _rows(trained: TrainedModel) -> Iterator[MappedRows]:
    """Yield all held-out rows in a keyed order, so that the first ones are of any source."""
    sources = sorted(sources_of(trained.snapshot, Split.HELD_OUT), key=lambda source: source.name)
    rows = [(source, row) for source in sources for row in range(len(source.rows))]
    for place in np.argsort(mix(np.arange(len(rows), dtype=np.uint64))).tolist():
        source, row = rows[place]
        yield source.rows[row]
