"""Next questions: the commands that show what a blocked output holds, and some of the files that blocked it."""

import shlex
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path

from pipeline.contracts.part import FileName

_MAX_FILES = 3


def next_questions(
    store_root: Path, corpus: str, of: str, files: Sequence[FileName] = (), has_documents: bool = True
) -> tuple[str, ...]:
    """Return the commands to run next: `why` for each file, then `report`, or `show` before there are documents to report on."""
    build = f"--corpus {corpus} --of {of} --store {shlex.quote(str(store_root))}"
    questions = [f"why {shlex.quote(source)} {shlex.quote(path)}" for source, path in files]
    questions.append("report" if has_documents else "show")
    return tuple(f"python -m pipeline {each} {build}" for each in questions)


def first_files(files: Iterable[FileName]) -> tuple[FileName, ...]:
    """Return the first three files, once each, without those whose name holds a secret."""
    named = list(dict.fromkeys(files))
    if not named:
        return ()
    from pipeline.stages.normalize.params import ScrubParams
    from pipeline.stages.normalize.scrub.shown_text import ShownText  # builds that pass do not wait for its libraries

    text = ShownText(ScrubParams())
    return tuple(islice((each for each in named if not text.holds_secret(each[1])), _MAX_FILES))
