"""The stage verify: composes the candidate snapshot and proves it from its stored bytes alone.

Gates are declared in `pipeline.contracts`; promotion is in `pipeline.build`.
"""
