"""A folder is a store's own storage, and loads nothing of buckets; the folder of a cache says of which bucket it is."""

import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.core.errors import StoreError
from pipeline.storage.open_storage import open_folder, storage_of
from pipeline.store.store import Store


def test_a_folder_is_its_own_storage(tmp_path: Path) -> None:
    assert open_folder(str(tmp_path)) == tmp_path
    assert storage_of(tmp_path).address == str(tmp_path)


@pytest.mark.parametrize("name", ["", " "])
def test_a_store_without_a_name_is_not_the_folder_here(name: str) -> None:
    with pytest.raises(StoreError, match=rf"store '{name}': it has no name, .*; expected a folder, such as `.`"):
        open_folder(name)


def test_a_store_in_a_folder_loads_nothing_of_buckets() -> None:
    code = "import sys; from pipeline.store.store import Store; from pathlib import Path; Store(Path('none')).corpora()"
    told = f"{code}; print([name for name in sys.modules if 'obstore' in name or name.endswith('.bucket')])"
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_another_process_finds_the_bucket_of_a_cache(bucket_address: str) -> None:
    store = Store(open_folder(bucket_address))
    store.prepare()
    code = "import sys; from pathlib import Path; from pipeline.storage.open_storage import storage_of"
    code += "; print(storage_of(Path(sys.argv[1])).address)"
    done = subprocess.run([sys.executable, "-c", code, str(store.root)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == bucket_address
