"""Grammars of texts: by the suffix, and for a header that can be C or C++ by its text."""

import re
from functools import cache
from importlib import import_module

import tree_sitter

from pipeline.core.errors import StageError
from pipeline.core.languages import LANGUAGES, Language, language_of
from pipeline.lexing.cpp import shortened

_DIRECTIVE = re.compile(rb"^[ \t]*#[ \t]*(if|ifdef|ifndef|elif|else|endif)\b(.*)$", re.MULTILINE)
_CPP_MARK = re.compile(
    rb"\b(?:class|typename|template|namespace|virtual|constexpr|consteval|constinit|nullptr|noexcept|mutable|friend"
    rb"|explicit|operator|decltype|static_cast|dynamic_cast|reinterpret_cast|const_cast|concept|requires)\b(?!\s*[;,)=\[])"
    rb"|\b(?:public|private|protected)\s*:|::|\busing\s+\w"
    rb"|^[ \t]*#[ \t]*include[ \t]*<[a-z_0-9]+>",
    re.MULTILINE,
)
_REFERENCE = re.compile(rb"\w>?\s*+&\s*+(?:\w++\s*+)?[,)]")
"""A parameter by reference, if a declaration or a body follows."""


def languages_to_parse(path: str, content: bytes) -> list[Language]:
    """Return the languages in which a text is to be parsed: the next one only if the one before leaves errors.

    Raises StageError for a file in no language.
    """
    language = language_of(path)
    if language is None:
        raise StageError(path, "its suffix belongs to no language", f"a suffix of {', '.join(LANGUAGES.names)}")
    if not language.one_of:
        return [language]
    first, second = (LANGUAGES[name] for name in language.one_of)
    return [second] if _looks_like_cpp(content) else [first, second]


@cache
def load_grammar(language: Language) -> tree_sitter.Language:
    """Return the grammar of a language, loaded once a process."""
    assert language.grammar is not None  # `languages_to_parse` gives none of these
    module, _, function = language.grammar.function.partition(":")
    return tree_sitter.Language(getattr(import_module(module), function)())


def _looks_like_cpp(content: bytes) -> bool:
    """Return whether anything outside of comments, strings and what only C++ compilers see is C++ and no C."""
    bare = shortened(content)
    if b"__cplusplus" in bare:
        bare = _without_cpp_branches(bare)
    end_of_code = max(bare.rfind(b";"), bare.rfind(b"{"))
    return _CPP_MARK.search(bare) is not None or _REFERENCE.search(bare, 0, max(0, end_of_code)) is not None


def _without_cpp_branches(bare: bytes) -> bytes:
    """Return the text without what is under `#ifdef __cplusplus` or `#if defined(__cplusplus)`, up to the `#else` or `#endif`."""
    kept: list[bytes] = []
    stack: list[bool] = []
    at = num_cpp = 0  # of those on the stack
    for match in _DIRECTIVE.finditer(bare):
        if num_cpp == 0:
            kept.append(bare[at : match.start()])
        at = match.end()
        word = match[1]
        if word in (b"if", b"ifdef", b"ifndef"):
            stack.append(word != b"ifndef" and b"__cplusplus" in match[2] and b"!" not in match[2])
            num_cpp += stack[-1]
        elif stack:
            num_cpp -= stack.pop()
            if word != b"endif":
                stack.append(False)
    return b"".join([*kept, bare[at:]])
