"""Comments of a file that may speak of its license: the leading ones, groups of the others, and code that `#if 0` leaves out.

What is written in several comments that follow each other is one group: a notice may have a comment a line. A cheap
search for legal words comes first, so that most files have their leading comments alone.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import re2

from pipeline.lexing.language_lexers import lexer_of
from pipeline.lexing.lexer import Lexer

_OF_PEOPLE = (
    r"\b(?:compan(?:y|ies)|partners|friends|customers?|clients'|vendors|buyers?|dealers|sells?|selling|resold"
    r"|buy|contracts?|yours|ours|approval"
    r"|nobody|whoever|outsiders?|students?|staff|employees?|colleagues|police|army"
    r"|industry|embargo\w*|certified|business|ask|kindly"
    r"|leak(?:ed|ing)? (?:source|code)|upload(?:ed|ing)?|fees?|legal(?:ly)?|laws?|lawyers?|hands off|keep out"
    r"|keep quiet|reuse[ds]?|eyes only"
    r"|competitors?"
    r"|consortium|club|banks?|schools?|universit(?:y|ies)|institutes?|chatbots?|assistant|scrap(?:e|ing|ers)"
    r"|crawlers?|datasets?|st(?:eal|olen)|theft"
    r"|shar(?:e|ed|ing) (?:it|this|with)|pass (?:it|this) on|publish(?:ed)?|invoices?|purchased?|bought|borrowed"
    r"|lent|on loan|don't (?:copy|sell|share)"
    r"|eigentum|nicht|nutzung|terceros|terzi|derden|uso|ne pas|firmy)\b"
)
"""Words of people, trade and courts: a comment that has one may say in words of its own who may have the work."""
_MAY_SPEAK = re2.compile(
    r"(?i)li[cs]en[sc]|(?:^|[^l\s]|legal)\s+rights|rights\s+(?:to|of|in|under)|reserves|copyright"
    r" (?:law|holder|owner|notice)|permi(?:t|ssion)|prohibi|forbid|proprietar|confiden|secret|consent"
    r"|authori[sz]|agreement"
    r"|distribut|commercial|purposes|disclos|export|unpublished|property|internal|classified|official|terms|train|sold|academi|\beccn\b|\bitar\b|\bnda\b"
    r"|resale|resell|for sale|asking|destroyed|technical data|machine learning|language models?|copilot|\bai\b|free (?:for|to)|paid"
    r"|gpl|general public|hereby|evil|wtfpl|(?:released|available|provided|covered|published) "
    r"(?:under|into|to)|decompil|limited|public domain|freely|freeware|shareware|\b(?:mit|bsd|apache"
    r"|mpl|cc0|isc|copr|numerical recipes)\b"
    # Other languages: stems of the same.
    r"|recht|lizenz|vertraulich|untersagt|verbot|gestattet|genehmig|zustimm|gebrauch|droits|interdi|autoris|reprodu[cz]"
    r"|derecho|prohibid|autoriza|diritt|vietat|riservat|senza|segret|direito|proibid|vedad|toestemming|verboden"
    r"|zastrze|zabronion|zgody|f.rbjud|tillst.nd|forbud|tilladelse|haklar|izin|nghi|dilarang|kielletty|tilos|engedely"
    r"|interzis|zakazan|prava"
    r"|cc[- ]by|creative commons|sspl|business source|use only|military|numerical recipes|\beula\b|\bleaked|public repositor"
    r"|to yourself|quelltext|diffuser|vendu|restrito|distribuir|enseignement|only with devices|u\.s\. law|pass this"
    # Whoever says so in words of his own.
    rf"|{_OF_PEOPLE}"
)
_OTHER_SCRIPT = re.compile("[\u0370-\U0010ffff]")
_LEGAL = re2.compile(
    r"(?i)licen[sc]|gpl|copyright|\(c\)|©|all rights|proprietar|confidential|redistribut|permission"
    r" is|hereby|public domain"
)
_COPYRIGHT = re2.compile(r"(?i)(?:copyright|\(c\)|©)[^\n]{0,60}\d{4}|\d{4}[^\n]{0,30}(?:copyright|©)")
_LEFT_OUT = re2.compile(
    r"(?m)^[ \t]*#[ \t]*if(?:[ \t]+0\b|def[ \t]+\w*(?i:licen[sc]e|copyright)\w*)[^\n]*\n"
    r"((?:[^#\n][^\n]*\n|\n|[ \t]*#[^ie\n][^\n]*\n)*)"
)
_CODE_SIGN = re.compile(r"[;{}=]")
_NO_CODE = re2.compile(
    r"(?m)^[ \t]*#[ \t]*if(?:def|ndef)?[ \t]+\w[^\n]*\n((?:[ \t]*[^\s#/{}=\\][^\n#{}=\\]*\n|[ \t]*\n)+)[ \t]*#"
)
_STATEMENT = re2.compile(r"(?m);[ \t]*$|^[ \t]*\w+[ \t]*\([^\n]*\)[ \t]*,?$")
"""A line of code: it ends a statement, or is a call alone."""
_INVISIBLE = re.compile("[\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]")
"""Characters without a width of their own, which divide a word for a search and for no reader."""
_PRAGMA = re2.compile(
    r"(?m)^[ \t]*#[ \t]*(?:pragma[ \t]+(?:comment[ \t]*\([ \t]*(?:user|copyright|exestr|compiler)[ \t]*,"
    r"|copyright|message)|ident)[ \t(]*\"((?:[^\"\\\n]|\\.)*)\""
)
"""A directive whose text goes into the object file, or to who compiles it."""
_OF_A_NOTICE = re2.compile(r"(?i)licen[sc]e|copyright|notice|legal|eula|terms|banner|disclaimer|about")
_NUM_BEFORE_LITERAL = 80
"""Characters before a raw literal that may name it."""
_NAMED_IN_CODE = re2.compile(r"(?i)licen[sc]e|copyright")
_STATED = re2.compile(
    r"(?im)^(?:#[ \t]*(?:define|pragma)[^\n\"]*?|[A-Z_][^\n\"'/]*?)?(?P<name>licen[sc]e|copyright)"
    r"(?:_?(?:text|notice|string|str|info|message))?[ \t\[\]\d]*"
    r"(?:SEC\(\"license\"\))?[ \t]*[=({,]?[\s\\]*\"(?P<value>[^\"\n]+(?:\"[\s\\]*\"[^\"\n]*)*)\""
)
_SEAMS = re.compile(r"\\[nrt]|\"[\s\\]*\"")
"""Separators of the lines of a text in string literals."""
_NAMED_BY_FEW = 60
"""Signs of a string that may name a license and say nothing else."""
_DIRECTIVES = re2.compile(
    r"(?:[ \t]*(?:#[^\n]*|import [^\n]*|(?:export )?module[^\n]*;|extern \"C\" \{|\}|\{|__BEGIN_DECLS"
    r"|using [^\n]*;|(?:inline )?namespace[\w: ]*\{?(?: *(?:inline )?namespace[\w: ]*\{)*"
    r"|(?:class|struct|union|enum(?: class)?) [\w: ]+;"
    r"|(?:static |const |volatile )*char (?:const )?\*?(?:const )?\w*(?i:id|version|rev|sccs)\w*[\[\]]*[^\n]*;"
    r")?[ \t]*(?:\n|\z))*"
)
"""Lines before the first definition: includes, and what they and their names need."""
_ENDING = re2.compile(r"(?:\s*(?:#[ \t]*endif[^\n]*|\}[ \t]*;?|//[ \t]*namespace[^\n]*)?)*\z")
_CLOSING_LINE = re2.compile(r"[ \t]*(?:#[ \t]*(?:endif|else)|\}[ \t]*;?)[ \t]*")
_NUM_CLOSING = 1_000
"""Characters at a text's end that are searched for its closing lines before the whole text is."""
_MAX_NUM_GROUPS = 1_000


