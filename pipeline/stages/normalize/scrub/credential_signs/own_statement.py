"""Own statement of a literal: the words that are said of it, and not of the statement, the label or the directive before it.

These are the name that is declared, the functions whose argument the literal is, the tables that it is in, and what stands before
it in its innermost brackets. Code is read by its literals, comments and brackets, from a line that begins not far before.
"""

import re
from dataclasses import dataclass, field

_TOKEN = re.compile(
    r"""(?P<directive>^[ \t]*\#(?:\\\n|[^\n])*)"""
    r"""|(?P<comment>//[^\n]*|/\*(?:[^*]|\*(?!/))*(?:\*/|\Z))"""
    r"""|"(?:[^"\\\n]|\\.)*["]|'(?:[^'\\\n]|\\.)*'"""
    r"""|(?P<open>[({\[])|(?P<close>[)}\]])|(?P<end>;|\b(?:public|private|protected|default)\s*:(?!:)|\bcase\b[^:;\n]*:(?!:))|(?P<comma>,)""",
    re.MULTILINE,
)
_BLOCK = re.compile(
    r"(?:[)\]]|\b(?:const|noexcept|override|final|else|do|try|mutable)|->[\w:<>*& ]{1,60})\Z"
    r"|\b(?:class|struct|union|namespace|enum|extern)\b[^=(]{0,200}\Z|\A\Z"
)
"""Code before the bracket of a block of statements, and not of an initializer."""
_MAX_CHARACTERS = 1_500


@dataclass
class _Brackets:
    """Brackets that are open at a place: where the words of each begin, and the bracket, with the innermost last."""

    begin: int = 0
    openings: list[tuple[int, int]] = field(default_factory=list)
    begin_of_group: int = 0

    def clear(self, place: int) -> None:
        self.begin = self.begin_of_group = place
        self.openings.clear()

    def open(self, place: int) -> None:
        self.openings.append((self.begin, place))
        self.begin = self.begin_of_group = place + 1

    def close(self, place: int) -> None:
        if self.openings:
            self.begin, _ = self.openings.pop()
            self.begin_of_group = self.openings[-1][1] + 1 if self.openings else self.begin
        else:
            self.clear(place + 1)


def statement_before(text: str, place: int) -> str:
    """Return what the statement of a literal says before it; of a literal in a comment or a directive, the line before it."""
    first = max(0, place - _MAX_CHARACTERS)
    start = max(first, text.find("\n", first, place) + 1) if first else 0
    before = text[start:place]
    brackets = _Brackets()
    for token in _TOKEN.finditer(before):
        if token.end() == len(before) and token.lastgroup in ("directive", "comment"):
            return before[max(token.start(), before.rfind("\n") + 1) :]
        _read(before, token, brackets)
    heads = [before[first:last] for first, last in brackets.openings]
    return _without_comments(" ".join((*heads, before[brackets.begin_of_group :])))


def _read(before: str, token: re.Match[str], brackets: _Brackets) -> None:
    if token["directive"] or token["end"]:
        brackets.clear(token.end())
    elif token["open"]:
        head = _without_comments(before[brackets.begin : token.start()]).strip()
        is_block = token[0] == "{" and _BLOCK.search(head) and not (brackets.openings and not head)
        if is_block:
            brackets.clear(token.end())
        else:
            brackets.open(token.start())
    elif token["close"]:
        brackets.close(token.start())
    elif token["comma"] and brackets.openings:
        brackets.begin = token.end()


def _without_comments(code: str) -> str:
    return _TOKEN.sub(lambda token: " " if token["comment"] else token[0], code) if "/" in code else code
