"""Documented samples: credentials that standards print stay, and others of the same kind do not."""

import base64

from pipeline.stages.normalize.params import ScrubParams
from pipeline.stages.normalize.scrub.documented_samples import is_documented
from pipeline.stages.normalize.scrub.scrub import Scrubber


def test_the_example_of_basic_authentication_stays_and_another_goes() -> None:
    sample, other = (base64.b64encode(text.encode()).decode() for text in ("Aladdin:open sesame", "bob:copper1522!"))
    scrubber = Scrubber(ScrubParams())
    text = f'h("Authorization: Basic {sample}"); h("Authorization: Basic {other}");'
    assert scrubber.scrub("a.cpp", text).text == text.replace(other, "<redacted-secret-1>")


def test_keys_that_end_in_the_word_of_documentation_are_samples() -> None:
    assert is_documented("AKIAI44QH8DHBEXAMPLE")
    assert not is_documented("AKIAI44QH8DHBEXAMPL2")


def test_the_token_of_a_debugger_is_a_sample_by_its_claims() -> None:
    claims = "eyJzdWIiOiIxMjM0NTY3ODkwIiwi" + "bmFtZSI6IkpvaG4gRG9lIiwiaWF0IjoxNTE2MjM5MDIyfQ"
    assert is_documented(f"eyJhbGciOiJIUzI1NiJ9.{claims}.SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV")
    assert not is_documented(f"eyJhbGciOiJIUzI1NiJ9.{claims[::-1]}.SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV")
