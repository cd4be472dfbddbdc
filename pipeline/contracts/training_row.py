"""Format of a training row: what tokenize writes, verify proves and the trainer reads.

Its columns are those of `TrainingRow` in `pipeline.core.records`.
"""

STRUCTURE = ("structure_kinds", "structure_levels")
"""The columns of T slots that are stored, and read, only on request."""

ROW_GROUP = ("provenance", "license", "license_class")
"""The columns of documents in which all pieces of a row are alike."""

NO_DOCUMENT = -1
"""`doc_ids` of a padding slot; pieces count from 1."""

INFILLING_TOKENS = ("<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>")
"""Names of the special tokens that begin the parts of an infilled piece."""

NUM_SENTINELS = len(INFILLING_TOKENS)
"""Slots that each piece keeps free for them."""

PIECE_DIGEST, FILE_DIGEST = b"sluice/piece", b"sluice/file"
"""Persons of the 64-bit BLAKE2b digests in `piece_ids` and `file_identity`."""
