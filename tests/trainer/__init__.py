"""Tests of the trainer, which need no heavy library of the pipeline; small models and rows are in the conftest here.

Made checkpoints and snapshots are in `tests.support.made`, kills at random moments in `tests.faults`.
"""
