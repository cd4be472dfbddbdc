"""Stage verify: compose the candidate snapshot and prove it, from stored bytes alone."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from tokenizers import Tokenizer

from pipeline.contracts.gates import GATES
from pipeline.contracts.gates_seen import CANARIES, GATES_SEEN, GatesSeen
from pipeline.contracts.joined_parts import make_joined, shard_parts
from pipeline.contracts.part import (
    DUPLICATES_PART,
    VOCABULARY_PART,
    MadePart,
    Note,
    Part,
    PartJob,
    PartOutput,
    StageContext,
    StageOutput,
    Tables,
)
from pipeline.contracts.stage_report import StageReport, total
from pipeline.contracts.training_row import ROW_GROUP, STRUCTURE
from pipeline.core.errors import SourceError, StageError
from pipeline.core.params import Params
from pipeline.core.records import PackedRow, Split, TokenizedDocument, TrainingRow
from pipeline.core.schema import check_table
from pipeline.core.table_names import ENRICHED, PACKED, TOKENS, TRAINING_ROWS
from pipeline.formats.megatron import count_documents_that_differ, write_megatron
from pipeline.pins.held_out import HeldOut
from pipeline.stages.tokenize.vocabulary import SETTINGS, VOCABULARY_FILES, declared_vocabulary
from pipeline.stages.verify.columns import PROVED_FROM, count_documents_with_other_columns
from pipeline.stages.verify.consumer import CONSUMER_FIELD, CONSUMER_PARTS
from pipeline.stages.verify.fresh_encoding import count_documents_encoded_otherwise
from pipeline.stages.verify.list_values import flat_values, lists
from pipeline.stages.verify.packed_rows import (
    count_boundary_mismatches,
    count_commit_order_violations,
    count_documents_not_rebuilt,
    count_fractions_that_differ,
    count_trained_tokens,
)
from pipeline.stages.verify.packing_rule import count_pieces_cut_otherwise, count_rows_not_filled
from pipeline.stages.verify.params import VerifyParams
from pipeline.stages.verify.tokens import (
    count_ids,
    count_ids_out_of_range,
    count_misaligned_columns,
    count_round_trip_failures,
    count_special_ids,
    count_specials_as_control,
)
from pipeline.stages.verify.training_rows import (
    count_chunk_starts_that_differ,
    count_rows_of_other_groups,
    count_structures_that_differ,
    count_training_rows_that_differ,
)

VerifyContext = StageContext[VerifyParams]
MEGATRON = "megatron"
"""Place of a Megatron-LM dataset of the documents that a proof reads back, instead of one that it writes."""
USAGE = "usage.parquet"
"""Table of one part: how often each id occurs in a source."""
_PIECES: tuple[str, ...] = ("source_doc_ids", "source_doc_token_lengths", "piece_indices")
_OF_ROWS: tuple[str, ...] = ("input_ids", "filepath_stable_id", "file_local_commit_indices")
_LAID_OUT: tuple[str, ...] = (
    *("input_ids", "doc_ids", "loss_mask", "target_ids", "source_doc_token_lengths"),
    *("valid_token_count", "trained_token_count", "slack_tokens", "num_docs", "pack_id"),
)
_STRUCTURES: tuple[str, ...] = ("chunk_starts", *STRUCTURE)
"""Columns of packed rows and of tokens that counts read."""


def run(context: VerifyContext) -> StageOutput:
    """Compose the snapshot, prove every source's rows, run the canaries, and run the trainer on it."""
    tokenize = context.corpus_params.tokenize  # type: ignore[attr-defined]  # the composed CorpusParams
    settings = context.read(context.inputs[VOCABULARY_PART]).file(SETTINGS).read_bytes()
    vocabulary = declared_vocabulary(tokenize.vocabulary_name, settings)
    rows_format = {"vocabulary": vocabulary, "row_length": tokenize.row_length}
    composed, _ = context.make([_snapshot_part(context, rows_format)])
    snapshot_id = composed["snapshot"].object_id
    rule = tokenize.model_dump(mode="json", exclude={"vocabulary"})
    made, failed = _make(context, _parts(context, snapshot_id, {**rows_format, **rule}))
    proofs = {name: part for name, part in made.items() if name in _rows(context)}
    counts = total(part.report for part in proofs.values())
    measures = {**counts.measures, **_measures_of_all(context, proofs, vocabulary)}
    measures |= _held_out_measures(context.held_out, counts.measures)
    for name in ("canaries", *CONSUMER_PARTS):
        measures |= made[name].report.measures
    ids = {name: part.object_id for name, part in made.items()}
    canaries = context.read(ids["canaries"])
    unseen = GatesSeen(**canaries.json(GATES_SEEN)).missing()
    _refuse_blind(unseen)
    measures["num_gates_not_seen_red"] = len(unseen)
    missed = tuple(name for name, seen in canaries.json(CANARIES).items() if not seen)
    notes = _notes({"Canaries that were not caught": missed, "Gates that no offense turned red": unseen})
    return StageOutput({**ids, "snapshot": snapshot_id}, replace(counts, measures=measures), failed, notes=notes)


