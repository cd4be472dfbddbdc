"""Reports that more than one file of tests reads: of the made corpus, and of a hostile file."""

import pytest

from pipeline.lineage.report import Report, report_corpus
from pipeline.store.refs import LAST
from pipeline.store.store import Store


@pytest.fixture(scope="module")
def tiny(tiny_store: Store) -> Report:
    return report_corpus(tiny_store, "tiny")


@pytest.fixture(scope="module")
def hostile(blocked_store: Store) -> Report:
    return report_corpus(blocked_store, "mine", of=LAST)  # a corpus that keeps nothing is blocked
