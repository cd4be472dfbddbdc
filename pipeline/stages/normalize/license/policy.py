"""Policy file of licenses, and the class that it gives to an SPDX license expression, which is parsed strictly.

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
    get_spdx_licensing,
)

from pipeline.core.errors import ParamsError, PinError, StageError, did_you_mean
from pipeline.stages.normalize.drop import Drop

POLICY_FILE = "license_policy.toml"
MAX_EXPRESSION = 1_000
"""Characters of an expression; longer ones are not read."""
UNKNOWN_BY_DESIGN = frozenset({"none", "noassertion"})
"""The words of SPDX for an unknown license. They are in no list of ids."""


_licensing = cache(get_spdx_licensing)


class LicenseClass(IntEnum):
    """Class of a license, the least demanding first: AND takes the highest of its operands, OR the lowest."""

    ALLOWED = 0
    TAGGED = 1
    REFUSED = 2


CLASS_NAMES = {LicenseClass.ALLOWED: "allowed", LicenseClass.TAGGED: "tagged", LicenseClass.REFUSED: "refused"}
"""Name of each class in documents and in the policy file."""


@dataclass(frozen=True)
class Policy:
    """Classes of license ids, and the licenses that each exception may be used with."""

    classes: Mapping[str, LicenseClass]
    exceptions: Mapping[str, frozenset[str]]
    sha256: str

    def class_of(self, key: str) -> LicenseClass:
        """Return the class of an id; a `+` after it permits later versions too. An id that the policy does not name is refused."""
        return self.classes.get(key.removesuffix("+"), LicenseClass.REFUSED)


@dataclass(frozen=True)
class ClassifiedExpression:
    """An expression in its normal spelling, its class, and the branch that was chosen for it."""

    expression: str
    license_class: LicenseClass
    branch: str


def policy_bytes() -> bytes:
    """Return the policy file as it is shipped."""
    return files("pipeline.stages.normalize.license").joinpath(POLICY_FILE).read_bytes()


@cache
def load_policy(sha256: str) -> Policy:
    """Return the shipped policy. Raises StageError if its digest is not the one in the part's identity."""
    content = policy_bytes()
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise StageError(
            POLICY_FILE, f"digest {found}", sha256, "The policy changed during the build: start the build again."
        )
    return parse_policy(content)


def parse_policy(content: bytes) -> Policy:
    """Parse a policy from TOML. Raises ParamsError for an id that is in two classes."""
    table = tomllib.loads(content.decode())
    classes: dict[str, LicenseClass] = {}
    for license_class in LicenseClass:
        for key in table[CLASS_NAMES[license_class]]:
            if key in classes:
                raise ParamsError(POLICY_FILE, f"{key} is in two classes", "one class per id", "Remove one of them.")
            classes[key] = license_class
    exceptions = {key: frozenset(licenses) for key, licenses in table["exceptions"].items()}
    return Policy(classes, exceptions, hashlib.sha256(content).hexdigest())


def refuse_no_expression(text: str, subject: str, refusal: type[PinError] = PinError) -> ClassifiedExpression | Drop:
    """Return the class of a license that somebody wrote, or its drop by the policy.

    Raises `refusal` for what is no SPDX expression, as `MIT License`, with the identifiers that are nearly what it names.
    """
    found = classify_expression(text, parse_policy(policy_bytes()))
    if isinstance(found, Drop) and found.reason == "license_unknown":
        unknown = "" if isinstance(_parsed(text), Drop) else _unknown_keys(text)[0]
        remedy = did_you_mean(unknown, _licensing().known_symbols, "Look the identifiers up in the SPDX license list.")
        expected = "an SPDX expression, as `MIT`, `Apache-2.0 OR BSD-3-Clause` or `LicenseRef-Name`"
        raise refusal(subject, f"its license {found.detail.removeprefix('the expression ')}", expected, remedy)
    return found


