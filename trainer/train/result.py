"""The content of result.json: everything that is needed to reproduce a training session."""

from typing import Any

from trainer.checkpoint import checkpoint as checkpoints
from trainer.model.hybrid import count_parameters
from trainer.train.determinism import broken_promises
from trainer.train.session import TrainSession
from trainer.train.training_state import Training


def build_result(training: Training, session: TrainSession, checkpoint_id: str, unchanged: bool) -> dict[str, Any]:
    """Build the result of a session that ended at a checkpoint; `unchanged` if it resumed there and ran no step."""
    losses, inputs = list(training.history.losses), session.inputs
    return {
        "run": session.run_name,
        "recipe": session.recipe,
        "steps": training.num_steps,
        "certificate": training.history.certificate,
        "losses": losses,
        "final_loss": losses[-1],
        "skipped_steps": [step for step, flag in enumerate(training.history.skipped, 1) if flag],
        "parameters_sha256": checkpoints.digest_tensors(training.parameters()),
        "optimizer_sha256": checkpoints.digest_tensors(training.optimizer_state()),
        "num_parameters": count_parameters(training.model),
        "snapshot_id": inputs.snapshot_id,
        "mixture": dict(inputs.mixture),
        "adoptions": [adoption.as_json() for adoption in training.run_data.adoptions],
        "checkpoint_id": checkpoint_id,
        "loader": training.loader.state_at(training.position),
        "packing": training.run_data.packing,
        "config": inputs.identity["config"],
        "forks": training.forks,
        "seeds": _seeds(inputs.seed, training.ranks.count),
        "environment": training.environment(),
        "num_ranks": training.ranks.count,
        "sharded": session.is_sharded,
        "broken_promises": broken_promises(inputs.config.deterministic),
        "unchanged": unchanged,
        "finished": training.num_steps >= session.stop_after,
    }


def _seeds(seed: int, num_ranks: int) -> dict[str, int]:
    """Return every seed of the run: whatever is drawn follows from one of them."""
    return {"global": seed, "weights": seed, "loader": seed} | {
        f"global of rank {rank}": seed + rank for rank in range(1, num_ranks)
    }
