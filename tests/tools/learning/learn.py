"""Experiment of `make learn`: what each kind of layer is worth to the tiny hybrid, beside a plain transformer of equal active size.

Every model is trained on the same batches for each seed, with the recipe `tiny` otherwise, and no wall clock decides anything.
Each (model, seed) is a row of `--rows`; a second run continues at the first missing row. About 15 minutes on two quiet cores.

python -m tests.tools.learning.learn [--store DIR] [--corpus NAME] [--steps N] [--write docs/model.md]
"""

import argparse
import json
import os
import time
from pathlib import Path
from statistics import mean
from typing import Any

from pipeline.core.settings.overrides import setting
from pipeline.store.store import Store
from tests.tools.learning import learn_page
from trainer.config.training_config import TrainingConfig, training_recipe
from trainer.model.parameter_count import sizes_of
from trainer.train.session import RunInputs
from trainer.train.training_state import Training

SEEDS = (1, 2, 3)
ALL = ("num_threads=1",)
"""Settings of all models. A second thread waits longer than it works, at this size."""
NUM_HELD_OUT_ROWS = 32
NO_ENGRAM = "model.attention.engram.layers=[]"
PLAIN = tuple(f"model.experts.{field}" for field in ("num_experts=1", "num_selected=1", "expert_size=151"))
MODELS: dict[str, tuple[str, ...]] = {
    "hybrid `AEMR`": (),
    "without Engram": (NO_ENGRAM,),
    "without A and Engram: `EMR`": ("model.pattern=EMR", "model.depth=3", NO_ENGRAM),
    "without E: `AMR`": ("model.pattern=AMR", "model.depth=3"),
    "without M: `AER`": ("model.pattern=AER", "model.depth=3"),
    "without R: `AEM`": ("model.pattern=AEM", "model.depth=3"),
    "plain transformer": (
        "model.pattern=AE", NO_ENGRAM, *PLAIN, "model.experts.shared_size=151", "model.experts.z_loss_weight=0",
    ),
}  # fmt: skip
"""Settings by which each model differs from the recipe. The plain one has attention and one dense part in turn: its one expert is
visited by all tokens, as the shared one is."""


def main() -> None:
    """Train what has no row yet, print the table, and write it where asked."""
    parser = argparse.ArgumentParser(prog="python -m tests.tools.learning.learn")
    parser.add_argument("--store", type=Path, default=Path(os.environ.get("SLUICE_STORE", "store")))
    parser.add_argument("--corpus", default="learn")
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--rows", type=Path, default=Path("build/learn/rows.jsonl"))
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    store = Store(options.store)
    snapshot_id = store.ref(options.corpus, "live")
    if snapshot_id is None:
        parser.error(
            f"{options.store} has no promoted snapshot of {options.corpus}; expected one. `make learn` builds one."
        )
    options.rows.parent.mkdir(parents=True, exist_ok=True)
    rows = learn_page.read_rows(options.rows, snapshot_id, options.steps)
    names = list(MODELS)
    known = {(row["model"], row["seed"]) for row in rows}
    for seed in SEEDS:
        for name in names:
            if (name, seed) not in known:
                rows.append(trained(store, snapshot_id, name, seed, options.steps))
                with options.rows.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(rows[-1]) + "\n")
                print(f"{name}, seed {seed}: {rows[-1]['held_out']:.4f}, {rows[-1]['seconds']:.0f} s", flush=True)
    rows = sorted(
        (row for row in rows if row["model"] in MODELS), key=lambda row: (names.index(row["model"]), row["seed"])
    )
    print("\n".join(learn_page.table(rows)))
    if options.write:
        learn_page.write(options.write, rows)


def config_of(name: str, steps: int) -> TrainingConfig:
    """Return the training of a model: its schedule ends with the last step."""
    return training_recipe("tiny", *map(setting, (*MODELS[name], *ALL, f"optimizer.num_horizon_steps={steps}")))


def trained(store: Store, snapshot_id: str, name: str, seed: int, steps: int) -> dict[str, Any]:
    """Train one model from one seed and return its row: sizes, losses, and the seconds that it took."""
    started = time.monotonic()
    config = config_of(name, steps)
    training = Training(store, RunInputs(snapshot_id, config, seed), with_held_out=True)
    losses = []
    while training.num_steps < steps:
        batch = training.loader.batch_at(training.position, config.batch_rows)
        losses.append(training.step(batch)["cross_entropy"])
    held_out = training.evaluate(NUM_HELD_OUT_ROWS)
    sizes = sizes_of(config.model, training.run_data.snapshot.vocabulary["size"])
    return {
        "model": name,
        "seed": seed,
        "steps": steps,
        "snapshot_id": snapshot_id,
        "num_parameters": sizes.num_parameters,
        "num_active_parameters": sizes.num_active_parameters,
        "num_tokens": steps * batch.input_ids_BT.size,
        "losses": [round(loss, 4) for loss in losses],
        "last_quarter": round(mean(losses[-(steps // 4) :]), 4),
        "held_out": round(held_out["held_out_cross_entropy"], 4),
        "seconds": round(time.monotonic() - started, 1),
    }


if __name__ == "__main__":
    main()
