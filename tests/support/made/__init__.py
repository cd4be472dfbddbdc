"""Made inputs: archives, rows, checkpoints, histories and snapshots that no run of the pipeline or the trainer wrote.

Not here: plain oracles, and places of the repository, in `tests.support`; the made corpus, in `pipeline.build.made_corpus`.
"""
