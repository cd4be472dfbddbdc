"""The files that name a person are found as their documents spell it; commits and archives are in `test_erased_archives`."""

import hashlib
from pathlib import Path

from pipeline.removal.author_files import author_files
from tests.pipeline.removal.conftest import Collected


def test_a_file_is_found_as_the_document_spells_the_name(tmp_path: Path) -> None:
    names = {"a.c": ("山田太郎", "cp932"), "b.c": ("Иван Петров", "cp1251"), "c.c": ("李明", "gb18030")}
    files = {path: f"/* {name} */\nint x;\n".encode(encoding) for path, (name, encoding) in names.items()}
    store = Collected(tmp_path / "made", {"made": files}).store
    for path, (name, _) in names.items():
        assert author_files(store, name).digests == (hashlib.sha256(files[path]).hexdigest(),)
