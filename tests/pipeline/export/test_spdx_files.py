"""The files of a bill of materials are those of the snapshot, with the digests of the files on disk and their licenses."""

import hashlib
import re
from collections import Counter

from pipeline.export.spdx_files import spdx_files
from pipeline.store.snapshot import Snapshot
from tests.support.paths import ROOT


def test_every_document_is_a_file_with_the_digests_of_its_bytes_its_license_and_where_that_is_said(
    snapshot: Snapshot,
) -> None:
    for source in snapshot.sources:
        files = list(spdx_files(snapshot, source))
        assert Counter(file["licenseConcluded"] for file in files) == source.licenses
        for file in files if source.name != "loom" else ():  # a bundle: its files lie in no folder
            content = (ROOT / "pipeline/build/made_corpus" / file["fileName"]).read_bytes()
            found = {each["algorithm"]: each["checksumValue"] for each in file["checksums"]}
            expected = {name: hashlib.new(name, content).hexdigest() for name in ("SHA1", "SHA256")}
            assert found == expected
            assert re.match(r"By \w+: .+", file["licenseComments"])
            assert re.fullmatch(r"SPDXRef-File-[0-9a-f]{64}", file["SPDXID"])
