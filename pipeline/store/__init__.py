"""The store on disk: content-addressed objects, blobs, refs, snapshots, checks and garbage collection.

What an object means is decided by the stage that wrote it; refs are moved by `pipeline.build`, when a stage or a promotion passes.
"""
