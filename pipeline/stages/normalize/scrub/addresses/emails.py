"""E-mail addresses in a text, those too that are written for readers and not for programs: `ada (at) host (dot) org`.

Sources of the exceptions: RFC 2606 and 6761 (example names), RFC 4251 (names of algorithms, such as those of OpenSSH).
"""

import re
from collections.abc import Iterator

from pipeline.stages.normalize.scrub.credential_signs.password_values import is_algorithm
from pipeline.stages.normalize.scrub.finding import Finding, past_escape
from pipeline.stages.normalize.scrub.hits import condition, hit_lines

# Names hold letters with accents too. Letters of other scripts may belong to a sentence without blanks.
_LETTER = "A-Za-z0-9À-ÖØ-öø-ɏ"
_AT = r"(?:@|%40|&#0?64;|&commat;|\\x40|\\u0040|\\100)"
_DOMAIN = re.compile(rf"{_AT}((?:[{_LETTER}](?:[{_LETTER}-]{{0,62}}[{_LETTER}])?\.)+[A-Za-z]{{2,24}})(?![A-Za-z0-9_-])")
_LOGIN_OF_URL = re.compile(r"://[^\s/@:\"']*:\Z")
"""The user before the password of a URL: no address begins there."""
_LOCAL_PART = re.compile(rf"[{_LETTER}!#$%&*+=?^_`{{|}}~.-]{{1,64}}\Z")
_MESSAGE_ID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\Z", re.IGNORECASE)
"""A UUID before the domain: the id of a message, as addresses of archives hold it."""
_RESERVED_DOMAIN = re.compile(
    r"(?:^|\.)(?:example\.(?:com|net|org|edu)|(?:openssh|libssh2?)\.(?:com|org)|example|test|invalid|localhost|localdomain|local"
    r"|(?:(?:my|your|some)?-?(?:domain|company|hostname|website)|test|foo|bar|baz)\.(?:com|org|net|tld|xx|xyz)"
    r"|odata\.[a-z]+|lib|dll|exe|obj|def|hpp|cpp|cxx|hxx|txt|png|json|xml|yaml|html|service|conf|socket|target|plt|got|baz|bar|foo)$",
    re.IGNORECASE,
)
_ACCOUNTS_OF_REPOSITORIES = frozenset(
    ("git", "hg", "svn", "cvs", "anoncvs", "anonymous", "gerrit", "gitolite", "org-git")
)
"""Accounts that everyone shares, in addresses such as `git@host:group/project`."""
_OF_NOBODY = re.compile(r"(?:no|do-?not)[-_.]?reply")
"""The account of a program, which no one reads."""
_WORD = re.compile("[a-z]{3}")
EMAIL_CONDITION = r"@|%40|&#0?64;|&commat;|\\x40|\\u0040|\\100"
"""Expression that is true of every line with an address."""
_WRITTEN_OUT_LINE = (
    r"(?i)[\[({<][ \t]?(?:at|@)[ \t]?[\])}>]|[\[({<][ \t]?(?:dot|\.)[ \t]?[\])}>]|(?:[ \t]at[ \t]|@).*[ \t]dot[ \t]",
    r"(?i)[_-]at[_-].*[_-]dot[_-]",
    r"[ \t]@[ \t][\w-]{1,40}[ \t]\.[ \t]",
    r"[<(][\w.+-]{1,40} at [\w-]{1,40}\.",
    r"[ \t]AT[ \t]|[ \t]_at_[ \t]|[a-z0-9]_AT_[\w-]{1,40}\.",
    r"(?i)(?:author|maintain|contact|mail).*[ \t]at[ \t]",
)
WRITTEN_OUT_CONDITION = "|".join(f"(?:{each})" for each in _WRITTEN_OUT_LINE)
"""Expression that is true of every line with an address that is written for readers."""
_BRACKETED_AT = r"\s?[\[({<]\s?(?:[aA][tT]|@)\s?[\])}>]\s?"
_BRACKETED_DOT = r"\s?[\[({<]\s?(?:[dD][oO][tT]|\.)\s?[\])}>]\s?"
_NAME = r"[A-Za-z0-9](?:[\w+-]{0,40}[A-Za-z0-9])?"
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,40}[A-Za-z0-9])?"
_TOP = r"[A-Za-z]{2,12}(?![A-Za-z0-9])"
_COMMON_TOP = r"(?:com|org|net|edu|gov|info|io|de|fr|uk|ch|it|nl|ca|eu|jp|cn|ru|br|in|au|se|no|es|pl)(?![A-Za-z0-9])"
_SPOKEN_DOT = r"\s[dD][oO][tT]\s"
_WRITTEN_OUT = re.compile(
    rf"(?<![\w.+-]){_NAME}(?:(?:\.|{_BRACKETED_DOT}|{_SPOKEN_DOT}){_NAME}){{0,4}}"
    rf"(?:{_BRACKETED_AT}{_LABEL}(?:(?:\.|{_BRACKETED_DOT}|{_SPOKEN_DOT}){_LABEL}){{0,4}}(?:\.|{_BRACKETED_DOT}"
    rf"|{_SPOKEN_DOT}){_TOP}"
    rf"|\s[aA][tT]\s{_LABEL}(?:(?:\.|{_BRACKETED_DOT}|{_SPOKEN_DOT}){_LABEL}){{0,4}}(?:{_BRACKETED_DOT}|{_SPOKEN_DOT}){_TOP}"
    rf"|(?<=[a-z0-9])\sAT\s{_LABEL}(?:\.{_LABEL}){{0,4}}\.{_TOP}"
    rf"|\s_at_\s{_LABEL}(?:\.{_LABEL}){{0,4}}\.{_TOP}"
    rf"|\s@\s{_LABEL}(?:\s\.\s{_LABEL}){{0,3}}\s\.\s{_COMMON_TOP}"
    rf"|(?<=[a-z0-9])_AT_{_LABEL}(?:\.{_LABEL}){{0,3}}\.{_COMMON_TOP}"
    rf"|_AT_[A-Za-z0-9-]{{1,40}}(?:_DOT_[A-Za-z0-9-]{{1,40}}){{0,3}}_DOT_{_COMMON_TOP}"
    rf"|(?:_at_|\s?-at-\s?)[A-Za-z0-9-]{{1,40}}(?:(?:_dot_|\s?-dot-\s?)[A-Za-z0-9-]{{1,40}}){{0,3}}(?:_dot_"
    rf"|\s?-dot-\s?){_COMMON_TOP}"
    rf"|@{_LABEL}(?:(?:\.|{_BRACKETED_DOT}|{_SPOKEN_DOT}){_LABEL}){{0,4}}(?:{_BRACKETED_DOT}|{_SPOKEN_DOT}){_TOP})"
)
_OF_A_CONTACT = re.compile(
    rf"(?i)(?:author|maintain|contact|mail)[^\n]{{0,80}}?[\s:<(]"
    rf"(?P<address>(?P<local>[a-z][\w-]{{0,30}}(?:\.[a-z][\w-]{{0,30}}){{1,3}})\s(?:_?at_?)\s(?P<domain>{_LABEL}(?:\.{_LABEL}){{0,3}}"
    rf"\.{_COMMON_TOP}))(?!/)"
)
_IN_BRACKETS = re.compile(
    rf"(?<=[<(])({_NAME}(?:\.{_NAME}){{0,3}}) at ({_LABEL}(?:\.{_LABEL}){{0,3}}\.{_COMMON_TOP})(?=[>)])"
)
_WORD_OF_SIGN = re.compile(
    r"\s*(?:[\[({<]\s?(?P<sign>at|dot|[@.])\s?[\])}>]|[_-]?(?<![A-Za-z0-9])(?P<word>at|dot)(?![A-Za-z0-9])[_-]?)\s*",
    re.IGNORECASE,
)

