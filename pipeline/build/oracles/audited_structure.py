"""Oracle of structure: whether chunks, leaves and includes of a document contradict its own text.

It shares no code with the parser: it finds brackets, directives and comments by an expression. What parsed without an error has its
leaves, chunks and levels where these say; a text whose brackets do not pair, or that has errors, is judged by its other columns.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

import re2

from pipeline.build.oracles.audited_files import is_code
from pipeline.build.oracles.audited_leaves import gaps_of, num_misplaced_siblings, torn_leaves
from pipeline.build.oracles.code_marks import CodeMarks, marks_of
from pipeline.core.records import PROVENANCE_CODES, ChunkKind, Provenance

if TYPE_CHECKING:
    import pyarrow as pa

OF_STRUCTURE = (
    "document_id",
    "source",
    "path",
    "text",
    "language",
    "provenance",
    "provenance_detail",
    "error_fraction",
    "includes",
    "order_in_source",
    "chunk_starts",
    "chunk_ends",
    "chunk_kinds",
    "chunk_levels",
    "node_starts",
    "node_depths",
    "node_siblings",
    "node_types",
    "provenance_starts",
    "provenance_codes",
)
"""The columns of a document that are judged."""
_FEW_LEAVES, _SHARE_OF_LEAVES = 4, 0.1
"""Leaves of a text that may be otherwise than the marks of the text say, and the share of all that may."""
_OF_LEAVES = ("starts", "depths", "siblings", "types")
_OF_CHUNKS = ("starts", "ends", "kinds", "levels")
MAX_BYTES_SCANNED = 1 << 20
"""Bytes of a source that are scanned: of the documents with the smallest ids, which are digests."""
_INCLUDE = re2.compile(rb'\s*#\s*include\s*(<[^>\n]*>|"[^"\n]*")')
_MARK = re2.compile(rb"(?m)^//@@ (?:before|after)$")
_BRANCH = re2.compile(rb"#\s*(?:if|el)")
_LINKAGE = re2.compile(rb'\bextern\s*(?:/[/*][^"]*)?"')
_OF_TOO_MANY_ERRORS, _CLOSE = "max_error_fraction", 1e-6
_BLANKS = b" \t\r\n\f\v\\"
_LARGEST_SIBLING, _LARGEST_DEPTH = 63, 255
_KINDS = tuple(ChunkKind)
_HEADS = {ChunkKind.COMMENT: (b"/",), ChunkKind.PREAMBLE: (b"#",), ChunkKind.FUNC_BODY: (b"{", b":", b"=", b"try")}
"""Beginnings of chunks of a kind in C and C++, after blanks and the comments that belong to them."""
_WORDS = {
    ChunkKind.TYPEDEF: re2.compile(rb"\b(?:typedef|using)\b"),
    ChunkKind.CLASS_DECL: re2.compile(rb"\b(?:class|struct|union|enum)\b"),
    ChunkKind.NAMESPACE: re2.compile(rb"\b(?:namespace|using|extern)\b"),
    ChunkKind.FUNC_SIG: re2.compile(rb"\("),
}
"""Words of chunks of a kind in C and C++, unless they begin with the brace that ends them: all of 89,746 of real code."""
_FIRST_WORDS = {
    ChunkKind.TYPEDEF: re2.compile(rb"typedef\b"),
    ChunkKind.CLASS_DECL: re2.compile(rb"(?:class|struct|union|enum)\b[^;(={]*\{\z"),
    ChunkKind.NAMESPACE: re2.compile(rb"(?:inline\s+)?namespace\b"),
}
"""Beginnings that chunks of no other kind have."""
_ENDS = b";{}:)"
"""Ends of what is before a chunk that is no body of a function, or it follows a directive or begins the text; few do not."""
_SEEN = re2.compile(rb"[^\s\\]+")
_FEW_CHUNKS, _SHARE_OF_CHUNKS = 2, 0.3
_AT_THEIR_LEVEL = frozenset(
    {ChunkKind.FUNC_SIG, ChunkKind.FUNC_BODY, ChunkKind.CLASS_MEMBER, ChunkKind.CLASS_DECL, ChunkKind.TYPEDEF}
)
"""Kinds that begin where as many braces are open as their level says, unless a brace of `extern "C"` is one of them."""


def misstructured_documents(
    enriched: "pa.Table",
    like_c: Collection[str],
    max_error_fraction: float,
    languages: Mapping[str, Sequence[str]],
    not_preprocessed: Collection[str] = (),
    num_shards: int = 1,
) -> Iterator[tuple[str, str]]:
    """Yield source and path of the documents whose structure contradicts their text, their suffix, their errors or their order.

    `like_c` are the suffixes of languages with the comments and brackets of C, `languages` those that files of a suffix are in.
    Of languages `not_preprocessed` as C is, directives and the beginnings of chunks but comments are their entry's alone.
    Of each of the shards of a source an equal share of the bytes is scanned.
    """
    rows = enriched.select(list(OF_STRUCTURE)).to_pylist()
    scanned = _scanned(rows, like_c, MAX_BYTES_SCANNED // num_shards)
    found = {row["path"] for row in rows if not _are_errors_as_stated(row, max_error_fraction)}
    found |= {row["path"] for row in rows if row["provenance"] == Provenance.CHANGE and not _is_change(row)}
    found |= {
        row["path"]
        for row in rows
        if row["document_id"] in scanned and not _is_of_its_text(row, not is_code(row["path"], not_preprocessed))
    }
    found |= {row["path"] for row in rows if row["language"] not in _languages(row["path"], languages)}
    found |= set(_before_what_they_include(rows))
    yield from ((row["source"], row["path"]) for row in rows if row["path"] in found)


def _languages(path: str, languages: Mapping[str, Sequence[str]]) -> Sequence[str]:
    """Return the languages of a suffix, as written or in lower case."""
    suffix = "." + path.rpartition(".")[2]
    return languages.get(suffix) or languages.get(suffix.lower(), ())


def _scanned(rows: Sequence[Mapping[str, Any]], like_c: Collection[str], max_bytes: int) -> set[str]:
    """Return the ids of the documents that are scanned."""
    ids = sorted((row["document_id"], len(row["text"])) for row in rows if is_code(row["path"], like_c))
    sizes = accumulate(size for _, size in ids)
    return {name for (name, own), size in zip(ids, sizes, strict=True) if size - own < max_bytes}


def _are_errors_as_stated(row: Mapping[str, Any], limit: float) -> bool:
    """Return whether the share of errors is that of the degraded bytes, and a document is degraded for it above the limit alone.

    A whole document that is degraded has no bytes that are more so than others.
    """
    share, num_bytes = row["error_fraction"], len(row["text"].encode())
    starts, codes = row["provenance_starts"] or [], row["provenance_codes"] or []
    ends = [*starts[1:], num_bytes]
    degraded = PROVENANCE_CODES[Provenance.DEGRADED]
    sizes = [end - start for start, end, code in zip(starts, ends, codes, strict=False) if code == degraded]
    if row["provenance"] != Provenance.DEGRADED:
        return bool(share <= limit + _CLOSE and abs(sum(sizes) / max(1, num_bytes) - share) < _CLOSE)
    is_for_errors = row["provenance_detail"] == _OF_TOO_MANY_ERRORS
    return bool(sum(sizes) == num_bytes and (not is_for_errors or share > limit - _CLOSE))


def _is_change(row: Mapping[str, Any]) -> bool:
    """Return whether a change is cut at its marks alone, into chunks of no kind and level, and has nothing of a parse."""
    starts = [0, *(match.start() for match in _MARK.finditer(row["text"].encode()))]
    parsed = (row["includes"], *(row[f"node_{name}"] for name in _OF_LEAVES))
    return not any(parsed) and row["chunk_starts"] == starts and not any((*row["chunk_kinds"], *row["chunk_levels"]))


def _is_of_its_text(row: Mapping[str, Any], is_preprocessed: bool) -> bool:
    """Return whether includes, leaves and chunks are where the marks of a text are. Without a parse nothing is expected."""
    text = row["text"].encode()
    if row["provenance"] in (Provenance.DEGRADED, Provenance.CHANGE) or not text.strip(_BLANKS):
        return True
    marks = marks_of(text)
    is_sound = marks.is_paired and not row["error_fraction"]
    if not _are_whole(row) or (is_preprocessed and not _are_includes(row, text, marks, is_sound)):
        return False
    if not is_sound:
        return True
    return (
        _are_in_a_tree(row, text, marks, is_preprocessed)
        and _are_leaves(row, text, marks)
        and _are_chunks(row, text, marks, is_preprocessed)
    )


def _are_whole(row: Mapping[str, Any]) -> bool:
    """Return whether the columns of leaves, and those of chunks, are of one length, and each kind is one."""
    lengths = [
        {len(row[f"node_{name}"] or ()) for name in _OF_LEAVES},
        {len(row[f"chunk_{name}"]) for name in _OF_CHUNKS},
    ]
    return all(len(each) == 1 and min(each) for each in lengths) and max(row["chunk_kinds"]) < len(_KINDS)


def _are_includes(row: Mapping[str, Any], text: bytes, marks: CodeMarks, is_sound: bool) -> bool:
    """Return whether all includes are written in the text, in their order; of a sound text, those outside of brackets are all."""
    written = iter(_included(text, marks))
    are_written = all(any(found == each for found, _ in written) for each in row["includes"])
    outside = {found for found, depth in _included(text, marks) if not depth}
    return are_written and (not is_sound or outside <= set(row["includes"]))


def _included(text: bytes, marks: CodeMarks) -> list[tuple[str, int]]:
    """Return what the directives of a text include, and in how many brackets each is."""
    found = ((_INCLUDE.match(text[start:end]), depth) for start, end, depth in marks.directives)
    return [(match[1].decode(), depth) for match, depth in found if match]


def _are_in_a_tree(row: Mapping[str, Any], text: bytes, marks: CodeMarks, is_preprocessed: bool) -> bool:
    """Return whether nearly all leaves begin at tokens and follow their siblings.

    Of 4,379 real files 18 have a leaf or two that the parser divides otherwise, or a child without bytes that it has put there.
    """
    starts = row["node_starts"]
    num_torn = sum(1 for _ in torn_leaves(starts, text, marks)) if is_preprocessed else 0
    num_misplaced = num_misplaced_siblings(row["node_depths"], row["node_siblings"], gaps_of(starts, text))
    return num_torn + num_misplaced <= _FEW_LEAVES + _SHARE_OF_LEAVES * len(starts)


def _are_leaves(row: Mapping[str, Any], text: bytes, marks: CodeMarks) -> bool:
    """Return whether leaves ascend from the beginning on, and brackets are leaves as they must be.

    Both of a pair are at one depth, the closing one a later child of the same node, deeper than the pair around it; each of the
    four characters is of its own type.
    """
    starts, depths, siblings, types = (row[f"node_{name}"] for name in _OF_LEAVES)
    kinds: dict[int, set[int]] = {}
    around: list[tuple[int, int]] = []
    for first, last, _ in sorted(marks.pairs):
        opening, closing = (_leaf_at(starts, place, text) for place in (first, last))
        if opening is None or closing is None:
            continue
        while around and around[-1][0] < first:
            around.pop()
        is_inside = not around or depths[opening] > around[-1][1] or around[-1][1] == _LARGEST_DEPTH
        is_later = siblings[closing] > siblings[opening] or siblings[opening] == _LARGEST_SIBLING
        if not (is_inside and is_later and depths[opening] == depths[closing]):
            return False
        around.append((last, depths[opening]))
        for place, leaf in ((first, opening), (last, closing)):
            kinds.setdefault(text[place], set()).add(types[leaf])
    is_ascending = starts[0] == 0 and all(first < next_ for first, next_ in pairwise(starts))
    return is_ascending and len(set().union(*kinds.values())) == len(kinds) == sum(map(len, kinds.values()))


def _leaf_at(starts: Sequence[int], place: int, text: bytes) -> int | None:
    """Return the leaf that is the bracket at a place alone; none where it is a part of a longer one, as in `operator()`."""
    leaf = bisect_right(starts, place) - 1
    end = starts[leaf + 1] if leaf + 1 < len(starts) else len(text)
    is_alone = not text[starts[leaf] : place].strip(_BLANKS) and not text[place + 1 : end].strip(_BLANKS)
    return leaf if is_alone else None


@dataclass(frozen=True)
class _StoredChunk:
    start: int
    end: int
    kind: ChunkKind
    level: int
    is_continued: bool
    """True where the chunk before is of the same kind and level: it may have been cut."""


def _are_chunks(row: Mapping[str, Any], text: bytes, marks: CodeMarks, is_preprocessed: bool) -> bool:
    """Return whether chunks begin as their kind does, at their level, and the includes outside of bodies are preamble."""
    chunks = list(_chunks(row))
    braces = sorted(
        edge for first, last, _ in marks.pairs if text[first] == ord("{") for edge in ((first, 1), (last, -1))
    )
    open_braces = [0, *accumulate(step for _, step in braces)]
    comments = dict(marks.comments)
    has_linkage = _LINKAGE.search(text) is not None
    for chunk in chunks:
        depth = open_braces[bisect_left(braces, (chunk.start, -1))]
        is_exact = chunk.kind in _AT_THEIR_LEVEL and not chunk.is_continued and not has_linkage
        head = _own_start(chunk, text, comments)
        if chunk.level > depth or (is_exact and chunk.level != depth and text[head : head + 1] != b"}"):
            return False
        is_of_c = is_preprocessed or chunk.kind is ChunkKind.COMMENT
        if is_of_c and not (_begins(chunk, text[head : head + 3]) and _is_of_one_kind(chunk, text, braces)):
            return False
    if not is_preprocessed:
        return True
    if not _are_declarations(chunks, text, marks):
        return False
    edges = [chunk.start for chunk in chunks]
    places = [end - 1 for start, end, depth in marks.directives if not depth and _INCLUDE.match(text[start:end])]
    return all(_may_include(chunks[bisect_right(edges, place) - 1], text) for place in places)


def _chunks(row: Mapping[str, Any]) -> Iterator[_StoredChunk]:
    before = None
    columns = (row[f"chunk_{name}"] for name in _OF_CHUNKS)
    for start, end, code, level in zip(*columns, strict=True):
        kind = _KINDS[code]
        yield _StoredChunk(start, end, kind, level, before == (kind, level))
        before = (kind, level)


def _own_start(chunk: _StoredChunk, text: bytes, comments: Mapping[int, int]) -> int:
    """Return where a chunk begins after blanks and, unless it is one, comments."""
    place = chunk.start
    while place < chunk.end:
        if text[place] in _BLANKS:
            place += 1
        elif chunk.kind is not ChunkKind.COMMENT and place in comments:
            place = comments[place]
        else:
            break
    return place


def _begins(chunk: _StoredChunk, head: bytes) -> bool:
    """Return whether a chunk begins as those of its kind do, and only the body of a function with a brace."""
    if chunk.is_continued and chunk.kind is not ChunkKind.COMMENT:
        return True
    is_body = chunk.kind is ChunkKind.FUNC_BODY
    return head.startswith(_HEADS.get(chunk.kind, (b"",))) and (is_body or head[:1] != b"{")


def _are_declarations(chunks: Sequence[_StoredChunk], text: bytes, marks: CodeMarks) -> bool:
    """Return whether chunks begin within no word, have the words of their kind, and nearly all follow the end of something."""
    first = [chunk for chunk in chunks if not chunk.is_continued]
    if any(_is_word(text, chunk.start - 1) and _is_word(text, chunk.start) for chunk in first):
        return False
    bare = _without_comments(text, marks)
    if not all(_is_called_right(chunk.kind, bare[chunk.start : chunk.end].strip(_BLANKS)) for chunk in first):
        return False
    ends = {end for _, end, _ in marks.directives}
    seen = [0, *(match.end() for match in _SEEN.finditer(bare))]
    befores = (_end_before(chunk.start, bare, seen) for chunk in first if chunk.kind is not ChunkKind.FUNC_BODY)
    num_amid = sum(before > 0 and before not in ends and bare[before - 1] not in _ENDS for before in befores)
    return num_amid <= _FEW_CHUNKS + _SHARE_OF_CHUNKS * len(first)


def _is_called_right(kind: ChunkKind, code: bytes) -> bool:
    """Return whether the code of a chunk, without comments and blanks around it, can be of its kind."""
    if kind in (ChunkKind.COMMENT, ChunkKind.FUNC_BODY) or not code:
        return kind is ChunkKind.FUNC_BODY or (kind is ChunkKind.COMMENT and not code)
    if any(words.match(code) and kind is not other for other, words in _FIRST_WORDS.items()):
        return False
    return kind not in _WORDS or code[:1] == b"}" or _WORDS[kind].search(code) is not None


def _end_before(place: int, bare: bytes, seen: Sequence[int]) -> int:
    """Return where the code before a place ends, by the ends of its words; 0 if there is none."""
    return seen[bisect_right(seen, place) - 1] if bare[place - 1] in _BLANKS else place


def _is_word(text: bytes, place: int) -> bool:
    return 0 <= place < len(text) and (text[place : place + 1].isalnum() or text[place] == ord("_"))


def _without_comments(text: bytes, marks: CodeMarks) -> bytes:
    """Return the text with blanks for its comments."""
    bare = bytearray(text)
    for start, end in marks.comments:
        bare[start:end] = b" " * (end - start)
    return bytes(bare)


def _is_of_one_kind(chunk: _StoredChunk, text: bytes, braces: Sequence[tuple[int, int]]) -> bool:
    """Return whether a chunk of directives has no braces, unless a branch that was not parsed may have them."""
    if chunk.kind is not ChunkKind.PREAMBLE or _BRANCH.search(text[chunk.start : chunk.end]):
        return True
    return bisect_left(braces, (chunk.start, -1)) == bisect_left(braces, (chunk.end, -1))


def _may_include(chunk: _StoredChunk, text: bytes) -> bool:
    """Return whether a chunk may hold an include outside of brackets: preamble, or a signature with branches that were left out."""
    is_divided = chunk.kind is ChunkKind.FUNC_SIG and _BRANCH.search(text[chunk.start : chunk.end]) is not None
    return chunk.kind is ChunkKind.PREAMBLE or is_divided


def _before_what_they_include(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the paths of documents that come before a file of their own folder which they include, and which cannot include them.

    Whatever ends in the name that is written may be meant by an include: what can be reached by these is taken for a cycle.
    Where the order begins anew, a shard begins.
    """
    before = [-1, *(row["order_in_source"] for row in rows)]
    starts = accumulate(row["order_in_source"] <= last for row, last in zip(rows, before, strict=False))
    shard = {row["path"]: number for row, number in zip(rows, starts, strict=True)}
    order = {row["path"]: row["order_in_source"] for row in rows}
    names = {row["path"]: [_name(each) for each in row["includes"]] for row in rows}
    by_name: dict[str, list[str]] = {}
    for path in sorted(order):
        by_name.setdefault(path.rpartition("/")[2], []).append(path)
    for row in rows:
        folder = row["path"].rpartition("/")[0]
        for written in row["includes"]:
            other = f"{folder}/{written[1:-1]}".lstrip("/")
            is_late = written[:1] == '"' and order.get(other, -1) > row["order_in_source"]
            is_late = is_late and shard[other] == shard[row["path"]]
            if is_late and row["path"] not in _reached(other, names, by_name):
                yield row["path"]


def _name(written: str) -> str:
    return written[1:-1].rpartition("/")[2]


def _reached(start: str, names: Mapping[str, Sequence[str]], by_name: Mapping[str, Sequence[str]]) -> set[str]:
    """Return what a document may include, and what that may, and so on."""
    reached, waiting = {start}, [start]
    while waiting:
        targets = {target for name in names[waiting.pop()] for target in by_name.get(name, ())} - reached
        reached |= targets
        waiting += sorted(targets)
    return reached
