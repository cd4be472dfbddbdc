"""The model and its loop. Reads a snapshot, writes checkpoints and result.json. Never imports dagster."""
