"""Command that learns the weights of licensors' words: `python -m tests.tools.licensor_weights FOLDER`.

FOLDER holds source archives, as `pip download --no-binary :all: --no-deps` leaves them. A third of the projects and the styles of
`held_out` are measured and not learned from. The weights are written into the package.
"""

import argparse
import json
import re
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

from pipeline.stages.normalize.license.licensors import licensor_sentences
from pipeline.stages.normalize.license.licensors.licensor_sentences import WEIGHTS_FILE, signs_of, words_of
from pipeline.stages.normalize.license.prose.clauses import num_names_in_code, sentences_of
from pipeline.stages.normalize.license.prose.words import plain_words
from tests.support.paths import ROOT
from tests.tools.licensor_weights.comment_sentences import CommentSentence, sentences_of_archives
from tests.tools.licensor_weights.fitted_weights import LabeledSigns, fit_weights

LABELED = ROOT / "tests/pipeline/stages/normalize/license/licensors/labeled_sentences.toml"
HEADERS = ROOT / "tests/pipeline/stages/normalize/license/headers.toml"
SHARE_IN_CODE = 0.3
SHARE_OF_MADE = 20.0
"""Count of a made innocent sentence beside one of a project."""
_NAMES_A_LICENSE = re.compile(
    r"[AL]?GPL|CC BY|-\d|\d\.\d|[Pp]ublic|License,? v|General|^Copyright|brief|www|@file|initial API"
)
_MIN_NUM_WORDS = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    found = list(sentences_of_archives(parser.parse_args().folder))
    weights = fit_weights([*_of_projects(found), *made_sentences()])
    path = Path(str(licensor_sentences.__file__)).with_name(WEIGHTS_FILE)
    path.write_text(json.dumps(weights, indent=0, ensure_ascii=False) + "\n", encoding="utf-8")


def made_sentences() -> Iterator[LabeledSigns]:
    """Yield the labeled sentences of the tests that are learned from."""
    labeled, headers = (tomllib.loads(path.read_text()) for path in (LABELED, HEADERS))
    limiting = [each for style in labeled["learned"].values() for each in style]
    limiting += [*headers["free_words"], *(each for each in headers["lines"] if _is_prose(each))]
    limiting += [each for header in headers["refused"] for each in sentences_of(header) if _is_prose(each)]
    innocent = [*labeled["innocent"]["plain"]]
    innocent += [each for kind in ("free_prose", "prose", "code", "short_prose") for each in headers[kind]]
    yield from (LabeledSigns(_signs(each), True) for each in limiting if words_of(each))
    yield from (LabeledSigns(_signs(each), False, SHARE_OF_MADE) for each in innocent)


def _of_projects(sentences: Iterable[CommentSentence]) -> Iterator[LabeledSigns]:
    learned = [each for each in sentences if not each.is_apart]
    yield from (LabeledSigns(_signs(each.text), False, 1.0 if each.is_header else SHARE_IN_CODE) for each in learned)


def _is_prose(sentence: str) -> bool:
    """Return whether a sentence says more than which license holds, which other rules know."""
    return len(_plain(sentence).split()) >= _MIN_NUM_WORDS and not _NAMES_A_LICENSE.search(sentence)


def _signs(sentence: str) -> frozenset[str]:
    return signs_of(" ".join(words_of(sentence)), num_names_in_code(sentence))


def _plain(sentence: str) -> str:
    return plain_words(sentence, with_copyright_lines=True)


if __name__ == "__main__":
    main()
