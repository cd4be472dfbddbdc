"""A build: one writer a corpus, and the pins without the sources that are withdrawn whole."""

from dataclasses import replace

import pytest

from pipeline.build.build import BuildRequest, open_build
from pipeline.build.recipes import TINY, pins_of
from pipeline.core.errors import LockedError
from pipeline.store.store import Store

REQUEST = BuildRequest("tiny", TINY.params, pins_of(TINY), "run one", wait_seconds=0.0)


def test_a_second_build_of_a_corpus_waits_and_another_corpus_does_not(store: Store) -> None:
    waits: list[str] = []
    second, other = replace(REQUEST, who="run two"), replace(REQUEST, corpus="mine")
    with open_build(REQUEST, store) as build, open_build(other, store):
        assert build.scratch.is_dir()
        with pytest.raises(LockedError, match="run one"), open_build(replace(second, wait_seconds=0.2), store):
            pass
        with pytest.raises(LockedError), open_build(replace(second, wait_seconds=0.2), store, on_wait=waits.append):
            pass
    assert waits == ["run one"]


def test_a_source_that_is_withdrawn_whole_is_not_collected(store: Store) -> None:
    gone, part, *_ = names = [pin.name for pin in REQUEST.pins]
    store.log_withdrawal(gone, "its owner asked")
    store.log_withdrawal(f"{part}/src/**", "its owner asked")
    with open_build(REQUEST, store) as build:
        assert [pin.name for pin in build.pins] == [name for name in names if name != gone]
