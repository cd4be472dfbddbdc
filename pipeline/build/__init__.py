"""Builds: recipes, the engine, audits and their oracles, canaries, promotion and replay, withdrawal; the made corpus `tiny`.

The work of a stage is in its own folder; queries of finished builds are in `pipeline.lineage`.
"""
