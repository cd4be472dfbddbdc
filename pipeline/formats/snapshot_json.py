"""Names and version of the snapshot object: `pipeline.stages.verify.compose` writes it, `pipeline.store.snapshot` reads it."""

SNAPSHOT_KIND = "snapshot/snapshot"
SNAPSHOT_FILE = "snapshot.json"
SNAPSHOT_FORMAT = 2
"""Format of snapshot.json, apart from that of manifests and from the versions of the stages."""
SNAPSHOT_ROWS = "rows/"
"""Beginning of the labels under which a snapshot's manifest names the rows of its sources."""
