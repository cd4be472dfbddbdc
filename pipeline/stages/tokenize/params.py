"""Params of the stage tokenize."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

from pydantic import Field, field_serializer

from pipeline.core.params import Params
from pipeline.core.settings.fields import NAME_OR_PATH

NAME_FORM = "[a-z0-9]+(-[a-z0-9]+)*"
"""Form of the name of a vocabulary, as an expression."""


class Packing(StrEnum):
    """Method of packing pieces into rows."""

    BEST_FIT = "best_fit"
    """Best-fit decreasing inside a window of consecutive pieces (arXiv 2404.10830)."""
    SINGLE_DOC = "single_doc"
    """One piece a row: the plainest layout, mostly padding on small files."""


class TokenizeParams(Params):
    """Parameters of the stage tokenize. The defaults are those of the recipe `quick`."""

    vocabulary: Annotated[str, NAME_OR_PATH] = Field(default="cpp-32768", pattern=rf"^([^\x00]*/)?{NAME_FORM}$")
    """Name of the vocabulary, a folder of `pipeline/stages/tokenize/vocabularies`; or a path, with a slash in it as `./mine-2048`,
    of a folder of that name. Its content enters identities, its path does not."""

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

    @property
    def vocabulary_name(self) -> str:
        """Name of the vocabulary without the path."""
        return Path(self.vocabulary).name

    @field_serializer("vocabulary")
    def _leave_out_path(self, given: str) -> str:
        return Path(given).name
