"""Large sources: made corpora of any size, and what a build of them takes.

Figures of the pinned slices are in `tests.benchmarks.pipeline`; faults within a large source are in
`tests.tools.shard_campaign`.
"""
