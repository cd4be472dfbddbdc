"""SPDX license expressions: parsed strictly, judged by the policy file.

Source: SPDX specification 3.0.1, annex B. `license-expression` is used for the grammar, the list of ids and
deprecated spellings.
"""

import hashlib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

from license_expression import (
    ExpressionError,
    LicenseExpression,
    LicenseSymbol,
    LicenseWithExceptionSymbol,
    Licensing,
    get_spdx_licensing,
)

from pipeline.core.errors import ParamsError, StageError
from pipeline.normalize.refusal import Refusal

POLICY_FILE = "license_policy.toml"
MAX_EXPRESSION = 1_000
"""Characters of an expression; longer ones are not read."""
UNKNOWN_BY_DESIGN = frozenset({"none", "noassertion"})
"""What SPDX writes where no license is known. They are in no list of ids."""


class LicenseClass(IntEnum):
    """How much a license asks, least first: AND takes the highest of its operands, OR the lowest."""

    ALLOWED = 0
    TAGGED = 1
    REFUSED = 2


@dataclass(frozen=True)
class Policy:
    """The classes of license ids, and which exceptions go with which licenses."""

    classes: Mapping[str, LicenseClass]
    exceptions: Mapping[str, frozenset[str]]
    sha256: str

    def class_of(self, key: str) -> LicenseClass:
        """The class of an id; a `+` behind it permits later versions too. One that the policy does not name is refused."""
        return self.classes.get(key.removesuffix("+"), LicenseClass.REFUSED)


@dataclass(frozen=True)
class Judged:
    """An expression in its normal spelling, its class, and the branch that was taken to have it."""

    expression: str
    license_class: LicenseClass
    branch: str


def policy_bytes() -> bytes:
    """The policy file as it is shipped."""
    return files("pipeline.normalize.license").joinpath(POLICY_FILE).read_bytes()


@cache
def load_policy(sha256: str) -> Policy:
    """The shipped policy. Raises StageError if its digest is not the one that the part was asked for with."""
    content = policy_bytes()
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise StageError(POLICY_FILE, f"digest {found}", sha256, "Start the build again: the policy changed under it.")
    return parse_policy(content)


def parse_policy(content: bytes) -> Policy:
    """A policy from its TOML. Raises ParamsError for an id that stands in two classes."""
    table = tomllib.loads(content.decode())
    classes: dict[str, LicenseClass] = {}
    for license_class in LicenseClass:
        for key in table[license_class.name.lower()]:
            if key in classes:
                raise ParamsError(POLICY_FILE, f"{key} is in two classes", "one class an id", "Remove one of them.")
            classes[key] = license_class
    exceptions = {key: frozenset(licenses) for key, licenses in table["exceptions"].items()}
    return Policy(classes, exceptions, hashlib.sha256(content).hexdigest())


def judge_expression(text: str, policy: Policy) -> Judged | Refusal:
    """The class of an expression and the branch taken.

    A refusal `license_unknown` is what does not parse or names an unknown id; `license_refused` an exception that
    does not go with its license. A `LicenseRef-`, NONE and NOASSERTION parse, and are of the class that the policy
    names, else refused.
    """
    parsed = _parse(text, policy)
    if isinstance(parsed, Refusal):
        return parsed
    return _judge(parsed, policy)


def _parse(text: str, policy: Policy) -> Any | Refusal:
    parsed = _parsed(text)
    if isinstance(parsed, Refusal):
        return parsed
    unknown = [key for key in _unknown_keys(text) if not _is_known_by_design(key, policy)]
    if unknown:
        return Refusal(
            "license_unknown", f"{text!r} names {', '.join(sorted(unknown))}, which is not an SPDX identifier", text
        )
    return parsed


@lru_cache(maxsize=4_096)
def _parsed(text: str) -> Any | Refusal:
    if len(text) > MAX_EXPRESSION:
        return Refusal(
            "license_unknown",
            f"{text[:60]!r}... has {len(text)} characters; longer ones than {MAX_EXPRESSION} are not read",
        )
    try:
        # Not validate(): it crashes on `MIT/X11`. Strict, else `MIT WITH Apache-2.0` passes.
        parsed = _licensing().parse(text, strict=True)
    except (ExpressionError, AttributeError, TypeError) as error:
        return Refusal("license_unknown", f"{text!r} is not an SPDX expression: {' '.join(str(error).split())}")
    if parsed is None:
        return Refusal("license_unknown", "the expression is empty")
    return parsed


@lru_cache(maxsize=4_096)
def _unknown_keys(text: str) -> tuple[str, ...]:
    return tuple(_licensing().unknown_license_keys(_parsed(text)))


def _judge(node: LicenseExpression, policy: Policy) -> Judged | Refusal:
    if isinstance(node, LicenseWithExceptionSymbol):
        return _judge_exception(node, policy)
    if isinstance(node, LicenseSymbol):
        key = str(node.key)
        return Judged(key, policy.class_of(key.upper() if key.lower() in UNKNOWN_BY_DESIGN else key), key)
    operands = [_judge(operand, policy) for operand in node.args]
    judged = [operand for operand in operands if isinstance(operand, Judged)]
    is_choice = node.operator.strip() == "OR"
    if len(judged) < len(operands) and not (is_choice and judged):
        return next(operand for operand in operands if isinstance(operand, Refusal))
    expression = str(node)
    if is_choice:
        best = min(judged, key=lambda operand: operand.license_class)  # the leftmost of equals
        return Judged(expression, best.license_class, best.branch)
    branches = list(dict.fromkeys(_bracketed(operand.branch) for operand in judged))
    return Judged(expression, max(operand.license_class for operand in judged), " AND ".join(branches))


def _judge_exception(node: LicenseWithExceptionSymbol, policy: Policy) -> Judged | Refusal:
    license, exception = str(node.license_symbol.key), str(node.exception_symbol.key)
    expression = f"{license} WITH {exception}"
    if license not in policy.exceptions.get(exception, frozenset()):
        return Refusal("license_refused", f"{exception} does not go with {license}", expression)
    return Judged(expression, policy.class_of(license), expression)


def _is_known_by_design(key: str, policy: Policy) -> bool:
    lowered = key.lower()
    return (
        lowered in UNKNOWN_BY_DESIGN
        or lowered.startswith(("licenseref-", "documentref-"))
        or key.removesuffix("+") in policy.classes
    )


def _bracketed(branch: str) -> str:
    return f"({branch})" if " OR " in branch else branch


@cache
def _licensing() -> Licensing:
    return get_spdx_licensing()
