"""GATE_OFFENSES: for each gate the offense that it is there for, planted into the build of the made corpus.

A gate without an entry here has its other mutations all the same; `test_quick_tier.py` asks for the entry.
"""

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa

from pipeline.contracts.gates import CONSERVED, GATES
from pipeline.contracts.part import PartJob
from pipeline.core.digests import document_id, text_sha256
from pipeline.core.records import Document, EnrichedDocument, SourceFile
from pipeline.pins.build_block import BuildBlock
from pipeline.pins.held_out import HeldOut
from pipeline.pins.local_tree import tree_digest
from pipeline.stages.collect.kinds.local import LocalPin
from pipeline.stages.normalize.contamination.evaluation_items import shipped_items
from pipeline.stages.normalize.drop import Drop
from pipeline.stages.stages import STAGES
from tests.mutations import plant
from tests.mutations.bench import Bench
from tests.mutations.offenses.normalize_faults import expect_another_language, scrub_statements
from tests.mutations.offenses.row_offenses import OF_ROWS
from tests.mutations.offenses.token_faults import cut_short, spell_all_in_bytes, spell_words_in_characters

PART = {
    stage.name: functions[0]
    for stage in STAGES
    if (functions := [function for kind in stage.parts if kind.only is None for function in kind.functions])
}
"""The part function that reads each source in a stage that makes parts of them: that of the first kind."""


def offend(gate: str, bench: Bench) -> None:
    """Plant the offense of a gate, if one is written."""
    if gate in OF_ROWS:
        bench.since = "tokenize"
        plant.alter_tables("tokenize", "source", OF_ROWS[gate])
    elif gate in GATE_OFFENSES:
        GATE_OFFENSES[gate](bench)


def is_lost(name: str, salt: str = "", one_in: int = 4) -> bool:
    """Return for one in `one_in` of names whether it is lost: another choice for another salt."""
    return hashlib.sha256(f"{salt}:{name}".encode()).digest()[0] % one_in == 0


def lose(stage: str, bench: Bench, salt: str = "", function: str | None = None) -> None:
    """Have a stage lose a quarter of what it reads, without a word."""
    bench.since = stage
    if stage == "collect":
        plant.wrap("pipeline.stages.collect.contents:SourceContents.__init__", partial(_lose_files, salt))
    else:
        plant.thin(stage, function or PART[stage], lambda name: not is_lost(name, salt))


def _lose_files(salt: str, init: Any) -> Any:
    def thinned(self: Any, files: Any, *given: Any, **named: Any) -> None:
        lost = salt if plant.is_corpus() else None
        init(self, tuple(f for f in files if lost is None or not is_lost(f.path, lost)), *given, **named)

    return thinned


# Offenses in the code of a stage, in its inputs and in its parameters.


def _wrong_digest(bench: Bench) -> None:
    bench.since = "collect"
    bench.pins = (bench.pins[0].model_copy(update={"digest": "0" * 64}), *bench.pins[1:])


def _no_revision(bench: Bench) -> None:
    bench.since = "collect"
    plant.alter_record(SourceFile, lambda file: {"revision": ""} if is_lost(file["path"]) else {})


def _no_license_metadata(bench: Bench) -> None:
    bench.since = "collect"
    bench.pins = (bench.pins[0].model_copy(update={"declared_license": ""}), *bench.pins[1:])


def _no_code(bench: Bench) -> None:
    bench.since = "collect"
    plant.wrap(
        "pipeline.stages.collect.contents:SourceContents.__init__",
        lambda init: (
            lambda self, files, *given, **named: init(self, () if plant.is_corpus() else files, *given, **named)
        ),
    )


def _replacement_characters(bench: Bench) -> None:
    bench.since = "normalize"
    plant.change_result(
        "pipeline.stages.normalize.encodings.decode:decode",
        lambda found: (
            replace(found, text=found.text.replace("e", "\ufffd", 1))
            if plant.is_corpus() and not isinstance(found, Drop)
            else found
        ),
    )


def change_texts(change: Callable[[str], str]) -> None:
    """Have normalize store other texts than those that it made, with digests that fit them."""

    def changed(fields: dict[str, Any]) -> dict[str, Any]:
        if not is_lost(fields["path"]):
            return {}
        text = change(fields["text"])
        sha256 = text_sha256(text)
        name = document_id(fields["source"], fields["path"], sha256)
        return {"text": text, "text_sha256": sha256, "num_bytes": len(text.encode()), "document_id": name}

    plant.alter_record(Document, changed)


