"""Arguments of a training session, and the inputs of the run that it belongs to."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipeline.core.params import digest
from pipeline.core.registry import entries_added_to_runs
from trainer.checkpoint.initial_weights import InitialWeights
from trainer.checkpoint.retention import RetentionPolicy
from trainer.config.training_config import TrainingConfig
from trainer.data.row_selection import RowSelection
from trainer.train.evaluation import EvaluationSchedule


@dataclass(frozen=True)
class RunInputs:
    """Everything that the numbers of a run depend on besides its environment. A resume with other inputs is refused."""

    snapshot_id: str
    """The snapshot that is read; of a mixture the first. With `TrainSession.follow`, the one that a new run begins with."""
    config: TrainingConfig
    seed: int
    mixture: tuple[tuple[str, float], ...] = ()
    """Snapshot ids with their weights, where several are read."""
    initial: InitialWeights | None = None
    """The weights that the run begins with, in place of drawn values."""
    selection: RowSelection = field(default_factory=RowSelection)
    """The training rows that are drawn, and in which shares."""

    @property
    def identity(self) -> dict[str, Any]:
        """The inputs as a checkpoint stores them, and the loss terms and algorithms that this program has registered."""
        added = entries_added_to_runs()
        identity = {"config": self.config.model_dump(mode="json"), "seed": self.seed, "snapshot_id": self.snapshot_id}
        more = {
            "mixture": dict(self.mixture),
            "initial": self.initial.identity if self.initial else None,
            "selection": self.selection.identity,
            "added": added,
        }
        return identity | {name: value for name, value in more.items() if value}


@dataclass(frozen=True)
class TrainSession:
    """Arguments of one training session: one process lifetime of a run. `stop_after` counts steps from the run's start."""

    inputs: RunInputs
    recipe: str
    stop_after: int
    save_every: int
    out: Path
    run: str | None = None
    resume: str | None = None
    is_restart: bool = False
    """Without `resume`, the run begins anew even where its checkpoints are of other inputs."""
    num_workers: int = 0
    device: str = "cpu"
    device_reason: str = ""
    """Reason for this device, where `auto` was requested."""
    keep: RetentionPolicy = field(default_factory=RetentionPolicy)
    allowed_drift: tuple[str, ...] = ()
    has_telemetry: bool = True
    evaluation: EvaluationSchedule = field(default_factory=EvaluationSchedule)
    follow: str | None = None
    """`CORPUS/live` or `CORPUS/candidate`, or a checkpoint whose adoptions are repeated."""
    trackers: tuple[str, ...] = ()
    """Names of TRACKERS that record the metrics too: they change no number, and so are in no identity."""
    is_tracked_online: bool = False
    """Let them send what they record to where their own settings say. Else it stays below `out`."""
    init_from: str | None = None
    """A checkpoint or a folder of an export: a new run begins with its weights."""
    is_sharded: bool = False
    """Parameters and optimizer state are sharded over the ranks: elastic, the same bits either way."""

    @property
    def run_name(self) -> str:
        """The name given, else one derived from the inputs: equal runs share it, so that they find their checkpoints."""
        identity = self.inputs.identity | ({"snapshot_id": f"follow {self.follow}"} if self.follow else {})
        return self.run or f"{self.recipe}-{digest(identity)[:12]}"
