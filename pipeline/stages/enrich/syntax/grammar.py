"""Grammars of texts: by the suffix, and where that leaves a choice, as for a header of C or C++, by the text."""

from functools import cache
from pkgutil import resolve_name

import tree_sitter

from pipeline.core.errors import StageError
from pipeline.core.languages import LANGUAGES, Language, language_of


def languages_to_parse(path: str, content: bytes) -> list[Language]:
    """Return the languages in which a text is to be parsed: the next one only if the one before leaves errors.

    Raises StageError for a file in no language.
    """
    language = language_of(path)
    if language is None:
        raise StageError(path, "its suffix belongs to no language", f"a suffix of {', '.join(LANGUAGES.names)}")
    names = resolve_name(language.decided_by)(content) if language.decided_by else language.one_of
    return [LANGUAGES[name] for name in names] or [language]


@cache
def load_grammar(language: Language) -> tree_sitter.Language:
    """Return the grammar of a language, loaded once a process."""
    assert language.grammar is not None  # `languages_to_parse` gives none of these
    return tree_sitter.Language(resolve_name(language.grammar.function)())