def _rows(context: VerifyContext) -> dict[str, str]:
    """Return the parts that hold rows: source -> object id."""
    return {name: object_id for name, object_id in context.inputs.items() if name != VOCABULARY_PART}


def _refuse_blind(unseen: Collection[str]) -> None:
    """Raise StageError where none of the gates over canaries can fail: no verdict would say so."""
    over_canaries = [gate.name for gate in GATES if gate.measure in ("num_canaries_missed", "num_gates_not_seen_red")]
    if set(over_canaries) <= set(unseen):
        found = f"no offense turns {' or '.join(over_canaries)} red"
        raise StageError("gates of stage verify", found, "gates that can fail", "Correct what judges them.")


def _notes(names: Mapping[str, Sequence[str]]) -> tuple[Note, ...]:
    return tuple(Note(f"{what}: {', '.join(found)}.") for what, found in names.items() if found)


def _make(
    context: VerifyContext, wanted: Mapping[str, Sequence[Part]]
) -> tuple[dict[str, MadePart], dict[str, SourceError]]:
    """Make the parts. Workers do not know the gates of a program: its canaries are sent alone, and so in this process."""
    made: dict[str, MadePart] = {}
    failed: dict[str, SourceError] = {}
    alone = [name for name, (part, *_) in wanted.items() if part.always] if GATES.added else []
    together = {name: parts for name, parts in wanted.items() if name not in alone}
    for batch in (together, *({name: wanted[name]} for name in alone)):
        some_made, some_failed = make_joined(context, batch)
        made |= some_made
        failed |= some_failed
    return dict(sorted(made.items())), failed


def _snapshot_part(context: VerifyContext, rows_format: Mapping[str, Any]) -> Part:
    rules, rows = context.upstream("normalize"), _rows(context)
    inputs = {f"rows/{name}": object_id for name, object_id in rows.items()}
    inputs |= {f"rules/{name}": rules[name] for name in rows}
    inputs |= {DUPLICATES_PART: rules[DUPLICATES_PART], VOCABULARY_PART: context.inputs[VOCABULARY_PART]}
    return Part(
        name="snapshot",
        function="compose",
        params=Params(),  # limits of gates do not change the data
        version=1,
        inputs=inputs,
        identity={
            **rows_format,
            "weights": {pin.name: pin.weight for pin in context.pins if pin.name in rows},
            "pins": {pin.name: pin.identity() for pin in context.pins},
            **_held_out_fields(context.held_out, rows),
        },
    )


