"""Fixtures of several folders: the sandbox, and a store whose build a gate blocked."""

import pytest

from pipeline.build.build import BuildRequest, open_build
from pipeline.build.recipes import TINY
from pipeline.build.run_stage import run_stages
from pipeline.pins.local_tree import tree_digest
from pipeline.sandbox.sandbox import Limits, run_confined
from pipeline.stages.collect.kinds.local import LocalPin
from pipeline.store.store import Store

HOSTILE = '</pre><script>alert("x")</script><img src=x onerror=alert(1)>'
ADDRESS = "someone" + "@" + "mail-of-a-person.org"


@pytest.fixture(scope="session")
def blocked_store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A source whose only files leave for one long line, one with markup in its name and text and a person's address."""
    root = tmp_path_factory.mktemp("hostile")
    (root / "code").mkdir()
    (root / "code" / "long.c").write_text(f"int b = {' + '.join(map(str, range(900)))};\n")
    text = f"// {HOSTILE} by {ADDRESS}\nint a = {' + '.join(map(str, range(900)))};\n"
    (root / "code" / "<script>x<b>.c").write_text(text)
    pin = LocalPin(name="code", path=root / "code", digest=tree_digest(root / "code"), declared_license="MIT")
    store = Store(root / "store")
    with open_build(BuildRequest("mine", TINY.params, (pin,), "a test"), store) as build:
        list(run_stages(build))
    return store


@pytest.fixture(scope="session")
def sandbox() -> None:
    """Skip the tests that run commands of a source where the kernel grants no sandbox: nothing is run there at all."""
    run = run_confined(["/bin/true"], {}, ["/bin"], Limits(20, 60, 1 << 30))
    if run.failure == "no_sandbox":
        pytest.skip(f"the kernel grants no sandbox: {run.output}")
