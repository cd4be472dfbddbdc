"""Contracts between stages and their surroundings: parts, reports and the one list of gates.

Nothing runs here: `pipeline.build.run_stage` runs stages, and the folder of each stage does its work.
"""
