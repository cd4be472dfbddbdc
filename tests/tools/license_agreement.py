"""Agreement of license decisions with the labeled files of scancode-toolkit: `python -m tests.tools.license_agreement CHECKOUT`.

Each short text of `tests/licensedcode/data/datadriven` is put as a comment on top of a C file of a project under MIT, and the
decision is compared with the class that the policy gives to the expected expression. `--half 0` are the files that rules were
developed with, `--half 1` those that nobody looked at (a bit of the digest of the path). Data: AboutCode, CC-BY-4.0; nothing of
it is in this project.
"""

import argparse
import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import yaml

from pipeline.stages.normalize.drop import Drop
from pipeline.stages.normalize.license.decide import PackageFacts, SourceLicenses
from pipeline.stages.normalize.license.evidence import expression_ids
from pipeline.stages.normalize.license.policy import LicenseClass, classify_expression, parse_policy, policy_bytes
from pipeline.stages.normalize.params import LicenseParams
from tests.pipeline.stages.normalize.license.test_texts import MIT

FIXTURES = "tests/licensedcode/data/datadriven"
KEYS = "src/licensedcode/data/licenses"
MAX_NUM_WORDS = 450
MIN_NUM_WORDS = 5
NO_LICENSE = re.compile(r"unknown|warranty-disclaimer|generic-cla|free-unknown|other-permissive|other-copyleft")
POLICY = parse_policy(policy_bytes())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--half", type=int, choices=(0, 1), default=1)
    parser.add_argument("--show", type=int, default=30, help="licenses of the table, the most frequent first")
    options = parser.parse_args()
    spdx = _spdx_keys(options.checkout / KEYS)
    project = SourceLicenses({"LICENSE": MIT.encode()}, PackageFacts("MIT", True), POLICY, LicenseParams())
    outcomes: dict[str, Counter[str]] = defaultdict(Counter)
    classes: Counter[tuple[str, str]] = Counter()
    for path, text, keys in _labeled(options.checkout / FIXTURES):
        expected = [_as_spdx(key, spdx) for key in keys]
        is_other_half = hashlib.sha256(path.encode()).digest()[0] & 1 != options.half
        if is_other_half or any(NO_LICENSE.search(key) for key in keys):
            continue
        kind, outcome = _class_of(expected), _outcome(project, text, expected)
        classes[kind, outcome] += 1
        outcomes[" AND ".join(dict.fromkeys(expected))][outcome] += 1
    for (kind, outcome), number in sorted(classes.items()):
        print(f"{kind:10} {outcome:28} {number:5}")
    for license, counts in sorted(outcomes.items(), key=lambda item: (-item[1].total(), item[0]))[: options.show]:
        print(f"{license[:60]:60} {dict(sorted(counts.items()))}")


def _labeled(folder: Path) -> Iterator[tuple[str, str, list[str]]]:
    """Return path, text and expected keys of the short texts, by path."""
    for label in sorted(folder.rglob("*.yml")):
        path = label.with_suffix("")
        expected = yaml.safe_load(label.read_text()) or {}
        keys = expected.get("license_expressions")
        if not keys or expected.get("expected_failure") or not path.is_file():
            continue
        text = path.read_bytes().decode("utf-8", "replace")
        if MIN_NUM_WORDS <= len(text.split()) <= MAX_NUM_WORDS and "\N{REPLACEMENT CHARACTER}" not in text:
            yield str(path.relative_to(folder)), text, keys


def _outcome(project: SourceLicenses, text: str, expected: list[str]) -> str:
    found = project.decide("src/a.c", "".join(f"// {line}\n" for line in text.splitlines()) + "int a;\n")
    if found.drop_reason:
        return found.drop_reason
    if found.is_inherited:
        return "kept as the folder's"
    same = expression_ids([str(found.expression)]) == expression_ids(expected)
    return f"kept {found.license_class}, {'same' if same else 'other'} name"


def _class_of(expected: list[str]) -> str:
    found = [classify_expression(each, POLICY) for each in expected]
    parts = [each.license_class for each in found if not isinstance(each, Drop)]
    return max(parts).name if len(parts) == len(found) else LicenseClass.REFUSED.name


def _spdx_keys(folder: Path) -> dict[str, str]:
    keys = {}
    for path in sorted(folder.glob("*.LICENSE")):
        match = re.search(r"^spdx_license_key: (.*)$", path.read_text(), re.MULTILINE)
        keys[path.stem] = match[1].strip() if match else f"LicenseRef-scancode-{path.stem}"
    return keys


def _as_spdx(expression: str, keys: dict[str, str]) -> str:
    return re.sub(r"[\w.+-]+", lambda match: keys.get(match[0], match[0]), expression)


if __name__ == "__main__":
    main()
