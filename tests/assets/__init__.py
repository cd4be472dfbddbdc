"""Tests of the shell: definitions, forms and checks without a run, and jobs that Dagster executes on an instance of the test.

Builds and trainings by their own commands are in `tests.pipeline.cli` and `tests.trainer.cli`; the services of a team in
`tests.deploy`.
"""
