"""Contracts between stages, builds and the trainer: what a stage declares, parts, reports, the one list of gates, training rows.

Nothing runs here: `pipeline.build.run_stage` runs stages, and the folder of each stage does its work.
"""
