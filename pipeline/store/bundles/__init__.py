"""Bundles: one archive of a snapshot with everything that it names, written from a store and read into another.

The objects themselves are in `pipeline.store.objects`; formats that other tools read are in `pipeline.export`.
"""
