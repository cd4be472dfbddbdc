"""Builds: recipes, the engine, promotion, withdrawal and canaries.

The work of a stage is in its own folder; queries of finished builds are in `pipeline.lineage`.
"""
