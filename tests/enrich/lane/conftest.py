"""Tests that compile need the packages of the extra `build-lane`; without them they say so and are left out."""

import pytest

from pipeline.enrich.compiler.tools import missing_tools, tool_versions
from pipeline.sandbox.sandbox import Limits, run_confined

WITHOUT_TOOLS = frozenset({"test_commands.py", "test_sandbox.py", "test_tree.py"})


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    missing = missing_tools(tool_versions(cmake=True))
    if not missing:
        return
    skip = pytest.mark.skip(reason=f"the extra build-lane is not installed: {', '.join(missing)}")
    for item in items:
        if item.path.parent.name == "lane" and item.path.name not in WITHOUT_TOOLS:
            item.add_marker(skip)


@pytest.fixture(scope="session")
def sandbox() -> None:
    """The tests that run what a source says are left out where the kernel grants no sandbox: nothing is run there at all."""
    run = run_confined(["/bin/true"], {}, ["/bin"], Limits(20, 60, 1 << 30))
    if run.failure == "no_sandbox":
        pytest.skip(run.output)
