"""Author names: names of people in notices of copyright and authorship, for recipes that want none.

A name is two to six words with capitals after a word of authorship, years aside. Companies, groups and institutes keep theirs, and
what is in capitals throughout: a sentence of a disclaimer.
"""

import re
from collections.abc import Iterator

from pipeline.stages.normalize.scrub.finding import Finding
from pipeline.stages.normalize.scrub.hits import condition, hit_lines

_AUTHOR = "автор(?:ы)?[ :]|(?:作者|著者|開発者|作成者|저자|작성자)|(?:auteurs?|autor(?:en|es)?|verfasser)[ ]?:"
"""An author in the languages that comments are written in, as a notice begins."""
AUTHOR_CONDITION = (
    r"(?i:copyright|\(c\)|©|author|maintainer"
    r"|(?:written|created|contributed|implemented|ported|modified|changed|rewritten|developed|maintained) by"
    rf"|{_AUTHOR}|filecopyrighttext|filecontributor|(?:signed-off|reviewed|acked|tested|reported|suggested|co-developed)-by)"
)
"""Expression that is true of every line with a notice of authorship."""
_NOTICE = re.compile(
    r"(?i:copyright|\(c\)|©|[@\\]authors?|authors?|maintainers?|filecopyrighttext|filecontributor"
    rf"|(?:written|created|contributed|implemented|ported|modified|changed|rewritten|developed|maintained) by|{_AUTHOR}"
    r"|signed-off-by|(?:reviewed|acked|tested|reported|suggested)-by|co-developed-by)"
    r"[\s:：{*]{0,8}(?:(?i:copyright|\(c\)|©|by)[\s:]{0,4}){0,3}(?:[0-9]{4}(?:\s?[-–,]\s?(?:[0-9]{2,4}|present)){0,20}[\s,]{0,4})?"
    r"(?i:by\s)?"
)
_PARTICLE = r"(?:van|von|de|der|den|del|della|di|da|dos|la|le|ten|ter|bin|ibn|al|el|zu)"
_WORD = r"[^\W\d_a-zß-öø-ÿ](?:[a-z]?\.|[\w'’-]{0,30})"
_OF_EAST_ASIA = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3"
_NAME = re.compile(
    rf"[{_OF_EAST_ASIA}]{{2,6}}(?:[ ・][{_OF_EAST_ASIA}]{{1,6}})?(?![{_OF_EAST_ASIA}])"
    rf"|{_WORD}(?:[ ](?:{_PARTICLE}[ ]){{0,2}}{_WORD}){{1,4}}"
)
_NEXT_NAME = re.compile(
    r"(?:\s?<[^<>\n]{1,80}>|\s?\([^()\n]{1,80}\))?(?:\s?[,;&]\s?(?:and\s|&\s)?|\s(?:and|und|et|y|e)\s)"
)
_GROUPS_WORDS = """
    inc ltd llc llp gmbh corp corporation company co ag kg sa srl bv ab oy plc limited foundation university institute
    institut school college department authors author team project contributors contributor developers developer group groups
    lab labs laboratory laboratories software systems technologies technology solutions free the all rights reserved
    international research center centre association consortium license licence public organization committee community
    studio studios networks semiconductor semiconductors microsystems regents national computer computing holder holders
    notice owner owners in of to this see file boost apache google microsoft intel
"""
_GROUPS = frozenset(_GROUPS_WORDS.split())
_MAX_NAMES = 16


def find_author_names(text: str) -> Iterator[Finding]:
    """Yield the names of people that notices of copyright and authorship name."""
    for start, end in hit_lines(text, condition(AUTHOR_CONDITION)):
        for notice in _NOTICE.finditer(text, start, end):
            yield from _names(text, notice.end(), end)


def _names(text: str, place: int, end: int) -> Iterator[Finding]:
    for _ in range(_MAX_NAMES):
        name = _NAME.match(text, place, end)
        if name is None or name[0].isupper() or any(word.strip(".").lower() in _GROUPS for word in name[0].split()):
            return
        yield Finding(*name.span(), name[0])
        following = _NEXT_NAME.match(text, name.end(), end)
        if following is None:
            return
        place = following.end()