def classify_expression(text: str, policy: Policy) -> ClassifiedExpression | Drop:
    """Return the class of an expression and the branch chosen, or the drop.

    `license_unknown` is what does not parse or names an unknown id; `license_refused` an exception that its license does
    not allow. `LicenseRef-`, NONE and NOASSERTION have the class that the policy names, else they are refused.
    """
    parsed = _parsed(text)
    if isinstance(parsed, Drop):
        return parsed
    unknown = [key for key in _unknown_keys(text) if not _is_known_by_design(key, policy)]
    if unknown:
        return Drop(
            "license_unknown", f"{text!r} names {', '.join(sorted(unknown))}, which is not an SPDX identifier", text
        )
    return _classify(parsed, policy)


def is_known_expression(text: str) -> bool:
    """Return whether a text is an expression whose identifiers are all known, or LicenseRef- ones."""
    return not isinstance(_parsed(text), Drop) and all(
        key.lower() in UNKNOWN_BY_DESIGN or key.lower().startswith(("licenseref-", "documentref-"))
        for key in _unknown_keys(text)
    )


@lru_cache(maxsize=4_096)
def _parsed(text: str) -> Any | Drop:
    if len(text) > MAX_EXPRESSION:
        return Drop(
            "license_unknown",
            f"{text[:60]!r}... has {len(text)} characters; longer ones than {MAX_EXPRESSION} are not read",
        )
    try:
        # Not validate(): it crashes on `MIT/X11`. Strict, else `MIT WITH Apache-2.0` passes.
        parsed = _licensing().parse(text, strict=True)
    except (ExpressionError, AttributeError, TypeError, IndexError, RecursionError) as error:  # of `()` too
        return Drop("license_unknown", f"{text!r} is not an SPDX expression: {' '.join(str(error).split())}")
    if parsed is None:
        return Drop("license_unknown", "the expression is empty")
    return _licensing().dedup(parsed)


@lru_cache(maxsize=4_096)
def _unknown_keys(text: str) -> tuple[str, ...]:
    return tuple(_licensing().unknown_license_keys(_parsed(text)))


def _classify(node: LicenseExpression, policy: Policy) -> ClassifiedExpression | Drop:
    if isinstance(node, LicenseWithExceptionSymbol):
        return _classify_exception(node, policy)
    if isinstance(node, LicenseSymbol):
        key = str(node.key)
        return ClassifiedExpression(key, policy.class_of(key.upper() if key.lower() in UNKNOWN_BY_DESIGN else key), key)
    operands = [_classify(operand, policy) for operand in node.args]
    parts = [operand for operand in operands if isinstance(operand, ClassifiedExpression)]
    is_choice = node.operator.strip() == "OR"
    if len(parts) < len(operands) and not (is_choice and parts):
        return next(operand for operand in operands if isinstance(operand, Drop))
    expression = str(node)
    if is_choice:
        best = min(parts, key=lambda operand: operand.license_class)  # the leftmost of equals
        return ClassifiedExpression(expression, best.license_class, best.branch)
    branches = list(dict.fromkeys(_bracketed(operand.branch) for operand in parts))
    return ClassifiedExpression(expression, max(operand.license_class for operand in parts), " AND ".join(branches))


def _classify_exception(node: LicenseWithExceptionSymbol, policy: Policy) -> ClassifiedExpression | Drop:
    license, exception = str(node.license_symbol.key), str(node.exception_symbol.key)
    expression = f"{license} WITH {exception}"
    if license not in policy.exceptions.get(exception, frozenset()):
        return Drop("license_refused", f"{exception} does not go with {license}", expression)
    return ClassifiedExpression(expression, policy.class_of(license), expression)


def _is_known_by_design(key: str, policy: Policy) -> bool:
    lowered = key.lower()
    return (
        lowered in UNKNOWN_BY_DESIGN
        or lowered.startswith(("licenseref-", "documentref-"))
        or key.removesuffix("+") in policy.classes
    )


def _bracketed(branch: str) -> str:
    return f"({branch})" if " OR " in branch else branch