_BARE_AT = re.compile(r"\sat\s", re.IGNORECASE)
_LAST_BARE_DOT = re.compile(r"\sdot\s[a-z]{1,24}\Z", re.IGNORECASE)
_ENDS_OF_DOMAINS = """
    com org net edu gov mil int info biz name pro museum coop aero jobs mobi travel cat tel asia app dev xyz online site
    tech cloud email ac ae ai ar at au ba be bg br by ca cc ch cl cn co cr cy cz de dk dz ec ee eg es eu fi fr ge gr hk
    hr hu ie il in io ir is it jo jp ke kr kz lb li lk lt lu lv ma md mk mn mt mx my ng nl no np nz pe ph pk pl pt ro rs
    ru sa se sg si sk su th tn tr tv tw ua uk us uy uz ve vn za
"""
_ENDS = frozenset(_ENDS_OF_DOMAINS.split())
"""Ends of domains that people write out: generic ones, and countries whose letters are not those of a vector or a field."""


def find_emails(text: str) -> Iterator[Finding]:
    """Yield e-mail addresses, except those of example domains."""
    for start, end in hit_lines(text, condition(EMAIL_CONDITION)):
        yield from _plain(text, start, end)


def find_written_out_emails(text: str) -> Iterator[Finding]:
    """Yield e-mail addresses with words in the place of `@` and dots."""
    for start, end in hit_lines(text, condition(WRITTEN_OUT_CONDITION)):
        yield from _written_out(text, start, end)


