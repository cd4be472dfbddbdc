"""Descriptions of columns: what each column that a stage passes on means, in one line, for people who look at a table.

They are no part of a stored table: a better word moves no id. `RECORD.column` is for a column that means something else there.
"""

from collections.abc import Mapping
from dataclasses import fields

from pipeline.core.schema import stored_record

COLUMN_TEXTS: Mapping[str, str] = {
    "blob_sha256": "Digest of the file as received.",
    "build_context": "How a compiler was called for it; none where no compiler read it.",
    "call_targets": "By token: 64-bit id of what the name calls, 0 for none.",
    "calls": "By resolved name: 64-bit id of what it calls, 0 for none.",
    "chunk_ends": "By chunk: the byte of the text where it ends, which is the start of the next.",
    "chunk_kinds": "By chunk: its kind, as a code in the order of ChunkKind.",
    "chunk_levels": "By chunk: the number of namespace and class bodies around it.",
    "chunk_starts": "By chunk: the byte of the text where it begins.",
    "commit_hash": "The commit that the document is of; none without chronology.",
    "content": "The file as received.",
    "definitions_and_uses": "By name: 1 definition, 2 declaration, 3 use, 0 where no name begins.",
    "depths": "By token: the depth in the syntax tree of the leaf that it begins in.",
    "document_id": "sha256 of source, path and text_sha256.",
    "edits": "What normalizing changed in the text.",
    "encoding": "Encoding that the file was decoded from.",
    "error_fraction": "Share of the text, 0 to 1, that the parser could not read.",
    "file_local_commit_index": "Place of the commit in the chain of the file, from 0, oldest first; none without chronology.",
    "filepath_stable_id": "Name of the file through its commits; none without chronology.",
    "git_blob_id": "Name of the bytes in git.",
    "includes": "What the document includes, as written.",
    "input_ids": "The token ids.",
    "is_evidence": "Whether the file is evidence of a license, and so no document.",
    "language": "Language of the document.",
    "license": "License expression in SPDX.",
    "license_branch": "Branch of the expression that the policy took.",
    "license_class": "Class of the license in the policy.",
    "license_detail": "The lines and files that state the license.",
    "license_evidence": "Kind of evidence that decided the license.",
    "node_depths": "By leaf of the syntax tree: its depth.",
    "node_siblings": "By leaf of the syntax tree: its index among its siblings.",
    "node_starts": "By leaf of the syntax tree: the byte of the text from which on it owns the text.",
    "node_types": "By leaf, or by token the leaf that it begins in: a code of the type of node.",
    "num_bytes": "Bytes of the text in UTF-8.",
    "num_redactions": "Placeholders that stand for secrets and addresses in the text.",
    "order_in_source": "Place in the order of the source, in which what is included comes first.",
    "path": "Path of the file in its source.",
    "provenance": "Parser that produced the structure.",
    "provenance_codes": "By stretch of the text: the parser that produced its structure, as a code.",
    "provenance_detail": "Why it was that parser.",
    "provenance_starts": "By stretch of the text: the byte where it begins.",
    "provenances": "By token: the parser that produced its structure, as a code.",
    "repo_stable_id": "Name of the repository through its commits; none without chronology.",
    "revision": "Digest or commit that the pin names; empty in a shard.",
    "scores": "What filters measured, as JSON.",
    "sibling_indices": "By token: the index among its siblings of the leaf that it begins in.",
    "source": "Name of the source, as its pin gives it.",
    "split": "`train` or `held_out`.",
    "structure_kinds": "By token: the kind of its chunk, as a code in the order of ChunkKind.",
    "structure_levels": "By token: the number of namespace and class bodies around its chunk.",
    "symbol_ends": "By resolved name: the byte of the text where it ends.",
    "symbol_starts": "By resolved name: the byte of the text where it begins, with the blanks before.",
    "symbols": "By resolved name, or by token: its 64-bit id, 0 for none.",
    "text": "The scrubbed text, in UTF-8.",
    "text_sha256": "Digest of the text.",
    "type_references": "By resolved name, or by token: 64-bit id of the type that it refers to, 0 for none.",
    "SourceFile.num_bytes": "Size of the file as received.",
    "TokenizedDocument.chunk_starts": "By chunk: the token where it begins.",
}


def column_texts(record: type) -> dict[str, str]:
    """Return the columns of a record with what they mean; the empty string for one that is not described."""
    table, names = stored_record(record).name, [field.name for field in fields(record)]
    return {name: COLUMN_TEXTS.get(f"{table}.{name}", COLUMN_TEXTS.get(name, "")) for name in names}
