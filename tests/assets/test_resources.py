"""Resources: the store that the environment names, and errors of a user as failures without retries."""

import errno
import re
from pathlib import Path
from types import SimpleNamespace

import dagster as dg
import pytest

from assets.definitions import definitions, defs
from assets.instance import cause_of_failure
from assets.resources import BuildResource, StoreResource, build_resource, declared_corpora, refusal_of, refusals
from pipeline.build.build import BuildRequest, open_build
from pipeline.build.recipes import RECIPES, ROOT, TINY, corpus_recipe, pins_of
from pipeline.build.run_stage import BuildCallback
from pipeline.core.errors import LockedError, ParamsError, PinError
from pipeline.pins.corpora import Corpus, load_corpora
from pipeline.stages.stages import STAGES
from pipeline.store.store import Store


def test_the_store_is_the_one_that_the_environment_names(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert StoreResource().open().root == root
    monkeypatch.delenv("SLUICE_STORE")
    assert StoreResource().open().root == ROOT / "store"
    monkeypatch.setenv("SLUICE_STORE", "")
    assert StoreResource().open().root == ROOT / "store"


def test_an_error_of_a_user_is_a_failure_without_retries_and_a_defect_one_that_says_where() -> None:
    with pytest.raises(dg.Failure) as caught, refusals("tiny", "stage verify"):
        raise ParamsError("row_length", "3", "at least 16", "Correct it.")
    assert caught.value.allow_retries is False
    assert caught.value.description == "ParamsError: row_length: 3; expected at least 16. Correct it."
    with pytest.raises(dg.Failure) as caught, refusals("tiny", "stage verify"):
        raise OSError(errno.ENOSPC, "Error writing bytes to file. Detail: [errno 28] No space left on device")
    assert caught.value.description is not None
    assert caught.value.description.startswith("OSError: the store ")
    assert ": No space left on device; expected free space. Free some " in caught.value.description
    with pytest.raises(dg.Failure, match="MemoryError: out of memory"), refusals("tiny", "stage verify"):
        raise MemoryError
    found = (
        r"^stage verify of corpus tiny raised KeyError: 'id' \(test_resources\.py:\d+\)\. Nothing .* Report it with "
    )
    with pytest.raises(dg.Failure, match=found) as caught, refusals("tiny", "stage verify"):
        raise KeyError("id")
    assert isinstance(caught.value.__cause__, KeyError)
    with pytest.raises(dg.RetryRequested), refusals("tiny", "training"):
        raise dg.RetryRequested(max_retries=1)


@pytest.mark.parametrize(
    ("job", "step", "broken"),
    [
        ("build_tiny", "stage collect of corpus tiny", "assets.resources.open_build"),
        ("build_tiny", "stage collect of corpus tiny", "assets.resources.BuildResource._refuse_empty_fields"),
        ("build_tiny", "stage collect of corpus tiny", "assets.stage_assets._metadata"),
        ("build_tiny", "the start of the run", "assets.resources.sweep"),
        ("promote_tiny", "promotion of corpus tiny", "assets.live_snapshot.tag_corpus"),
        ("promote_tiny", "promotion of corpus tiny", "assets.live_snapshot.table"),
        ("promote_tiny", "the start of the run", "assets.resources.mark_worker"),
        ("train_tiny", "training of corpus tiny", "assets.training.command_of"),
        ("train_tiny", "training of corpus tiny", "assets.training.training_metadata"),
    ],
)
def test_a_defect_anywhere_in_a_step_is_told_with_the_step_and_what_to_do(
    job: str, step: str, broken: str, in_memory: dg.DagsterInstance, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def break_it(*given: object, **named: object) -> None:
        raise TypeError("planted")

    made = SimpleNamespace(object_id="0" * 64)
    monkeypatch.setattr("assets.resources.run_stage", lambda *given: made)
    monkeypatch.setattr("assets.resources.chain_params", lambda *given: {})
    monkeypatch.setattr("assets.stage_assets._log_failures", lambda *given: None)
    monkeypatch.setattr("assets.training.run_trainer", lambda *given: {"checkpoint_id": "0"})
    for name in ("refuse_foreign", "candidate_of_before", "live_metadata"):
        monkeypatch.setattr(f"assets.live_snapshot.{name}", lambda *given: {})
    promoted = SimpleNamespace(new="0" * 64, is_logged=True, verdicts=(), other_limits=(made,))
    monkeypatch.setattr("assets.live_snapshot.promote", lambda *given, **named: promoted)
    monkeypatch.setattr(made, "_asdict", dict, raising=False)
    monkeypatch.setattr(broken, break_it)
    done = defs.resolve_job_def(job).execute_in_process(instance=in_memory, raise_on_error=False)
    failed = next(event for event in done.all_events if event.is_failure)
    words = cause_of_failure(failed.event_specific_data)

    assert re.fullmatch(
        rf"{step} raised TypeError: planted \(test_resources\.py:\d+\)\. .*\. Report it with .* in the log of the run\.",
        words,
    ), words


def test_a_build_exists_only_inside_a_run() -> None:
    with pytest.raises(RuntimeError, match="only inside a run"):
        _ = BuildResource(recipe="tiny", pins="", decisions="").build


def test_a_field_that_a_launch_leaves_out_is_the_declared_one(in_memory: dg.DagsterInstance, root: Path) -> None:
    mine = Corpus(name="mine", recipe="quick", pins=root / "mine.toml", decisions=root / "mine-decisions.toml")

    @dg.op(required_resource_keys={"build_mine"})
    def look(context: dg.OpExecutionContext) -> list[str]:
        found = context.resources.build_mine
        return [found.recipe_name, found.pins, found.decisions, str(found.workers)]

    @dg.job(resource_defs={"build_mine": build_resource(mine)})
    def ask() -> None:
        look()

    declared = [str(mine.pins), str(mine.decisions)]
    for given, expected in [
        ({"workers": 1}, ["quick", *declared, "1"]),
        ({"recipe": "tiny"}, ["tiny", *declared, "2"]),
        ({"pins": ""}, ["quick", "", declared[1], "2"]),
        ({"set": ["tokenize.row_length=64"]}, ["quick", *declared, "2"]),
    ]:
        config = {"resources": {"build_mine": {"config": given}}}
        done = ask.execute_in_process(instance=in_memory, run_config=config)
        assert done.output_for_node("look") == expected


def test_a_corpus_is_locked_until_the_last_stage_of_a_run_and_not_while_the_run_trains(
    in_memory: dg.DagsterInstance, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assets.resources.run_stage", lambda *given: SimpleNamespace(object_id="0" * 64))
    monkeypatch.setattr("assets.resources.chain_params", lambda *given: {})
    other = BuildRequest("mine", TINY.params, pins_of(TINY), "another build", wait_seconds=0)

    @dg.op(required_resource_keys={"build_mine"})
    def make(context: dg.OpExecutionContext) -> list[bool]:
        build = context.resources.build_mine
        found = []
        for name in STAGES.names:
            build.run(name, {}, print)
            found.append(is_locked())
            build.unlock_after(name)
        return [*found, is_locked()]

    def is_locked() -> bool:
        try:
            with open_build(other, Store(root)):
                return False
        except LockedError:
            return True

    @dg.job(resource_defs={"build_mine": build_resource(Corpus(name="mine", recipe="tiny"))})
    def train_after_it() -> None:
        make()

    found = train_after_it.execute_in_process(instance=in_memory).output_for_node("make")
    assert found == [True] * len(STAGES.names) + [False]


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (
            'recipe = "tiny"\nset.tokenize.row_lenght = 64',
            "set: tokenize.row_lenght: there is no such field.*row_length?",
        ),
        ('recipe = "tiny"\nset.normalize.filters.max_num_bytes = -4', "set: normalize.filters.max_num_bytes: it is -4"),
        ('recipe = "min.toml"', r"recipe: .*min.toml: there is no such file.*Did you mean mine.toml\?"),
        (
            'recipe = "mine.toml"',
            "recipe: .*mine.toml: tokenize.row_length: it is 1; expected a whole number, at least",
        ),
        (
            'recipe = "tiny"\ntraining.set.optimizer.weight_decai = 0.1',
            r"training.set: optimizer.weight_decai: there is no such field.*Did you mean optimizer.weight_decay\?",
        ),
        ('recipe = "tiny"\ntraining.recipe = "smal"', r"training.recipe: .*Did you mean small\?"),
        ('recipe = "tiny"\ntraining.recipe = "none.toml"', "training.recipe: .*none.toml: there is no such file"),
    ],
)
def test_a_corpus_whose_recipe_cannot_be_used_is_refused_at_load(
    entry: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.toml").write_text('base = "tiny"\n[tokenize]\nrow_length = 1\n')
    (tmp_path / "corpora.toml").write_text(f'[[corpus]]\nname = "mine"\n{entry}\n')
    monkeypatch.setenv("SLUICE_CORPORA", str(tmp_path / "corpora.toml"))

    with pytest.raises(ParamsError, match=f"corpora.toml: mine: {words}"):
        declared_corpora()


def test_a_run_whose_process_was_told_to_end_says_so() -> None:
    error = SimpleNamespace(cls_name="DagsterExecutionInterruptedError", cause=None, message="dagster._core.errors")
    assert cause_of_failure(SimpleNamespace(error=error)).startswith(
        "The process of the run was told to end, as by a machine"
    )


def test_the_words_of_an_error_begin_with_its_class_and_not_with_modules() -> None:
    words = "pipeline.core.errors.PinError: pins.toml: line 1; expected a pin. See a.b.c: d."
    error = SimpleNamespace(cls_name="PinError", cause=None, message=words)

    assert cause_of_failure(SimpleNamespace(error=error)) == words.removeprefix("pipeline.core.errors.")


def test_a_declared_engine_is_that_of_launches_and_an_unknown_one_is_refused_at_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = build_resource(Corpus(name="mine", recipe="tiny", engine="ray", address="10.0.0.1:6379"))
    assert (made.engine, made.address) == ("ray", "10.0.0.1:6379")

    (tmp_path / "corpora.toml").write_text('[[corpus]]\nname = "mine"\nrecipe = "tiny"\nengine = "rai"\n')
    monkeypatch.setenv("SLUICE_CORPORA", str(tmp_path / "corpora.toml"))
    with pytest.raises(PinError, match="engine is 'rai'; expected one of local, ray"):
        declared_corpora()


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ('held_out.globs = ["**"]', "held_out: the rule holds out all sources: "),
        ('held_out.sources = ["lantrn"]', "held_out.sources: no pin is named lantrn; .*Did you mean lantern"),
        ('held_out.globs = ["apps/**"]', "held_out.globs: 'apps/\\*\\*' is of no pin"),
        ("tokenize.row_length = 64", ""),
    ],
)
def test_a_rule_with_which_no_build_can_begin_is_told_at_load_and_takes_no_other_corpus_away(
    rule: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    entries = '[[corpus]]\nname = "mine"\nrecipe = "tiny"\n[corpus.set]\n' + rule
    entries += '\n[[corpus]]\nname = "unread"\nrecipe = "tiny"\npins = "none.toml"\n'
    entries += '[[corpus]]\nname = "other"\nrecipe = "tiny"\n'
    (tmp_path / "corpora.toml").write_text(entries)
    monkeypatch.setenv("SLUICE_CORPORA", str(tmp_path / "corpora.toml"))
    loaded = definitions(BuildCallback(), declared_corpora())
    specs = {spec.key.to_user_string(): spec for spec in loaded.resolve_all_asset_specs()}

    told = [line.getMessage() for line in caplog.records if line.name == "assets.definitions"]
    assert len(told) == 1 + bool(words)
    assert any("unread: pins is" in text for text in told)
    for stage in STAGES.names:
        mine, other = (specs[f"{name}/{stage}"].description or "" for name in ("mine", "other"))
        assert specs[f"unread/{stage}"].description
        assert mine.endswith(other.replace("--corpus other", "--corpus mine"))
        for text in [mine, *(each for each in told if "unread" not in each)] if words else []:
            assert re.search(f"o build of (this corpus|it) can begin: .*corpora.toml: mine: {words}", text)


@pytest.mark.parametrize("line", ["99 99 * * *", "0 3 31 2 *-", "0 3 * * 9", "*/0 * * * *"])
def test_a_time_of_a_corpus_that_is_none_is_refused_in_a_sentence(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "corpora.toml").write_text(f'[[corpus]]\nname = "mine"\nrecipe = "tiny"\nnightly = "{line}"\n')
    monkeypatch.setenv("SLUICE_CORPORA", str(tmp_path / "corpora.toml"))

    with pytest.raises(
        PinError, match=rf"corpora.toml: mine: nightly is '{re.escape(line)}'; expected minute hour day"
    ):
        declared_corpora()


@pytest.mark.parametrize(
    ("entry", "found"),
    [
        ('pins = "none.toml"', r"mine: pins is '.*/none\.toml', and there is no such file; expected an existing"),
        ('pins = ""', "mine: pins is '.*', and there is no such file"),
        ('pins = "empty.toml"', r"mine: .*/empty\.toml: "),
        ('decisions = "none.toml"', r"mine: decisions is '.*/none\.toml', and there is no such file"),
    ],
)
def test_a_corpus_without_its_files_is_told_when_definitions_load(entry: str, found: str, tmp_path: Path) -> None:
    (tmp_path / "empty.toml").write_text("")
    (tmp_path / "corpora.toml").write_text(f'[[corpus]]\nname = "mine"\nrecipe = "tiny"\n{entry}\n')
    (corpus,) = load_corpora(tmp_path / "corpora.toml", RECIPES.names)

    assert re.search(found, refusal_of(corpus))


def test_a_corpus_with_the_name_of_training_runs_is_refused_when_definitions_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "corpora.toml").write_text('[[corpus]]\nrecipe = "tiny"\nname = "runs"\n')
    monkeypatch.setenv("SLUICE_CORPORA", str(tmp_path / "corpora.toml"))

    with pytest.raises(PinError, match="runs: it is reserved for training runs; expected up to 100 letters"):
        declared_corpora()


