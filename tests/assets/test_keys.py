"""Keys name what belongs to a corpus as Dagster takes names, and only the first corpus has jobs without its name."""

from assets.keys import build_key, job_name, live_key, op_name, stage_key, training_key
from pipeline.pins.corpora import Corpus


def test_a_corpus_with_a_hyphen_has_names_that_dagster_takes() -> None:
    keys = [stage_key("full-built", "collect"), live_key("full-built"), training_key("full-built")]

    assert [key.path for key in keys] == [["full-built", name] for name in ("collect", "live", "training")]
    assert [op_name(key).isidentifier() for key in keys] == [True] * len(keys)
    assert build_key("full-built") == "build_full_built"


def test_jobs_of_the_first_corpus_have_no_name_of_a_corpus() -> None:
    corpora = [Corpus(name="quick", recipe="quick"), Corpus(name="full-built", recipe="full-built")]

    assert job_name("train", "quick", corpora) == "train"
    assert job_name("train", "full-built", corpora) == "train_full_built"
