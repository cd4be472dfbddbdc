"""Detectors of secrets and addresses: their registry.

To add one, write its `find` function in a file of its own, and register it in DETECTORS with an example of what it finds; if it can
be switched off, add its field to ScrubParams. Placeholders, counts, canaries and the identity of what was scrubbed derive from the
registry, by names and versions: the functions are imported when they are needed, and modules may move.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Any

from pipeline.core.declared import load_declared
from pipeline.core.errors import ParamsError
from pipeline.core.params import field_of
from pipeline.core.registry import Registry
from pipeline.stages.normalize.params import ScrubParams
from pipeline.stages.normalize.scrub.finding import Finding

Find = Callable[[str], Iterable[Finding]]
_PLACEHOLDER = re.compile("[a-z]+(?:-[a-z]+)*")


@dataclass(frozen=True)
class Example:
    """A line of code with values that a detector replaces, at the places `{}`. Every build sends it as a canary.

    A value is given in pieces, so that no whole secret is in this repository or in its history.
    """

    line: str
    values: tuple[tuple[str, ...], ...]

    @property
    def whole_values(self) -> tuple[str, ...]:
        """The values, put together."""
        return tuple(map("".join, self.values))

    @property
    def text(self) -> str:
        """The line with its values."""
        return self.line.format(*self.whole_values)


def example(line: str, *values: tuple[str, ...]) -> Example:
    """Return an example of a line that ends with a newline."""
    return Example(f"{line}\n", values)


@dataclass(frozen=True)
class Detector:
    """A kind of secret or address, and how it is found and replaced.

    `find` returns findings in a text, a function or its name as `package.module:name`; `placeholder` is the word in
    `<redacted-email-1>`. `param` is the field of ScrubParams that switches the detector on, None for one that is always on.
    `stays_in_license_header` says that attribution in a license header may be kept. `is_repeated` says that a value that was found
    goes wherever else it occurs. `joins_parts` says that `find` itself puts a value together of parts that stand apart.
    """

    name: str
    find: Find | str
    placeholder: str
    example: Example
    param: str | None = None
    stays_in_license_header: bool = False
    is_repeated: bool = False
    joins_parts: bool = False
    version: int = 1
    """Raised when what it finds changes: every text is scrubbed anew."""
    condition: str = ""
    """Name, as `package.module:name`, of an expression of RE2, or of a function that returns it, that every text matches in which
    `find` finds something: others are not handed to it. Empty: all are."""

    def __post_init__(self) -> None:
        if not _PLACEHOLDER.fullmatch(self.placeholder):
            found, expected = f"its placeholder is {self.placeholder!r}", "small letters, with hyphens between them"
            raise ParamsError(
                f"detector {self.name}", found, expected, "Audits find it by that, as in `<redacted-email-1>`."
            )

    def is_on(self, params: ScrubParams) -> bool:
        """Return whether the parameters switch the detector on. Raises ParamsError if they have no such field."""
        return self.param is None or bool(field_of(params, self.param, f"detector {self.name}"))

    def finder(self) -> Find:
        """Import the function that finds."""
        found: Find = _loaded(self.name, "find", self.find) if isinstance(self.find, str) else self.find
        return found

    def expression(self) -> str:
        """Import the condition, and return its expression; empty for none."""
        found = _loaded(self.name, "condition", self.condition) if self.condition else ""
        return str(found() if callable(found) else found)


@cache
def _loaded(detector: str, field: str, name: str) -> Any:
    return load_declared(f"detector {detector}", field, name)


def find_divided_secrets(text: str) -> list[Finding]:
    """Return the secrets that only the compiler's reading of a text shows, with a finding for each of their parts."""
    from pipeline.stages.normalize.scrub.joined_text import find_divided  # the registry is light

    return list(dict.fromkeys(find_divided(text, _find_in_joined)))


def _find_in_joined(joined: str) -> Iterator[Finding]:
    """Yield what the detectors of secrets in one piece find, in order of precedence."""
    from pipeline.stages.normalize.scrub.hits import possible_finders

    detectors = [each for each in DETECTORS if each.is_repeated and not each.joins_parts]
    possible = possible_finders(tuple(each.expression() for each in detectors)).of(joined)
    return chain.from_iterable(each.finder()(joined) for index, each in enumerate(detectors) if index in possible)


_TOKEN = ("ghp_", "0123456789abcdefghij", "ABCDEFGHIJ012345")
_PASSWORD = ("q7Zr", "Kx2vTe9w")

