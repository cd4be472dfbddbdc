"""No name of a class, a function or an enum member reaches an id, a stored table or a certificate."""

import ast
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.build.run_stage import StageResult
from pipeline.core.errors import ParamsError, StageError
from pipeline.core.records import Document, EnrichedDocument
from pipeline.core.schema import RECORDS, StoredRecord, arrow_schema, stored
from pipeline.store.store import Store
from tests.conftest import copy_consumer_proof
from tests.support.paths import ROOT
from tests.tools.renamed_names import train

READ_A_NAME = {
    "assets/forms.py": "the title of a form",
    "assets/instance.py": "an error message",
    "assets/resources.py": "an error message",
    "assets/stage_assets.py": "an error message",
    "assets/web.py": "the attribute of Dagster's command that is replaced",
    "kernels/framework/operation.py": "the operation, which torch registers and the kernel's SPEC repeats",
    "kernels/measure/benchmark.py": "an error message",
    "kernels/measure/parity.py": "an error message",
    "kernels/measure/tuning.py": "an error message",
    "pipeline/build/engines/ray_engine.py": "an error message",
    "pipeline/core/command_line.py": "an error message",
    "pipeline/core/declared.py": "an error message",
    "pipeline/core/params.py": "an error message",
    "pipeline/core/schema.py": "an error message",
    "pipeline/store/bundles/bundle.py": "an error message",
    "pipeline/stages/collect/archives/containers.py": "an error message",
    "pipeline/stages/collect/kinds/jsonl.py": "an error message",
    "pipeline/stages/collect/network/download.py": "an error message",
    "pipeline/stages/collect/network/package_index.py": "an error message",
    "pipeline/stages/collect/refusals.py": "an error message",
    "pipeline/stages/normalize/contamination/evaluation_items.py": "an error message",
    "pipeline/stages/verify/stage.py": "an error message",
    "trainer/checkpoint/initial_weights.py": "an error message",
    "trainer/compile/compile_policy.py": "an error message, and the label of a layer in messages",
    "trainer/proof/comparison.py": "an error message",
    "trainer/inference/modeling_sluice.py": "an error message, and the class of a cache that was loaded a second time",
    "trainer/train/tracking/trackers.py": "an error message",
    "trainer/train/metrics.py": "a warning",
}
"""Files that read the name of a class or a function, and what it becomes. None may reach an id or a stored file."""


@pytest.mark.slow
def test_other_names_end_in_the_same_ids(tiny_results: list[StageResult], tiny_store: Store, tmp_path: Path) -> None:
    copy_consumer_proof(tiny_store, tmp_path / "store")
    program = [sys.executable, "-m", "tests.tools.renamed_names", str(tmp_path / "store")]
    done = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[-1])

    assert found["num_renamed"] > 1_000
    assert found["stages"] == [[result.object_id, dict(result.parts)] for result in tiny_results]
    copied = Store(shutil.copytree(tiny_store.root, tmp_path / "copied"))
    assert found["run"] == train(copied)


def test_names_are_read_for_messages_alone() -> None:
    files = [
        path for package in ("assets", "kernels", "pipeline", "trainer") for path in (ROOT / package).rglob("*.py")
    ]
    found = {path.relative_to(ROOT).as_posix() for path in files if _reads_a_name(path.read_text(encoding="utf-8"))}

    assert found == READ_A_NAME.keys()


def _reads_a_name(text: str) -> bool:
    names = {"__name__", "__qualname__", "__module__"}
    return any(isinstance(node, ast.Attribute) and node.attr in names for node in ast.walk(ast.parse(text)))


def test_a_record_of_another_class_name_has_the_same_schema() -> None:
    schema = arrow_schema(EnrichedDocument)
    renamed = arrow_schema(type("StructuredDocument", (EnrichedDocument,), {}))

    assert renamed.serialize().to_pybytes() == schema.serialize().to_pybytes()
    assert schema.metadata == {b"record": b"EnrichedDocument", b"schema_version": b"4"}


def test_a_record_is_declared_at_run_time_under_a_name_of_its_own() -> None:
    class Stub(Document):
        """A record of a program."""

    with RECORDS.registered(StoredRecord("Stub", 7, Stub)):
        assert arrow_schema(Stub).metadata == {b"record": b"Stub", b"schema_version": b"7"}
        with pytest.raises(ParamsError, match="record Stub: it is registered already"):
            stored("Stub")(Stub)
    assert arrow_schema(Stub).metadata[b"record"] == b"Document"


def test_a_record_without_a_name_is_refused() -> None:
    class Nameless:
        """A record that nobody declared."""

    with pytest.raises(StageError, match=r"record Nameless: it has no name for stored tables; .*@stored"):
        arrow_schema(Nameless)
