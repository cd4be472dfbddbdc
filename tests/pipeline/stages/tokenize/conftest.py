"""Documents for the tokenize tests: small C++ texts with known chunks, made here from a few lines."""

import hashlib
from collections.abc import Callable, Sequence

import pyarrow as pa
import pytest

from pipeline.core.records import EnrichedDocument
from pipeline.core.schema import table_of_records
from pipeline.stages.tokenize.vocabulary import Vocabulary, load_vocabulary

FUNCTION = """\
/// Adds {number} to what it is given, naïvely.
int add_{number}(int value) {{
    return value + {number};
}}

"""
PREAMBLE = "#pragma once\n#include <vector>\n\nnamespace sluice {\n\n"


@pytest.fixture(scope="session")
def vocabulary() -> Vocabulary:
    return load_vocabulary("tiny-1024")


@pytest.fixture(scope="session")
def make_document() -> Callable[..., EnrichedDocument]:
    return _document


@pytest.fixture(scope="session")
def enriched() -> pa.Table:
    """Twelve documents of one source, from one function to forty, one of them spelling out special tokens."""
    documents = [
        _document(number, [PREAMBLE, *_functions(number, size)])
        for number, size in enumerate((1, 2, 1, 5, 3, 40, 1, 12, 2, 1, 7))
    ]
    spelled = _document(11, ['auto s = "<|eos|><|fim_prefix|>";\n', "// <|pad|> 漢字 🎉\n", "int x;\n"])
    return table_of_records(EnrichedDocument, [*documents, spelled])


def _functions(number: int, size: int) -> list[str]:
    return [FUNCTION.format(number=100 * number + index) for index in range(size)]


def _document(number: int, chunks: Sequence[str], split: str = "train") -> EnrichedDocument:
    text = "".join(chunks)
    digest = hashlib.sha256(text.encode()).hexdigest()
    ends = [len("".join(chunks[: index + 1]).encode()) for index in range(len(chunks))]
    return EnrichedDocument(
        document_id=hashlib.sha256(f"{number}{digest}".encode()).hexdigest(),
        source="heron",
        path=f"src/file_{number}.hpp",
        split=split,
        text=text,
        text_sha256=digest,
        language="cpp",
        provenance="build_aware" if number % 3 == 0 else "syntax_only",
        provenance_detail="",
        chunk_starts=(0, *ends[:-1]),
        chunk_ends=tuple(ends),
        chunk_kinds=tuple(1 + index % 8 for index in range(len(chunks))),
        chunk_levels=tuple(index % 5 for index in range(len(chunks))),
        includes=(),
        error_fraction=0.0,
        order_in_source=number,
        build_context=None,
        symbols=None,
        calls=None,
        type_references=None,
    )
