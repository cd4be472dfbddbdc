"""Names of the tables that more than one folder reads or writes. The record of each is in `pipeline.core.records`.

Tables that end in `.parquet` are read by column; those that end in `.arrow` are memory-mapped. Which stage writes which table, and
with which record, is declared in STAGES of `pipeline.stages.stages`. A table that its own stage alone reads is named beside its
record.
"""

from pipeline.core.records import Split

FILES = "files.parquet"
EVIDENCE = "evidence.parquet"
LISTED = "listed.parquet"
LISTED_CHANGES = "listed_changes.parquet"
LISTED_EVIDENCE = "listed_evidence.parquet"
TREE = "tree.parquet"
HISTORY = "history.parquet"
VERSIONS = "versions.parquet"
COMMIT_EVIDENCE = "commit_evidence.parquet"
DROPPED = "dropped.parquet"
DOCUMENTS = "documents.parquet"
DUPLICATES = "duplicates.parquet"
KEPT = "kept.parquet"
ENRICHED = "enriched.parquet"
TOKENS = "tokens.parquet"
PACKED = {split: f"packed_{split}.parquet" for split in Split}
TRAINING_ROWS = {split: f"rows_{split}.arrow" for split in Split}
COMPILER_RECORD = "compiler.json"
"""File of a built source's part: the tools, the counts, what went wrong, and each unit that failed with its reason."""
