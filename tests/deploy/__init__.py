"""Tests of the files in `deploy/`, and the services that they name as processes of this machine.

The buckets and clusters that these use are those of `tests.pipeline.storage` and `tests.pipeline.build.engines`.
"""
