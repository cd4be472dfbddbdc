"""Own statement: what is said of a literal is in it, and what is said of others is not."""

import pytest

from pipeline.stages.normalize.scrub.credential_signs.own_statement import statement_before

SAID = {
    "a declared name": ('int a;\nstd::string expected = "', "expected"),
    "a callee": ('void f() {\n  check_hash(x, "', "check_hash"),
    "the table of a row": ('static const char* kDigests[][2] = {\n  {"a", "b"},\n  {"c", "', "kDigests"),
    "a sibling": ('{ "sha256", "', "sha256"),
    "an outer call": ('EXPECT_EQ(digest("a"), std::string("', "EXPECT_EQ"),
    "the line of a comment": ('// nothing\n// the digest is "', "digest"),
    "a directive": ('int a;\n#define SUM "', "SUM"),
    "a table that is built": ('auto vectors = std::map<int, S>{{1, "a"}, {2, "', "vectors"),
}
OTHERS = {
    "a statement": ('assert(x);\nkey = "', "assert"),
    "a label": ('class A {\n public:\n  std::string key = "', "public"),
    "a case": ('case kVersion:\n  key = "', "kVersion"),
    "an include": ('#include <vector>\nauto key = "', "vector"),
    "a comment": ('// version 2\nauto key = "', "version"),
    "a function": ('int test_sum(int a) const {\n  key = "', "test_sum"),
    "a class": ('struct Image : Base {\n  S key = "', "Image"),
    "a body before": ('int hash(int a) { return a; }\nauto key = "', "hash"),
    "a row before": ('t = {{"sha1", "a"}, {"', "sha1"),
    "an escaped quote": ('f("digest; \\""); g = "', "digest"),
}


@pytest.mark.parametrize(("before", "word"), SAID.values(), ids=SAID)
def test_what_is_said_of_it_is_there(before: str, word: str) -> None:
    assert word in statement_before(before, len(before))


@pytest.mark.parametrize(("before", "word"), OTHERS.values(), ids=OTHERS)
def test_what_is_said_of_others_is_not(before: str, word: str) -> None:
    assert word not in statement_before(before, len(before))


def test_of_a_long_line_only_what_is_near_is_read() -> None:
    before = "digest = " + "1, " * 10_000

    assert len(statement_before(before, len(before))) <= 1_500
