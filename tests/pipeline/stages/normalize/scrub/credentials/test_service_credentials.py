"""Service credentials: values beside a service's name go if they look like keys; words, names, digests and versions stay."""

import time

import pytest

from pipeline.stages.normalize.scrub.credentials.service_credentials import find_service_credentials

VALUES = {
    "letters and digits": "0cq65zt4w" + "n6isigq8jtgev49g",
    "a UUID": "d18fc9fb-4943" + "-4932-f3bd-6fe8102c0fa7",
    "hexadecimal": "7b2963950e3ed2e3" + "dc49d5740982bac6",
}
LINES = [
    'auto datadogToken = "@";',
    "asana_token: @",
    '{"algolia_api_key": "@"}',
    'setenv("FASTLY_API_TOKEN", "@", 1);',
    "<sendbird_token>\n    @\n</sendbird_token>",
    'linear_api_key ::= "@"',
    'options.squareToken = std::string("@");',
    '// ö \nauto s = "{\\"zendesk_secret\\": \\"@\\"}";',
]


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
@pytest.mark.parametrize("line", LINES)
def test_a_key_beside_the_name_of_its_service_is_found(line: str, value: str) -> None:
    text = line.replace("@", value)
    assert [text[found.start : found.end] for found in find_service_credentials(text)] == [value]


@pytest.mark.parametrize(
    "line", ["// linear api key: @", "# algolia admin key = @", 'auto datadog = "@";', 'test_linear_token = "@"']
)
def test_the_words_before_a_value_are_read_with_the_name(line: str) -> None:
    text = line.replace("@", VALUES["hexadecimal"])
    assert [text[found.start : found.end] for found in find_service_credentials(text)] == [VALUES["hexadecimal"]]


@pytest.mark.parametrize(
    "line",
    [
        'auto linear = "7b2963950e3ed2e3dc49d5740982bac6";',
        'constexpr auto kSegmentName = "text_section_v2_64";',
        'algolia_version = "4.17.2-beta.1";',
        'heroku_commit = "7b2963950e3ed2e3dc49d5740982bac6a9414c01";',
        'github_token = read("GITHUB_ACCESS_TOKEN");',
        "vercel_key = VERCEL_KEY_FROM_FILE_2;",
        'slack_token = "your-slack-token-here-1a2b3c";',
        'auto square_uuid = "d18fc9fb-4943-4932-f3bd-6fe8102c0fa7";',
        'telegram_token = "xxxxxxxxxxxxxxxxxxxxxxxx";',
        "net_key = kms_message_b64_to_raw;",
        'twitter_sample_md5 = "7b2963950e3ed2e3dc49d5740982bac6";',
        '{"dropbox", "7b2963950e3ed2e3dc49d5740982bac6"},',
        "// md5 of the algolia key: 7b2963950e3ed2e3dc49d5740982bac6",
        'dropbox_icon = "7b2963950e3ed2e3dc49d5740982bac6";',
    ],
)
def test_names_digests_versions_and_fillers_stay(line: str) -> None:
    assert list(find_service_credentials(line)) == []


def test_the_time_is_linear_in_hostile_text() -> None:
    before = time.process_time()
    list(find_service_credentials("datadog_" * 10_000 + "= " * 20_000 + "linear_token=" * 10_000))
    assert time.process_time() - before < 5
