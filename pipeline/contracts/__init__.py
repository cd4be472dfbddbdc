"""Contracts between stages and their surroundings: parts, reports and the one list of gates.

Nothing runs here: `pipeline.build.build` runs stages, and each stage's folder does its work.
"""
