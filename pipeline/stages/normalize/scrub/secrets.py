"""Secrets of all kinds in a text: tokens, passwords, credentials in running text, random literals, and those of a tool.

detect-secrets is one detector among them: its plugins for the vendors that TOKEN_SHAPES has not, without its filters of lines,
which are made for the noise of a review and pass over whatever stands behind a call. Its other plugins find nothing more but
words of alphabets, tests' vectors and markers without a key: 40 in each megabyte of code without a secret.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain

from detect_secrets.plugins.cloudant import CloudantDetector
from detect_secrets.plugins.ibm_cloud_iam import IbmCloudIamDetector
from detect_secrets.plugins.ibm_cos_hmac import IbmCosHmacDetector
from detect_secrets.plugins.softlayer import SoftlayerDetector

from pipeline.stages.normalize.scrub.credentials.login_calls import LOGIN_CONDITION, find_login_passwords
from pipeline.stages.normalize.scrub.credentials.passwords import find_passwords
from pipeline.stages.normalize.scrub.credentials.placed_passwords import find_placed_passwords
from pipeline.stages.normalize.scrub.credentials.random_literals import RANDOM_CONDITION, find_random_literals
from pipeline.stages.normalize.scrub.credentials.service_credentials import find_service_credentials, service_condition
from pipeline.stages.normalize.scrub.credentials.text_credentials import find_text_credentials
from pipeline.stages.normalize.scrub.finding import Finding
from pipeline.stages.normalize.scrub.hits import condition, hit_lines, possible_finders
from pipeline.stages.normalize.scrub.joined_text import find_divided
from pipeline.stages.normalize.scrub.named_parts import find_named_parts
from pipeline.stages.normalize.scrub.random_text import is_filler, is_wordy
from pipeline.stages.normalize.scrub.vendor_tokens import find_tokens, head_expression

_PLUGINS = (CloudantDetector(), IbmCloudIamDetector(), IbmCosHmacDetector(), SoftlayerDetector())
TOOL_CONDITION = (
    r"(?i)(?:key|pwd|pw|password|pass|token)[\"'\]]{0,2} *(?:=|:| ) *[=:>]? *[\"']?[a-z0-9_\-]{24}"
    r"|cloudant\.com|softlayer\.com/soap"
)
"""Expression that is true of every line with such a secret."""


def find_tool_secrets(text: str) -> Iterator[Finding]:
    """Yield what the plugins of detect-secrets find on each line."""
    for start, end in hit_lines(text, condition(TOOL_CONDITION)):
        line = text[start:end]
        for expression in (each for plugin in _PLUGINS for each in plugin.denylist):
            for match in expression.finditer(line):
                if not is_filler(match[1]) and not is_wordy(match[1]):
                    yield Finding(start + match.start(1), start + match.end(1), match[1])


FINDERS: dict[Callable[[str], Iterable[Finding]], str] = {
    find_tokens: head_expression(),
    find_passwords: "",
    find_login_passwords: LOGIN_CONDITION,
    find_placed_passwords: "",
    find_text_credentials: "",
    find_service_credentials: service_condition(),
    find_tool_secrets: TOOL_CONDITION,
    find_random_literals: RANDOM_CONDITION,
}
"""With their conditions, in order of precedence."""


def find_divided_secrets(text: str) -> list[Finding]:
    """Return the secrets that only the compiler's reading of a text shows, with a finding for each of their parts."""
    return list(dict.fromkeys(find_divided(text, _find_in_joined)))


def find_named_secrets(text: str) -> Iterator[Finding]:
    """Yield the tokens whose parts are put together by their names."""
    return find_named_parts(text, head_expression(), find_tokens)


def _find_in_joined(joined: str) -> Iterator[Finding]:
    possible = possible_finders(tuple(FINDERS.values())).of(joined)
    return chain.from_iterable(find(joined) for index, find in enumerate(FINDERS) if index in possible)
