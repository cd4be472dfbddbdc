"""Option defaults: the default of a password's option is found in each parser's form; descriptions and other options stay."""

import pytest

from pipeline.stages.normalize.scrub.credentials.placed_passwords import find_placed_passwords

VALUE = "copper" + "1522"


@pytest.mark.parametrize(
    "line",
    [
        f'app.add_option("-p,--password", pw, "Password")->default_val("{VALUE}");',
        f'("password,p", po::value<std::string>()->default_value("{VALUE}"), "the password")',
        f'program.add_argument("--password").help("x").default_value(std::string("{VALUE}"));',
        f'parser.add_argument("--password", default="{VALUE}")',
        f'TCLAP::ValueArg<std::string> pw("p", "password", "Password", false, "{VALUE}", "string");',
    ],
)
def test_a_default_is_found(line: str) -> None:
    assert [line[found.start : found.end] for found in find_placed_passwords(line)] == [VALUE]


@pytest.mark.parametrize(
    "line",
    [
        'app.add_option("--password", pw, "Password of the database");',
        'options("password", value<std::string>())("host", value<std::string>()->default_value("h2.org"))',
        'program.add_argument("--token-type").default_value(std::string("bearer2"));',
    ],
)
def test_descriptions_and_other_options_stay(line: str) -> None:
    assert list(find_placed_passwords(line)) == []
