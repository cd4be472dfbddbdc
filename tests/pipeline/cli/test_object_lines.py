"""Refs and objects are described in about ten lines, which name what blocked them."""

import pytest

from pipeline.cli.main import main
from pipeline.cli.object_lines import ref_lines
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


def test_a_ref_is_where_it_is_since_its_move_and_not_since_more_was_proved_of_it() -> None:
    limits = "; ".join(f"normalize.max_{number} is 1, of the recipe 2" for number in range(20))
    move = {"ref": "live", "old": None, "new": "a" * 64, "when": "2026-01-02T03:04:05", "reason": "first"}
    proved = {
        **move,
        "old": "a" * 64,
        "when": "2026-02-03T04:05:06",
        "replayed_by": "b",
        "other_limits": limits,
        "reason": "it was loosened",
    }
    answer = {"corpus": "mine", "refs": {"live": "a" * 64}, "history": [move, proved], "lives": ["a" * 64], "gone": []}
    answer |= {"rolled_back": {"b" * 64: proved}, "withdrawn": {}}

    _, line, line_of_limits, line_of_reason, line_of_left = ref_lines(answer)
    assert "since 2026-01-02 03:04" in line
    assert line_of_limits.endswith("max_5 is 1, of the recipe 2 and 14 more")
    assert line_of_reason.endswith("since 2026-02-03 04:05 UTC  it was loosened")
    assert "rolled back from bbbbbbbbbbbb  2026-02-03 04:05 UTC" in line_of_left
    assert len(line_of_left) <= 80


def test_a_snapshot_which_holds_no_text_of_its_own_shows_no_size_of_text(
    tiny_store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", "live", "--corpus", "tiny", "--store", str(tiny_store.root)]) == 0
    assert "0.00 MB" not in capsys.readouterr().out
