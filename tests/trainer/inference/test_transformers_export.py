"""The exported modeling file, alone and through transformers, scores as the model that was trained."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from pipeline.stages.tokenize.vocabulary import VOCABULARIES, load_vocabulary
from trainer.config.model import AttentionConfig, BlockKind, EngramConfig
from trainer.inference.sampling import SamplingOptions, TrainedModel, sample_tokens
from trainer.inference.transformers_export import export_trained
from trainer.model.hybrid import HybridModel
from trainer.model.initialization import ParameterKind, parameter_specs

FILE = Path("trainer/inference/modeling_sluice.py")
VOCABULARY = 60
EVERY_BLOCK = "AEMRA" + "".join(sorted(set(BlockKind) - set("AEMR")))
"""Pattern with a layer of each kind: one that the file does not know ends in a KeyError where the folder is loaded."""


def standalone():
    """The file as a module of its own, as a user's process loads it."""
    spec = importlib.util.spec_from_file_location("modeling_alone", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


ENGRAM = EngramConfig(layers=(0, 4), num_heads=2, head_size=4, min_table_rows=50, hash_vocabulary_size=20)
ATTENTION = AttentionConfig(num_query_heads=4, num_key_value_heads=2, head_size=4, engram=ENGRAM)


def copy_of(ours: HybridModel) -> nn.Module:
    """The model of the file, with the same weights."""
    module = standalone()
    theirs = module.SluiceForCausalLM(module.SluiceConfig(ours.config.model_dump(mode="json"), VOCABULARY))
    theirs.load_state_dict(ours.state_dict(), strict=True)
    return theirs.to(ours.embedding_VD.dtype)


@pytest.mark.parametrize(
    "changes", [{}, {"is_head_tied": False}, {"attention": ATTENTION}, {"embedding_multiplier": 50.0}]
)
def test_the_file_alone_scores_as_the_model_does_padding_on_either_side(config_of, shaken, changes) -> None:
    ours = shaken(HybridModel(config_of(EVERY_BLOCK).model_copy(update=changes), VOCABULARY)).double().eval()
    theirs = copy_of(ours)
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


def test_what_a_cache_carries_continues_as_the_whole_text_does(config_of, shaken) -> None:
    """Calls of any number of tokens, after padding on the left, and in a second document after padding."""
    model = copy_of(shaken(HybridModel(config_of("AEMRA"), VOCABULARY)).double())
    ids_BT = torch.randint(0, VOCABULARY, (3, 21), generator=torch.Generator().manual_seed(0))
    mask_BT = torch.tensor([[1] * 21, [0] * 4 + [1] * 17, [1] * 3 + [0] * 4 + [1] * 14])

    with torch.no_grad():
        expected = model(ids_BT, attention_mask=mask_BT, use_cache=False)
        found, cache = [], None
        for start, end in ((0, 6), (6, 7), (7, 8), (8, 13), (13, 21)):
            part = model(ids_BT[:, start:end], attention_mask=mask_BT[:, :end], past_key_values=cache, use_cache=True)
            found.append(part.logits)
            cache = part.past_key_values

    torch.testing.assert_close(torch.cat(found, 1), expected.logits, rtol=1e-9, atol=1e-9)
    assert cache.get_seq_length() == 21
    assert expected.past_key_values is None


def test_phases_of_a_long_text_keep_their_digits(config_of, shaken) -> None:
    model = copy_of(shaken(HybridModel(config_of("M"), VOCABULARY)))
    model.layers[0].block.step_bias_H.data.fill_(3.0)
    ids_BT = torch.randint(0, VOCABULARY, (1, 1500), generator=torch.Generator().manual_seed(0))

    with torch.no_grad():
        short, long = model(ids_BT).logits, model.double()(ids_BT).logits

    assert float((short - long).abs().max() / long.abs().max()) < 2e-5


def test_a_model_that_was_narrowed_as_a_whole_continues_in_bfloat16(config_of, shaken) -> None:
    model = copy_of(shaken(HybridModel(config_of("AEMRA"), VOCABULARY)))
    ids_BT = torch.randint(0, VOCABULARY, (1, 9), generator=torch.Generator().manual_seed(0))

    with torch.no_grad():
        expected, found = model(ids_BT).logits, model.to(torch.bfloat16)(ids_BT).logits

    assert found.dtype == torch.bfloat16
    assert float((found - expected).abs().max() / expected.abs().max()) < 0.1


def test_a_cache_of_another_class_and_arguments_that_are_not_read_are_refused(config_of, shaken) -> None:
    model = copy_of(shaken(HybridModel(config_of("AM"), VOCABULARY)))
    ids_BT = torch.zeros(1, 3, dtype=torch.long)

    with pytest.raises(TypeError, match="past_key_values is a dict; expected the SluiceCache"):
        model(ids_BT, past_key_values={"keys": 1})
    for given in ("given", torch.zeros(1, 3), torch.zeros(1)):
        with pytest.raises(TypeError, match="inputs_embeds: this model does not read it"):
            model(ids_BT, inputs_embeds=given)
    assert model(ids_BT, output_attentions=False, inputs_embeds=None).logits.shape == (1, 3, VOCABULARY)
    with pytest.raises(ValueError, match=r"attention_mask is \(1, 2\) for 3 tokens after 0; expected \(1, 3\)"):
        model(ids_BT, attention_mask=torch.ones(1, 2))


def exported(model: HybridModel, folder: Path) -> TrainedModel:
    """Export a model with the smallest vocabulary's tokenizer, as from a checkpoint."""
    vocabulary = load_vocabulary("tiny-1024")
    tokenizer_file = VOCABULARIES / vocabulary.name / "tokenizer.json"
    snapshot = SimpleNamespace(
        vocabulary=vocabulary.as_json(), tokenizer_file=tokenizer_file, row_length=256, snapshot_id="0" * 64
    )
    trained = TrainedModel(model.eval(), snapshot, SimpleNamespace(model=model.config))
    export_trained(trained, "1" * 64, ["0" * 64], folder)
    return trained


def test_an_exported_folder_names_its_tokens_and_how_to_generate(config_of, shaken, tmp_path: Path) -> None:
    exported(shaken(HybridModel(config_of("AE"), 1024)), tmp_path / "model")

    generation = json.loads((tmp_path / "model" / "generation_config.json").read_text())
    tokenizer = json.loads((tmp_path / "model" / "tokenizer_config.json").read_text())
    assert (generation["bos_token_id"], generation["eos_token_id"], generation["pad_token_id"]) == (1, 2, 0)
    assert generation["suppress_tokens"] == [0, 1, *range(3, 16)]
    assert (tokenizer["bos_token"], tokenizer["eos_token"], tokenizer["pad_token"]) == ("<|bos|>", "<|eos|>", "<|pad|>")


def test_transformers_load_a_folder_and_score_and_generate_as_we_do(config_of, shaken, tmp_path: Path) -> None:
    """With the cache, which is the default, without it, in a padded batch, by a beam search that reorders it, and in two calls."""
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    trained = exported(shaken(HybridModel(config_of("AEMRA"), 1024)), tmp_path / "model")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "model")
    theirs = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "model", trust_remote_code=True).eval()
    texts = ["int main() {", "<|eos|> if"]
    prompts = [tokenizer(text)["input_ids"] for text in texts]
    ours = [
        [*ids, *sample_tokens(trained.model, ids, SamplingOptions(24, temperature=0.0), 0, trained.specials).token_ids]
        for ids in prompts
    ]
    padded = tokenizer(texts, padding=True, return_tensors="pt")

    for prompt, expected in zip(prompts, ours, strict=True):
        assert prompt[0] == 1
        assert 2 not in prompt
        assert tokenizer.decode(prompt[1:]) in texts
        for use_cache in (True, False):
            written = theirs.generate(torch.tensor([prompt]), max_new_tokens=24, use_cache=use_cache)
            assert written[0, : len(expected)].tolist() == expected
    together = theirs.generate(**padded, max_new_tokens=24)
    beams = [theirs.generate(**padded, max_new_tokens=6, num_beams=3, use_cache=cached) for cached in (True, False)]
    begun = theirs.generate(torch.tensor([prompts[0]]), max_new_tokens=9, return_dict_in_generate=True)
    continued = theirs.generate(begun.sequences, max_new_tokens=15, past_key_values=begun.past_key_values)
    with torch.no_grad():
        loss = theirs(torch.tensor([prompts[0]]), labels=torch.tensor([prompts[0]])).loss

    for row, expected in zip(together.tolist(), ours, strict=True):
        assert [id_ for id_ in row if id_ not in (0, 2)][: len(expected)] == expected
    assert torch.equal(*beams)
    assert continued[0, : len(ours[0])].tolist() == ours[0]
    assert loss.isfinite()
    with pytest.raises(TypeError, match="past_key_values is a DynamicCache; expected the SluiceCache"):
        theirs.generate(torch.tensor([prompts[0]]), max_new_tokens=2, past_key_values=transformers.DynamicCache())


