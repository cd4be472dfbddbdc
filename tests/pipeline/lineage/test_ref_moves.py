"""Moves of refs on a page are those of the history, whenever it is looked at."""

from pipeline.lineage.ref_moves import moves_table, ref_rows, with_moves
from pipeline.store.store import Store
from tests.support.stored_text import commit_text


def test_a_page_is_given_the_moves_that_the_history_has_now(store: Store) -> None:
    first, second = commit_text(store, b"1"), commit_text(store, b"2")
    store.move_ref("mine", "live", None, first, "<first>")
    page = f"<p>before {moves_table('mine', list(ref_rows(store, 'mine')))} after</p>"
    assert "&lt;first&gt;" in page
    assert with_moves(page, store) == page
    store.move_ref("mine", "live", first, second, "second")
    store.move_ref("mine", "tokenize", None, second, "of a stage")
    now = with_moves(page, store)

    assert now.index(second) < now.index(first)
    assert "of a stage" not in now
    assert (now.startswith("<p>before "), now.endswith(" after</p>")) == (True, True)
    assert with_moves(now, store) == now


def test_a_page_whose_history_is_damaged_says_so_and_one_without_marks_is_left(store: Store) -> None:
    store.move_ref("mine", "live", None, commit_text(store, b"1"), "first")
    page = moves_table("mine", [])
    (store.root / "log" / "promotions.jsonl").write_text("{}\n")

    assert "cannot be listed: " in with_moves(page, store)
    for other in ("", "<p>a page</p>", page.partition("<!-- end")[0], page.replace("mine", "../mine")):
        assert with_moves(other, store) == other
