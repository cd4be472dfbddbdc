"""Snapshots for others: Megatron-LM, Hugging Face, data card, Croissant and SPDX.

Questions about a corpus are in `pipeline.lineage`; the formats' bytes are in `pipeline.formats`.
"""