# In order of precedence: of findings that overlap, that of the earlier detector is replaced.
DETECTORS = Registry(
    "detector",
    Detector(
        "private-key",
        "pipeline.stages.normalize.scrub.secrets.private_keys:find_private_keys",
        "secret",
        example(
            "/* {} */", ("-----BEGIN RSA ", "PRIVATE KEY-----\nMIIEpAIBAAKCAQEA1u5+\n-----END RSA ", "PRIVATE KEY-----")
        ),
        condition="pipeline.stages.normalize.scrub.secrets.private_keys:KEY_CONDITION",
        version=2,
    ),
    Detector(
        "divided-secret",
        find_divided_secrets,
        "secret",
        example('const char* forge = "{}" /* and */ "{}";', _TOKEN[:2], _TOKEN[2:]),
        is_repeated=True,
        joins_parts=True,
        condition="pipeline.stages.normalize.scrub.joined_text:CUTS",
        version=5,
    ),
    Detector(
        "named-parts",
        "pipeline.stages.normalize.scrub.vendor_tokens:find_named_tokens",
        "secret",
        example('#define FIRST "{}"\n#define LAST "{}"\nuse(FIRST LAST);', _TOKEN[:2], _TOKEN[2:]),
        is_repeated=True,
        joins_parts=True,
        condition="pipeline.stages.normalize.scrub.vendor_tokens:head_expression",
        version=3,
    ),
    Detector(
        "token",
        "pipeline.stages.normalize.scrub.vendor_tokens:find_tokens",
        "secret",
        example('auto client = connect(from("{}")); // pragma: allowlist secret', _TOKEN),
        is_repeated=True,
        condition="pipeline.stages.normalize.scrub.vendor_tokens:head_expression",
        version=4,
    ),
    Detector(
        "password",
        "pipeline.stages.normalize.scrub.credentials.passwords:find_passwords",
        "secret",
        example('const char *password = "{}";', ("Wint", "er-Sun!")),
        is_repeated=True,
        version=6,
    ),
    Detector(
        "login-password",
        "pipeline.stages.normalize.scrub.credentials.login_calls:find_login_passwords",
        "secret",
        example('mysql_real_connect(handle, "db", "admin", "{}", "x", 0, 0, 0);', ("summer", "rain!")),
        is_repeated=True,
        condition="pipeline.stages.normalize.scrub.credentials.login_calls:LOGIN_CONDITION",
        version=4,
    ),
    Detector(
        "placed-password",
        "pipeline.stages.normalize.scrub.credentials.placed_passwords:find_placed_passwords",
        "secret",
        example('program.add_argument("--password").default_value("{}");', ("Wint", "er-Sun!")),
        is_repeated=True,
        version=6,
    ),
    Detector(
        "text-credential",
        "pipeline.stages.normalize.scrub.credentials.text_credentials:find_text_credentials",
        "secret",
        example('open("postgres://admin:{}@db.sluice-canary.dev/x");', _PASSWORD),
        is_repeated=True,
        version=6,
    ),
    Detector(
        "service-credential",
        "pipeline.stages.normalize.scrub.credentials.service_credentials:find_service_credentials",
        "secret",
        example('configure("twilio_account", "{}");', (*_PASSWORD, *_TOKEN[1:2])),
        is_repeated=True,
        condition="pipeline.stages.normalize.scrub.credentials.service_credentials:service_condition",
        version=6,
    ),
    Detector(
        "tool-secret",
        "pipeline.stages.normalize.scrub.secrets.tool_secrets:find_tool_secrets",
        "secret",
        example("// https://api.softlayer.com/soap/v3/{}", (hashlib.sha256(b"tool").hexdigest(),)),
        is_repeated=True,
        condition="pipeline.stages.normalize.scrub.secrets.tool_secrets:TOOL_CONDITION",
        version=2,
    ),
    Detector(
        "random-literal",
        "pipeline.stages.normalize.scrub.credentials.random_literals:find_random_literals",
        "secret",
        example('start("{}");', (*_PASSWORD, "ABCDEFGHIJ012345", "Yb3Lw8Qd")),
        is_repeated=True,
        condition="pipeline.stages.normalize.scrub.credentials.random_literals:RANDOM_CONDITION",
    ),
    Detector(
        "email",
        "pipeline.stages.normalize.scrub.addresses.emails:find_emails",
        "email",
        example("/* {} */", ("maintainer", "@sluice-canary.dev")),
        "redact_emails",
        stays_in_license_header=True,
        condition="pipeline.stages.normalize.scrub.addresses.emails:EMAIL_CONDITION",
        version=3,
    ),
    Detector(
        "written-out-email",
        "pipeline.stages.normalize.scrub.addresses.emails:find_written_out_emails",
        "email",
        example("// {}", ("maintainer (at) ", "sluice-canary (dot) dev")),
        "redact_emails",
        stays_in_license_header=True,
        condition="pipeline.stages.normalize.scrub.addresses.emails:WRITTEN_OUT_CONDITION",
        version=2,
    ),
    Detector(
        "network-address",
        "pipeline.stages.normalize.scrub.addresses.network_addresses:find_network_addresses",
        "network-address",
        example("/* {} */", ("8.8.", "4.4")),
        "redact_network_addresses",
        stays_in_license_header=True,
        condition="pipeline.stages.normalize.scrub.addresses.network_addresses:NETWORK_CONDITION",
        version=2,
    ),
    Detector(
        "author-name",
        "pipeline.stages.normalize.scrub.addresses.author_names:find_author_names",
        "author",
        example("// Author: {}", ("Jane ", "Doe")),
        "redact_author_names",
        condition="pipeline.stages.normalize.scrub.addresses.author_names:AUTHOR_CONDITION",
        version=2,
    ),
    Detector(
        "path",
        "pipeline.stages.normalize.scrub.addresses.home_folders:find_home_folders",
        "path",
        example("/* {} */", ("/home/", "canary/project/build")),
        "redact_local_paths",
        condition="pipeline.stages.normalize.scrub.addresses.home_folders:HOME_CONDITION",
        version=4,
    ),
    is_in_parts=True,
)


def placeholders() -> list[str]:
    """Return the placeholder words of all detectors, sorted."""
    return sorted({detector.placeholder for detector in DETECTORS})


def detector_versions() -> tuple[str, ...]:
    """Return the name and the version of each detector, in order of precedence: what is scrubbed depends on them."""
    return tuple(f"{detector.name} {detector.version}" for detector in DETECTORS)
