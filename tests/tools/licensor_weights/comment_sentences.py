"""Sentences of comments in the source archives of a folder, without what recognized license texts and notices say."""

import hashlib
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pipeline.lexing.language_lexers import lexer_of
from pipeline.stages.collect.contents import is_source
from pipeline.stages.normalize.encodings.decode import Decoded, decode
from pipeline.stages.normalize.license.prose.clauses import sentences_of
from pipeline.stages.normalize.license.prose.comments import prose_of
from pipeline.stages.normalize.license.prose.words import plain_words
from pipeline.stages.normalize.license.read_comments import read_prose, unexplained_words

MAX_NUM_BYTES = 500_000
MAX_NUM_FILES = 700
"""Files of an archive that are read: those with the least digests of their paths."""
_PARTS = ("apart", "learned", "learned", "apart", "learned", "learned")


@dataclass(frozen=True)
class CommentSentence:
    """A sentence of a comment: its archive, whether it is in a header, and itself as written."""

    archive: str
    is_header: bool
    text: str

    @property
    def is_apart(self) -> bool:
        """True for the third of the projects that weights are measured with and never learned from."""
        return _PARTS[hashlib.sha256(self.archive.split("-")[0].encode()).digest()[0] % len(_PARTS)] == "apart"


def sentences_of_archives(folder: Path) -> Iterator[CommentSentence]:
    """Yield the distinct sentences of each archive of a folder."""
    for archive in sorted(folder.glob("*.tar.gz")):
        seen: set[tuple[bool, str]] = set()
        for path, text in _files_of(archive):
            for is_header, sentence in _sentences_in(path, text):
                key = (is_header, plain_words(sentence, with_copyright_lines=True))
                if key[1] and key not in seen:
                    seen.add(key)
                    yield CommentSentence(archive.name, is_header, sentence)


def _files_of(archive: Path) -> Iterator[tuple[str, str]]:
    with tarfile.open(archive) as opened:
        members = [each for each in opened if each.isfile() and is_source(each.name) and each.size <= MAX_NUM_BYTES]
        members.sort(key=lambda each: hashlib.sha256(each.name.encode()).digest())
        for member in members[:MAX_NUM_FILES]:
            decoded = decode(opened.extractfile(member).read())  # type: ignore[union-attr]
            if isinstance(decoded, Decoded):
                yield member.name, decoded.text.replace("\r\n", "\n")


def _sentences_in(path: str, text: str) -> Iterator[tuple[bool, str]]:
    """Yield the sentences of headers that nothing explains and no other rule takes for a limit, and of other comments."""
    headers = [prose for prose in prose_of(path, text) if prose.is_header]
    for prose in headers:
        sentence = read_prose(prose).sentence
        if sentence is None or sentence.because:
            left = unexplained_words(prose)
            yield from ((True, each) for each in sentences_of(prose.text) if _plain(each) in left)
    texts = {prose.text for prose in headers}
    for start, end in lexer_of(path).comments(text):
        if text[start:end] not in texts and "icen" not in text[start:end]:
            yield from ((False, each) for each in sentences_of(text[start:end]))


def _plain(sentence: str) -> str:
    return plain_words(sentence, with_copyright_lines=True)
