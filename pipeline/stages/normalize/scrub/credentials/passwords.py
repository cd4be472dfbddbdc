"""Passwords: literals beside a name that says what they are, in code and in the JSON, YAML or XML of a literal.

Lines on which a name and a quote are found are read: name, operator and literal. The literal is judged by how much the name
says, and by whether it is assigned to the name or handed to a call, which may get other things too.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pipeline.stages.normalize.scrub.credential_signs.call_literals import is_in_literal
from pipeline.stages.normalize.scrub.credential_signs.interface_names import (
    is_in_table_of_names,
    is_numbered_word,
    names_something,
)
from pipeline.stages.normalize.scrub.credential_signs.password_names import (
    NAME_PART,
    OF_A_KEY,
    NameStrength,
    first_word,
    is_made,
    name_strength,
)
from pipeline.stages.normalize.scrub.credential_signs.password_values import (
    is_defined_password,
    is_given_password,
    is_named_password,
    is_passed_password,
    is_sibling,
    looks_fair,
    looks_fair_in_test,
    looks_like_password,
    looks_like_password_compared,
    looks_like_password_in_call,
    looks_like_password_in_test,
    looks_like_password_of_login,
    looks_like_password_of_pass,
    repeats_name,
    without_escapes,
)
from pipeline.stages.normalize.scrub.credentials.login_calls import is_login_call
from pipeline.stages.normalize.scrub.finding import Finding
from pipeline.stages.normalize.scrub.hits import condition, hit_lines

_OPEN = r"""(?:u8|[uUL@])?(?:R"[A-Za-z_]{0,16}\(|\\{0,3}["'`])"""
_BLANK = r"(?:\s|/\*[^*\n]{0,80}\*/|//[^\n]{0,120}\n|\\\n){0,40}"
_QUOTED = r"(?<=\()\"[^\"\n]{1,40}\"(?=\))"
"""The only argument of a call, such as the name of a variable of the environment."""
_CONDITIONS = (
    rf"(?i:{NAME_PART})[^\n;]*[\"'`]",
    rf"(?i:{NAME_PART})[^\n;]*[=({{,:\\][ \t]*(?:(?://|/\*)[^\n]*)?\n",
    rf"[\"'`]\s*[!=]=\s*[^\n]*(?i:{NAME_PART})",
)
_NAME_PART = re.compile(NAME_PART)
_NAME = re.compile(r"(?:->|[\w.\-$]){1,120}")
_AFTER_NAME = re.compile(
    r"""(?P<closed>\\{0,3}["'`])?(?:\??\s?:\s?[&*]?(?:'\w{1,12}\s)?\w[\w.<>|\[\] ]{1,30}(?==)|\s(?:string|str)\s?(?==))?"""
    r"""(?P<argument>=?\s?\*/)?(?:\(\s?\))?[\s)\]]{0,3}(?:\[\[[\w:, ]{1,40}\]\]|\[[^\]\n]{0,24}\])?[\s)]{0,3}"""
    r"""(?:[A-Z][A-Z0-9_]{3,24}(?:\([^()\n]{0,40}\))?\s{1,3}(?==))?"""
    r"""(?P<operator>=>|:{1,3}=|[=!]==?|[+.?]?=|::?|,|<<|\(|\{|(?:value|content)\s?=|(?:\.|->)(?:value_or|or_else|orElse|default_value|default_str)\s?\(|\?:|\?\?|\|\||(?=\s)|(?=["'LuUR]))"""
    rf"{_BLANK}(?P<condition>(?:[^;,\"'`\n?]|{_QUOTED}){{0,60}}\?(?:(?:[^;,\"'`\n?:]|::|\"\"|{_QUOTED}){{0,60}}:)?\s{{0,4}})?"
    r"(?P<calls>(?:(?:[A-Za-z_][\w:.]{0,60}(?:<[\w:<>, *]{0,60}>)?)?\s{0,2}[({]\s{0,2}){0,3})"
    r"(?P<arguments>(?:[\w.&*>\-\[\]]{1,40}\s{0,2},\s{0,2}){0,4})"
    r"(?:\((?:const\s)?[\w:]{1,20}\s?[*&]{0,2}\)\s?)?"
    rf"(?P<open>{_OPEN})"
)
_TYPE_BEFORE = re.compile(r"\bstruct[ \t]+\Z")
_VARIABLE = re.compile(r"[ \t]+[&*]?[A-Za-z_]\w{0,30}(?=[ \t]{0,3}[={(])")
"""A variable after the name of its type."""
_NEXT = re.compile(
    rf"""(?:["'`](?:sv?|_\w{{1,8}})?)?\s{{0,4}}"""
    rf"""(?:(?:\}}\s{{0,4}})?,\s{{0,80}}(?:\{{\s{{0,4}})?|\),\s{{0,80}}\w{{1,16}}\()(?P<open>{_OPEN})"""
)
_NUM_ARGUMENTS = 16
_COMPARED = re.compile(r"""(?P<literal>"[^"\n\\]{4,200}")\s{0,3}[!=]=\s{0,3}(?P<name>[\w.\-$>]{1,80})""")
_READERS_WORDS = """
    get getenv env environ read ask prompt input lookup find value config load fetch request query param arg args
    parse tr gettext translate print printf puts log error throw format contains count has is at open file fopen
    ifstream path remove erase delete type show display label title field column parameter option expect match regex
    substr starts ends replace split
"""
_READERS = frozenset(_READERS_WORDS.split())
_SETTINGS = frozenset(("config", "env", "value", "param", "arg", "args", "default"))
"""Readers that are the first words of what is read too."""
_CONSTRUCTOR = re.compile(
    r"(?i)(?:string|str|text|literal|bytes?|array|view|secret|some|optional|_t|value|c_str|json|password|key|token)\Z"
)
_CONSTRUCTED = re.compile(r"(?:[sS]tring\w{0,12}|_T|TEXT)\s?[({]\s?(?:u8|[uUL])?\"\Z")
_HOLDER = re.compile(r"make_(?:optional|pair|shared|unique)\Z")
_SETTERS_WORDS = """
    set with use using k g m s db my add update change put assign default user admin root
"""
_SETTERS = frozenset(_SETTERS_WORDS.split())
_OF_A_CIPHER = re.compile(
    r"(?i)(?<![a-z])(?:nonce|iv|plain_?text|cipher_?text|aad|tag|msg|message|digest|expected|vectors?(?![<>])|mac|salt"
    r"|hmac|aes|sip_?hash|signature|public_?key(?:_?hex)?|ecdh|ed25519|x25519|curve)(?![a-z])"
)
_OF_SEVERAL = re.compile(r"(?i)(?:pass(?:words?|wds?|phrases?)|secrets|credentials|logins|accounts)\Z")
_OF_A_LOGIN = re.compile(r"(?i)(?:login|logon|auth|creds?|psk|pass(?:words|es)?)\Z")
_OF_A_PAIR = re.compile(r"\{\s*\Z|(?:pair|tuple)\s?(?:<[^<>]*>)?\s?\(")
_OTHERWISE = re.compile(r"[.]|\?[?:]|\|\|")
"""Operators before what counts if a value is not given."""
_USER_NAMED = re.compile(r"(?i)user|login|account|\buid\b")
_OF_USER = re.compile(r"(?i)auth|user_?p|cred|log[io]n|account|basic")
_USER = re.compile(r"[\w.@+\\-]{1,60}")
"""A user, before the colon of a login: `bob:...`."""
_VERB = re.compile(r"(?i)(?:\A|_|[a-z](?=P))pass\Z")
_CLASS_OF_PASS = re.compile(r"\A(?:\w+::)?[A-Z]\w*(?<=[a-z])Pass\Z")
"""A class of a pass of a compiler: `MyPass`."""
_CHECKING = re.compile(
    r"(?i)(?<![a-z])(?:check|verify|validate|authenticate|try|change|reset|user(?:name)?)_?(?=[a-z])"
)
"""A function that gets a user and a password."""
_MEASURED = re.compile(r"\b(?:sizeof|strlen|wcslen)\s?\(\s?[&*]?\Z")
_OF_BYTES = re.compile(r"'\\[0-7]{2,3}',")
"""A byte that is no character, in an initializer: the letters beside it are of data that a program wrote."""
_CHOSEN = re.compile(r"\?\s{0,4}(?:u8|[uUL])?\"\Z")
_COMMENT_BEFORE = re.compile(r"(?<!:)//")
_MACRO_BEFORE = re.compile(r"\"\s{0,8}\Z")
_REACH, _NUM_CHARACTERS_BEFORE = 300, 160
_MAX_LINE, _MIN_NUMBERED = 4_000, 6
_CALLER = re.compile(r"(\w{1,60})\s?\((?:[\w.>&-]{1,30},\s?){0,2}(?:u8|[uUL])?[\"']?\Z")
"""The function of which a name is an argument."""
_GIVING = re.compile(
    r"(?i)_?(?:l?str|wcs|mem|_?[tm]b?cs)n?cpy(?:_s)?|stpn?cpy|str(?:lcpy|dup)|StringCch?b?Copy[AW]?|_?w?(?:set|q?put)env(?:_s)?"
    r"|SetEnvironmentVariable[AW]?"
)
"""A function that gives a value to the name that is its argument."""
_COMPARING = re.compile(r"(?i)\w{0,6}cmp\w{0,2}|str\w{0,3}eq\w{0,4}")
_OPENED = re.compile(r"[({]\s{0,8}(?:u8|[uUL])?\\?[\"']\Z")
_DEFINED = re.compile(r"#[ \t]*define[ \t]+\Z")
_DECLARED = re.compile(r"\w[\w:<>]*[&*]?\s+[&*]?\Z")


@dataclass(frozen=True)
class _Literal:
    start: int
    end: int
    value: str


def find_passwords(text: str) -> Iterator[Finding]:
    """Yield the literals that are passwords by the name beside them, and by what they look like."""
    for start, end in hit_lines(text, condition(*_CONDITIONS)):
        yield from _assigned(text, start, end)
        yield from _compared(text, start, end)


def _assigned(text: str, start: int, end: int) -> Iterator[Finding]:
    position = start
    lowered = text[start:end].lower()  # an expression without flags is much faster
    while part := _NAME_PART.search(lowered, position - start):
        begin = start + part.start()
        if begin >= end:
            return
        while begin > start and (text[begin - 1].isalnum() or text[begin - 1] in "_.-$"):
            begin -= 1
        name = _NAME.match(text, begin)
        if name is None:  # a letter whose small one is two characters
            return
        position = max(name.end(), start + part.end())
        yield from _after(text, name)


def _after(text: str, name: re.Match[str]) -> Iterator[Finding]:
    """Yield the passwords after a name: the literal that it is given, and those that follow in a call or an initializer."""
    strength = name_strength(name[0])
    is_type = name[0][0].isupper() or _TYPE_BEFORE.search(text, max(0, name.start() - 16), name.start()) is not None
    variable = _VARIABLE.match(text, name.end()) if strength and is_type else None
    after = _AFTER_NAME.match(text, variable.end() if variable else name.end()) if strength else None
    if after is None or _is_of_something_else(text, name, after):
        return
    literal, is_password = _literal(text, after), _judge(text, name, strength, after)
    judge_next = looks_like_password_of_login if is_password is not looks_like_password else looks_like_password
    if _OF_A_PAIR.search(after["operator"] + after["calls"]) and (
        strength is NameStrength.SURE or _OF_SEVERAL.search(name[0])
    ):
        judge_next = looks_fair
    if strength is NameStrength.SURE and after["operator"] == "(" and _CHECKING.search(name[0]):
        judge_next = looks_fair
    is_of_a_pass = variable is not None and _VERB.search(name[0]) is not None
    if not is_of_a_pass and _OF_A_LOGIN.search(name[0]) and _OF_A_PAIR.search(after["operator"] + after["calls"]):
        judge_next = looks_fair
    is_macro = after["operator"] == "" and _is_declared(text, name, after)
    if is_macro and _USER_NAMED.search(name[0]):
        judge_next = looks_fair
    is_of_a_class = strength is NameStrength.FAIR and after["closed"] is not None and name[0][0].isupper()
    if _is_beside_names(text, name, after):
        is_password = judge_next = looks_like_password
    is_list = is_macro or after["operator"] in ("(", "{", ",") or after["calls"] != ""
    for _ in range(_NUM_ARGUMENTS):
        if literal is None:
            return
        user, _, password = literal.value.partition(":")
        if (
            _OF_USER.search(name[0])
            and _USER.fullmatch(user)
            and (looks_fair(password) or looks_like_password(password))
        ):
            yield Finding(literal.end - len(password), literal.end, password)
        elif (
            is_password(without_escapes(literal.value))
            and not repeats_name(name[0], literal.value)
            and not (is_of_a_class and is_numbered_word(literal.value))
            and not (strength is NameStrength.FAIR and _is_short_name(literal.value))
        ):
            yield Finding(literal.start, literal.end, literal.value)
        following = _NEXT.match(text, literal.end) if is_list else None
        literal, is_password = _literal(text, following) if following else None, judge_next


def _is_short_name(value: str) -> bool:
    """Return whether a value is a short word with a digit, as things that have a word for passwords in their name are numbered."""
    return len(value) < _MIN_NUMBERED and is_numbered_word(value)


def _is_beside_names(text: str, name: re.Match[str], after: re.Match[str]) -> bool:
    """Return whether the literals after one that is a password's name are names too, by their table or by the function."""
    if not after["closed"] or after["operator"] != ",":
        return False
    return is_in_table_of_names(text, *name.span()) or names_something(_callers(text, name, after))


def _is_of_something_else(text: str, name: re.Match[str], after: re.Match[str]) -> bool:
    """Return whether the literal after a name does not belong to that name."""
    before = text[max(0, name.start() - _NUM_CHARACTERS_BEFORE) : name.start()].rpartition("\n")[2]
    if _MEASURED.search(before):
        return True
    if after["open"] == '"' and not after["closed"] and _ends_literal(text, name.start()):
        return True
    if after["closed"] and not after["operator"]:
        return True
    if after["closed"] and after["operator"] == ":" and _CHOSEN.search(before):
        return True  # the literal that is chosen otherwise
    if after["operator"] == "," and after["argument"]:
        return True  # a comment after what it names
    if after["operator"] == "," and is_sibling(name[0], text[after.end() : after.end() + len(name[0])]):
        return True
    if after["open"] == "'" and _OF_BYTES.search(text, max(0, name.start() - _NUM_CHARACTERS_BEFORE), name.start()):
        return True
    if after["operator"] == "," and not after["closed"] and is_login_call(text, name.start()):
        return True  # the password is that argument itself
    if not after["operator"] and _MACRO_BEFORE.search(text, max(0, name.start() - 9), name.start()):
        return True  # a macro between two literals
    is_on_next_line = after["operator"] in ("{", "(") and "\n" in text[name.end() : after.start("operator")]
    return is_on_next_line and _COMMENT_BEFORE.search(before) is not None


def _ends_literal(text: str, place: int) -> bool:
    """Return whether the next quote after a name is the end of the literal that the name is in: what follows is code."""
    first = text.rfind("\n", max(0, place - _MAX_LINE), place) + 1
    before = text[first:place]
    return (first > 0 or place < _MAX_LINE) and 'R"' not in before and is_in_literal(before)


def _judge(text: str, name: re.Match[str], strength: NameStrength, after: re.Match[str]) -> Callable[[str], bool]:
    """Return how the literal after a name is judged."""
    called = re.findall(r"(\w+)(?:<[^<>]*>)?\s*[({]", after["calls"])
    first = first_word(name[0])
    is_of_a_key = OF_A_KEY.search(name[0]) is not None
    is_setting = first in _SETTINGS and after["operator"] in ("", "=", "{")
    is_read = (
        (first in _READERS and not is_setting)
        or any(first_word(each) in _READERS or (is_made(each) and not _HOLDER.search(each)) for each in called)
        or any(is_made(each) and not _HOLDER.search(each) for each in _callers(text, name, after))
    )
    if strength is NameStrength.LIKELY and _VERB.search(name[0]) and _is_array(text, name, after):
        return is_named_password
    if strength is NameStrength.LIKELY and _VERB.search(name[0]) and _is_compared(text, name, after):
        return looks_like_password_compared
    if strength is NameStrength.LIKELY and (is_of_a_key or _is_of_a_cipher(text, name)):
        return looks_like_password_in_test
    if strength is NameStrength.SURE and is_of_a_key and _is_of_a_cipher(text, name):
        return looks_like_password_in_test if is_read else looks_fair_in_test
    if strength is NameStrength.FAIR and after["operator"] == "," and not after["closed"]:
        return looks_like_password
    if strength is NameStrength.FAIR:
        return looks_fair_in_test if OF_A_KEY.search(name[0]) else looks_fair
    if after["closed"] and _OTHERWISE.match(after["operator"]) and not after["arguments"]:
        return looks_fair
    is_closed = after["closed"] is not None and ")" in text[after.end("closed") : after.start("operator")]
    if is_closed and not _CONSTRUCTED.search(text, max(0, name.start() - 24), name.start()):
        return looks_like_password_in_call
    if (
        strength is NameStrength.LIKELY
        and after["operator"] == "("
        and _VERB.search(name[0])
        and not _is_declared(text, name, after)
    ):
        return _is_of_another_call if called else looks_like_password_in_call
    if strength is NameStrength.LIKELY and _OF_A_LOGIN.search(name[0]) and first not in _READERS:
        is_of_a_user = _USER_NAMED.search(text, max(0, name.start() - 80), name.start()) is not None
        is_field = after["closed"] is not None and after["operator"] == ":"
        if _VERB.search(name[0]) and not called and (is_field or is_of_a_user):
            return looks_fair
        if after["operator"] in ("==", "!=") and is_of_a_user:
            return looks_fair
        return looks_like_password_of_pass if _VERB.search(name[0]) else looks_like_password_of_login
    if strength is NameStrength.LIKELY or is_read:
        return looks_like_password
    if after["operator"] == "(" and _CLASS_OF_PASS.search(name[0]):
        return looks_like_password_in_call
    return _judge_sure(text, name, after, called)


def _judge_sure(text: str, name: re.Match[str], after: re.Match[str], called: list[str]) -> Callable[[str], bool]:
    """Return how the literal after a name that is sure is judged: by whether it is given to it, or handed to a call."""
    first = first_word(name[0])
    is_declared = _is_declared(text, name, after)
    is_call = (
        bool(after["arguments"])
        if is_declared
        else first not in _SETTERS and (after["operator"] in ("(", ",", "<<", "") or bool(after["arguments"]))
    )
    is_built = all(_CONSTRUCTOR.search(each) for each in called)
    is_given = after["argument"] is not None or any(map(_GIVING.fullmatch, _callers(text, name, after)))
    if is_given:
        return is_given_password
    if is_declared and after["operator"] == "":
        return is_defined_password
    if after["arguments"] or (after["operator"] == "," and not _is_first(text, name, after)):
        return is_passed_password
    return is_named_password if is_call or not is_built else is_given_password


def _is_first(text: str, name: re.Match[str], after: re.Match[str]) -> bool:
    """Return whether a name is the first literal in its brackets: the next one is its value, and not the next of a list."""
    return after["closed"] is not None and _OPENED.search(text, max(0, name.start() - 16), name.start()) is not None


def _is_array(text: str, name: re.Match[str], after: re.Match[str]) -> bool:
    """Return whether an array of characters is declared: passes of compilers are named by pointers and strings."""
    is_array = after["operator"] in ("=", "{") and "[" in text[name.end() : after.start("operator")]
    return (
        is_array and not after["closed"] and _DECLARED.search(text, max(0, name.start() - 80), name.start()) is not None
    )


def _is_compared(text: str, name: re.Match[str], after: re.Match[str]) -> bool:
    return after["operator"] == "," and any(map(_COMPARING.fullmatch, _callers(text, name, after)))


def _callers(text: str, name: re.Match[str], after: re.Match[str]) -> list[str]:
    """Return the function that a name is, or that it is an argument of."""
    if after["operator"] == "(":
        return [name[0]]
    return _CALLER.findall(text, max(0, name.start() - 80), name.start()) if after["operator"] == "," else []


def _is_of_another_call(_value: str) -> bool:
    """Return that the argument of a call inside of one that is named after passing is no password."""
    return False


def _is_declared(text: str, name: re.Match[str], after: re.Match[str]) -> bool:
    introduced = _DEFINED if after["operator"] == "" else _DECLARED
    return not after["closed"] and introduced.search(text, max(0, name.start() - 80), name.start()) is not None


def _is_of_a_cipher(text: str, name: re.Match[str]) -> bool:
    """Return whether a name is among those of a test of a cipher, where keys are known numbers."""
    return _OF_A_CIPHER.search(text, max(0, name.start() - _REACH), name.end() + _REACH) is not None


def _literal(text: str, opened: re.Match[str]) -> _Literal | None:
    """Return the literal that is opened, up to the quote that closes it: as many backslashes, or the end of a raw one."""
    start, opening = opened.end("open"), opened["open"]
    if opening.endswith("("):
        closing = ")" + opening[opening.index('"') + 1 : -1] + '"'
        end = text.find(closing, start)
        return _Literal(start, end, text[start:end]) if end >= 0 else None
    line_end = text.find("\n", start)
    line_end = len(text) if line_end < 0 else line_end
    quote, num_backslashes = opening[-1], opening.count("\\")
    position = start
    while (position := text.find(quote, position, line_end)) >= 0:
        before = position - len(text[start:position].rstrip("\\")) - start
        if before == num_backslashes or (num_backslashes == 0 and before % 2 == 0) or before < num_backslashes:
            end = position - min(before, num_backslashes)
            return _Literal(start, end, text[start:end])
        position += 1
    return None


def _compared(text: str, start: int, end: int) -> Iterator[Finding]:
    """Yield the literals that are compared with a name after them."""
    for match in _COMPARED.finditer(text, start, end):
        first, last = match.start("literal") + 1, match.end("literal") - 1
        strength = name_strength(match["name"])
        judge = is_named_password if strength is NameStrength.SURE else looks_like_password
        if strength and judge(text[first:last]):
            yield Finding(first, last, text[first:last])
