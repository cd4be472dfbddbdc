"""Sources of kind local: a folder with the pinned digest, and every change of it refused."""

from pathlib import Path

import pytest

from pipeline.contracts.part import LISTING_SUFFIX, PartJob
from pipeline.core.errors import ArchiveError, DigestError
from pipeline.pins.local_tree import tree_digest
from pipeline.stages.collect.kinds.local import LocalPin
from pipeline.stages.collect.params import CollectParams
from pipeline.stages.collect.stage import collect_source, run
from tests.pipeline.stages.collect.conftest import Create, Surroundings


def local_pin(root: Path, name: str = "tree", digest: str | None = None) -> LocalPin:
    return LocalPin(name=name, path=root, digest=digest or tree_digest(root))


def rows(surroundings: "Surroundings", name: str, table: str) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = surroundings.made[name].tables[table].to_pylist()
    return rows


def test_a_local_tree_is_a_source_like_any_other(surroundings: Create, tmp_path: Path) -> None:
    root = tmp_path / "tree"
    (root / "src").mkdir(parents=True)
    (root / "src" / "a.cpp").write_bytes(b"int a;")
    (root / "notes.txt").write_bytes(b"words")
    (root / "link.h").symlink_to("src/a.cpp")
    pin = local_pin(root)
    context = surroundings(pin)
    assert run(context).failures == {}
    (row,) = rows(context, "tree", "files.parquet")
    assert (row["path"], row["revision"], row["content"]) == ("src/a.cpp", pin.digest, b"int a;")
    drops = {drop["path"]: (drop["reason"], drop["detail"]) for drop in rows(context, "tree", "dropped.parquet")}
    assert drops == {"link.h": ("link", "src/a.cpp"), "notes.txt": ("other_language", "")}


def test_a_changed_tree_is_refused_with_both_digests_even_when_its_part_is_known(
    surroundings: Create, tmp_path: Path
) -> None:
    root = tmp_path / "tree"
    root.mkdir()
    (root / "a.cpp").write_bytes(b"int a;")
    pin = local_pin(root)
    context = surroundings(pin)
    assert run(context).failures == {}
    (root / "a.cpp").write_bytes(b"int changed;")
    error = run(context).failures["tree"]
    assert isinstance(error, DigestError)
    assert f"has the digest {tree_digest(root)}; expected {pin.digest}" in str(error)


def test_a_tree_that_changes_after_it_was_verified_is_refused_too(tmp_path: Path) -> None:
    root = tmp_path / "tree"
    root.mkdir()
    (root / "a.cpp").write_bytes(b"int a;")
    pin = local_pin(root)
    (root / "a.cpp").write_bytes(b"int changed;")
    with pytest.raises(DigestError, match="its tree has the digest"):
        collect_source(PartJob("tree", CollectParams(), {}, pin.identity(), {"source": root}))


def test_what_globs_leave_out_is_no_part_of_a_tree(surroundings: Create, tmp_path: Path) -> None:
    root = tmp_path / "tree"
    (root / "out").mkdir(parents=True)
    (root / "a.cpp").write_bytes(b"int a;")
    (root / "out" / "b.cpp").write_bytes(b"int b;")
    pin = LocalPin(name="tree", path=root, digest="0" * 64, exclude=("out/**",))
    pin = pin.model_copy(update={"digest": tree_digest(root, pin.selection())})
    context = surroundings()
    before = _made(context, pin)
    (root / "out" / "b.cpp").write_bytes(b"int changed;")
    (root / "out" / "c.cpp").symlink_to("b.cpp")
    assert _made(context, pin) == before == (["a.cpp"], [], ["a.cpp"])


def _made(context: "Surroundings", pin: LocalPin) -> tuple[list[str], list[str], list[str]]:
    """Return the names that the pin's source holds: those of its files, of its drops, and of its listing."""
    context.known_parts.clear()
    context.pins = (pin,)
    assert run(context).failures == {}
    tables = {**context.made["tree"].tables, **context.made[f"tree{LISTING_SUFFIX}"].tables}
    kept, dropped, listed = (tables[f"{name}.parquet"]["path"].to_pylist() for name in ("files", "dropped", "listed"))
    return kept, dropped, listed


def test_a_tree_over_the_limits_is_refused(tmp_path: Path) -> None:
    root = tmp_path / "tree"
    root.mkdir()
    for number in range(3):
        (root / f"{number}.h").write_bytes(b"")
    params = CollectParams(max_members=2)
    with pytest.raises(ArchiveError, match="its tree has 3 entries"):
        collect_source(PartJob("tree", params, {}, local_pin(root).identity(), {"source": root}))
