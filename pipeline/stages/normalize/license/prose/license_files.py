"""References to files of licenses: those that a comment names for its terms and that have a name of their own.

`LICENSE.txt` is the project's license, which is inherited. `LICENSE-COMMERCIAL.md` and `COPYING.LESSER` are others, whatever they
say, unless they are among the texts that are inherited; `LICENSE-MIT` names a license, which is read as any name of one.
"""

import re

import re2

from pipeline.stages.normalize.license.prose.names import TOKEN, with_tokens

_STEM = "LICEN[CS]ES?|COPYING|COPYRIGHT|EULA|LEGAL|NOTICE"
_FILE = re2.compile(
    rf"\b(?:(?:{_STEM})[-.][A-Za-z][A-Za-z0-9_-]*(?:[.][A-Za-z][A-Za-z0-9_-]*)*"
    rf"|(?:{_STEM}|Licen[cs]es?|licen[cs]es?|Copying|Copyright)[-_.][A-Za-z][A-Za-z0-9_.-]*[.](?:txt|md|rst|html?|pdf|rtf|docx?))\b"
)
"""A file by its capitals, or by an extension of documents: others of these words are those of code."""
_WORD = re.compile("[a-z]+")
_PLAIN_WORDS = """
    txt md rst html htm text adoc tex file in third party parties thirdparty rd other others dependencies deps notice notices
    header main project license licence copying copyright the and key keys server manager id identifier
"""
_PLAIN = frozenset(_PLAIN_WORDS.split())
"""Words of a name that make it no other license: of its format, of what the project contains, and of things beside licenses."""


def license_files(text: str) -> tuple[str, ...]:
    """Return the files of a license with a name of its own that a comment names, in their order."""
    return tuple(dict.fromkeys(name for name in _FILE.findall(text) if _is_another(name))) if _FILE.search(text) else ()


def _is_another(name: str) -> bool:
    """Return whether the name of a file has a word that is neither one of every project nor that of a known license."""
    words = [word for word in _WORD.findall(name.lower())[1:] if word not in _PLAIN]
    return bool(words) and not re.search(TOKEN, with_tokens(f"license {' '.join(words)}")[0])
