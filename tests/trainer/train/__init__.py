"""Tests of training sessions: runs as values, resumed in any way, and what each file of a session does.

Kills at random moments are in `tests.faults`; certificates are in `tests.trainer.checkpoint`.
"""
