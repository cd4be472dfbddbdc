"""The asset `training`: runs `python -m trainer train` on a snapshot as a child process, and shows its losses."""

import json
import subprocess
import sys
from typing import Any

import dagster as dg
from pydantic import Field

from assets.config import form, params_from
from assets.reporting import sparkline
from assets.resources import StoreResource, refusals, store_root
from assets.snapshot import LIVE
from pipeline.errors import TrainingError
from pipeline.params import Params
from trainer.recipes import RECIPES

TRAINING = dg.AssetKey("training")
NUM_ATTEMPTS = 3


class TrainingParams(Params):
    """One sitting of a training. The same values go on where the last sitting stopped."""

    corpus: str = "quick"
    """The corpus that is trained on."""
    snapshot: str = "live"
    """`live`, `candidate`, or a snapshot id."""
    recipe: str = Field(default="tiny", pattern="|".join(sorted(RECIPES)))
    """Training recipe: the model, its optimiser and its batches."""
    stop_after: int = Field(default=20, ge=1, le=10_000_000)
    """Step at which this sitting ends, counted from the start of the run."""
    save_every: int = Field(default=10, ge=1)
    """Steps between checkpoints."""
    seed: int = Field(default=42, ge=0, lt=2**63)
    """Seed of initial weights, data order and infilling."""


def training() -> dg.AssetsDefinition:
    """A model trained on the live snapshot: resumed exactly where it stopped, registered as a checkpoint."""
    config_type: Any = form(TrainingParams)

    @dg.asset(key=TRAINING, deps=[LIVE], description=training.__doc__)
    def train(context: dg.AssetExecutionContext, config: config_type, store: StoreResource) -> dg.MaterializeResult:  # type: ignore[type-arg]  # Dagster reads the bare name
        with refusals():
            params = params_from(config, TrainingParams)
            result = _run_child(command_of(params, context.run_id), context)
        losses = result["losses"]
        return dg.MaterializeResult(
            asset_key=TRAINING,
            data_version=dg.DataVersion(result["checkpoint_id"]),
            metadata={
                "dagster/row_count": result["steps"],
                "checkpoint_id": result["checkpoint_id"],
                "certificate": result["certificate"],
                "tokens per second": result["tokens_per_second"],
                "snapshot_id": result["snapshot_id"],
                "final_loss": result["final_loss"],
                "loss": sparkline(losses),
                "parameters_sha256": result["parameters_sha256"],
                "unchanged": result["unchanged"],
                "losses": dg.MetadataValue.json([round(loss, 4) for loss in losses[-100:]]),
                "seeds and versions": dg.MetadataValue.json({"seeds": result["seeds"], "versions": result["versions"]}),
            },
        )

    return train


def command_of(params: TrainingParams, run_name: str) -> list[str]:
    """The child's command line. It resumes the run's newest checkpoint, if there is one."""
    out = store_root() / "runs" / run_name
    command = [sys.executable, "-m", "trainer", "train", "--store", str(store_root()), "--corpus", params.corpus]
    command += ["--snapshot", params.snapshot, "--recipe", params.recipe, "--stop-after", str(params.stop_after)]
    return [
        *command,
        "--save-every",
        str(params.save_every),
        "--seed",
        str(params.seed),
        "--out",
        str(out),
        "--resume",
        "latest",
        "--json",
    ]


def _run_child(command: list[str], context: dg.AssetExecutionContext) -> dict[str, Any]:
    """Run the trainer and return its result; one that is killed is started again and resumes at its last checkpoint.

    Raises TrainingError with its last words.
    """
    for attempt in range(1, NUM_ATTEMPTS + 1):
        code, answer, last = _attempt(command, context)
        if code == 0:
            result: dict[str, Any] = json.loads(answer)
            return result
        if code > 0:  # it said no: another attempt would hear the same
            break
        context.log.warning(f"attempt {attempt} of {NUM_ATTEMPTS}: the trainer was ended by signal {-code}")
    raise TrainingError("training", f"exit {code}: {last}", "exit 0", "Launch again to resume at its last checkpoint.")


def _attempt(command: list[str], context: dg.AssetExecutionContext) -> tuple[int, str, str]:
    """Exit code, answer and last words of one child, whose lines (loss, throughput) go into the run's log."""
    last = ""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        for line in child.stderr:
            last = line.strip() or last
            context.log.info(line.rstrip())
        answer = child.stdout.read()
    return child.returncode, answer, last
