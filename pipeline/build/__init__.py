"""Builds: the stages in order, recipes, the engine, promotion, withdrawal and canaries.

What a stage does is in its own folder; questions about finished builds are in `pipeline.lineage`.
"""
