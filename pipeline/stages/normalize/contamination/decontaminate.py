"""Decontaminator: finds texts that hold the solution of an evaluation item, by runs of 13 tokens, or by MinHash and Jaccard.

Overlap is the share of a solution's runs of 13 tokens that a document holds, in its code or in its comments. A document
that resembles a solution as a whole is found by its signature, as near-duplicates are. Source: Brown et al. 2020,
appendix C (13-grams), here over tokens of the file's language, so that layout and comments of the copy do not matter.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import re2
from numpy.typing import NDArray

from pipeline.core.errors import ParamsError
from pipeline.core.schema import OwnText, PathText, ScrubbedText, stored
from pipeline.lexing.language_lexers import load_lexer
from pipeline.lexing.languages import LANGUAGES
from pipeline.stages.normalize.contamination.evaluation_items import EvaluationItem
from pipeline.stages.normalize.duplicates.duplicates import MARGIN_OF_ESTIMATE
from pipeline.stages.normalize.duplicates.shingles import (
    NUM_TOKENS_IN_SHINGLE,
    hashes_for_minhash,
    jaccard,
    run_hashes,
    runs_with_prefix,
    signature,
)
from pipeline.stages.normalize.params import DecontaminationRules

NUM_TOKENS_IN_RUN = 13
_NUM_PREFIX_BITS = 16
"""The leading bits of a hash: a table of them rules out nearly all runs without sorting any."""

_BLANKS = " \t\r\n\f\v"

CONTAMINATION = "contamination.parquet"


@stored("ContaminationRecord")
@dataclass(frozen=True, slots=True)
class ContaminationRecord:
    """A dropped document and the item that it holds most of. `overlap` and `jaccard` are exact; `where` is code or comments."""

    record_id: OwnText
    source: OwnText
    path: PathText
    item_id: ScrubbedText
    overlap: float
    jaccard: float
    where: OwnText


@dataclass(frozen=True, slots=True)
class Overlap:
    """The item that one text holds most of."""

    item_id: str
    overlap: float
    jaccard: float
    where: str

    @property
    def detail(self) -> str:
        """The detail of the drop."""
        return f"item {self.item_id}: {self.overlap:.3f} of its solution in {self.where}, Jaccard {self.jaccard:.3f}"


class Decontaminator:
    """Compares texts with the solutions of evaluation items."""

    def __init__(self, items: Sequence[EvaluationItem], params: DecontaminationRules, seed: int) -> None:
        self._params = params
        self._items = [item.id for item in items]
        solutions = [load_lexer(LANGUAGES[item.language]).token_hashes(item.solution) for item in items]
        for item, found in zip(items, solutions, strict=True):
            _refuse_short(item, len(found), params)
        self._runs = [run_hashes(found, NUM_TOKENS_IN_RUN) for found in solutions]
        self._shingles = [run_hashes(found, NUM_TOKENS_IN_SHINGLE) for found in solutions]
        self._all_runs = np.unique(np.concatenate([np.empty(0, np.uint64), *self._runs]))
        self._prefixes = np.zeros(1 << _NUM_PREFIX_BITS, bool)
        self._prefixes[self._all_runs >> np.uint64(64 - _NUM_PREFIX_BITS)] = True
        rows = [signature(hashes_for_minhash(shingles), seed) for shingles in self._shingles]
        self._signatures = np.array(rows, np.uint32).reshape(len(rows), -1)

    def find(
        self, code: NDArray[np.uint64], comments: NDArray[np.uint64], values: NDArray[np.uint32] | None
    ) -> Overlap | None:
        """Return the item that a text is contaminated by, or None.

        `code` are the hashes of its tokens, `comments` those of the tokens in comments, `values` its signature, if any.
        """
        found = [*self._by_runs(code, "code"), *self._by_runs(comments, "comments")]
        if values is not None:
            found += self._by_signature(code, values)
        return max(found, key=lambda each: (each.overlap, each.jaccard, each.item_id), default=None)

    def _by_runs(self, hashes: NDArray[np.uint64], where: str) -> list[Overlap]:
        likely = runs_with_prefix(hashes, NUM_TOKENS_IN_RUN, self._prefixes)
        places = np.minimum(np.searchsorted(self._all_runs, likely), max(0, len(self._all_runs) - 1))
        shared = np.unique(likely[self._all_runs[places] == likely]) if len(likely) else likely
        if not len(shared):
            return []
        overlaps = []
        for item_id, wanted, shingles in zip(self._items, self._runs, self._shingles, strict=True):
            overlap = len(np.intersect1d(shared, wanted, assume_unique=True)) / len(wanted)
            if overlap >= self._params.min_overlap:
                similarity = jaccard(run_hashes(hashes, NUM_TOKENS_IN_SHINGLE), shingles)
                overlaps.append(Overlap(item_id, overlap, similarity, where))
        return overlaps

    def _by_signature(self, hashes: NDArray[np.uint64], values: NDArray[np.uint32]) -> list[Overlap]:
        estimates = np.count_nonzero(self._signatures == values, axis=1) / len(values)
        likely = np.flatnonzero(estimates >= self._params.min_jaccard - MARGIN_OF_ESTIMATE).tolist()
        found = []
        for index in likely:
            similarity = jaccard(run_hashes(hashes, NUM_TOKENS_IN_SHINGLE), self._shingles[index])
            if similarity >= self._params.min_jaccard:
                runs = run_hashes(hashes, NUM_TOKENS_IN_RUN)
                overlap = len(np.intersect1d(runs, self._runs[index])) / len(self._runs[index])
                found.append(Overlap(self._items[index], overlap, similarity, "code"))
        return found


class WholeSolutions:
    """Finds whole solutions in texts, blanks and comment marks aside.

    Used by the gate on what is stored. Shares nothing with the Decontaminator, so that the gate detects a broken one.
    """

    def __init__(self, items: Sequence[EvaluationItem]) -> None:
        options = re2.Options()
        options.max_mem = 256 << 20
        markers = {mark for lexer in map(load_lexer, LANGUAGES) for mark in (*lexer.line_markers, *lexer.block_markers)}
        self._left_out = (_BLANKS + "".join(sorted(markers))).encode()
        literals = sorted({re2.escape(self._bare(item.solution)) for item in items})
        self._pattern = re2.compile(b"|".join(literals), options) if literals else None

    def holds(self, text: str) -> bool:
        """Return whether a text holds the whole solution of any item."""
        return self._pattern is not None and self._pattern.search(self._bare(text)) is not None

    def _bare(self, text: str) -> bytes:
        return text.encode("utf-8", "surrogatepass").translate(None, self._left_out)


def _refuse_short(item: EvaluationItem, num_tokens: int, params: DecontaminationRules) -> None:
    if num_tokens < params.min_solution_tokens:
        raise ParamsError(
            f"evaluation item {item.id}",
            f"its solution has {num_tokens} tokens",
            f"at least {params.min_solution_tokens}: shorter ones occur in any code",
            "Leave it out, or lower min_solution_tokens.",
        )
