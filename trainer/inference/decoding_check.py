"""Decoding check: scores decoded token by token against those of the full pass.

python -m trainer.inference.decoding_check STORE CHECKPOINT_ID    prints one JSON value
"""

import json
import sys
from pathlib import Path

import torch

from pipeline.store.store import Store
from trainer.data.loader import LoaderConfig
from trainer.data.open_loader import open_loader
from trainer.inference.sampling import decoding_difference, open_trained


def decode_rows(root: str, checkpoint_id: str) -> int:
    """Compare scores decoded token by token with those of the full pass, in float64; rotary angles are float32."""
    trained = open_trained(Store(Path(root)), checkpoint_id)
    batch = open_loader(trained.snapshot, LoaderConfig()).batch_at(0, 2)
    ids, documents = (torch.from_numpy(array) for array in (batch.input_ids_BT, batch.doc_ids_BT))
    difference = decoding_difference(trained.model.double(), ids, documents)
    print(json.dumps({"difference": difference, "limit": 1e-6, "tokens": ids.numel()}))
    return 0


if __name__ == "__main__":
    sys.exit(decode_rows(*sys.argv[1:]))
