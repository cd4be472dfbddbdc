"""Device checks: isolation of packed documents, and a training in bfloat16 that is stopped and resumed."""

import argparse
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from pipeline.store.store import Store
from tests.support.made.made_snapshot import CORPUS, commit_made
from trainer.bench.device_checks import CheckSizes, measure_packing, measure_training

pytestmark = pytest.mark.usefixtures("untouched_torch")


def test_packed_documents_come_out_as_alone_and_a_leak_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = replace(CheckSizes.dry(), lengths=(5, 1, 9))
    row = measure_packing(sizes)
    assert (row["num_touched"], row["num_different_alone"], row["dtype"]) == (0, 0, "bfloat16")

    one = "trainer.model.hybrid.describe_rows"
    honest = sys.modules["trainer.model.hybrid"].describe_rows
    monkeypatch.setattr(one, lambda ids, documents, *more: honest(ids, torch.ones_like(documents), *more))
    leaking = measure_packing(sizes)
    assert leaking["num_touched"] > 0


@pytest.mark.slow  # three trainings, each compiled in a process of its own
def test_a_compiled_training_in_bfloat16_resumes_to_its_bits_and_says_how_its_experts_were_filled(
    tmp_path: Path,
) -> None:
    """Of made rows, where nothing is built."""
    store = Store(tmp_path / "store")
    commit_made(store)
    sizes = replace(CheckSizes.dry(), steps=(1, 2), options=(*CheckSizes.dry().options, "--batch-rows", "1"))
    options = argparse.Namespace(store=store.root, corpus=CORPUS, snapshot="live")
    row = measure_training(sizes, options)

    assert (row["num_steps"], row["num_processes"], row["different"]) == (2, 2, [])
    assert "certificate" in row["compared"]
    assert 0 < row["expert_padding_fraction"] < 1
    assert row["expert_overflow_fraction"] == 0
