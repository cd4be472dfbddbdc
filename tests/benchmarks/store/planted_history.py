"""History of a made repository: rows of commits out of order, and what is left of secrets in subjects and hunks."""

import random
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from pipeline.build.build import BuildRequest, open_build
from pipeline.build.recipes import recipe_of
from pipeline.build.run_stage import run_stages
from pipeline.core import table_names as tables
from pipeline.core.records import Split
from pipeline.core.settings.overrides import setting
from pipeline.stages.collect.kinds.git import GitPin
from pipeline.store.store import Store
from tests.benchmarks.figure import Figure
from tests.support.git_repository import Repository, create
from tests.support.labeled.labeled_secrets import TOKENS, LabeledLine, Token, tokens

NUM_FILES, NUM_COMMITS = 8, 100
NUM_LINES, SEED = 12, 11  # of the labeled lines of the benchmark `secrets`
OF_PLANTED = tuple(map(setting, ("normalize.max_redacted_fraction=0.9", "normalize.drop_bands.unscrubbable=0.9")))
"""Limits that a corpus of little else than secrets does not keep."""
TAG = "// SPDX-License-" + "Identifier: MIT\n"


def history() -> list[Figure]:
    """Build the recipe `history` over commits of which each has a secret in its subject and another one in a line that it adds."""
    chosen = random.Random(SEED)
    lines = chosen.sample(sorted(tokens(SEED), key=lambda line: line.text), NUM_COMMITS)
    shapes = sorted(line.split()[1] for line in TOKENS.strip().splitlines())
    subjects = [Token.made(shape, chosen) for shape in chosen.sample(shapes, NUM_COMMITS)]
    with TemporaryDirectory() as folder:
        repository = create(Path(folder, "repository"))
        commit = _commit_all(repository, lines, subjects)
        order = {name: place for place, name in enumerate(repository.git("rev-list", "--reverse", commit).split("\n"))}
        store = Store(Path(folder, "store"))
        pin = GitPin(name="made", url=repository.url, commit=commit, history=True, declared_license="MIT")
        with open_build(
            BuildRequest("history", recipe_of("history", *OF_PLANTED).params, (pin,), "a benchmark"), store
        ) as build:
            results = list(run_stages(build, "tokenize"))
        results[-1].refuse_blocked("history")
        stages = {result.stage: store.read(result.parts["made"]) for result in results}
        rules = stages["normalize"]
        texts = [row["text"] for row in rules.table(tables.DOCUMENTS, ["text"]).to_pylist()]
        texts += [row["detail"] for row in rules.table(tables.DROPPED, ["detail"]).to_pylist()]
        secrets = [*(line.secrets[0] for line in lines), *(token.random_part for token in subjects)]
        left = [secret for secret in secrets if any(secret in text for text in texts)]
        rows = list(_rows_of_commits(stages["tokenize"]))
    num_wrong = sum(not _is_in_order(row, order) for row in rows) + _num_before_earlier_rows(rows, order)
    planted = f"left of {len(secrets)} secrets in subjects and hunks"
    return [
        Figure("history", num_wrong, f"out of order of {len(rows)} rows of commits", "0", num_wrong == 0),
        Figure("history/secrets", len(left), planted, "0", not left),
        Figure("history/documents", len({name for row in rows for name in row}), "changes in rows", "reported", True),
    ]


def _commit_all(repository: Repository, lines: list[LabeledLine], subjects: list[Token]) -> str:
    """Commit the files, then a line of a file at a time; return the last commit."""
    files = [
        [f"int f{file}_{line}(int a); // a line of file {file}\n" for line in range(NUM_LINES)]
        for file in range(NUM_FILES)
    ]
    for number, own in enumerate(files):
        repository.write(f"src/f{number}.cc", (TAG + "".join(own)).encode())
    commit = repository.commit("Begin")
    chosen = random.Random(SEED)
    for number in range(NUM_COMMITS):
        file = chosen.randrange(NUM_FILES)
        files[file].insert(chosen.randrange(len(files[file])), lines[number].text + "\n")
        repository.write(f"src/f{file}.cc", (TAG + "".join(files[file])).encode())
        commit = repository.commit(f"Call the service with {subjects[number].text} from now on")
    return commit


def _rows_of_commits(tokenized) -> Iterator[list[str]]:
    """Yield the paths of the documents of each row of commits, in the order of the rows."""
    paths = {
        row["document_id"]: row["path"] for row in tokenized.table(tables.TOKENS, ["document_id", "path"]).to_pylist()
    }
    for split in Split:
        for names in tokenized.table(tables.PACKED[split], ["source_doc_ids"])["source_doc_ids"].to_pylist():
            if ":" in paths[names[0]]:
                yield [paths[name] for name in names]


def _is_in_order(row: list[str], order: dict[str, int]) -> bool:
    """Return whether a row holds changes of one file by commits of which none is before another one, as git lists them."""
    commits, files = zip(*(path.split(":") for path in row), strict=True)
    places = [order[commit] for commit in commits]
    return len(set(files)) == 1 and places == sorted(places)


def _num_before_earlier_rows(rows: list[list[str]], order: dict[str, int]) -> int:
    """Count the rows that begin before the row of the same file which is before them ends."""
    ends: dict[str, int] = {}
    number = 0
    for row in rows:
        (first, file), (last, _) = row[0].split(":"), row[-1].split(":")
        number += order[first] < ends.get(file, -1)
        ends[file] = order[last]
    return number
