"""Params of the stage tokenize."""

from enum import StrEnum

from pydantic import Field

from pipeline.core.params import Params


class Packing(StrEnum):
    """Method of packing pieces into rows."""

    BEST_FIT = "best_fit"
    """Best-fit decreasing inside a window of consecutive pieces (arXiv 2404.10830)."""
    SINGLE_DOC = "single_doc"
    """One piece a row: the plainest layout, mostly padding on small files."""


class TokenizeParams(Params):
    """Parameters of the stage tokenize. The defaults are those of the recipe `quick`."""

    vocabulary: str = Field(default="cpp-32768", pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")
    """Name of the vocabulary, a folder of `pipeline/stages/tokenize/vocabularies`."""

    row_length: int = Field(default=512, ge=16, le=65_536)
    """Token slots in a packed row."""

    packing: Packing = Packing.BEST_FIT
    """Method of packing pieces into rows."""

    window_pieces: int = Field(default=2048, ge=1, le=1_000_000)
    """Consecutive pieces that best-fit packing chooses among. A larger window wastes fewer slots, a smaller one keeps
    related files closer together."""

    with_structure: bool = False
    """Store structure in the rows that training maps: the kind and the dependency level of each slot."""

    max_cut_waste_fraction: float = Field(default=1 / 64, ge=0, le=1)
    """Largest share of a row, 0-1, that may stay empty so that a long document is cut where a chunk starts. Where more
    would, it is cut where a line starts."""