def _unlicensed(bench: Bench) -> None:
    bench.since = "normalize"
    plant.alter_record(Document, lambda file: {"license": "GPL-3.0-only"} if is_lost(file["path"]) else {})


def _secret(bench: Bench) -> None:
    bench.since = "normalize"
    change_texts(lambda text: f"/* {'AKIA' + 'QWERTYUIOPASDFGH'} */\n{text}")


def _blind_scrubber(bench: Bench) -> None:
    """A scrubber that finds nothing, in texts and when it scans again: only rules of others see what is left."""
    change_texts(lambda text: f"/* {'AKIA' + 'QWERTYUIOPASDFGH'} */\n{text}")
    bench.since = "normalize"
    plant.change_result(
        "pipeline.stages.normalize.scrub.scrub:Scrubber._find", lambda found: [] if plant.is_corpus() else found
    )


def _blind_license_rule(bench: Bench) -> None:
    """A license rule that takes every comment for silence: only words that share nothing with it see what is left."""
    change_texts(lambda text: f"/* For non-commercial use only. */\n{text}")
    bench.since = "normalize"
    plant.change_result(
        "pipeline.stages.normalize.license.prose.comments:prose_of", lambda found: [] if plant.is_corpus() else found
    )


def _blind_decoder(bench: Bench) -> None:
    """A decoder that takes every UTF-8 for sound: only shapes that share nothing with it see what was encoded twice."""
    change_texts(lambda text: f"// r\u00c3\u00a9sum\u00c3\u00a9\n{text}")
    bench.since = "normalize"
    plant.change_result(
        "pipeline.stages.normalize.encodings.decode:find_doubling", lambda found: None if plant.is_corpus() else found
    )


def _solution(bench: Bench) -> None:
    bench.since = "normalize"
    solution = shipped_items()[0].solution
    change_texts(lambda text: f"{text}\n{solution}\n")


def _duplicates_stay(bench: Bench) -> None:
    bench.since = "normalize"
    plant.change_result(
        "pipeline.stages.normalize.duplicates.duplicates:find_duplicates",
        lambda found: [] if plant.is_corpus() else found,
    )


def _containers_stay(bench: Bench) -> None:
    """Texts that hold all of another's, which no signature tells."""
    bench.since = "normalize"
    before: list[str] = []

    def joined(text: str) -> str:
        before.append(text)
        return "\n".join(before)

    change_texts(joined)


def drop_most(bench: Bench, keep: Callable[[str], bool] = lambda text: is_lost(text, one_in=8)) -> None:
    """Have a filter drop most files as generated."""
    bench.since = "normalize"
    texts: list[str] = []
    plant.wrap(
        "pipeline.stages.normalize.filters.filters:score",
        lambda score: lambda path, text, *more: (texts.append(text), score(path, text, *more))[1],
    )
    plant.wrap(
        "pipeline.stages.normalize.filters.filters:first_broken",
        lambda found: (
            lambda *given: Drop("generated", "planted") if plant.is_corpus() and not keep(texts[-1]) else found(*given)
        ),
    )


def _drop_all(bench: Bench) -> None:
    drop_most(bench, lambda text: False)


def _chunks_end_early(bench: Bench) -> None:
    bench.since = "enrich"
    plant.change_result(
        "pipeline.stages.enrich.chunking.sizes:sized_chunks",
        lambda chunks: list(chunks)[:-1] if plant.is_corpus() else chunks,
    )


def _no_provenance(bench: Bench) -> None:
    bench.since = "enrich"
    plant.alter_record(EnrichedDocument, lambda row: {"provenance": ""} if is_lost(row["path"]) else {})


def _no_provenance_of_bytes(bench: Bench) -> None:
    bench.since = "enrich"
    plant.alter_record(EnrichedDocument, lambda row: {"provenance_codes": [0] * len(row["provenance_codes"])})


def built_source(bench: Bench, command: str, block: dict[str, Any]) -> None:
    """Add a source of two files with a compile database, whose only command is given, and a build block."""
    bench.since = "collect"
    root = bench.folder / "kestrel"
    root.mkdir()
    for name in ("wing", "tail"):
        body = "\n".join(f"int {name}_{n}(int x) {{ return x * {n + 2} + {n * n}; }}" for n in range(30))
        (root / f"{name}.cpp").write_text(f"// SPDX-License-{'Identifier'}: MIT\n{body}\n")
    entry = {"directory": "/build/kestrel", "file": "wing.cpp", "command": command}
    (root / "compile_commands.json").write_text(json.dumps([entry]))
    pin = LocalPin(name="kestrel", path=root, digest=tree_digest(root), declared_license="MIT")
    pin = pin.model_copy(update={"build": BuildBlock(database="compile_commands.json", **block)})
    bench.pins = tuple(sorted((*bench.pins, pin), key=lambda each: each.name))


