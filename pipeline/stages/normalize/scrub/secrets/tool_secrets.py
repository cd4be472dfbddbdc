"""Secrets that plugins of detect-secrets find.

Its plugins are run for the vendors that TOKEN_SHAPES has not, without its filters of lines, which are made for the noise of a
review and pass over whatever is after a call. Its other plugins find nothing more but words of alphabets, tests' vectors and
markers without a key: 40 in each megabyte of code without a secret.
"""

from collections.abc import Iterator

from detect_secrets.plugins.cloudant import CloudantDetector
from detect_secrets.plugins.ibm_cloud_iam import IbmCloudIamDetector
from detect_secrets.plugins.ibm_cos_hmac import IbmCosHmacDetector
from detect_secrets.plugins.softlayer import SoftlayerDetector

from pipeline.stages.normalize.scrub.finding import Finding
from pipeline.stages.normalize.scrub.hits import condition, hit_lines
from pipeline.stages.normalize.scrub.random_text import is_filler, is_wordy

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