def _held_out_fields(rule: HeldOut, sources: Iterable[str]) -> dict[str, Any]:
    """Return what a snapshot says of the rule: the sources that it holds out as a whole, and all of it where it judges files."""
    held_out = sorted(name for name in sources if rule.holds_out(name))
    is_more = bool(rule.globs) or rule.hash_fraction is not None
    return {"held_out": held_out, **({"held_out_rule": rule.model_dump(mode="json")} if is_more else {})}


def _held_out_measures(rule: HeldOut, counts: Mapping[str, float]) -> dict[str, float]:
    """Return of how many sources, globs and hashes the rule is, and the training rows beside which it has held out none."""
    num_rules = len(rule.sources) + len(rule.globs) + int(rule.hash_fraction is not None)
    is_idle = num_rules > 0 and not counts[f"num_rows_{Split.HELD_OUT}"]
    return {
        "num_held_out_rules": num_rules,
        "num_rows_without_held_out": counts[f"num_rows_{Split.TRAIN}"] if is_idle else 0,
    }


def _parts(context: VerifyContext, snapshot_id: str, rows_format: Mapping[str, Any]) -> dict[str, list[Part]]:
    """Return the parts by name, those of a source one a shard, the longest first.

    The trainer's process loads torch while another worker proves the rows.
    """
    # The trainer that runs on the candidate decides its proof, not the snapshot.
    identity = {CONSUMER_FIELD: context.consumer}
    consumers = [
        Part(
            name=name,
            function=name,
            params=context.params,
            inputs={"snapshot": snapshot_id},
            identity=identity,
            places={"store": context.store_root},
        )
        for name in CONSUMER_PARTS
    ]
    texts, vocabulary = context.inputs_of("tokenize"), context.inputs[VOCABULARY_PART]
    kept = {name: context.read(vocabulary).file(name) for name in VOCABULARY_FILES}
    canaries = Part("canaries", "canaries", context.corpus_params, places=kept, always=True)
    proofs = {}
    for source, object_id in _rows(context).items():
        stored, read = context.read(object_id), context.read(texts[source])
        of_shard = {rows.object_id: text.object_id for rows, text in zip(stored.shards, read.shards, strict=True)}

        def part_of(name: str, rows: Tables, of_shard: Mapping[str, str] = of_shard) -> Part:
            inputs = {"rows": rows.object_id, "texts": of_shard[rows.object_id], VOCABULARY_PART: vocabulary}
            return Part(name, "prove", Params(), inputs, rows_format)  # limits of gates do not change the proofs

        proofs[source] = shard_parts(source, stored, part_of)
    return {**{part.name: [part] for part in (*consumers, canaries)}, **proofs}


def prove_source(job: PartJob) -> PartOutput:
    """Prove as a part everything about one source's tokens and rows that needs no other source."""
    rows, vocabulary_size = job.inputs["rows"], job.identity["vocabulary"]["size"]
    tokenizer = _tokenizer(job.inputs[VOCABULARY_PART].file("tokenizer.json"))
    tokens = rows.table(TOKENS)
    packed = {str(split): rows.table(PACKED[split]) for split in Split}
    training = {str(split): rows.table(TRAINING_ROWS[split]) for split in Split}
    ids = [_only(each, "input_ids") for each in (tokens, *packed.values())]
    tables: list[tuple[pa.Table, type]] = [(tokens, TokenizedDocument)]
    tables += [(table, PackedRow) for table in packed.values()] + [(table, TrainingRow) for table in training.values()]
    measures = {
        "num_documents": tokens.num_rows,
        "num_schema_mismatches": sum(_is_mismatch(table, record) for table, record in tables),
        "num_ids_out_of_range": sum(job.count(count_ids_out_of_range, each, vocabulary_size) for each in ids),
        **_token_measures(job, tokens, tokenizer),
        **_row_measures(job, tokens, packed, training),
        "num_pieces_packed_otherwise": _num_packed_otherwise(job, tokens, packed.values(), tokenizer),
    }
    usage = pa.table({"count": count_ids(tokens, vocabulary_size)})
    num_bytes = int(np.sum(np.asarray(tokens["num_bytes"]), dtype=np.int64))
    report = StageReport(
        tokens.num_rows, tokens.num_rows, num_bytes_in=num_bytes, num_bytes_out=num_bytes, measures=measures
    )
    return PartOutput({USAGE: usage}, report)


