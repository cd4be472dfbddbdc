"""Contracts between stages, builds and the trainer: parts, reports, the one list of gates and what canaries saw, training rows.

Nothing runs here: `pipeline.build.run_stage` runs stages, and the folder of each stage does its work.
"""
