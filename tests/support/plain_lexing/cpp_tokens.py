"""Tokens of C and C++ texts as strings, as the lexer finds them."""

import re

from pipeline.lexing.cpp import CPP_LEXER
from pipeline.lexing.lexer import lexed

RAW_STRING = re.compile(r'((?:u8?|[LU])?R)"([^ ()\\\t\n\x80-\U0010ffff]{0,16})\(([\s\S]*)\)\2"\Z')


def tokens(text: str) -> list[str]:
    """Return the tokens of a text. Raw strings are given without their delimiters."""
    found = lexed(CPP_LEXER, text)
    texts = [text[start:end] for start, end in found.in_characters(found.tokens).tolist()]
    return [RAW_STRING.sub(r'\1"\3"', word) if word.endswith('"') else word for word in texts]
