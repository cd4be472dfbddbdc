"""Records: the rows of every stored table, from a file in an archive to a row of tokens.

    SourceFile -> Document -> EnrichedDocument -> TokenizedDocument -> PackedRow
        FileModification beside SourceFile, DroppedRecord beside each, DuplicateRecord beside Document

They are stored as Arrow tables; `pipeline.core.schema` derives the schema of a table from its record, so a record is the contract
between stages. `@stored` declares the name and version that stored tables hold. Fields that a later version fills are there
already, and None. A column of text declares by its type who wrote the text, see `TextOrigin`.
"""

from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Annotated

from pipeline.core.schema import OwnText, PathText, RawBytes, RawText, ScrubbedText, stored

UInt8 = Annotated[int, "uint8"]
UInt16 = Annotated[int, "uint16"]
UInt32 = Annotated[int, "uint32"]
UInt64 = Annotated[int, "uint64"]
Int32 = Annotated[int, "int32"]
Float32 = Annotated[float, "float32"]


class Split(StrEnum):
    """Split of a document: training or held out. Rows never mix splits."""

    TRAIN = "train"
    HELD_OUT = "held_out"


class Provenance(StrEnum):
    """Parser that produced a document's structure."""

    BUILD_AWARE = "build_aware"
    SYNTAX_ONLY = "syntax_only"
    DEGRADED = "degraded"
    CHANGE = "change"
    """None: the document is what a commit did to a file, and is not parsed."""


PROVENANCE_CODES = {provenance: code for code, provenance in enumerate(Provenance, start=1)}
"""Code of each provenance in columns: 1 build_aware, 2 syntax_only, 3 degraded, 4 change. Append only."""


class Mention(IntEnum):
    """Kind of mention of a name, as stored in `definitions_and_uses`; 0 where no name begins. Append only."""

    DEFINITION = 1
    DECLARATION = 2
    USE = 3


class ChunkKind(StrEnum):
    """Kind of a chunk of a document. The order is the code stored in `chunk_kinds` and `structure_kinds`: append only."""

    OTHER = "other"
    PREAMBLE = "preamble"
    FUNC_SIG = "func_sig"
    FUNC_BODY = "func_body"
    CLASS_DECL = "class_decl"
    CLASS_MEMBER = "class_member"
    COMMENT = "comment"
    TYPEDEF = "typedef"
    NAMESPACE = "namespace"


class LicenseEvidence(StrEnum):
    """Source of a file's license expression, in the order in which they count."""

    DECISION = "decision"
    FILE = "file"
    SIDECAR = "sidecar"
    REUSE = "reuse"
    DEP5 = "dep5"
    HEADER = "header"
    LICENSE_TEXT = "license_text"
    PACKAGE = "package"
    NONE = "none"


@stored("SourceFile")
@dataclass(frozen=True, slots=True)
class SourceFile:
    """One file as its source holds it. `revision` is the pin's digest or commit, `git_blob_id` the name of the bytes in git.

    In a shard of a source the revision is empty, here and in documents: the part that lists the shards has it.
    """

    source: OwnText
    revision: OwnText
    path: PathText
    blob_sha256: OwnText
    git_blob_id: OwnText
    num_bytes: int
    is_evidence: bool
    content: RawBytes


@stored("ListedFile")
@dataclass(frozen=True, slots=True)
class ListedFile:
    """A name that the bytes of a source list, percent-encoded; `other_path` is what a drop of it may be called instead.

    `member` is the member or line that holds it, as the bytes name that, percent-encoded. None: the name itself.
    `is_optional`: a file that collect may derive from another, and need not. `git_blob_id` and `num_bytes`, of the content,
    are None for what is no regular file.
    """

    source: OwnText
    path: PathText
    other_path: PathText | None
    member: PathText | None
    is_optional: bool
    git_blob_id: OwnText | None
    num_bytes: int | None


@stored("ListedChange")
@dataclass(frozen=True, slots=True)
class ListedChange:
    """Change of a file of source code by a commit, as the listing of its source says it. `path` is percent-encoded.

    `reasons` are those for which it may be no document, none for one that must be. `num_diff_chars` is 0 where they need no text.
    """

    source: OwnText
    commit_hash: OwnText
    path: PathText
    parent_hashes: tuple[OwnText, ...]
    author_time: int
    commit_time: int
    subject_sha256: OwnText
    old_blob_id: OwnText
    new_blob_id: OwnText
    num_diff_chars: UInt32
    reasons: tuple[OwnText, ...]


@stored("ListedCommitFile")
@dataclass(frozen=True, slots=True)
class ListedCommitFile:
    """A file whose name may be of license evidence and that a commit has otherwise than the pinned one; `path` is percent-encoded.

    `git_blob_id` and `num_bytes` are None where the commit has no regular file there.
    """

    source: OwnText
    commit_hash: OwnText
    path: PathText
    git_blob_id: OwnText | None
    num_bytes: int | None


