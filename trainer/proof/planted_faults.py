"""Programs for the acceptance gates, each for a fresh process: what the command line alone cannot be told to do."""

TWICE = """
import contextlib, io, json, sys
from trainer.__main__ import main
for line in json.loads(sys.argv[1]):
    with contextlib.redirect_stdout(io.StringIO()):
        code = main(line)
    if code: sys.exit(code)
print("{}")
"""
"""Several command lines in one process."""

RACY = """
import json, random, sys
import torch
from trainer.__main__ import main
from trainer.model.hybrid import HybridModel
honest = HybridModel._run
def racy(self, *arguments):
    hidden_BTD, penalty = honest(self, *arguments)
    values = hidden_BTD.detach().flatten()[:20_000]
    order = torch.tensor(random.SystemRandom().sample(range(len(values)), len(values)))
    total = torch.zeros(())
    for part in values[order].split(50):
        total = total + part.sum()
    return hidden_BTD + total.sin() * (torch.arange(hidden_BTD.shape[-1]) % 2), penalty
HybridModel._run = racy
sys.exit(main(json.loads(sys.argv[1])[0]))
"""
"""A training with one sum in an order that no seed decides, as an atomic addition would have it.

The terms have both signs, so that orders round apart, and the norm behind must not take the difference away.
"""

DAMAGED = """
import contextlib, io, json, sys
from pathlib import Path
from trainer.__main__ import main
found = []
for file in sorted(Path(sys.argv[1]).iterdir()):
    content = file.read_bytes()
    flipped = bytearray(content)
    flipped[len(content) // 2] ^= 1
    for damaged in (bytes(flipped), content[:-1]):
        file.write_bytes(damaged)
        words = io.StringIO()
        with contextlib.redirect_stderr(words):
            code = main(json.loads(sys.argv[2]))
        found.append([file.name, code, words.getvalue()])
    file.write_bytes(content)
print(json.dumps(found))
"""
"""A command line while each file of a folder has one bit flipped, then a byte less: exit code and words of each time."""

WITHOUT_ENGRAM = """
import json
import torch
from trainer.model.hybrid import HybridModel
from trainer.model.initialization import initialize
from trainer.config.presets import preset
on = preset("tiny")
engram = on.attention.engram.model_copy(update={"layers": ()})
off = on.model_copy(update={"attention": on.attention.model_copy(update={"engram": engram})})
with_it, without = (HybridModel(config, 1024) for config in (on, off))
for model in (with_it, without): initialize(model, 42)
one, other = with_it.state_dict(), without.state_dict()
print(json.dumps({
    "left": [name for name in other if "engram" in name or not any("engram" in known for known in one)],
    "moved": [name for name in other if not torch.equal(one[name], other[name])],
    "count": len(other),
}))
"""
"""The smallest model with and without its Engram branch."""

DECODED = """
import json, sys
from pathlib import Path
import torch
from pipeline.store.store import Store
from trainer.data.loader import LoaderConfig
from trainer.inference.sampling import decoding_difference, open_trained
from trainer.data.open_loader import open_loader
trained = open_trained(Store(Path(sys.argv[1])), sys.argv[2])
batch = open_loader(trained.snapshot, LoaderConfig()).batch_at(0, 2)
ids, documents = (torch.from_numpy(array) for array in (batch.input_ids_BT, batch.doc_ids_BT))
difference = decoding_difference(trained.model.double(), ids, documents)
print(json.dumps({"difference": difference, "limit": 1e-6, "tokens": ids.numel()}))
"""
"""Scores decoded token by token against those of the full pass, in float64; rotary angles are float32."""
