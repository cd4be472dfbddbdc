"""The exported modeling file, alone and through transformers, scores as the model that was trained."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from trainer.model.hybrid import HybridModel

FILE = Path("trainer/inference/modeling_sluice.py")
VOCABULARY = 60


def standalone():
    """The file as a module of its own, as a user's process loads it."""
    spec = importlib.util.spec_from_file_location("modeling_alone", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("changes", [{}, {"is_head_tied": False}])
def test_the_file_alone_scores_as_the_model_does_padding_on_either_side(config_of, shaken, changes) -> None:
    config = config_of("AEMRA").model_copy(update=changes)
    ours, module = shaken(HybridModel(config, VOCABULARY)).double().eval(), standalone()
    theirs = module.SluiceForCausalLM(module.SluiceConfig(config.model_dump(mode="json"), VOCABULARY)).double()
    theirs.load_state_dict(ours.state_dict(), strict=True)
    ids_BT = torch.randint(0, VOCABULARY, (3, 21), generator=torch.Generator().manual_seed(0))
    doc_ids_BT = torch.tensor([[1] * 21, [-1] * 4 + [1] * 17, [1] * 15 + [-1] * 6])

    expected_BTV = ours.logits(ours(ids_BT, doc_ids_BT))
    found = theirs(ids_BT, attention_mask=doc_ids_BT > 0, labels=ids_BT)

    is_token_BT = doc_ids_BT > 0
    torch.testing.assert_close(found.logits[is_token_BT], expected_BTV[is_token_BT], rtol=1e-6, atol=1e-6)
    assert found.loss.isfinite()


def test_the_file_imports_nothing_of_ours() -> None:
    code = f"import sys, runpy; runpy.run_path({str(FILE)!r}); "
    code += "print([name for name in sys.modules if name.split('.')[0] in ('trainer', 'pipeline', 'kernels')])"
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


def test_transformers_load_a_folder_and_score_and_generate_as_we_do(config_of, shaken, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    from safetensors.torch import save_file

    ours = shaken(HybridModel(config_of("AEMR"), VOCABULARY)).eval()
    config = {
        "model_type": "sluice",
        "auto_map": {
            "AutoConfig": "modeling_sluice.SluiceConfig",
            "AutoModelForCausalLM": "modeling_sluice.SluiceForCausalLM",
        },
        "model": ours.config.model_dump(mode="json"),
        "vocab_size": VOCABULARY,
        "architectures": ["SluiceForCausalLM"],
        "eos_token_id": 2,
        "pad_token_id": 0,
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    save_file(ours.state_dict(), str(tmp_path / "model.safetensors"), metadata={"format": "pt"})
    (tmp_path / FILE.name).write_bytes(FILE.read_bytes())

    theirs = transformers.AutoModelForCausalLM.from_pretrained(tmp_path, trust_remote_code=True).eval()
    ids_BT = torch.randint(3, VOCABULARY, (2, 9), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        found, expected = theirs(ids_BT).logits, ours.logits(ours(ids_BT, torch.ones_like(ids_BT)))
        written = theirs.generate(ids_BT[:1], max_new_tokens=4, do_sample=False)

    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    assert written.shape[1] <= 13