def _token_measures(job: PartJob, tokens: pa.Table, tokenizer: Tokenizer) -> dict[str, float]:
    texts = job.inputs["texts"].table(ENRICHED, list(PROVED_FROM))
    specials, ids = job.identity["vocabulary"]["specials"], _only(tokens, "input_ids")
    decoded = _only(tokens, "document_id", "text_sha256", "input_ids"), _only(texts, "document_id", "text")
    encoded = _only(tokens, "document_id", "input_ids"), decoded[1], tokenizer, job.inputs["texts"].object_id
    read_back = ids, specials["<|eos|>"], job.places.get(MEGATRON)
    return {
        "num_tokens": len(flat_values(tokens["input_ids"])),
        "num_round_trip_failures": job.count(count_round_trip_failures, *decoded, tokenizer),
        "num_documents_encoded_otherwise": job.count(count_documents_encoded_otherwise, *encoded),
        "num_misaligned_columns": job.count(count_misaligned_columns, tokens),
        "num_documents_with_other_columns": job.count(count_documents_with_other_columns, tokens, texts, tokenizer),
        "num_special_ids_in_text": job.count(count_special_ids, ids, tuple(specials.values())),
        "num_documents_megatron_changes": job.count(_megatron_read_back, *read_back),
    }


def _only(table: pa.Table, *names: str) -> pa.Table:
    """Return the columns that a count reads, as far as they are there: what is given to it is all that it depends on."""
    found = table.column_names
    return table.select([name for name in names if name in found])


@lru_cache(maxsize=2)
def _tokenizer(path: Path) -> Tokenizer:
    """Load a stored tokenizer, whose path names its object: a large one takes as long as the proof of a small source."""
    return Tokenizer.from_str(path.read_text(encoding="utf-8"))


def _row_measures(
    job: PartJob, tokens: pa.Table, packed: Mapping[str, pa.Table], training: Mapping[str, pa.Table]
) -> dict[str, float]:
    specials, row_length = job.identity["vocabulary"]["specials"], job.identity["row_length"]
    begin_id, end_id, pad_id = (specials[name] for name in ("<|bos|>", "<|eos|>", "<|pad|>"))
    tables, num_differing = packed.values(), 0
    for split, rows in training.items():
        of_split = _only(tokens.filter(pc.equal(tokens["split"], split)), "document_id", "input_ids", *_STRUCTURES)
        cold = of_split, _only(packed[split], *_PIECES)
        num_differing += job.count(count_training_rows_that_differ, _only(packed[split], *_PIECES, *_OF_ROWS), rows)
        of_rows = _only(packed[split], "source_doc_ids"), _only(rows, *ROW_GROUP)
        num_differing += job.count(count_rows_of_other_groups, _only(tokens, "document_id", *ROW_GROUP), *of_rows)
        asked = (begin_id, end_id, pad_id), job.identity["with_structure"]
        num_differing += job.count(count_structures_that_differ, *cold, rows, *asked)
        num_differing += job.count(count_chunk_starts_that_differ, *cold, rows, (begin_id, end_id, pad_id))
    compiled = _only(tokens, "document_id", "provenance", "provenances", "input_ids")
    whole = _only(tokens, "document_id", "split", "input_ids")
    pieces = {split: _only(table, "split", "input_ids", *_PIECES) for split, table in packed.items()}
    return {
        "num_boundary_mismatches": sum(
            job.count(count_boundary_mismatches, _only(table, *_LAID_OUT), row_length, specials) for table in tables
        ),
        "num_rows_of_commits": sum(table.num_rows - table["filepath_stable_id"].null_count for table in tables),
        "num_fractions_that_differ": sum(
            job.count(count_fractions_that_differ, compiled, _only(table, *_PIECES, "build_aware_fraction"))
            for table in tables
        ),
        "num_commit_order_violations": sum(count_commit_order_violations(tokens, table) for table in tables),
        "num_training_rows_that_differ": num_differing,
        "num_documents_not_rebuilt": job.count(count_documents_not_rebuilt, whole, pieces, begin_id, end_id),
        "num_trained_tokens": count_trained_tokens(tables),
        **{f"num_rows_{split}": table.num_rows for split, table in packed.items()},
        "num_slots": sum(table.num_rows for table in tables) * row_length,
    }


