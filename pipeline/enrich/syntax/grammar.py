"""Which grammar a text is parsed with: by its extension, and where that says nothing, by what stands in it."""

import re
from enum import StrEnum
from pathlib import PurePosixPath

import numpy as np

from pipeline.cpp.languages import C_EXTENSIONS, SHARED_EXTENSIONS


class Grammar(StrEnum):
    """The language that a text is parsed as."""

    C = "c"
    CPP = "cpp"


_DIRECTIVE = re.compile(rb"^[ \t]*#[ \t]*(if|ifdef|ifndef|elif|else|endif)\b(.*)$", re.MULTILINE)
_CPP_SIGN = re.compile(
    rb"\b(?:class|typename|template|namespace|virtual|constexpr|consteval|constinit|nullptr|noexcept|mutable|friend"
    rb"|explicit|operator|decltype|static_cast|dynamic_cast|reinterpret_cast|const_cast|concept|requires)\b(?!\s*[;,)=\[])"
    rb"|\b(?:public|private|protected)\s*:|::|\busing\s+\w"
    rb"|^[ \t]*#[ \t]*include[ \t]*<[a-z_0-9]+>",
    re.MULTILINE,
)
_REFERENCE = re.compile(rb"\w>?\s*+&\s*+(?:\w++\s*+)?[,)]")
"""A parameter by reference, if a declaration or a body follows."""


def grammar_of(path: str, content: bytes) -> Grammar:
    """C for `.c`, what the text looks like for `.h`, C++ for all else. `.C` is C++ by long custom."""
    suffix = PurePosixPath(path).suffix
    if suffix in C_EXTENSIONS:
        return Grammar.C
    if suffix.lower() in SHARED_EXTENSIONS and not _has_cpp_sign(content):
        return Grammar.C
    return Grammar.CPP


def _has_cpp_sign(content: bytes) -> bool:
    """Whether anything outside of comments, strings and what only C++ compilers see is C++ and no C."""
    from pipeline.cpp import blanking_loops

    bare: bytes = blanking_loops.shortened(np.frombuffer(content, np.uint8)).tobytes()
    if b"__cplusplus" in bare:
        bare = _without_cpp_branches(bare)
    end_of_code = max(bare.rfind(b";"), bare.rfind(b"{"))
    return _CPP_SIGN.search(bare) is not None or _REFERENCE.search(bare, 0, max(0, end_of_code)) is not None


def _without_cpp_branches(bare: bytes) -> bytes:
    """The text without what stands under `#ifdef __cplusplus` or `#if defined(__cplusplus)`, up to the `#else` or `#endif`."""
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