@dataclass(frozen=True)
class Prose:
    """A group of comments as written.

    `is_header` says that it speaks for the file: it leads it, follows its includes, ends it, holds a copyright, or stands for
    code. `is_legal` says that it has words of a license, wherever it is. `is_inside` says that code or another
    copyright stands before it: a license that it states is that of a part.
    """

    text: str
    is_header: bool
    is_legal: bool = True
    is_inside: bool = False


def prose_of(path: str, text: str) -> list[Prose]:
    """Return the leading comments, the other groups of comments that may speak of a license, and what code states, in order."""
    text = text if text.isascii() else _INVISIBLE.sub("", text)
    lexer = lexer_of(path)
    end = lexer.leading_comments_end(text)
    found = [Prose(text[:end], True)] if end else []
    rest = text[end:]
    code = end + len(_DIRECTIVES.match(rest)[0])
    last = _code_end(text)
    speaks = _may_speak(rest)
    if (
        speaks
        or text.startswith(("//", "/*"), code)
        or text.endswith("*/", 0, last)
        or "//" in text[max(0, text.rfind("\n", 0, last)) : last]
    ):
        spans = _join_neighbors(text, [span for span in lexer.comments(text) if span[0] >= end])
        placed = {span for span in spans if _is_placed(text, *span, (code, last))}
        before_code = _directives_end(text, spans, code)
        spoken = [span for span in spans if span in placed or _may_speak(text[slice(*span)])]
        for span in spoken[:_MAX_NUM_GROUPS]:
            group = text[slice(*span)]
            is_header = span in placed or bool(_COPYRIGHT.search(group))
            is_later = span[0] > before_code or _COPYRIGHT.search(text[: span[0]]) is not None
            is_inside = is_later and span not in placed
            found.append(Prose(group, is_header, bool(_LEGAL.search(group)), is_inside))
    return found + _said_by_code(rest, lexer, speaks)


