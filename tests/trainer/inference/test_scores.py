"""Scores as sentences, and the rows that they are of. Other scores are in the tests of the training loop and of commands."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest

from pipeline.core.records import Split
from pipeline.store.snapshot import Snapshot
from pipeline.store.store import Store
from trainer.config.training_config import training_recipe
from trainer.data.batch import Batch
from trainer.data.loader import Source, held_out_batches
from trainer.data.open_loader import sources_of
from trainer.inference import scores
from trainer.inference.sampling import TrainedModel
from trainer.inference.scores import ScoreOptions, held_out_loss, sentences
from trainer.train.session import RunInputs
from trainer.train.training_state import Training


def test_rows_and_middles_are_of_all_sources(tiny_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    config = training_recipe("tiny")
    training = Training(tiny_store, RunInputs(tiny_store.ref("tiny", "live") or "", config, 42))
    trained = TrainedModel(training.model.eval(), training.run_data.snapshot, config)
    read: list[str] = []

    def recorded(*given: Any) -> Iterator[Batch]:
        for batch in held_out_batches(*given):
            read.extend(batch.origins.names[number] for number in batch.origins.sources_B.tolist())
            yield batch

    def of_training(snapshot: Snapshot, split: Split, with_structure: bool = False) -> list[Source]:
        return sources_of(snapshot, Split.TRAIN, with_structure)

    monkeypatch.setattr(scores, "held_out_batches", recorded)
    monkeypatch.setattr(scores, "sources_of", of_training)
    assert held_out_loss(trained, 7)["num_tokens"]
    assert len(read) == 7
    assert set(read) == {each.name for each in trained.snapshot.sources if each.num_rows_train}

    many = ScoreOptions(num_rows=64, num_tokens=200)
    rows = {row.piece_ids_P.tobytes(): row for row in scores._rows(trained)}
    first = next(iter(rows.values()))
    middles = [middle for _, middle in islice(scores._middles(trained, many), 8)]
    own = [middle for _, middle in scores._middles_of(first, trained, many)]
    assert len(middles) == 8
    assert sum(middle in own for middle in middles) <= 1, "one of each row comes first"


def test_a_score_without_data_is_named_and_never_printed_as_a_number() -> None:
    without = {"bits_per_byte": None, "num_bytes": 0, "exact_middle_fraction": None, "num_middles": 0}
    found = sentences({**without, "compiled_fraction": None, "compile_verdicts": {"no compiler": 2}})

    assert found == [
        "held-out bits per byte: no held-out rows over 0 bytes",
        "middles infilled exactly: none to infill of 0",
        "completions that compile: unknown (2 no compiler)",
    ]


def test_scores_are_rounded() -> None:
    scored = {"bits_per_byte": 2.34567, "num_bytes": 1234, "exact_middle_fraction": 0.125, "num_middles": 8}
    found = sentences({**scored, "compiled_fraction": 0.5, "compile_verdicts": {"compiled": 1, "did not compile": 1}})

    assert "2.3457 over 1,234 bytes" in found[0]
    assert "12.5% of 8" in found[1]
    assert "50.0% (1 compiled, 1 did not compile)" in found[2]
