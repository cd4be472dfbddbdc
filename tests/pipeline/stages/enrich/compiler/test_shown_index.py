"""The index that is stored has no secret, address or home folder of a compile database, and the paths of the source as they are."""

import json

from pipeline.stages.enrich.compiler.compiler_index import CompilerIndex, FileIndex
from pipeline.stages.enrich.compiler.shown_index import scrub_index

TOKEN = "AKIA" + "QWERTYUIOPASDFGH"
MAIL = "ada@" + "sluice-host.org"
UNIT = "third/ada/unit.cpp"


def test_contexts_notes_and_details_are_scrubbed_and_paths_of_the_source_stay() -> None:
    context = {"unit": UNIT, "defines": [f"KEY={TOKEN}", "NDEBUG", f'WHO="{MAIL}"'], "include_roots": [f"x/{TOKEN}"]}
    index = CompilerIndex(
        files={"a.cpp": FileIndex(True, "", json.dumps(context)), "b.cpp": FileIndex(False, f"tool_failed: {TOKEN}")},
        notes=[f"The compiler index of x failed: CMake Error at {TOKEN}"],
    )
    scrub_index(index)
    stored = json.loads(index.files["a.cpp"].context or "")
    assert stored == {
        "unit": UNIT,
        "defines": ["KEY=<redacted-secret-1>", "NDEBUG", 'WHO="<redacted-email-1>"'],
        "include_roots": ["x/<redacted-secret-1>"],
    }
    assert index.files["b.cpp"] == FileIndex(False, "tool_failed: <redacted-secret-1>")
    assert index.notes == ["The compiler index of x failed: CMake Error at <redacted-secret-1>"]


def test_an_address_in_the_path_of_a_unit_is_no_more_shown_than_its_file_is_kept() -> None:
    index = CompilerIndex(
        files={"a.cpp": FileIndex(True, "", json.dumps({"unit": f"third/{MAIL}/unit.cpp"}))}, notes=[]
    )
    scrub_index(index)
    assert json.loads(index.files["a.cpp"].context or "") == {"unit": "third/<redacted-email-1>/unit.cpp"}
