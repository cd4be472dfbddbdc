"""What a checkpoint knows of rows that it was never trained on.

    bits per byte   sum of the cross-entropy of held-out tokens / ln 2 / bytes that these tokens spell
    exact middles   share of held-out pieces, infilled once at chunk bounds, whose middle is written token for token
    compiled        share of completions, begun with a held-out piece's first half, that a compiler takes with it

Sequences are the whole held-out split in stored order, up to a limit; greedy where one answer is right.
"""

import json
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
import torch

from pipeline.core.records import Split
from pipeline.sandbox.compile_check import CompileVerdict, compile_check
from pipeline.store.store import Store
from trainer.config.training import InfillingParams
from trainer.data.infilling import Form, Infilling, remap_ids, source_slots
from trainer.data.loader import held_out_batches
from trainer.data.mapped_rows import MappedRows
from trainer.data.open_loader import sources_of
from trainer.data.row_layout import RowLayout, infill_rows
from trainer.inference.sampling import Draw, Trained, draw_tokens, load_tokenizer, open_trained
from trainer.train.step import to_device

MIDDLES = InfillingParams(rate=1.0, spm_rate=0.0, chunk_rate=1.0)


@dataclass(frozen=True)
class Extent:
    """How much is looked at, at most."""

    num_rows: int = 64
    num_middles: int = 16
    num_samples: int = 4
    num_tokens: int = 48
    seed: int = 42


def evaluate(store: Store, checkpoint_id: str, extent: Extent) -> dict[str, Any]:
    """The measures of a checkpoint. One that there is nothing for is None."""
    trained = open_trained(store, checkpoint_id, extent.seed)
    return {
        "checkpoint_id": checkpoint_id,
        "snapshot_id": trained.snapshot.snapshot_id,
        **held_out_loss(trained, extent.num_rows),
        **exact_middles(trained, extent),
        **compiled_samples(trained, extent),
    }


def sentences(found: dict[str, Any]) -> list[str]:
    """The measures for people."""
    bits, middles, rate = found["bits_per_byte"], found["exact_middle_fraction"], found["compiled_fraction"]
    verdicts = ", ".join(f"{count} {verdict}" for verdict, count in found["compile_verdicts"].items())
    return [
        f"held-out bits a byte: {'no held-out rows' if bits is None else f'{bits:.4f}'} over {found['num_bytes']:,} bytes",
        f"middles written exactly: {'none to write' if middles is None else f'{middles:.1%}'} of {found['num_middles']}",
        f"completions that compile: {'not known' if rate is None else f'{rate:.1%}'} ({verdicts or 'none drawn'})",
    ]


@torch.no_grad()
def held_out_loss(trained: Trained, num_rows: int, batch_size: int = 4) -> dict[str, Any]:
    """Cross-entropy of the held-out rows, in bits a byte of text and in nats a token."""
    layout = RowLayout.of(trained.snapshot.snapshot_id, trained.snapshot.row_length, trained.specials)
    bytes_V = token_bytes(trained)
    nats, num_tokens, num_bytes, left = [], 0, 0, num_rows
    with_structure = trained.model.structure is not None
    sources = sources_of(trained.snapshot, Split.HELD_OUT, with_structure)
    for batch in held_out_batches(sources, layout, batch_size, with_structure):
        rows = slice(0, min(left, batch_size))
        nats.append(float(trained.model.loss(to_device(batch, "cpu", rows))[1].cross_entropy_sum))
        targets = batch.target_ids_BT[rows][batch.loss_mask_BT[rows]]
        num_tokens += len(targets)
        num_bytes += int(bytes_V[targets].sum())
        left -= batch_size
        if left <= 0:
            break
    total = math.fsum(nats)
    return {
        "bits_per_byte": total / math.log(2) / num_bytes if num_bytes else None,
        "nats_per_token": total / num_tokens if num_tokens else None,
        "num_bytes": num_bytes,
        "num_tokens": num_tokens,
    }


