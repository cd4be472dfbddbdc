"""Grammars of texts: by the suffix, and where that leaves a choice, as for a header of C or C++, by the text."""

from functools import cache

import tree_sitter

from pipeline.core.declared import load_declared, type_of
from pipeline.core.errors import ParamsError, StageError
from pipeline.lexing.languages import LANGUAGES, Language, language_of


def languages_to_parse(path: str, content: bytes) -> list[Language]:
    """Return the languages in which a text is to be parsed: the next one only if the one before leaves errors.

    Raises StageError for a file in no language.
    """
    language = language_of(path)
    if language is None:
        raise StageError(path, "its suffix belongs to no language", f"a suffix of {', '.join(LANGUAGES.names)}")
    names = language.one_of
    if language.decided_by:
        names = load_declared(f"language {language.name}", "decided_by", language.decided_by)(content)
    return [LANGUAGES[name] for name in names] or [language]


@cache
def load_grammar(language: Language) -> tree_sitter.Language:
    """Return the grammar of a language, loaded once a process. Raises ParamsError naming the language if it has none."""
    assert language.grammar is not None  # `languages_to_parse` gives none of these
    declaration, function = f"language {language.name}", language.grammar.function
    grammar = load_declared(declaration, "grammar", function)()
    try:
        return tree_sitter.Language(grammar)
    except (TypeError, ValueError) as error:
        found = f"its grammar {function!r} returned {type_of(grammar)}, which tree-sitter does not load ({error})"
        remedy = f"Install a build of {language.grammar.distribution} for it, or correct the declaration."
        raise ParamsError(declaration, found, "a grammar of tree-sitter's versions", remedy) from error
