"""Names of corpora, runs and refs. They become paths in the store, so nothing in them may lead anywhere else."""

import re

from pipeline.core.errors import ParamsError

RUNS = "runs"
"""Training runs hold and move refs like corpora do, under this folder; so no corpus may have this name."""

_ID = re.compile(r"[0-9a-f]{64}")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def is_id(text: str) -> bool:
    """Return whether a text has the form of an object's id."""
    return _ID.fullmatch(text) is not None


def is_name(name: str) -> bool:
    """Return whether a name may be one part of a path in the store. Names that begin with a dot are the store's own."""
    return _NAME.fullmatch(name) is not None


def refuse_bad_corpus(corpus: str) -> None:
    """Raise ParamsError unless `corpus` is the name of a corpus, or `runs/` and the name of a run."""
    is_run = corpus.startswith(f"{RUNS}/")
    name = corpus.removeprefix(f"{RUNS}/")
    if is_name(name) and corpus != RUNS:
        return
    kind = "run" if is_run else "corpus"
    raise ParamsError(
        f"{kind} {name[:200]!r}",
        "it is reserved for training runs" if corpus == RUNS else "it is not a valid name",
        "up to 100 letters, digits, dots, underscores and hyphens, the first a letter or digit",
        f"Give the {kind} another name.",
    )
