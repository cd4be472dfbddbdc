"""What a sitting says at its end, and what stands in result.json: everything that it takes to repeat it."""

from typing import TYPE_CHECKING, Any

from trainer.checkpoint import checkpoint as checkpoints
from trainer.distributed.ranks import Ranks
from trainer.model.hybrid import count_parameters
from trainer.train.determinism import broken_promises

if TYPE_CHECKING:
    from trainer.train.loop import Sitting, Training


def result_of(training: "Training", sitting: "Sitting", checkpoint_id: str, unchanged: bool) -> dict[str, Any]:
    """The result of a sitting that ended, or was not needed, at a checkpoint."""
    losses = list(training.history.losses)
    return {
        "run": sitting.run_name,
        "recipe": sitting.recipe,
        "steps": training.num_steps,
        "certificate": training.history.certificate,
        "losses": losses,
        "final_loss": losses[-1],
        "skipped_steps": [step for step, flag in enumerate(training.history.skipped, 1) if flag],
        "parameters_sha256": checkpoints.digest_tensors(training.parameters()),
        "optimizer_sha256": checkpoints.digest_tensors(training.optimizer_state()),
        "num_parameters": count_parameters(training.model),
        "snapshot_id": sitting.snapshot_id,
        "mixture": dict(sitting.mixture),
        "adoptions": [adoption.as_json() for adoption in training.reading.adoptions],
        "checkpoint_id": checkpoint_id,
        "loader": training.loader.state_at(training.position),
        "packing": training.reading.packing,
        "config": sitting.identity["config"],
        "forks": training.forks,
        "seeds": _seeds(sitting, training.ranks),
        "versions": training.manifest(),
        "num_ranks": training.ranks.count,
        "sharded": training.is_sharded,
        "broken_promises": broken_promises(sitting.config.deterministic),
        "unchanged": unchanged,
        "finished": training.num_steps >= sitting.stop_after,
    }


def _seeds(sitting: "Sitting", ranks: Ranks) -> dict[str, int]:
    """Every seed of the run: what is drawn anywhere follows from one of them."""
    seeds = {"global": sitting.seed, "weights": sitting.seed, "loader": sitting.seed}
    return seeds | {f"global of rank {rank}": sitting.seed + rank for rank in range(1, ranks.count)}