def test_in_bfloat16_what_is_float32_in_training_stays_float32(config_of, shaken, tmp_path: Path) -> None:
    """Decays, phases, softplus and router: the distance from float32 is that of the trainer in bfloat16."""
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    ours = exported(shaken(HybridModel(config_of("AEMR" * 2), 1024)), tmp_path / "model").model
    theirs = transformers.AutoModelForCausalLM.from_pretrained(
        tmp_path / "model", trust_remote_code=True, torch_dtype=torch.bfloat16
    ).eval()
    ids_BT = torch.randint(3, 1024, (2, 200), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        exact_BTV = ours.logits(ours(ids_BT, torch.ones_like(ids_BT)))
        found_BTV = theirs(ids_BT).logits
        ours.dtype = torch.bfloat16
        rounded_BTV = ours.logits(ours(ids_BT, torch.ones_like(ids_BT)))
    kinds = {name: spec.kind for name, _, spec in parameter_specs(ours)}
    kept = {name for name, tensor in theirs.state_dict().items() if tensor.dtype == torch.float32}

    wanted = {name for name, kind in kinds.items() if kind in (ParameterKind.CHANNEL, ParameterKind.ROUTER)}
    assert kept == wanted | {name for name in theirs.state_dict() if name.endswith("selection_bias_E")}
    own, its = ((each.float() - exact_BTV).square().mean().sqrt() for each in (rounded_BTV, found_BTV))
    assert its < 2 * own
