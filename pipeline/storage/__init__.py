"""Places where the files of a store are kept: its folder, or a bucket, of which a folder has what was read and written here.

What the files mean is in `pipeline.store`.
"""
