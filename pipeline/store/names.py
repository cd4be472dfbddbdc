"""Which names a corpus, a run and a ref may have: they become paths in the store, so nothing in them leads anywhere else."""

import re

from pipeline.core.errors import ParamsError

RUNS = "runs"
"""Trainings hold and move refs like corpora do, under this folder; so no corpus is called that."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def is_name(name: str) -> bool:
    """Whether a name may stand as one part of a path in the store. None begins with a dot: those are the store's own."""
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
        "it is reserved for trainings" if corpus == RUNS else "it is no name",
        "up to 100 letters, digits, dots, underscores and hyphens, the first a letter or digit",
        f"Give the {kind} another name.",
    )
