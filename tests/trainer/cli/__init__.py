"""Tests of the trainer's commands, in this process, on stores that trainings may write.

Mistakes on any command line are listed in `tests.faults`.
"""
