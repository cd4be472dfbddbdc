"""The content of result.json: everything that is needed to reproduce a training session."""

from typing import Any

from trainer.data.row_selection import shares_by_step
from trainer.model.parameter_count import count_parameters
from trainer.train.determinism import broken_promises
from trainer.train.session import TrainSession
from trainer.train.training_state import Training


def build_result(training: Training, session: TrainSession, checkpoint_id: str, unchanged: bool) -> dict[str, Any]:
    """Build the result of a session that ended at a checkpoint; `unchanged` if it resumed there and ran no step."""
    losses, inputs, seed = list(training.history.losses), session.inputs, session.inputs.seed
    of_ranks = {f"global of rank {rank}": seed + rank for rank in range(1, training.ranks.count)}
    return {
        "run": session.run_name,
        "recipe": session.recipe,
        "steps": training.num_steps,
        "certificate": training.history.certificate,
        "losses": losses,
        "final_loss": losses[-1],
        "skipped_steps": [step for step, flag in enumerate(training.history.skipped, 1) if flag],
        **{f"{kind}_sha256": value for kind, value in training.digests().items()},
        "num_parameters": count_parameters(training.model),
        "snapshot_id": inputs.snapshot_id,
        "mixture": dict(inputs.mixture),
        "initial": inputs.identity.get("initial"),
        "selection": inputs.selection.identity,
        "shares": [shares._asdict() for shares in shares_by_step(training.loader)],
        "adoptions": [adoption._asdict() for adoption in training.run_data.adoptions],
        "checkpoint_id": checkpoint_id,
        "loader": training.loader.state_at(training.position),
        "packing": training.run_data.packing,
        "config": inputs.identity["config"],
        "added": inputs.identity.get("added", []),
        "forks": training.forks,
        "seeds": {
            "global": seed,
            "weights": seed,
            "loader": seed,
            **of_ranks,
        },  # whatever is drawn follows from one of them
        "environment": training.environment(),
        "num_ranks": training.ranks.count,
        "sharded": session.is_sharded,
        "broken_promises": broken_promises(inputs.config.deterministic),
        "unchanged": unchanged,
        "finished": training.num_steps >= session.stop_after,
    }