def test_the_launchpad_of_a_declared_corpus_opens_with_its_recipe_and_what_it_sets(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('base = "tiny"\n[tokenize]\nrow_length = 64\n')
    (tmp_path / "corpora.toml").write_text(
        '[[corpus]]\nname = "mine"\nrecipe = "mine.toml"\npins = "pins.toml"\n[corpus.set]\nheld_out = ["b"]\n'
        'normalize.decontamination.items_folder = "items"\n'
    )
    (mine,) = load_corpora(tmp_path / "corpora.toml", RECIPES.names)
    asked = build_resource(mine).asked()

    assert asked == corpus_recipe(mine)
    assert (asked.pins, asked.params.tokenize.row_length) == (tmp_path / "pins.toml", 64)
    assert asked.params.normalize.decontamination.items_folder == str(tmp_path / "items")
    texts = ["held_out.globs=['a/**']", "tokenize.row_length=32"]
    launched = build_resource(mine).model_copy(update={"set": texts}).asked()
    assert launched.params.normalize == asked.params.normalize, "what a launch does not set stays as it is declared"
    assert launched.params.held_out == asked.params.held_out.model_copy(update={"globs": ("a/**",)})
    assert launched.params.tokenize.row_length == 32
    other = BuildResource(recipe="quick", recipe_file=str(tmp_path / "mine.toml"), pins="", decisions="").asked()
    assert other.params.tokenize.row_length == 64


@pytest.mark.parametrize("field", [*BuildResource.model_fields])
def test_a_field_of_a_launch_that_is_left_empty_is_refused_in_a_sentence(
    field: str, in_memory: dg.DagsterInstance, root: Path
) -> None:
    said = _failure_of({field: None}, in_memory)
    words = f"ParamsError: field {field} of the launchpad's resource build_mine: it is null; expected "
    assert said.startswith(words)
    assert said.endswith("Correct the field and launch again.")


def test_an_engine_without_a_name_is_found_as_such(in_memory: dg.DagsterInstance, root: Path) -> None:
    assert "build_mine: it is ''; expected one of local, ray" in _failure_of({"engine": ""}, in_memory)


def _failure_of(given: dict[str, object], instance: dg.DagsterInstance) -> str:
    """Return the words of the failed step of a run that asks for its build."""

    @dg.op(required_resource_keys={"build_mine"})
    def ask(context: dg.OpExecutionContext) -> None:
        with refusals("mine", "stage collect"):
            _ = context.resources.build_mine.build

    @dg.job(resource_defs={"build_mine": build_resource(Corpus(name="mine", recipe="tiny"))})
    def asking() -> None:
        ask()

    config = {"resources": {"build_mine": {"config": given}}}
    done = asking.execute_in_process(instance=instance, run_config=config, raise_on_error=False)
    (failed,) = done.get_step_failure_events()
    return str(failed.step_failure_data.user_failure_data.description)
