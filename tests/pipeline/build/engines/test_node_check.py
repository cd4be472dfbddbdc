"""A worker that would make other bytes is named with what differs; one that would make the same is not."""

from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.build.engines.node_check import NodeView, node_differences, node_view


@pytest.fixture
def here(tmp_path: Path) -> NodeView:
    (tmp_path / "token").write_text("seen")
    return node_view(tmp_path / "token")


def test_the_same_process_differs_in_nothing_and_names_each_library(here: NodeView) -> None:
    assert node_differences(here, here) == ""
    assert {"Python", "machine", "pyarrow", "tree-sitter", "tokenizers"} <= set(here.versions)
    assert "" not in here.versions.values()


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"token": ""}, "it does not see the folder of the store"),
        ({"code": "f" * 64}, "the code of its pipeline is ffffffffffff and not"),
        ({"versions": {"Python": "3.9.1"}}, "its Python is 3.9.1 and not 3."),
        ({"versions": {}}, "its pyarrow is not installed and not"),
    ],
)
def test_what_differs_is_named(here: NodeView, change: dict[str, object], found: str) -> None:
    assert found in node_differences(here, replace(here, **change))  # type: ignore[arg-type]


def test_a_file_that_is_not_there_is_not_seen(tmp_path: Path) -> None:
    assert node_view(tmp_path / "absent").token == ""
