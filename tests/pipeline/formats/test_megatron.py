"""The Megatron format: its bytes, its round trip, and the damage that is counted or refused."""

import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.core.errors import StageError
from pipeline.formats.megatron import count_documents_that_differ, index_bytes, read_megatron, write_megatron

EOS = 2
DOCUMENTS = st.lists(
    st.lists(st.integers(0, 65_499), max_size=20).map(lambda ids: np.array(ids, np.uint16)), max_size=8
)


@given(DOCUMENTS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_documents_come_back_token_for_token(tmp_path: Path, documents: list[np.ndarray]) -> None:
    num_tokens = write_megatron(tmp_path / "corpus.v1", documents, EOS)
    found = [ids.tolist() for ids in read_megatron(tmp_path / "corpus.v1")]
    assert found == [[*ids.tolist(), EOS] for ids in documents]
    assert num_tokens == sum(map(len, found))
    assert count_documents_that_differ(tmp_path / "corpus.v1", documents, EOS) == 0


def test_the_bytes_are_those_of_the_format() -> None:
    expected = b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, 2, 3) + struct.pack("<2i2q3q", 4, 2, 0, 8, 0, 1, 2)
    assert index_bytes([4, 2]) == expected


def test_pointers_past_two_gigabytes_do_not_wrap() -> None:
    index = index_bytes([2**30, 2**30, 5])
    assert struct.unpack_from("<3q", index, 34 + 4 * 3) == (0, 2**31, 2**32)


def test_lost_changed_and_extra_documents_are_counted(tmp_path: Path) -> None:
    documents = [np.array(ids, np.uint16) for ids in ([5, 6], [7], [8, 9, 10])]
    write_megatron(tmp_path / "corpus", documents, EOS)
    assert count_documents_that_differ(tmp_path / "corpus", documents[:2], EOS) == 1
    assert count_documents_that_differ(tmp_path / "corpus", [documents[0], documents[0], documents[2]], EOS) == 1
    assert count_documents_that_differ(tmp_path / "corpus", [*documents, documents[0]], EOS) == 1


@pytest.mark.parametrize(
    ("suffix", "content", "reason"),
    [
        ("idx", b"not an index of Megatron's, but long enough", "begins with"),
        ("idx", b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 4, 0, 1) + bytes(8), "type 4"),
        ("idx", index_bytes([3])[:-1], "61 bytes; expected .* 62 bytes"),
        ("bin", b"\1\0", "it has 2 bytes; expected 3 ids at byte 0"),
    ],
)
def test_a_broken_dataset_is_refused(tmp_path: Path, suffix: str, content: bytes, reason: str) -> None:
    write_megatron(tmp_path / "corpus", [np.array([5, 6], np.uint16)], EOS)
    (tmp_path / f"corpus.{suffix}").write_bytes(content)
    with pytest.raises(StageError, match=reason):
        list(read_megatron(tmp_path / "corpus"))


def test_megatrons_own_reader_agrees_where_it_is_installed(tmp_path: Path) -> None:
    module = "megatron.core.datasets.indexed_dataset"
    indexed_dataset = pytest.importorskip(module, reason="megatron-core is not installed")
    documents = [np.array(ids, np.uint16) for ids in ([5, 6], [7], [8, 9, 10])]
    write_megatron(tmp_path / "corpus", documents, EOS)
    dataset = indexed_dataset.IndexedDataset(str(tmp_path / "corpus"))
    assert [dataset[index].tolist() for index in range(len(dataset))] == [[*ids.tolist(), EOS] for ids in documents]
