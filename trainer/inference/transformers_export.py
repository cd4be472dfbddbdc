"""Export of a checkpoint as a folder for `transformers`: safetensors, config.json, the tokenizer and one modeling file."""

import json
import shutil
from pathlib import Path
from typing import Any

from safetensors.torch import save_file

from pipeline.core.errors import TrainingError
from pipeline.store.store import Store
from trainer.checkpoint.initial_weights import CONFIG, TOKENIZER, WEIGHTS
from trainer.checkpoint.stored_state import open_stored, training_place
from trainer.inference.sampling import TrainedModel, open_trained

MODELING = "modeling_sluice.py"


def export_model(store: Store, checkpoint_id: str, folder: Path) -> dict[str, Any]:
    """Write the folder, completely or not at all, and return its files.

    Raises TrainingError if the path exists, or if the model has a part that the modeling file lacks.
    """
    if folder.exists():
        raise TrainingError(f"folder {folder}", "it exists already", "", "Name a new folder.")
    trained = open_trained(store, checkpoint_id)
    if trained.model.structure is not None:
        remedy = "Export a model without `structure`."
        raise TrainingError("model", "its structure embedding needs columns that text does not have", "", remedy)
    scratch = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    tensors = {name: tensor.contiguous() for name, tensor in sorted(trained.model.state_dict().items())}
    save_file(tensors, str(scratch / WEIGHTS), metadata={"format": "pt"})
    config = json.dumps(_config(trained, checkpoint_id), indent=2, sort_keys=True)
    (scratch / CONFIG).write_text(config + "\n", encoding="utf-8")
    shutil.copyfile(Path(__file__).with_name(MODELING), scratch / MODELING)
    shutil.copyfile(trained.snapshot.tokenizer_file, scratch / TOKENIZER)
    scratch.rename(folder)
    num_bytes = sum(path.stat().st_size for path in folder.iterdir())
    return {"folder": str(folder), "files": sorted(path.name for path in folder.iterdir()), "num_bytes": num_bytes}


def _config(trained: TrainedModel, checkpoint_id: str) -> dict[str, Any]:
    module = MODELING.removesuffix(".py")
    return {
        "architectures": ["SluiceForCausalLM"],
        "auto_map": {"AutoConfig": f"{module}.SluiceConfig", "AutoModelForCausalLM": f"{module}.SluiceForCausalLM"},
        "model_type": "sluice",
        "model": trained.config.model.model_dump(mode="json"),
        "vocab_size": trained.model.vocabulary_size,
        "max_position_embeddings": trained.max_tokens,
        "bos_token_id": trained.specials["<|bos|>"],
        "eos_token_id": trained.specials["<|eos|>"],
        "pad_token_id": trained.specials["<|pad|>"],
        "torch_dtype": "float32",
        "checkpoint_id": checkpoint_id,
        "snapshot_id": trained.snapshot.snapshot_id,
        "snapshots": sorted(set(training_place(open_stored(trained.snapshot.store, checkpoint_id)).snapshots.values())),
    }
