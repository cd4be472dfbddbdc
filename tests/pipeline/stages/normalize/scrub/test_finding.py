"""Findings begin inside of no escape and end in their literal; replacements change what they name and nothing else."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.stages.normalize.params import ScrubParams
from pipeline.stages.normalize.scrub.finding import Finding, LiteralEnds, Replacement, past_escape, with_replacements
from pipeline.stages.normalize.scrub.scrub import Scrubber
from tests.support.plain_lexing.plain_lexer import plain_scan

ENDS = {
    r"\n|ame": r"\n",
    r"\|name": r"\n",
    r"\\|name": r"\\",
    r"\\\|name": r"\\\n",
    r"\x|1bbob": r"\x1bb",
    r"\x1|5keep": r"\x15",
    r"\0|33bob": r"\033",
    r"\u00|41bob": r"\u0041",
    r"\U0001|F600bob": r"\U0001F600",
    "a|b": "a",
}


@pytest.mark.parametrize(("text", "before"), ENDS.items())
def test_an_escape_ends_where_its_digits_do(text: str, before: str) -> None:
    whole = text.replace("|", "")
    assert whole[: past_escape(whole, text.index("|"))] == before


def test_replacements_change_the_stretches_that_they_name() -> None:
    text = "one two three"

    assert (
        with_replacements(text, [Replacement(0, 3, "1"), Replacement(4, 7, ""), Replacement(12, 13, "E!")])
        == "1  threE!"
    )
    assert with_replacements(text, []) == text


VALUE = "Kx82mq" + "77zz"
TOKEN = "gh" + "p_aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC2dF4hJ6"
TEXTS = [
    *(
        form.replace("#", VALUE)
        for form in (
            "machine reg.corp.net login ci password #",
            "password: #",
            "password=#",
            "the password is #",
            "user=svc password=#",
            "h.corp.net:5432:shop:app:#",
            "Authorization: Bearer #",
            "curl -u ci:#",
            "sshpass -p #",
            "mysql -uroot -p#",
            "postgresql://u:#@db/x",
            "login root / #",
            "(password #)",
            "пароль: #",
            "密码:#",
            "requirepass #",
            "export DB_PASSWORD=#",
            "https://h.corp.net/?token=#",
        )
    ),
    f"token {TOKEN}",
    TOKEN,
    "C:\\Users\\jmiller",
    "C:\\Users\\jmiller\\x",
    "D:\\Documents and Settings\\jmiller",
    "\\\\fs1\\users\\jmiller",
    "C:/Users/Jane Roe/Desktop",
    "/home/jmiller",
    "bob.miller@" + "corp-mail.net",
    "bob.miller (at) corp-mail (dot) net",
    ".".join(["54", "23", "118", "9"]),
]
WITHOUT_FOLDERS = [text for text in TEXTS if "\\" not in text]
"""Texts after which two backslashes are no separator."""
RAW_FORMS = {
    "a raw literal": 'const char *s = R"(%)";',
    "a raw literal with a delimiter": 'auto s = R"x(%)x"sv;',
    "a raw literal with signs as a delimiter": 'auto s = LR"--([%])--";',
    "a raw literal in brackets": 'f(u8R"({%})", 3);',
    "a raw literal of lines": 'auto s = R"(\n%\n)";',
    "a raw literal with quotes": 'auto s = R"({"k": "%"})";',
    "a comment": "int a; /* % */ int b;",
    "a comment without blanks": "int a; /*%*/ int b;",
    "a comment of a document": "/** % **/ int b;",
    "a line": "int a; // %\nint b;",
    "quotes in a line": 'int a; // "%"\nint b;',
    "brackets in a line": "int a; // (%)\nint b;",
    "a raw literal in a macro": '#define S R"(%)"\nint b;',
}
"""Forms where a text stands as it is."""
PLAIN_FORMS = {
    "a literal": 'const char *s = "%";',
    "a wide literal": 'const wchar_t *s = L"%"; int b;',
    "a literal of UTF-8": 'auto s = u8"%"sv;',
    "literals side by side": 'auto s = "a " "%" " b";',
    "a line end after it": 'const char *s = "%\\n";',
    "a tabulator after it": 'const char *s = "%\\tb";',
    "an escaped quote after it": 'const char *s = "a \\"%\\" b";',
    "a quote as the end": 'const char *s = "\\"%\\"";',
    "a backslash after it": 'const char *s = "%\\\\";',
    "a number after it": 'const char *s = "%\\x0a";',
    "a null after it": 'const char *s = "%\\0";',
    "brackets": "const char *s = \"('%')\";",
    "a call": 'log("%", "b");',
    "a literal in a macro": '#define S "%"\nint b;',
    "an error": '#error "%"\nint b;',
}
"""Forms where the backslashes of a text are written twice."""
FORMS = {**RAW_FORMS, **PLAIN_FORMS}
PLACEHOLDER = re.compile(r"<redacted-[a-z-]+-[0-9]+>")


def shape(text: str) -> list[tuple[str, str]]:
    """Return the kind of each token of a text, what opens and closes it, and the code: what scrubbing may not change."""
    found = []
    for kind, start, end in plain_scan(text):
        token = text[start:end]
        if kind == "code":
            found.append((kind, token))
        elif kind == "raw":
            found.append((kind, token[: token.index("(")] + token[token.rindex(")") :]))
        else:
            found.append((kind, token[:1] + token[-1:] if kind == "literal" else token[:2]))
    return found


def written(form: str, text: str) -> str:
    return FORMS[form].replace("%", text if form in RAW_FORMS else text.replace("\\", "\\\\"))


def around(form: str) -> tuple[str, str]:
    before, _, after = FORMS[form].partition("%")
    return before, after


@pytest.mark.parametrize("form", FORMS)
def test_the_tokens_of_the_code_and_what_is_around_a_text_stay(form: str) -> None:
    before, after = around(form)
    for text in TEXTS if form != "a backslash after it" else WITHOUT_FOLDERS:
        source = written(form, text)
        scrubbed = Scrubber(ScrubParams()).scrub("a.cpp", source).text
        assert shape(scrubbed) == shape(source), scrubbed
        assert scrubbed.startswith(before), scrubbed
        assert scrubbed.endswith(after), scrubbed


ESCAPE = re.compile(r"\\(?:x[0-9A-Fa-f]+|[0-7]{1,3}|.)")
BEFORE_IT = ["", "a ", "\\n", "\\t", '\\"', "x=", "(", "'"]
AFTER_IT = ["", " b", "\\n", "\\t", '\\"', "\\\\", "\\\\n", ";", ")", "'", "}", "]", ",", "\\x0a", "\\0", ".", "%s"]


@settings(max_examples=300)
@given(
    st.sampled_from(sorted(PLAIN_FORMS)), st.sampled_from(TEXTS), st.sampled_from(BEFORE_IT), st.sampled_from(AFTER_IT)
)
def test_escapes_beside_a_text_stay(form: str, text: str, before: str, after: str) -> None:
    if text not in WITHOUT_FOLDERS and (after.startswith("\\\\") or form == "a backslash after it"):
        return
    source = FORMS[form].replace("%", before + text.replace("\\", "\\\\") + after)
    scrubbed = Scrubber(ScrubParams()).scrub("a.cpp", source).text
    assert shape(scrubbed) == shape(source)
    first, last = around(form)
    assert escapes(scrubbed.partition("<redacted-")[0])[: len(escapes(first + before))] == escapes(first + before)
    num_after = len(escapes(after + last))
    assert escapes(scrubbed.rpartition(">")[2])[-num_after or len(scrubbed) :] == escapes(after + last)


def escapes(text: str) -> list[str]:
    return ESCAPE.findall(text)


def test_a_raw_literal_ends_a_finding_only_where_it_is_open() -> None:
    text = 'R"(a)" f"b)" R"x(c)" d)x"'
    ends = LiteralEnds(text)
    for start, end, kept in ((3, 6, 4), (9, 11, 11), (17, 20, 20), (17, 24, 22)):
        assert ends.within(Finding(start, end, text[start:end])).end == kept


def test_a_value_that_is_cut_is_the_same_value() -> None:
    text = f'R"(password: {VALUE})"; // {VALUE}'
    assert Scrubber(ScrubParams()).scrub("a.cpp", text).text == (
        'R"(password: <redacted-secret-1>)"; // <redacted-secret-1>'
    )


@pytest.mark.parametrize(
    ("text", "kept"),
    [("f(a b)", "b"), ("f(a b(c))", "b(c)"), ("[{a b}]", "b"), ("a b)", "b)"), ('f(a "b)"', "b)"), ("f(a\nb)", "b)")],
)
def test_brackets_that_are_opened_before_a_finding_close_after_it(text: str, kept: str) -> None:
    start = text.index("b")
    end = len(text) - text.endswith('"')
    assert LiteralEnds(text).within(Finding(start, end, text[start:end])).value == kept
