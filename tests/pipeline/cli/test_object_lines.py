"""Refs and objects are described in about ten lines, which name what blocked them."""

import pytest

from pipeline.cli.main import main
from pipeline.store.store import Store


@pytest.mark.parametrize("what", ["refs", "live", "verify", "collect"])
def test_a_description_fits_a_screen(tiny_store: Store, capsys: pytest.CaptureFixture[str], what: str) -> None:
    asked = [] if what == "refs" else [what]
    assert main(["show", *asked, "--corpus", "tiny", "--store", str(tiny_store.root)]) == 0
    text = capsys.readouterr().out

    assert 3 <= len(text.splitlines()) <= 12
    assert (tiny_store.ref("tiny", "live" if what == "refs" else what) or "")[:12] in text


def test_a_blocked_output_shows_what_blocked_it(
    blocked_store: Store,
    capsys: pytest.CaptureFixture[str],
) -> None:
    main(["show", "last", "--corpus", "mine", "--store", str(blocked_store.root)])

    assert "BLOCKED    documents_are_kept: rows_out is 0, must be at least 1" in capsys.readouterr().out
    main(["show", "--corpus", "mine", "--store", str(blocked_store.root)])
    assert "the last build of corpus mine was blocked: normalize, documents_are_kept" in capsys.readouterr().err
