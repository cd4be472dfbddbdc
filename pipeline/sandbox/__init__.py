"""Sandboxes: commands of fetched sources run without network, home or privileges, or not at all.

Compile checks of texts, which run nothing, do so too where the kernel grants it to the compiler; elsewhere a compiler reads what
its user may read, within the same limits.

What is configured in them belongs to `pipeline.stages.enrich.compiler`; which samples are compiled to `trainer.inference.scores`.
"""
