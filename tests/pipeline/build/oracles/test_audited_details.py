"""Details of a document name a place of its evidence, and its scores are those of its text."""

from typing import Any

import pyarrow as pa
import pytest

from pipeline.build.oracles.audited_details import misdetailed_documents

SOUND: dict[str, Any] = {
    "source": "made",
    "path": "a.c",
    "text": "int a;\nint longer;\n",
    "num_redactions": 0,
    "license_evidence": "file",
    "license_detail": "a.c:1: SPDX-License-Identifier: MIT",
    "scores": '{"num_bytes":19,"longest_line":11,"mean_line":9.0}',
}
LIMITS = {"max_file_bytes": 1, "min_num_bytes": 1, "max_num_bytes": 9, "max_longest_line": 9, "max_mean_line": 9.0}


def is_sound(**changes: Any) -> bool:
    return not misdetailed_documents(pa.Table.from_pylist([SOUND | changes]), LIMITS)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"license_evidence": "header", "license_detail": "LICENSE: a text\na.c: the header names MIT"},
        {"license_evidence": "sidecar", "license_detail": "a.c.license:2: SPDX-License-Identifier: MIT"},
        {"license_evidence": "package", "license_detail": "pin: declared_license = MIT"},
        {"license_evidence": "decision", "license_detail": "decided by a person"},
        {"license_detail": "<redacted-email>.c:1: SPDX-License-Identifier: MIT"},
        {"num_redactions": 1, "scores": '{"num_bytes":90,"longest_line":80,"mean_line":9}'},
    ],
)
def test_details_of_a_place_and_scores_of_the_text_are_sound(changes: dict[str, Any]) -> None:
    assert is_sound(**changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"license_detail": "x"},
        {"license_detail": "b.c:1: SPDX-License-Identifier: MIT"},
        {"license_evidence": "sidecar"},
        {"license_evidence": "package", "license_detail": "x"},
        {"scores": "{}"},
        {"scores": "[]"},
        {"scores": "x"},
        {"scores": '{"num_bytes":19,"longest_line":11}'},
        {"scores": '{"num_bytes":19,"longest_line":11,"mean_line":true}'},
        {"scores": '{"num_bytes":19,"longest_line":11,"mean_line":NaN}'},
        {"scores": '{"num_bytes":20,"longest_line":11,"mean_line":9.0}'},
        {"scores": '{"num_bytes":19,"longest_line":12,"mean_line":9.0}'},
    ],
)
def test_details_of_nothing_and_scores_of_another_text_are_found(changes: dict[str, Any]) -> None:
    assert not is_sound(**changes)