def _not_compiled(bench: Bench) -> None:
    built_source(bench, "g++ -c wing.cpp", {"min_build_aware_fraction": 1.0})


def _local_path(bench: Bench) -> None:
    plant.wrap("pipeline.stages.enrich.compiler.source_tree:SourceTree.scrubbed", lambda _: lambda self, value: value)
    built_source(bench, 'g++ -DPLACE="/opt/x/include" -c wing.cpp', {})


def _does_not_parse(bench: Bench) -> None:
    bench.since = "enrich"
    syntax = bench.params.enrich.syntax.model_copy(update={"max_num_bytes": 1_000})
    bench.params = bench.params.model_copy(update={"enrich": bench.params.enrich.model_copy(update={"syntax": syntax})})


def _all_held_out(bench: Bench) -> None:
    bench.since = "normalize"
    bench.params = bench.params.model_copy(update={"held_out": HeldOut(sources=tuple(pin.name for pin in bench.pins))})


def _held_out_file_is_dropped(bench: Bench) -> None:
    bench.since = "normalize"
    bench.params = bench.params.model_copy(update={"held_out": HeldOut(globs=("odds/shapes/empty.c",))})


def _long_rows(bench: Bench) -> None:
    bench.since = "tokenize"
    rows = bench.params.tokenize.model_copy(update={"row_length": 65_536})
    bench.params = bench.params.model_copy(update={"tokenize": rows})


def _two_splits(bench: Bench) -> None:
    """Have verify read a held-out text among the training ones; before verify, gates of other stages would see it first."""
    bench.since = "verify"

    def measured(measure: Any) -> Any:
        def of_all(context: Any, *given: Any) -> Any:
            return measure(_OneTextInAllSplits(context) if plant.is_corpus() else context, *given)

        return of_all

    plant.wrap("pipeline.stages.verify.stage:_measures_of_all", measured)


class _OneTextInAllSplits:
    """A stage's context in which the first document of each source has the same text."""

    def __init__(self, context: Any) -> None:
        self._context = context
        self.inputs = context.inputs

    def read(self, object_id: str) -> Any:
        """Read an object, and its tokens under that text."""
        stored = self._context.read(object_id)
        return _WithOneText(stored) if stored.kind == "tokenize/part" else stored


class _WithOneText:
    """Tokens of a source of which the first has another text."""

    def __init__(self, stored: Any) -> None:
        self._stored = stored

    def table(self, name: str, columns: list[str]) -> pa.Table:
        """Read a table."""
        table = self._stored.table(name, columns)
        return plant.edit_column(table, "text_sha256", lambda values: ["0" * 64, *values[1:]])


def _megatron_loses_a_token(bench: Bench) -> None:
    plant.wrap(
        "pipeline.formats.megatron:write_megatron",
        lambda write: lambda path, documents, end_id: write(path, [each[:-1] for each in documents], end_id),
    )


def change_tokenizer(content: bytes) -> bytes:
    """Return a tokenizer.json in which the special spellings are added tokens, as other programs save them."""
    tokenizer = json.loads(content)
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    vocabulary = tokenizer["model"]["vocab"]
    specials = sorted((number, text) for text, number in vocabulary.items() if text.startswith("<|"))
    tokenizer["added_tokens"] = [{"id": number, "content": text, **flags} for number, text in specials]
    return json.dumps(tokenizer, ensure_ascii=False).encode()


def _special_spellings(bench: Bench) -> None:
    bench.since = "tokenize"
    name = "tokenizer.json"
    plant.alter_output(
        "tokenize",
        "vocabulary",
        lambda job, output: replace(output, files={**output.files, name: change_tokenizer(output.files[name])}),
    )


def _no_documents(bench: Bench) -> None:
    """Have the proofs read no document."""

    def changed(job: dict[str, Any]) -> dict[str, Any]:
        tables = job["inputs"]
        is_proof = "rows" in tables and "texts" in tables
        return (
            {"inputs": {label: plant.ThinnedTables(tables[label], keep_none) for label in tables}} if is_proof else {}
        )

    plant.alter_record(PartJob, changed)


