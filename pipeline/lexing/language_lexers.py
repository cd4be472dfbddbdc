"""Lexers of languages, each loaded with the first text in its language."""

from functools import cache

from pipeline.core.declared import load_declared, require_type
from pipeline.lexing.languages import DEFAULT_LANGUAGE, Language, language_of
from pipeline.lexing.lexer import Lexer


def lexer_of(path: str) -> Lexer:
    """Return the lexer of a file's language, or that of DEFAULT_LANGUAGE for a text in none, such as a license."""
    return load_lexer(language_of(path) or DEFAULT_LANGUAGE)


@cache
def load_lexer(language: Language) -> Lexer:
    """Return the lexer of a language, loaded once a process. Raises ParamsError naming the language if it has none."""
    declaration = f"language {language.name}"
    found = load_declared(declaration, "lexer", language.lexer)
    return require_type(found, Lexer, declaration, "lexer")  # type: ignore[type-abstract]  # nothing is made of it
