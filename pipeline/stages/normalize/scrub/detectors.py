"""Detectors of secrets and addresses: their registry.

To add one, write its `find` function in a file of its own, register it in DETECTORS, and, if it can be switched off, add its
field to ScrubParams. Placeholders and counts derive from the registry.
"""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from pipeline.core.params import field_of
from pipeline.core.registry import Registry
from pipeline.stages.normalize.params import ScrubParams
from pipeline.stages.normalize.scrub.addresses.author_names import AUTHOR_CONDITION, find_author_names
from pipeline.stages.normalize.scrub.addresses.emails import (
    EMAIL_CONDITION,
    WRITTEN_OUT_CONDITION,
    find_emails,
    find_written_out_emails,
)
from pipeline.stages.normalize.scrub.addresses.home_folders import HOME_CONDITION, find_home_folders
from pipeline.stages.normalize.scrub.addresses.network_addresses import NETWORK_CONDITION, find_network_addresses
from pipeline.stages.normalize.scrub.credentials.login_calls import find_login_passwords
from pipeline.stages.normalize.scrub.credentials.passwords import find_passwords
from pipeline.stages.normalize.scrub.credentials.placed_passwords import find_placed_passwords
from pipeline.stages.normalize.scrub.credentials.random_literals import find_random_literals
from pipeline.stages.normalize.scrub.credentials.service_credentials import find_service_credentials
from pipeline.stages.normalize.scrub.credentials.text_credentials import find_text_credentials
from pipeline.stages.normalize.scrub.finding import Finding
from pipeline.stages.normalize.scrub.joined_text import CUTS
from pipeline.stages.normalize.scrub.private_keys import KEY_CONDITION, find_private_keys
from pipeline.stages.normalize.scrub.secrets import (
    FINDERS,
    find_divided_secrets,
    find_named_secrets,
    find_tool_secrets,
)
from pipeline.stages.normalize.scrub.vendor_tokens import find_tokens, head_expression


@dataclass(frozen=True)
class Detector:
    """A kind of secret or address, and how it is found and replaced.

    `find` returns findings in a text; `placeholder` is the word in `<redacted-email-1>`. `param` is the field of
    ScrubParams that switches the detector on, None for one that is always on. `stays_in_license_header` says that
    attribution in a license header may be kept. `is_repeated` says that a value that was found goes wherever else it stands.
    `settings` is a context that `find` needs around it.
    """

    name: str
    find: Callable[[str], Iterable[Finding]]
    placeholder: str
    param: str | None = None
    stays_in_license_header: bool = False
    is_repeated: bool = False
    settings: Callable[[], AbstractContextManager[object]] = nullcontext
    version: int = 1
    """Raised by a program that changes what its detector finds."""
    condition: str = ""
    """Expression of RE2 that every text matches in which `find` finds something: others are not handed to it. Empty: all are."""

    def is_on(self, params: ScrubParams) -> bool:
        """Return whether the parameters switch the detector on. Raises ParamsError if they have no such field."""
        return self.param is None or bool(field_of(params, self.param, f"detector {self.name}"))


# In order of precedence: of findings that overlap, that of the earlier detector is replaced.
DETECTORS = Registry(
    "detector",
    Detector("private-key", find_private_keys, "secret", condition=KEY_CONDITION),
    Detector("divided-secret", find_divided_secrets, "secret", is_repeated=True, condition=CUTS),
    Detector("named-parts", find_named_secrets, "secret", is_repeated=True, condition=head_expression()),
    Detector("token", find_tokens, "secret", is_repeated=True, condition=FINDERS[find_tokens]),
    Detector("password", find_passwords, "secret", is_repeated=True),
    Detector(
        "login-password", find_login_passwords, "secret", is_repeated=True, condition=FINDERS[find_login_passwords]
    ),
    Detector("placed-password", find_placed_passwords, "secret", is_repeated=True),
    Detector("text-credential", find_text_credentials, "secret", is_repeated=True),
    Detector(
        "service-credential",
        find_service_credentials,
        "secret",
        is_repeated=True,
        condition=FINDERS[find_service_credentials],
    ),
    Detector("tool-secret", find_tool_secrets, "secret", is_repeated=True, condition=FINDERS[find_tool_secrets]),
    Detector(
        "random-literal", find_random_literals, "secret", is_repeated=True, condition=FINDERS[find_random_literals]
    ),
    Detector("email", find_emails, "email", "redact_emails", stays_in_license_header=True, condition=EMAIL_CONDITION),
    Detector(
        "written-out-email",
        find_written_out_emails,
        "email",
        "redact_emails",
        stays_in_license_header=True,
        condition=WRITTEN_OUT_CONDITION,
    ),
    Detector(
        "network-address",
        find_network_addresses,
        "network-address",
        "redact_network_addresses",
        stays_in_license_header=True,
        condition=NETWORK_CONDITION,
    ),
    Detector("author-name", find_author_names, "author", "redact_author_names", condition=AUTHOR_CONDITION),
    Detector("path", find_home_folders, "path", "redact_local_paths", condition=HOME_CONDITION),
    is_in_parts=True,
)


def placeholders() -> list[str]:
    """Return the placeholder words of all detectors, sorted."""
    return sorted({detector.placeholder for detector in DETECTORS})
