"""The UI answers its own pages alone: twenty ways in from another origin or host are refused, and its own are served."""

import io
import logging
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NoReturn

import pytest
from click import Abort
from dagster._cli import dev
from dagster._core.errors import DagsterExecutionInterruptedError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient
from starlette.websockets import WebSocket, WebSocketDisconnect

from assets.instance import main as instance_main
from assets.web import _START, SameOriginOnly, alone, main, report_page
from pipeline.build.run_stage import StageResult
from pipeline.core.errors import LockedError
from pipeline.lineage.report_page import write_report
from pipeline.store.store import Store
from tests.support.paths import ROOT

OWN = {"host": "localhost:3000"}
JSON = {"content-type": "application/json"}
EVIL = "http://evil.example"
LAUNCH = "/graphql?query=mutation{launchRun}"


async def _served(request: Request) -> PlainTextResponse:
    return PlainTextResponse("served")


async def _talk(socket: WebSocket) -> None:
    await socket.accept()
    await socket.send_text("served")
    await socket.close()


@pytest.fixture(scope="module")
def client() -> TestClient:
    routes = [Route("/{path:path}", _served, methods=["GET", "POST"]), WebSocketRoute("/graphql", _talk)]
    return TestClient(SameOriginOnly(Starlette(routes=routes)), base_url="http://localhost:3000")


@pytest.mark.parametrize(
    ("method", "path", "headers"),
    [
        ("POST", "/graphql", OWN | JSON | {"origin": EVIL}),
        ("POST", "/graphql", OWN | JSON | {"origin": "null"}),
        ("POST", "/graphql", OWN | JSON | {"origin": "http://localhost:8080"}),
        ("POST", "/graphql", OWN | JSON | {"origin": "http://localhost"}),
        ("POST", "/graphql", OWN | JSON | {"origin": "http://localhost:3000.evil.example"}),
        ("POST", "/graphql", OWN | JSON | {"referer": f"{EVIL}/page"}),
        ("POST", "/graphql", OWN | {"content-type": "text/plain"}),
        ("POST", "/graphql", OWN | {"content-type": "application/x-www-form-urlencoded"}),
        ("POST", "/report_asset_materialization/a", OWN | {"origin": EVIL}),
        ("POST", "/graphql", OWN | JSON | {"sec-fetch-site": "cross-site"}),
        ("POST", "/graphql", {"host": "evil.example:3000"} | JSON | {"origin": "http://evil.example:3000"}),
        ("GET", LAUNCH, OWN | {"referer": f"{EVIL}/"}),
        ("GET", LAUNCH, OWN | {"sec-fetch-site": "same-site"}),
        ("GET", LAUNCH, OWN | {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}),
        ("GET", LAUNCH, OWN),
        ("GET", "/runs", OWN | {"referer": "http://localhost:3000@evil.example/"}),
        ("GET", "/runs", {"host": "evil.example"}),
        ("GET", "/runs", {"host": "localhost.evil.example:3000"}),
        ("GET", "/runs", {"host": "192.168.0.7:3000"}),
        ("GET", "/runs", {"host": "127.0.0.1.nip.io:3000"}),
        ("GET", "/runs", OWN | {"origin": "https://localhost:3001"}),
        ("GET", "/runs", OWN | {"origin": "https://localhost:3000"}),
        ("GET", "/runs", OWN | {"referer": "https://localhost:3000/"}),
        ("GET", "/runs", {"host": "localhost:9999"}),
        ("GET", "/runs", {"host": "localhost"}),
        ("GET", "/runs", {"host": "[::1]"}),
        ("POST", "/graphql", {"host": "localhost:9999", "origin": "http://localhost:9999"} | JSON),
    ],
)
def test_a_way_in_from_another_origin_or_host_is_refused(
    client: TestClient, method: str, path: str, headers: Mapping[str, str]
) -> None:
    answer = client.request(method, path, headers=headers)

    assert answer.status_code == 403
    assert answer.text.startswith("refused: ")


@pytest.mark.parametrize(
    "headers",
    [
        OWN | {"origin": EVIL},
        {"host": "evil.example:3000", "origin": "http://evil.example:3000"},
        {"host": "evil.example"},
        {"host": "localhost:9999", "origin": "http://localhost:9999"},
        OWN | {"origin": "https://localhost:3000"},
    ],
)
def test_a_websocket_of_another_origin_or_host_is_refused(client: TestClient, headers: Mapping[str, str]) -> None:
    with (
        pytest.raises(WebSocketDisconnect),
        client.websocket_connect("ws://localhost:3000/graphql", headers=dict(headers)),
    ):
        pass


@pytest.mark.parametrize(
    ("method", "path", "headers"),
    [
        ("GET", "/runs", OWN),
        ("GET", "/runs", OWN | {"sec-fetch-site": "none"}),
        ("GET", "/runs", {"host": "[::1]:3000"}),
        ("GET", "/assets?view=graph", {"host": "127.0.0.1:3000"} | {"referer": "http://127.0.0.1:3000/"}),
        ("POST", "/graphql", OWN | JSON | {"origin": "http://localhost:3000", "sec-fetch-site": "same-origin"}),
        ("POST", "/graphql", OWN | JSON),
    ],
)
def test_its_own_pages_and_programs_are_served(
    client: TestClient, method: str, path: str, headers: Mapping[str, str]
) -> None:
    assert client.request(method, path, headers=headers).text == "served"