def token_bytes(trained: Trained) -> np.ndarray:
    """How many bytes each token spells. In byte-level BPE a token has one letter a byte; special tokens spell none."""
    content = json.loads(trained.snapshot.tokenizer_file.read_bytes())
    counts = np.zeros(trained.model.vocabulary_size, dtype=np.int64)
    for token, id_ in content["model"]["vocab"].items():
        counts[id_] = len(token)
    counts[list(trained.specials.values())] = 0
    return counts


def exact_middles(trained: Trained, extent: Extent) -> dict[str, Any]:
    """How many middles come out exactly, greedily and in prefix-suffix-middle order."""
    draw, num_right, num_asked = Draw(temperature=0.0), 0, 0
    for prompt, middle in islice(_middles(trained, extent), extent.num_middles):
        found = draw_tokens(trained.model, prompt, replace(draw, num_tokens=len(middle)), extent.seed, trained.specials)
        num_right += found.token_ids == middle
        num_asked += 1
    return {"exact_middle_fraction": num_right / num_asked if num_asked else None, "num_middles": num_asked}


def compiled_samples(trained: Trained, extent: Extent) -> dict[str, Any]:
    """What a compiler says of first halves of held-out pieces with what the model goes on with."""
    verdicts: Counter[CompileVerdict] = Counter()
    tokenizer = load_tokenizer(trained.snapshot) if extent.num_samples else None
    draw = Draw(num_tokens=extent.num_tokens)
    pieces = (ids for ids in _pieces(trained) if len(ids) // 2 + extent.num_tokens <= trained.max_tokens)
    for number, ids in enumerate(islice(pieces, extent.num_samples)):
        half = ids[: max(1, len(ids) // 2)]
        drawn = draw_tokens(trained.model, half, draw, extent.seed + number, trained.specials)
        text = tokenizer.decode([*half[1:], *drawn.token_ids], skip_special_tokens=False)
        verdicts[compile_check(text)] += 1
    asked = sum(verdicts.values()) - verdicts[CompileVerdict.NO_COMPILER]
    return {
        "compiled_fraction": verdicts[CompileVerdict.COMPILED] / asked if asked else None,
        "compile_verdicts": {str(verdict): count for verdict, count in sorted(verdicts.items())},
    }


def _middles(trained: Trained, extent: Extent) -> Iterator[tuple[list[int], list[int]]]:
    """Prompts that end with the middle's sentinel, and the middles, of those that fit."""
    sentinels = RowLayout.of("", trained.snapshot.row_length, trained.specials).sentinels
    for row in _rows(trained):
        starts_P, ends_P = infill_rows(row, np.ones(1, np.int64), sentinels.eos, extent.seed, MIDDLES)[:2]
        for ids, start, end in zip(_split(row), starts_P.tolist(), ends_P.tolist(), strict=True):
            if start < 0 or not 0 < end - start <= extent.num_tokens:
                continue
            plain = Infilling(Form.PSM, start, end)
            slots = source_slots(plain, len(ids), has_eos=bool(ids[-1] == sentinels.eos))
            infilled = remap_ids(ids, slots, sentinels).tolist()
            first = infilled.index(sentinels.middle) + 1
            middle = infilled[first : first + end - start]
            if first + len(middle) <= trained.max_tokens:
                yield infilled[:first], middle


def _pieces(trained: Trained) -> Iterator[list[int]]:
    return (ids.tolist() for row in _rows(trained) for ids in _split(row))


def _split(row: MappedRows) -> list[np.ndarray]:
    return np.split(np.asarray(row.input_ids[0]), np.cumsum(row.lengths_P))[:-1]


def _rows(trained: Trained) -> Iterator[MappedRows]:
    for source in sorted(sources_of(trained.snapshot, Split.HELD_OUT), key=lambda source: source.name):
        yield from (source.rows[row] for row in range(len(source.rows)))
