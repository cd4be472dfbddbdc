"""SPDX bill of materials of a snapshot: sources as packages, their files with digests and licenses, and the data made of them.

Source: SPDX specification 2.3 (ISO/IEC 5962), JSON form.
"""

import re
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from pipeline.export.card import Facts
from pipeline.export.spdx_files import spdx_files
from pipeline.stages.collect.kinds.source_kinds import is_file, origin_of
from pipeline.store.snapshot import SnapshotSource

_DATA = "SPDXRef-Snapshot"
_REFERENCE = re.compile(r"LicenseRef-[A-Za-z0-9.-]+")


def bill_of_materials(facts: Facts) -> dict[str, Any]:
    """Build the SPDX document, to be written as JSON, with the sources and files that have documents in the snapshot.

    Packages are not analyzed, as SPDX has it: files of them that were left out are not listed.
    """
    snapshot = facts.snapshot
    sources = [source for source in snapshot.sources if source.num_documents > 0]
    files = [file for source in sources for file in spdx_files(snapshot, source)]
    return {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"sluice-{snapshot.snapshot_id[:12]}",
        "documentNamespace": f"urn:sha256:{snapshot.snapshot_id}",
        "creationInfo": {"created": f"{facts.when[:19]}Z", "creators": [f"Tool: sluice-{version('sluice')}"]},
        "documentDescribes": [_DATA],
        "packages": [
            _snapshot_package(facts),
            *(_source_package(source, facts.pins[source.name]) for source in sources),
        ],
        "files": files,
        "hasExtractedLicensingInfos": _extracted(facts),
        "relationships": [
            _relationship("SPDXRef-DOCUMENT", "DESCRIBES", _DATA),
            *(_relationship(_DATA, "GENERATED_FROM", _reference(source.name)) for source in sources),
            *(_relationship(_DATA, "GENERATED_FROM", file["SPDXID"]) for file in files),
        ],
    }


def _snapshot_package(facts: Facts) -> dict[str, Any]:
    return {
        "SPDXID": _DATA,
        "name": f"snapshot-{facts.snapshot.snapshot_id[:12]}",
        "versionInfo": facts.snapshot.snapshot_id,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": _conjunction(facts.snapshot.licenses),
        "licenseDeclared": "NOASSERTION",
        "copyrightText": "NOASSERTION",
        "primaryPackagePurpose": "OTHER",
    }


def _source_package(source: SnapshotSource, pin: dict[str, Any]) -> dict[str, Any]:
    origin = origin_of(pin)
    package: dict[str, Any] = {
        "SPDXID": _reference(source.name),
        "name": pin.get("project", source.name),
        "versionInfo": pin.get("version", pin["revision"]),
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": _conjunction(source.licenses),
        "licenseDeclared": pin["declared_license"] or "NOASSERTION",
        "copyrightText": "NOASSERTION",
        "sourceInfo": f"{origin.text}; {source.num_documents} documents, {source.num_text_bytes} bytes of text",
        "primaryPackagePurpose": "SOURCE",
    }
    if is_file(pin):
        package["checksums"] = [{"algorithm": "SHA256", "checksumValue": pin["revision"]}]
    if origin.purl:
        package["externalRefs"] = [
            {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": origin.purl}
        ]
    return package


def _extracted(facts: Facts) -> list[dict[str, str]]:
    """List the licenses of expressions that SPDX does not know, which the document must describe."""
    declared = (pin["declared_license"] for pin in facts.pins.values())
    found = {name for text in (*facts.snapshot.licenses, *declared) for name in _REFERENCE.findall(text)}
    return [
        {"licenseId": name, "name": name, "extractedText": "See the license files of the sources that name it."}
        for name in sorted(found)
    ]


def _conjunction(licenses: Mapping[str, int]) -> str:
    """Join all expressions with AND: each is the license of some of the documents."""
    texts = sorted(licenses)
    if not texts:
        return "NOASSERTION"
    return texts[0] if len(texts) == 1 else " AND ".join(f"({text})" if " " in text else text for text in texts)


def _relationship(element: str, kind: str, related: str) -> dict[str, str]:
    return {"spdxElementId": element, "relationshipType": kind, "relatedSpdxElement": related}


def _reference(source: str) -> str:
    return f"SPDXRef-Source-{source}"
