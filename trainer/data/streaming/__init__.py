"""Streaming: rows that are fetched from a bucket while a training reads them.

Which row a position has is `trainer.data.loader`; the cache of a bucket is `pipeline.storage.bucket`.
"""
