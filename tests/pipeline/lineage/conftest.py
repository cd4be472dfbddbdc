"""Reports that more than one file of tests reads: of the made corpus, and of a hostile file."""

import pytest

from pipeline.build.build import BuildRequest, open_build
from pipeline.build.recipes import TINY
from pipeline.build.run_stage import run_stages
from pipeline.lineage.report import Report, report_corpus
from pipeline.pins.local_tree import tree_digest
from pipeline.stages.collect.kinds.local import LocalPin
from pipeline.store.store import Store

HOSTILE = '</pre><script>alert("x")</script><img src=x onerror=alert(1)>'


ADDRESS = "someone" + "@" + "mail-of-a-person.org"


@pytest.fixture(scope="module")
def tiny(tiny_store: Store) -> Report:
    return report_corpus(tiny_store, "tiny")


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """A source whose only file leaves for one long line, with markup in its name and text and a person's address."""
    root = tmp_path_factory.mktemp("hostile")
    (root / "code").mkdir()
    text = f"// {HOSTILE} by {ADDRESS}\nint a = {' + '.join(map(str, range(900)))};\n"
    (root / "code" / "<script>x<b>.c").write_text(text)
    pin = LocalPin(name="code", path=root / "code", digest=tree_digest(root / "code"), declared_license="MIT")
    store = Store(root / "store")
    with open_build(BuildRequest("mine", TINY.params, (pin,), "a test"), store) as build:
        list(run_stages(build, "normalize"))
    store.move_ref("mine", "normalize", store.ref("mine", "normalize"), _stage(store), "a test")
    return report_corpus(store, "mine")


def _stage(store: Store) -> str:
    # A corpus that keeps nothing is blocked, and its ref does not move; such a build has a report too.
    return next(store.root.glob("objects/normalize/stage/*")).name