def _num_packed_otherwise(job: PartJob, tokens: pa.Table, packed: Iterable[pa.Table], tokenizer: Tokenizer) -> int:
    """Return how many pieces are cut, and rows filled, otherwise than the Params of tokenize have it."""
    asked = {name: job.identity[name] for name in ("row_length", "packing", "window_pieces", "max_cut_waste_fraction")}
    cut, grouped = _only(tokens, "document_id", "input_ids", "chunk_starts"), _only(tokens, "document_id", *ROW_GROUP)
    return sum(
        job.count(count_pieces_cut_otherwise, cut, _only(table, *_PIECES), tokenizer, asked)
        + job.count(count_rows_not_filled, grouped, _only(table, "filepath_stable_id", *_PIECES), asked)
        for table in packed
    )


def _measures_of_all(
    context: VerifyContext, proofs: dict[str, MadePart], vocabulary: Mapping[str, Any]
) -> dict[str, float]:
    size, specials = vocabulary["size"], vocabulary["specials"]
    usage = np.zeros(size, np.int64)
    texts: dict[str, set[str]] = {split: set() for split in Split}
    for name, part in proofs.items():
        for shard in context.read(part.object_id).shards:
            counts = shard.table(USAGE)["count"]
            if len(counts) != size:
                raise StageError(f"{USAGE} of {name}", f"{len(counts)} rows", f"{size}", "Build again.")
            usage += np.asarray(counts)
        table = context.read(context.inputs[name]).table(TOKENS, ["text_sha256", "split"])
        for digest, split in zip(table["text_sha256"].to_pylist(), table["split"].to_pylist(), strict=True):
            texts[split].add(digest)
    num_tokens, num_trained, num_slots = (
        sum(part.report.measures[name] for part in proofs.values())
        for name in ("num_tokens", "num_trained_tokens", "num_slots")
    )
    tokenizer = _tokenizer(context.read(context.inputs[VOCABULARY_PART]).file("tokenizer.json"))
    return {
        "bytes_per_token": sum(part.report.num_bytes_in for part in proofs.values()) / max(1, num_tokens),
        "trained_fraction": num_trained / max(1, num_slots),
        "unused_vocabulary_fraction": float((usage[len(specials) :] == 0).mean()),
        "num_texts_held_out": len(texts[Split.HELD_OUT]),
        "num_texts_in_two_splits": len(texts[Split.TRAIN] & texts[Split.HELD_OUT]),
        "num_special_spellings_encoded_as_control": count_specials_as_control(tokenizer, specials),
    }


def _megatron_read_back(tokens: pa.Table, end_id: int, prefix: Path | None) -> int:
    """Count documents that do not come back from a Megatron-LM dataset: from the given one, or one that is written of them."""
    documents = lists(tokens["input_ids"])
    if prefix is not None:
        return count_documents_that_differ(prefix, documents, end_id)
    with TemporaryDirectory() as folder:
        write_megatron(Path(folder) / "documents", documents, end_id)
        return count_documents_that_differ(Path(folder) / "documents", documents, end_id)


def _is_mismatch(table: pa.Table, record: type) -> int:
    try:
        check_table(table, record, record.__name__)
    except StageError:
        return 1
    return 0
