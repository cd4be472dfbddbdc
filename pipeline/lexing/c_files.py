"""Files of C and C++: in which of the two a header is by its text, and the file that an `#include` means."""

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from posixpath import commonpath, dirname, join, normpath

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


def languages_of_header(content: bytes) -> tuple[str, ...]:
    """Return the names of the languages to parse a header in: C++ if it looks like it, else C, and C++ if that leaves errors."""
    return ("cpp",) if _looks_like_cpp(content) else ("c", "cpp")


def resolve_include(path: str, written: str, by_name: Mapping[str, Sequence[str]]) -> str | None:
    """Return the file that `#include written` in `path` means, or None. `by_name` holds the paths of each file name.

    Quotes look beside the file first. Else it is the path that ends in the name and shares most folders with
    `path`; in brackets the name must have a folder, because `<string.h>` is a system header.
    """
    name = normpath(written[1:-1])
    candidates = by_name.get(PurePosixPath(name).name, ())
    beside = normpath(join(dirname(path), name))
    if written.startswith('"') and beside in candidates:
        return beside
    if written.startswith("<") and "/" not in name:
        return None
    suffix = "/" + name.lstrip("./")
    ending = [candidate for candidate in candidates if f"/{candidate}".endswith(suffix)]

    def num_shared_folders(candidate: str) -> int:
        return len(PurePosixPath(commonpath([f"/{dirname(path)}", f"/{dirname(candidate)}"])).parts)

    return min(ending, key=lambda candidate: (-num_shared_folders(candidate), candidate), default=None)


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
