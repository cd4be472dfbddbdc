"""Sandboxes: commands of fetched sources and compile checks of texts run without network, home or privileges.

What is configured in them belongs to `pipeline.stages.enrich.compiler`; which samples are compiled to `trainer.inference.scores`.
"""