@stored("TreeFile")
@dataclass(frozen=True, slots=True)
class TreeFile:
    """A file of a source to be built that is not in a declared language: a build script, a template, a list of versions."""

    path: PathText
    content: RawBytes


@stored("FileModification")
@dataclass(frozen=True, slots=True)
class FileModification:
    """One link of a file's chain: what one commit did to it. `file_local_commit_index` counts from 0, oldest first, without gaps.

    `old_blob_id` and `new_blob_id` name the bytes before and after in git. The stable ids come from the source's name and the
    path, not from a URL. `has_rename_ambiguity`: the path was renamed from or to, or created more than once, somewhere in its
    past. Times are seconds since 1970. `num_diff_chars` counts the hunks.
    """

    source: OwnText
    revision: OwnText
    path: PathText
    repo_stable_id: OwnText
    filepath_stable_id: OwnText
    file_local_commit_index: Int32
    commit_hash: OwnText
    parent_hashes: tuple[OwnText, ...]
    author_time: int
    commit_time: int
    subject: RawText
    old_blob_id: OwnText
    new_blob_id: OwnText
    num_diff_chars: UInt32
    has_rename_ambiguity: bool


@stored("CommitEvidence")
@dataclass(frozen=True, slots=True)
class CommitEvidence:
    """A file of license evidence that a commit has otherwise than the pinned one. `git_blob_id` is None where it has none."""

    source: OwnText
    commit_hash: OwnText
    path: PathText
    git_blob_id: OwnText | None


@stored("DroppedRecord")
@dataclass(frozen=True, slots=True)
class DroppedRecord:
    """A record that was dropped: by which rule, on what evidence. `license` is the expression that was found, if any.

    `text_sha256` is the digest of the normalized text of what was dropped, where there was one. Collect has no scrubber: its
    details are as they came, and scrubbed where they are shown; its `record_id` is source and path.
    """

    source: OwnText
    path: PathText
    record_id: PathText
    num_bytes: int
    reason: OwnText
    detail: ScrubbedText
    license: ScrubbedText | None
    text_sha256: OwnText | None


@stored("Document")
@dataclass(frozen=True, slots=True)
class Document:
    """A clean, licensed text. `document_id` = sha256(source, path, text_sha256); `edits` says what normalizing changed."""

    document_id: OwnText
    source: OwnText
    revision: OwnText
    path: PathText
    split: OwnText
    text: ScrubbedText
    text_sha256: OwnText
    blob_sha256: OwnText
    num_bytes: int
    encoding: OwnText
    edits: tuple[OwnText, ...]
    license: ScrubbedText
    license_class: OwnText
    license_branch: ScrubbedText
    license_evidence: OwnText
    license_detail: ScrubbedText
    num_redactions: UInt32
    scores: OwnText
    repo_stable_id: OwnText | None
    filepath_stable_id: OwnText | None
    file_local_commit_index: Int32 | None
    commit_hash: OwnText | None


@stored("DuplicateRecord")
@dataclass(frozen=True, slots=True)
class DuplicateRecord:
    """A document dropped as a copy of its keeper. `jaccard` is exact, over shingles of five tokens; 1.0 for equal texts.

    For a `contained` document it is the share of its own shingles that its keeper has; for a `container` the share that all its
    `num_keepers` keepers have, of which the one with most of them is named.
    """

    document_id: OwnText
    source: OwnText
    path: PathText
    num_bytes: int
    keeper_id: OwnText
    keeper_source: OwnText
    keeper_path: PathText
    jaccard: float
    reason: OwnText
    cluster_id: OwnText
    num_keepers: int


@stored("KeptDocument")
@dataclass(frozen=True, slots=True)
class KeptDocument:
    """A document that is the best of its copies."""

    document_id: OwnText
    source: OwnText


CHRONOLOGY = ("filepath_stable_id", "file_local_commit_index")
"""The columns of a document with chronology that name its file and the commit, None for others."""