def _said_by_code(rest: str, lexer: Lexer, speaks: bool) -> list[Prose]:
    """Return what code states after the leading comments: left out text, directives, and literals under the name of a notice."""
    found = []
    is_named = bool(_NAMED_IN_CODE.search(rest))
    if "if 0" in rest or (is_named and "ifdef" in rest):
        left_out = (match[1] for match in _LEFT_OUT.finditer(rest))
        found += [Prose(each, True) for each in left_out if _may_speak(each) or not _CODE_SIGN.search(each)]
    if speaks and "#" in rest and "if" in rest:
        left_out = (match[1] for match in _NO_CODE.finditer(rest))
        found += [Prose(each, True) for each in left_out if _may_speak(each) and not _STATEMENT.search(each)]
    if "pragma" in rest or "ident" in rest:
        found += [Prose(match[1], True) for match in _PRAGMA.finditer(rest)]
    if 'R"' in rest and _OF_A_NOTICE.search(rest):
        found += [Prose(each, True) for each in _raw_notices(rest, lexer)]
    if is_named:
        stated = [(match["name"].lower(), _SEAMS.sub("\n", match["value"])) for match in _STATED.finditer(rest)]
        found += [
            Prose(f"License: {value}" if name[0] == "l" and len(value) < _NAMED_BY_FEW else value, True)
            for name, value in stated
            if value.lower() != "unknown"
        ]
    return list(dict.fromkeys(found))


def _raw_notices(text: str, lexer: Lexer) -> Iterator[str]:
    """Yield the content of raw literals whose statement names a notice."""
    for start, end in lexer.raw_literals(text):
        statement = re.split("[;{}]", text[max(0, start - _NUM_BEFORE_LITERAL) : start])[-1]
        if _OF_A_NOTICE.search(statement):
            yield text[start:end].partition("(")[2].rpartition(")")[0]


def _code_end(text: str) -> int:
    """Return where a text ends without the lines that close blocks."""
    near = max(0, len(text) - _NUM_CLOSING)
    start = near + _ENDING.search(text[near:]).start()
    if start == near:
        start = _ENDING.search(text).start()
    return len(text[:start].rstrip())


def _directives_end(text: str, spans: list[tuple[int, int]], code: int) -> int:
    """Return where the code begins when comments among the directives are passed over."""
    for start, stop in spans:
        if start <= code:
            code = stop + len(_DIRECTIVES.match(text[stop:])[0])
    return code


def _is_placed(text: str, start: int, stop: int, bounds: tuple[int, int]) -> bool:
    """Return whether a group is where headers are: on lines of its own, before the code or after all of it."""
    begins_line = not text[text.rfind("\n", 0, start) + 1 : start].strip()
    return begins_line and (start <= bounds[0] or stop >= bounds[1])


def _may_speak(text: str) -> bool:
    return bool(_MAY_SPEAK.search(text) or (not text.isascii() and _OTHER_SCRIPT.search(text)))


def _join_neighbors(text: str, spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Join comments with nothing but blanks and line ends between them. One beside a line that closes a block is alone."""
    joined: list[tuple[int, int]] = []
    for start, end in spans:
        follows = joined and not text[joined[-1][1] : start].strip() and not _is_beside_closing(text, joined[-1][0])
        joined.append((joined.pop()[0] if follows else start, end))
    return joined


def _is_beside_closing(text: str, start: int) -> bool:
    line = text[text.rfind("\n", 0, start) + 1 : start]
    return _CLOSING_LINE.fullmatch(line) is not None
