"""ShownText: makes of any text of a source a string that may be stored and shown: scrubbed, printable, of bounded length.

Whatever quotes a file or a license goes through here before it is a field of a record or a line of a report. What is cut is
scrubbed first: a part of a secret looks like none.
"""

import re
from copy import copy
from functools import lru_cache
from pathlib import PurePosixPath
from typing import TypeVar

from pipeline.core.errors import SluiceError
from pipeline.stages.normalize.params import ScrubParams
from pipeline.stages.normalize.scrub.scrub import Scrubber

ErrorT = TypeVar("ErrorT", bound=SluiceError)
MAX_SHOWN_BYTES = 2_000
_MAX_SCRUBBED = 1 << 16
"""Characters of a text that are read for a string; what is after them is not shown."""
_NUM_SHOWN = 1_024
_NUM_NAMES = 16_384
"""Names that are judged once, as each step asks that shows one."""
_COMMENT, _DIVIDER = "// ", " / "
_UNSHOWN = "<not shown: secrets were found after every round>"
_CUT = " …"
_UNPRINTABLE = re.compile(r"[^\S\n ]|[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Characters that control a terminal or turn text around, but for line ends; blanks of other kinds become blanks."""


def shown_scrubber(params: ScrubParams) -> Scrubber:
    """Return the scrubber of what is shown, which replaces the addresses in license headers too."""
    return Scrubber(params.model_copy(update={"keep_addresses_in_license_header": False}))


class ShownText:
    """Scrubs what is shown, by the same ScrubParams as texts; addresses are replaced in license headers too."""

    def __init__(self, params: ScrubParams) -> None:
        self._whole = shown_scrubber(params)
        without_addresses = {"redact_emails": False, "redact_network_addresses": False}
        self._evidence = Scrubber(params.model_copy(update=without_addresses))
        self._secrets = Scrubber(ScrubParams(**without_addresses, redact_local_paths=False))
        of_names = {**without_addresses, "redact_emails": params.redact_emails}
        self._of_names = Scrubber(ScrubParams(**of_names, redact_local_paths=False))
        self._shown = lru_cache(maxsize=_NUM_SHOWN)(self._as_shown)
        self._is_secret = lru_cache(maxsize=_NUM_NAMES)(self._is_found)

    def shown(self, text: str) -> str:
        """Return a text as it may be stored and shown. Most files of a folder inherit one license, by the same lines."""
        return self._shown(text)

    def _as_shown(self, text: str) -> str:
        scrubbed = self._whole.scrub("", printable(text[:_MAX_SCRUBBED]))
        return bounded(scrubbed.text) if scrubbed.is_clean else _UNSHOWN

    def evidence(self, text: str) -> str | None:
        """Return a text of license evidence without secrets and home folders; None if it cannot be scrubbed.

        Addresses stay, as a license is recognized by its words. No expression that is found in it holds a secret.
        """
        scrubbed = self._evidence.scrub("", text)
        return scrubbed.text if scrubbed.is_clean else None

    def holds_secret(self, name: str) -> bool:
        """Return whether a name, such as the path of a file, holds a secret or an e-mail address, also as a comment has it.

        Its folders may be anyone's.
        """
        return self._is_secret(name)

    def _is_found(self, name: str) -> bool:
        return self._secrets.scan("", name) > 0 or self._of_names.scan("", _as_comment(name)) > 0

    def message(self, text: str) -> str:
        """Return words of a message as they may be shown: as they are, but for secrets and e-mail addresses that they quote."""
        if not (self._secrets.scan("", text) or self._of_names.scan("", _COMMENT + text)):
            return text
        scrubbed = self._of_names.scrub("", _COMMENT + text)
        return scrubbed.text.removeprefix(_COMMENT) if scrubbed.is_clean else _UNSHOWN

    def name(self, name: str) -> str:
        """Return the name of a file as it may be shown: as it is, but for secrets and e-mail addresses."""
        if not self.holds_secret(name):
            return name
        scrubbed = self._of_names.scrub("", _as_comment(name)).text.removeprefix(_COMMENT).replace(_DIVIDER, "/")
        return self.shown(scrubbed + PurePosixPath(name).suffix)


def shown_words(words: str) -> str:
    """Return words that a person gave, such as a reason, as they may be stored and shown."""
    return ShownText(ScrubParams()).shown(words)


def shown_error(error: ErrorT, text: ShownText) -> ErrorT:
    """Return an error as it may be stored and shown: without the secrets and e-mail addresses that it quotes of a source."""
    shown = copy(error)
    words = [text.message(each) for each in (error.subject, error.found, error.expected, error.remedy)]
    shown.subject, shown.found, shown.expected, shown.remedy = words
    shown.args = tuple(words)
    return shown


def _as_comment(name: str) -> str:
    """Return a path without its suffix as the words of a comment: no word goes on from one folder to the next."""
    return _COMMENT + name.removesuffix(PurePosixPath(name).suffix).replace("/", _DIVIDER)


def printable(text: str) -> str:
    """Replace characters that control a terminal: blanks by a blank, others by the replacement character."""
    if text.replace("\n", "").isprintable():
        return text
    return _UNPRINTABLE.sub(lambda match: " " if match[0].isspace() else "\N{REPLACEMENT CHARACTER}", text)


def bounded(text: str) -> str:
    """Return a text of at most MAX_SHOWN_BYTES bytes, with a mark where something is missing."""
    content = text.encode()
    if len(content) <= MAX_SHOWN_BYTES:
        return text
    return content[: MAX_SHOWN_BYTES - len(_CUT.encode())].decode("utf-8", "ignore") + _CUT
