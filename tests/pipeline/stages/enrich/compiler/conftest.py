"""Fixtures of the tests that compile: without the packages of the extra `compiler` they are skipped."""

import pytest

from pipeline.stages.enrich.compiler.tools import missing_tools, tool_versions

WITHOUT_TOOLS = frozenset(
    {"test_compile_commands.py", "test_result_cache.py", "test_source_tree.py"}
    | {"test_definition_scrubber.py", "test_local_paths.py"}
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    missing = missing_tools(tool_versions(cmake=True))
    if not missing:
        return
    skip = pytest.mark.skip(reason=f"the extra `compiler` is not installed: {', '.join(missing)}")
    for item in items:
        if item.path.parent.name == "compiler" and item.path.name not in WITHOUT_TOOLS:
            item.add_marker(skip)
