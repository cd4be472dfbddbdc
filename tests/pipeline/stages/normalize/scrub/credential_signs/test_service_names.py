"""Service names: a name says that a value is a key of a service, or that it is something else."""

import pytest

from pipeline.stages.normalize.scrub.credential_signs.service_names import ServiceName, service_name


@pytest.mark.parametrize("name", ["datadogApiKey", "DATADOG_TOKEN", "linear_api_key", "squareToken", "asana-client-id"])
def test_a_service_and_a_word_of_credentials_say_so(name: str) -> None:
    assert service_name(name) is ServiceName.OF_CREDENTIAL


@pytest.mark.parametrize("name", ["datadog", "my_algolia", "sendgrid"])
def test_a_service_alone_says_less(name: str) -> None:
    assert service_name(name) is ServiceName.OF_SERVICE


@pytest.mark.parametrize(
    "name", ["linear", "square_root", "segment_size", "private_key", "token", "github_commit_token", "heroku_key_hash"]
)
def test_words_of_english_and_names_of_other_things_say_nothing(name: str) -> None:
    assert service_name(name) is ServiceName.NONE
