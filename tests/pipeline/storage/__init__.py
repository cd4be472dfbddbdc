"""Tests of folders and buckets as places of a store, with a server of S3 and a proxy that breaks requests.

What a store keeps in them is in `tests.pipeline.store`.
"""
