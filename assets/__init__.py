"""The Dagster project: assets, jobs, checks, schedules and resources over the pipeline and the trainer.

Everything that imports dagster belongs here, and no computation: stages are in `pipeline`, training is in `trainer`.
"""