def _plain(text: str, first: int, last: int) -> Iterator[Finding]:
    for match in _DOMAIN.finditer(text, first, last):
        local = _LOCAL_PART.search(text, max(0, match.start() - 64), match.start())
        if local and not _RESERVED_DOMAIN.search(match[1]):
            start = _trimmed(text, local.start(), match.start())
            is_template = text[match.start() - 1] in "})" or _LOGIN_OF_URL.search(text, max(0, start - 80), start)
            is_message = _MESSAGE_ID.match(text[start : match.start()])
            name = text[start : match.start()].lower()
            is_of_nobody = _OF_NOBODY.fullmatch(name) or ("-" in name and _WORD.search(name) and is_algorithm(name))
            is_other = is_template or is_message or is_of_nobody or _is_of_a_repository(text, start, match)
            if name and not is_other:
                yield Finding(start, match.end(), f"{name}@{match[1].lower()}")


def _is_of_a_repository(text: str, start: int, match: re.Match[str]) -> bool:
    is_shared = text[start : match.start()].lower() in _ACCOUNTS_OF_REPOSITORIES
    return is_shared and text[match.end() : match.end() + 1] in (":", "/", "", '"', "'")


def _written_out(text: str, start: int, end: int) -> Iterator[Finding]:
    """Yield addresses with words in the place of `@` and dots. Their value is the plain address, so that both get one number."""
    for match in _WRITTEN_OUT.finditer(text, start, end):
        address = _WORD_OF_SIGN.sub(_sign, match[0]).lower()
        domain = address.partition("@")[2]
        if "." in domain and not _RESERVED_DOMAIN.search(domain) and not _is_of_prose(match[0], domain):
            yield Finding(*match.span(), address)
    for match in _OF_A_CONTACT.finditer(text, start, end):
        yield Finding(*match.span("address"), f"{match['local']}@{match['domain']}".lower())
    for match in _IN_BRACKETS.finditer(text, start, end):
        yield Finding(*match.span(), f"{match[1]}@{match[2]}".lower())


def _is_of_prose(written: str, domain: str) -> bool:
    """Return whether words are those of a sentence: `at` and `dot` bare, and after the last `dot` no end of a domain."""
    is_bare = _BARE_AT.search(written) is not None and _LAST_BARE_DOT.search(written) is not None
    return is_bare and domain.rpartition(".")[2] not in _ENDS


def _sign(word: re.Match[str]) -> str:
    return "@" if (word["sign"] or word["word"]).lower() in ("at", "@") else "."


def _trimmed(text: str, start: int, end: int) -> int:
    """Return where the local part starts after an escape such as a literal's `\\n` and leading punctuation."""
    start = past_escape(text, start)
    while start < end and not text[start].isalnum():
        start += 1
    return start
