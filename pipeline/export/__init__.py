"""Exports of a snapshot: Megatron-LM, Hugging Face, data card, Croissant and SPDX.

Questions about a corpus are in `pipeline.lineage`; the bytes of file formats are in `pipeline.formats`.
"""
