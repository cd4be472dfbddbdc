"""Export of a checkpoint as a folder for `transformers`: safetensors, its configurations, the tokenizer and one modeling file."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from safetensors.torch import save_file

from pipeline.core.errors import TrainingError
from pipeline.store.store import Store
from trainer.checkpoint.initial_weights import CONFIG, TOKENIZER, WEIGHTS
from trainer.checkpoint.stored_state import open_stored, training_place
from trainer.checkpoint.tensor_files import digest_tensors
from trainer.inference.sampling import TrainedModel, open_trained

MODELING = "modeling_sluice.py"


def export_model(store: Store, checkpoint_id: str, folder: Path) -> dict[str, Any]:
    """Write the folder, completely or not at all, and return its files.

    Raises TrainingError if the path exists, or if the model has a part that the modeling file lacks.
    """
    if folder.exists():
        raise TrainingError(f"folder {folder}", "it exists already", "", "Name a new folder.")
    snapshots = sorted(set(training_place(open_stored(store, checkpoint_id)).snapshots.values()))
    return export_trained(open_trained(store, checkpoint_id), checkpoint_id, snapshots, folder)


def export_trained(trained: TrainedModel, checkpoint_id: str, snapshots: Sequence[str], folder: Path) -> dict[str, Any]:
    """Write the folder of a model that is loaded and was shaped by these snapshots; see `export_model`."""
    if trained.model.structure is not None:
        remedy = "Export a model without `structure`."
        raise TrainingError("model", "its structure embedding needs columns that text does not have", "", remedy)
    scratch = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    tensors = {name: tensor.contiguous() for name, tensor in sorted(trained.model.state_dict().items())}
    save_file(tensors, str(scratch / WEIGHTS), metadata={"format": "pt"})
    described = {
        CONFIG: _config(trained, checkpoint_id)
        | {"snapshots": list(snapshots), "parameters_sha256": digest_tensors(tensors)},
        "generation_config.json": _generation_config(trained),
        "tokenizer_config.json": _tokenizer_config(trained),
        TOKENIZER: _tokenizer(trained),
    }
    for name, values in described.items():
        text = json.dumps(values, indent=2, sort_keys=name != TOKENIZER, ensure_ascii=False)
        (scratch / name).write_text(text + "\n", encoding="utf-8")
    shutil.copyfile(Path(__file__).with_name(MODELING), scratch / MODELING)
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
        **_ending_ids(trained),
        "torch_dtype": "float32",
        "checkpoint_id": checkpoint_id,
        "snapshot_id": trained.snapshot.snapshot_id,
    }


def _generation_config(trained: TrainedModel) -> dict[str, Any]:
    """Return the defaults of `generate`: the likeliest token each time, and no special token but EOS, as in our decoding."""
    return {
        **_ending_ids(trained),
        "do_sample": False,
        "max_length": trained.max_tokens,
        "suppress_tokens": sorted(id_ for name, id_ in trained.specials.items() if name != "<|eos|>"),
        "use_cache": True,
    }


def _tokenizer_config(trained: TrainedModel) -> dict[str, Any]:
    """Return the settings of the tokenizer: the spelling of a special token in a text is text."""
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": "<|bos|>",
        "eos_token": "<|eos|>",
        "pad_token": "<|pad|>",
        "split_special_tokens": True,
        "clean_up_tokenization_spaces": False,
        "padding_side": "left",
        "model_max_length": trained.max_tokens,
        "model_input_names": ["input_ids", "attention_mask"],
    }


def _tokenizer(trained: TrainedModel) -> dict[str, Any]:
    """Return the snapshot's tokenizer with BOS before a text, as each document of a training begins."""
    bos: dict[str, Any] = {"id": "<|bos|>", "ids": [trained.specials["<|bos|>"]], "tokens": ["<|bos|>"]}
    single = [{"SpecialToken": {"id": "<|bos|>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
    pair = [*single, {"Sequence": {"id": "B", "type_id": 0}}]
    first = {"type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": {"<|bos|>": bos}}
    tokenizer: dict[str, Any] = json.loads(Path(trained.snapshot.tokenizer_file).read_text(encoding="utf-8"))
    return tokenizer | {"post_processor": first}


def _ending_ids(trained: TrainedModel) -> dict[str, int]:
    return {f"{name}_token_id": trained.specials[f"<|{name}|>"] for name in ("bos", "eos", "pad")}