def test_its_own_websocket_is_served(client: TestClient) -> None:
    with client.websocket_connect(
        "ws://localhost:3000/graphql", headers=OWN | {"origin": "http://localhost:3000"}
    ) as socket:
        assert socket.receive_text() == "served"


def test_the_page_of_a_report_shows_where_refs_are_when_it_is_looked_at(
    tiny_store: Store, root: Path, tiny_results: list[StageResult]
) -> None:
    shutil.copytree(tiny_store.root, root)
    store, snapshot_id = Store(root), tiny_results[-1].snapshot_id or ""
    page = write_report(store, "tiny", snapshot_id)
    store.move_ref("tiny", "live", snapshot_id, tiny_results[0].object_id, "rolled back since")
    pages = TestClient(Starlette(routes=[Route("/reports/{name}", report_page)]))
    answer = pages.get(f"/reports/{page.name}")

    assert "rolled back since" not in page.read_text()
    assert "rolled back since" in answer.text
    assert answer.headers["content-security-policy"] == "sandbox allow-scripts"
    assert pages.get("/reports/none.html").status_code == pages.get("/reports/.hidden").status_code == 404


@pytest.mark.parametrize("port", ["99999", "-1", "0", "many"])
def test_a_port_that_is_none_is_wrong_usage(port: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--port", port])
    assert caught.value.code == 2
    assert "argument --port: " in capsys.readouterr().err


def test_a_ui_that_launches_listens_on_this_machine_alone(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--host", "0.0.0.0"])
    assert caught.value.code == 2
    assert capsys.readouterr().err.startswith("error: found --host; expected it with --read-only alone")


def test_the_read_only_webserver_is_dagsters_own_behind_the_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def served(arguments: list[str]) -> NoReturn:
        sys.exit(" ".join(arguments))

    (tmp_path / "dagster.yaml").touch()
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    monkeypatch.setattr("assets.web.serve", served)
    with pytest.raises(SystemExit) as caught:
        main(["--read-only", "--host", "0.0.0.0", "--port", "3001"])
    assert caught.value.code == f"--read-only -h 0.0.0.0 -p 3001 -w {tmp_path / 'workspace.yaml'}"


@pytest.mark.parametrize("program", [main, instance_main], ids=["the UI", "cleaning"])
def test_a_home_without_an_instance_is_refused_in_words(
    program: Callable[[list[str]], int],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "none"))

    assert program([] if program is main else ["clean"]) == 1
    expected = (
        f"error: DAGSTER_HOME, {tmp_path / 'none'}: it has no dagster.yaml; expected the root of the project, or "
    )
    assert capsys.readouterr().err.startswith(expected)


@pytest.mark.parametrize("ending", [Abort, KeyboardInterrupt, DagsterExecutionInterruptedError])
def test_an_interrupt_ends_the_ui_and_the_cleaning_in_a_sentence(
    ending: type[BaseException], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: object, **options: object) -> None:
        raise ending

    (tmp_path / "dagster.yaml").touch()
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    monkeypatch.setattr(dev, _START, getattr(dev, _START))
    monkeypatch.setattr(dev, "dev_command", interrupt)
    assert main(["--port", "1"]) == 130
    assert capsys.readouterr().err.endswith("interrupted before the UI was ready\n")
    if ending is not Abort:
        monkeypatch.setattr("assets.instance.old_runs", interrupt)
        assert instance_main(["clean"]) == 130
        assert capsys.readouterr().err.startswith("interrupted; ")


@pytest.mark.parametrize("words", ["dagster-daemon process shut down unexpectedly with return code -9", "a defect"])
def test_a_service_that_ended_by_itself_is_told_in_a_sentence(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    logged = logging.StreamHandler(io.StringIO())

    def end(*_: object, **options: object) -> None:
        try:
            raise Exception(words)
        except Exception:
            logging.getLogger("dagster").exception("An unexpected exception has occurred")

    (tmp_path / "dagster.yaml").touch()
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    monkeypatch.setattr(dev, _START, getattr(dev, _START))
    monkeypatch.setattr(dev, "dev_command", end)
    monkeypatch.setattr(logging.getLogger("dagster"), "handlers", [logged])
    monkeypatch.setattr(logging.getLogger("dagster"), "filters", [])
    assert main(["--port", "1"]) == 1

    assert ("Traceback" in logged.stream.getvalue()) == (words == "a defect")
    told = capsys.readouterr().err.splitlines()[-1]
    assert (
        told
        == f"error: the UI: {words}; expected both of its services. Start it again; runs that it has started go on."
    )


def test_a_list_of_corpora_that_cannot_be_read_starts_no_ui(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "dagster.yaml").touch()
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    monkeypatch.setenv("SLUICE_CORPORA", str(tmp_path / "none.toml"))
    monkeypatch.setattr("assets.web._run_services", pytest.fail)

    assert main(["--port", "1"]) == 1
    assert capsys.readouterr().err.startswith(f"error: {tmp_path / 'none.toml'}: cannot be read")


def test_a_second_ui_of_an_instance_is_refused_in_words(tmp_path: Path) -> None:
    program = f"from assets.web import alone; from pathlib import Path\nwith alone(Path({str(tmp_path)!r}), 0): input()"
    with subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdin=subprocess.PIPE) as other:
        lock = tmp_path / ".dev.lock"
        while not (lock.exists() and lock.read_text()):
            assert other.poll() is None
        with (
            pytest.raises(LockedError, match=rf"runs already: http://localhost:0, process {other.pid}"),
            alone(tmp_path, 0),
        ):
            pass
        other.communicate(b"\n")
    with alone(tmp_path, 0):
        pass