@stored("EnrichedDocument", version=4)
@dataclass(frozen=True, slots=True)
class EnrichedDocument:
    """A document with its structure. Chunks are byte ranges of the UTF-8 text; end of one is start of the next.

    Leaf `i` of the tree owns the bytes from `node_starts[i]` on, the blanks before it included; None where there is no tree.
    From `provenance_starts[i]` on the structure is from the parser `provenance_codes[i]`, see `PROVENANCE_CODES`.
    Names that a compiler resolved have one entry each: bytes from `symbol_starts[i]` to `symbol_ends[i]`, with the blanks before,
    name `symbols[i]`, call `calls[i]` and refer to the type `type_references[i]`, each a 64-bit id and 0 for none;
    `definitions_and_uses[i]` is a `Mention`. None if no compiler read the document, empty if it found no name.
    """

    document_id: OwnText
    source: OwnText
    path: PathText
    split: OwnText
    text: ScrubbedText
    text_sha256: OwnText
    language: OwnText
    provenance: OwnText
    provenance_detail: ScrubbedText
    chunk_starts: tuple[UInt32, ...]
    chunk_ends: tuple[UInt32, ...]
    chunk_kinds: tuple[UInt8, ...]
    chunk_levels: tuple[UInt8, ...]
    includes: tuple[ScrubbedText, ...]
    error_fraction: Float32
    order_in_source: UInt32
    build_context: ScrubbedText | None
    symbols: tuple[UInt64, ...] | None
    calls: tuple[UInt64, ...] | None
    type_references: tuple[UInt64, ...] | None
    filepath_stable_id: OwnText | None = None
    file_local_commit_index: Int32 | None = None
    definitions_and_uses: tuple[UInt8, ...] | None = None
    symbol_starts: tuple[UInt32, ...] | None = None
    symbol_ends: tuple[UInt32, ...] | None = None
    node_starts: tuple[UInt32, ...] | None = None
    node_depths: tuple[UInt8, ...] | None = None
    node_siblings: tuple[UInt8, ...] | None = None
    node_types: tuple[UInt8, ...] | None = None
    provenance_starts: tuple[UInt32, ...] | None = None
    provenance_codes: tuple[UInt8, ...] | None = None
    license: ScrubbedText | None = None
    license_class: OwnText | None = None


@stored("TokenizedDocument", version=3)
@dataclass(frozen=True, slots=True)
class TokenizedDocument:
    """A document as token ids, with columns of the same length. A column is missing (None), or as long as the ids.

    A token has the values of the byte that it begins with. Zero is a value: no name, no call, the first child.
    """

    document_id: OwnText
    source: OwnText
    path: PathText
    split: OwnText
    text_sha256: OwnText
    num_bytes: UInt32
    provenance: OwnText
    input_ids: tuple[UInt16, ...]
    chunk_starts: tuple[UInt32, ...]
    structure_kinds: tuple[UInt8, ...]
    structure_levels: tuple[UInt8, ...]
    depths: tuple[UInt8, ...] | None
    sibling_indices: tuple[UInt8, ...] | None
    node_types: tuple[UInt8, ...] | None
    symbols: tuple[UInt64, ...] | None
    call_targets: tuple[UInt64, ...] | None
    type_references: tuple[UInt64, ...] | None
    definitions_and_uses: tuple[UInt8, ...] | None
    provenances: tuple[UInt8, ...] | None
    filepath_stable_id: OwnText | None
    file_local_commit_index: Int32 | None
    license: ScrubbedText | None = None
    license_class: OwnText | None = None


@stored("PackedRow", version=2)
@dataclass(frozen=True, slots=True)
class PackedRow:
    """T token slots, filled with pieces of documents of one source, split, provenance and license, in order, padding last.

    `doc_ids` count the pieces from 1, padding is -1. `source_doc_ids`, `source_doc_token_lengths` and `piece_indices` have
    one entry for each piece; a length counts the slots of the piece with its BOS and, on a document's last piece, its EOS. A row of
    documents with chronology holds consecutive commits of the one file `filepath_stable_id`, oldest first.
    """

    pack_id: UInt32
    source: OwnText
    split: OwnText
    input_ids: tuple[UInt16, ...]
    target_ids: tuple[UInt16, ...]
    loss_mask: tuple[UInt8, ...]
    doc_ids: tuple[Int32, ...]
    valid_token_count: UInt32
    num_docs: UInt32
    trained_token_count: UInt32
    slack_tokens: UInt32
    source_doc_ids: tuple[OwnText, ...]
    source_doc_token_lengths: tuple[UInt32, ...]
    piece_indices: tuple[UInt32, ...]
    build_aware_fraction: Float32 | None
    file_local_commit_indices: tuple[Int32, ...] | None
    filepath_stable_id: OwnText | None


@stored("TrainingRow", version=3)
@dataclass(frozen=True, slots=True)
class TrainingRow:
    """A packed row as training reads it, memory-mapped. `chunk_starts` are slots within the row, piece by piece.

    `piece_ids` are 64-bit digests of (document_id, piece_index): the identity that infilling is keyed by.
    `chunk_counts` says how many of the `chunk_starts` belong to each piece. Structure has T slots and is optional;
    `file_identity` is the 64-bit digest of the `filepath_stable_id`, of rows that hold consecutive commits of one file.
    All documents of a row have its provenance and its license.
    """

    input_ids: tuple[UInt16, ...]
    lengths: tuple[UInt32, ...]
    piece_ids: tuple[UInt64, ...]
    chunk_counts: tuple[UInt32, ...]
    chunk_starts: tuple[UInt32, ...]
    structure_kinds: tuple[UInt8, ...] | None
    structure_levels: tuple[UInt8, ...] | None
    file_identity: UInt64 | None
    first_commit_index: Int32 | None
    provenance: OwnText | None = None
    license: ScrubbedText | None = None
    license_class: OwnText | None = None
