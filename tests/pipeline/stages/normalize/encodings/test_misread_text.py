"""Misread text: what was read in the wrong encoding before is named with both encodings; words and signs of languages are not."""

import pytest

from pipeline.stages.normalize.encodings.misread_text import find_misreading

RUSSIAN = "// возвращает длину строки без нулевого байта\n"
GERMAN = "// Jürgen Groß prüft die Größe der Schnittstelle\n"
SOUND = [
    RUSSIAN,
    GERMAN,
    "// α β γ δ ε θ λ μ π σ φ, Δx and σ² in µm\n",
    "// ┌──┐ │ a │ └──┘\n",
    "// Mae'r ffeil wedi'i hagor â llaw: tŷ a dŵr\n",
    "// aéiou ÀÁÂÃÄÅÆÇÈÉ\n",
]


@pytest.mark.parametrize(
    ("text", "was", "read_as"),
    [
        (GERMAN, "cp1252", "cp1251"),
        (GERMAN, "cp850", "koi8_r"),
        (RUSSIAN, "cp1251", "cp1252"),
        (RUSSIAN, "cp866", "koi8_r"),
    ],
)
def test_both_encodings_are_named(text: str, was: str, read_as: str) -> None:
    found = find_misreading(text.encode(was).decode(read_as)) or ""
    assert f"that was read as {read_as}" in found
    assert text.split()[1][:4] in found


@pytest.mark.parametrize("text", SOUND)
def test_what_languages_use_was_read_well(text: str) -> None:
    assert find_misreading(text) is None
