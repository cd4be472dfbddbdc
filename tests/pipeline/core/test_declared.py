"""Declared functions are loaded by name; what cannot be, or gives another type, is refused in a sentence naming the declaration."""

import re

import pytest

from pipeline.core.declared import load_declared, require_type
from pipeline.core.errors import ParamsError
from tests.support.paths import ROOT


def test_what_a_declaration_names_is_loaded() -> None:
    assert load_declared("thing a", "writer", "json:dumps") is __import__("json").dumps


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("no_such_package.module:write", "ModuleNotFoundError: No module named 'no_such_package'"),
        ("json:no_such_function", "AttributeError: module 'json' has no attribute 'no_such_function'"),
        ("", "ValueError: "),
        ("no name", "ValueError: invalid format: 'no name'"),
    ],
)
def test_a_name_that_cannot_be_imported_is_refused_by_declaration_field_and_reason(name: str, reason: str) -> None:
    with pytest.raises(ParamsError, match=re.escape(f"thing a: its writer {name!r} cannot be imported ({reason}")):
        load_declared("thing a", "writer", name)


def test_another_type_is_refused_by_declaration_field_and_both_types() -> None:
    assert require_type(3, int, "thing a", "read") == 3
    with pytest.raises(
        ParamsError, match=r"^thing a: its read gives None; expected int\. Correct the declaration of thing a"
    ):
        require_type(None, int, "thing a", "read")
    with pytest.raises(ParamsError, match="its read gives str; expected int"):
        require_type("3", int, "thing a", "read")


def test_no_other_module_of_the_pipeline_resolves_names() -> None:
    """One that did would end in a traceback where a declaration is wrong."""
    texts = {path: path.read_text("utf-8") for path in (ROOT / "pipeline").rglob("*.py")}
    found = {path.relative_to(ROOT).as_posix() for path, text in texts.items() if "resolve_name" in text}
    assert found == {"pipeline/core/declared.py"}
