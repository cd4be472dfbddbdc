"""Runs of a team whose database is restarted: none is stuck, and the refs are those of the runs that ended well."""

import tempfile
from pathlib import Path

from pipeline.store.refs import LIVE
from pipeline.store.store import Store
from tests.benchmarks.figure import Figure
from tests.support.paths import golden_id

RESTART_SECONDS, OUTAGE_SECONDS = 0.0, 25.0
"""A restart, which what waits for connections outlasts; an outage, which no run outlasts: it is launched again."""
JOBS = ("promote", "train")


def postgres() -> list[Figure]:
    """Nightly by the daemon, promote and train by commands; the database is restarted within each, and down for longer once."""
    from tests.deploy.postgres_server import postgres_programs
    from tests.deploy.team_runs import stuck, team_here

    if postgres_programs() is None:
        return [Figure("postgres", None, "runs stuck", "0", None, peer="PostgreSQL: not installed: make cluster-tests")]
    num_restarts = 0
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, team_here(Path(folder)) as team:
        for seconds in (RESTART_SECONDS, OUTAGE_SECONDS):
            num_before = len(team.runs())
            team.wait(lambda runs, n=num_before: any(run[2] == "STARTED" for run in runs[n:]), "a night that starts")
            team.interrupt(seconds)
            num_restarts += 1
        team.wait(lambda runs: any(run[2] == "SUCCESS" for run in runs), "a night that ends well")
        for job in JOBS:
            run_id = team.launch(job)
            team.interrupt(RESTART_SECONDS)
            num_restarts += 1
            team.wait(lambda runs, job=job: any(run[1:] == (job, "SUCCESS") for run in runs), f"{job}, run {run_id}")
        (Path(folder) / "home/corpora.toml").write_text('[[corpus]]\nname = "tiny"\nrecipe = "tiny"\n')
        team.services.kill("code")
        team.start("code")
        team.wait(lambda runs: not stuck(runs), "the end of all runs")
        runs, store = team.runs(), Store(Path(folder) / "store")
        golden = golden_id()
        wrong = sum(store.ref("tiny", ref) != golden for ref in (LIVE, "candidate"))
        checked = team.services.run("code", "python", "-m", "pipeline", "fsck", "--store", str(store.root))
    by_status = {status: sum(run[2] == status for run in runs) for status in ("SUCCESS", "FAILURE", "CANCELED")}
    return [
        Figure(
            "postgres",
            len(stuck(runs)),
            f"runs stuck, of {len(runs)}, {num_restarts} interruptions",
            "0",
            not stuck(runs),
        ),
        Figure(
            "postgres/refs",
            wrong + (checked.returncode != 0),
            "refs wrong, or damage",
            "0",
            not wrong and not checked.returncode,
        ),
        Figure(
            "postgres/failed", by_status["FAILURE"], f"runs failed, {by_status['SUCCESS']} ended well", "reported", True
        ),
        Figure(
            "postgres/services", team.restarts, "times that a service ended and was started again", "reported", True
        ),
    ]
