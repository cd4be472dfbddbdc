"""Figures of a store: requests to a bucket, speed of bundles, and faults by the hundred, beside `gc` and in logs, refs and keys.

A few tries of the faults run in `make test`, in `tests.faults`; reads from a bucket for a training are in
`tests.benchmarks.trainer`.
"""
