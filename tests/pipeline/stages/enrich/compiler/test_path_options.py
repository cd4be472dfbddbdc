"""Options that a path follows: the scrubber, the gate and the reader of commands know the same ones."""

import json

import pytest

from pipeline.stages.enrich.compiler.compile_commands import read_database
from pipeline.stages.enrich.compiler.definition_scrubber import scrub_definition
from pipeline.stages.enrich.compiler.local_paths import holds_local_path
from pipeline.stages.enrich.compiler.path_options import OPTIONS_WITH_NEXT, PATH_OPTIONS
from pipeline.stages.enrich.compiler.source_tree import SourceTree


@pytest.mark.parametrize("option", sorted(PATH_OPTIONS))
def test_a_path_of_the_machine_after_an_option_is_found_and_scrubbed_and_one_of_the_tree_is_kept(option: str) -> None:
    local, kept = f'FLAGS="-{option}/opt/alice/x"', f'FLAGS="-{option}folder/x"'

    assert holds_local_path(local)
    assert "alice" not in (scrub_definition(local, [], []) or "")
    assert not holds_local_path(kept)
    assert scrub_definition(kept, [], []) == kept


@pytest.mark.parametrize("option", OPTIONS_WITH_NEXT)
def test_the_argument_after_an_option_is_no_unit_and_no_definition(option: str) -> None:
    tree = SourceTree(frozenset({"source/a.cc"}), (("/ci/p", "source"),), {})
    entry = {"directory": "/ci/p", "file": "a.cc", "arguments": ["c++", option, "/opt/alice/x.h", "-DA=1", "a.cc"]}
    (command,) = read_database(json.dumps([entry]).encode(), tree).commands.values()

    assert "alice" not in " ".join(command.arguments)
    assert "-DA=1" in "".join(command.arguments)