def keep_none(name: str) -> bool:
    """Return for no name that its row is kept."""
    return False


def _no_canaries(bench: Bench) -> None:
    plant.change_result("pipeline.build.canaries.canaries:send", lambda sent: replace(sent, caught={}))


def _offenses_left_out(bench: Bench) -> None:
    """Leave out the offenses of one gate."""
    from pipeline.build.canaries.offenses import OFFENSES

    for offense in OFFENSES:
        if "tokens_are_in_range" in offense.gates:
            del OFFENSES._entries[offense.name]


def _rule_is_off(bench: Bench) -> None:
    plant.constant("pipeline.stages.normalize.contamination.decontaminate:Decontaminator.find", None)


def relabel_headers(bench: Bench) -> None:
    """Have the headers of a held-out source labeled as training documents."""
    bench.since = "normalize"
    plant.alter_record(Document, lambda file: {"split": "train"} if file["path"].endswith(".hpp") else {})


def _answer(command: str, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Callable[[Bench], None]:
    """Return an offense of the trainer: it answers something else than it did."""

    def offense(bench: Bench) -> None:
        known = json.loads((bench.base / "answers.json").read_bytes())["trainer"]
        bench.answers[command] = change(known[command])

    return offense


def _differing(answer: dict[str, Any]) -> dict[str, Any]:
    first, *others = answer["checks"]
    return {**answer, "passed": False, "checks": [{**first, "num_differing": 1, "passed": False}, *others]}


def _of_one_row(answer: dict[str, Any]) -> dict[str, Any]:
    return {**answer, "checks": [{**check, "num_compared": 1} for check in answer["checks"]]}


GATE_OFFENSES: dict[str, Callable[[Bench], None]] = {
    "every_pin_verified": _wrong_digest,
    "every_file_has_a_revision": _no_revision,
    "every_pin_declares_a_license": _no_license_metadata,
    "sources_hold_code": _no_code,
    "decoding_loses_nothing": _replacement_characters,
    "every_document_is_licensed": _unlicensed,
    "no_secret_is_left": _secret,
    "no_known_secret_is_left": _blind_scrubber,
    "no_restriction_is_left": _blind_license_rule,
    "no_gibberish_is_left": _blind_decoder,
    "no_evaluation_item_is_left": _solution,
    "redactions_are_few": scrub_statements,
    "no_exact_duplicate_is_left": _duplicates_stay,
    "no_text_inside_another_is_left": _containers_stay,
    "drops_are_in_their_bands": drop_most,
    "languages_are_in_their_bands": expect_another_language,
    "documents_are_kept": _drop_all,
    "chunks_conserve_bytes": _chunks_end_early,
    "provenance_on_every_document": _no_provenance,
    "provenance_on_every_byte": _no_provenance_of_bytes,
    "build_shares_are_in_band": _not_compiled,
    "no_local_path_in_a_build_context": _local_path,
    "degraded_share_is_in_band": _does_not_parse,
    "training_rows_exist": _all_held_out,
    "packing_follows_its_rule": cut_short,
    "ids_are_the_tokenizers_own": spell_words_in_characters,
    "megatron_reads_back": _megatron_loses_a_token,
    "special_spellings_stay_text": _special_spellings,
    "splits_are_apart": _two_splits,
    "every_gate_was_seen_red": _offenses_left_out,
    "held_out_sources_are_held_out": relabel_headers,
    "held_out_rows_exist": _held_out_file_is_dropped,
    "canaries_are_caught": _rule_is_off,
    "canaries_were_sent": _no_canaries,
    "loader_repeats_itself": _answer("verify-loader", _differing),
    "loader_was_checked": _answer("verify-loader", _of_one_row),
    "trainer_takes_a_step": _answer("smoke", lambda answer: {**answer, "losses": []}),
    "trainer_loss_is_finite": _answer("smoke", lambda answer: {**answer, "losses": [float("nan")]}),
    "documents_were_decoded": _no_documents,
    "rows_are_worth_reading": _long_rows,
    "tokens_carry_enough_text": spell_all_in_bytes,
    "vocabulary_is_used": spell_all_in_bytes,
    **{gate.name: partial(lose, gate.stage) for gate in GATES if gate.measure == CONSERVED},
}
"""Offense of each gate whose offense is not an edit of rows."""
