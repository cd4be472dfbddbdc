"""Reading of comments: the licenses that they state, and the sentences that no recognized text, notice or reference explains."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

from pipeline.stages.normalize.license.comments import Prose
from pipeline.stages.normalize.license.explained import without_explained
from pipeline.stages.normalize.license.names import TOKEN, unknown_name, with_tokens
from pipeline.stages.normalize.license.notices import plus_as_words, split_notices, title_of
from pipeline.stages.normalize.license.sentences import MIN_WEIGHT_IN_HEADER, Sentence, spoken, spoken_as_written
from pipeline.stages.normalize.license.texts import split_texts, without_harmless
from pipeline.stages.normalize.license.words import copyright_words, plain_words

BSD_FAMILY = "LicenseRef-BSD-family"


@dataclass(frozen=True)
class Reading:
    """Content of one group of comments.

    `texts` and `notices` are expressions that all hold, unless `is_choice`. `mentions` are licenses that it only names;
    `sentence` is the heaviest that nothing explains.
    """

    texts: tuple[str, ...]
    notices: tuple[str, ...]
    is_choice: bool
    mentions: tuple[str, ...]
    sentence: Sentence | None

    @property
    def expressions(self) -> tuple[str, ...]:
        """The expressions that all hold."""
        found = tuple(dict.fromkeys((*self.texts, *self.notices)))
        if any(each.startswith("BSD-") for each in found) or len(found) > 1:
            found = tuple(each for each in found if each != BSD_FAMILY) or found[:1]
        found = tuple(
            dict.fromkeys(part for each in found for part in (each.split(" OR ") if self.is_choice else (each,)))
        )
        return (" OR ".join(found),) if self.is_choice and len(found) > 1 else found

    @property
    def lines(self) -> tuple[str, ...]:
        """One line of evidence for each license."""
        notices = [each for each in self.notices if each not in self.texts]
        return tuple(
            [f"the header contains the text of {license}" for license in self.texts]
            + [f"the header contains the notice of {license}" for license in notices]
        )


@lru_cache(maxsize=4_096)
def read_prose(prose: Prose) -> Reading:
    """Read a group of comments: most files of a source begin with the same one."""
    if not prose.is_header:
        words = plain_words(prose.text, with_copyright_lines=True)
        return Reading((), (), False, (), spoken(words, False) or spoken_as_written(prose.text, False))
    text = plus_as_words(prose.text)
    texts, words = split_texts(text)
    words = without_harmless(words)
    notices = split_notices(words if texts else plain_words(text, with_copyright_lines=True))
    titles = () if texts or notices.licenses else title_of(text)
    is_stated = bool(texts or notices.licenses)
    names = dict(zip(re.findall(TOKEN, notices.left), notices.names, strict=True))
    found = [_spelled(_unexplained(notices.left, is_stated, is_header=True), names.__getitem__)]
    found.append(spoken_as_written(prose.text, True))
    if texts:
        words, naming = with_tokens(copyright_words(text))
        found.append(_spelled(_unexplained(words, is_stated, is_header=False), naming.license_of))
    if unknown := unknown_name(prose.text):
        found.append(Sentence(f"license: {unknown}", MIN_WEIGHT_IN_HEADER))
    sentence = max(filter(None, found), key=lambda each: each.weight, default=None)
    mentions = tuple(dict.fromkeys(notices.names)) if not titles else ()
    return Reading(texts, tuple(dict.fromkeys((*notices.licenses, *titles))), notices.is_choice, mentions, sentence)


def _spelled(sentence: Sentence | None, license_of: Callable[[str], str]) -> Sentence | None:
    """Return a sentence with the licenses that it names in place of their tokens."""
    if sentence is None:
        return None
    return replace(sentence, words=re.sub(rf"\b{TOKEN}\b", lambda match: license_of(match[0]), sentence.words))


def _unexplained(words: str, is_stated: bool, is_header: bool) -> Sentence | None:
    """Return the heaviest sentence that nothing explains. Most comments have no heavy one: nothing is to be explained."""
    return spoken(without_explained(words, is_stated), is_header) if spoken(words, is_header) else None
