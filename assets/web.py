"""The UI on this machine alone: `make dev`, whose webserver answers no page of another site and no other name of the host.

    python -m assets.web          the UI and the daemon, at http://localhost:3000
    python -m assets.web --port N
    python -m assets.web --read-only --host 0.0.0.0     of a team: the webserver alone, which starts and changes nothing

Dagster's webserver has no such option: a GET of another page could launch a run, and any name that leads here was served.
"""

import signal

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # an interrupted import ends the process without a traceback

import fcntl
import logging
import os
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn, TextIO

from pipeline.build.recipes import ROOT
from pipeline.core.command_line import Parser, describe_failure, whole_number
from pipeline.core.errors import LockedError, SluiceError
from pipeline.store.store_layout import is_name

HOST_NAMES = ("localhost", "127.0.0.1", "[::1]")
"""Names by which a browser on this machine, or at the end of a tunnel, addresses the UI."""
WORKSPACE = "workspace.yaml"
"""The file of code locations, beside dagster.yaml."""
_PORT_OF_HTTP = 80
_SERVER = "dagster_webserver"
_GUARDED = "guarded-webserver"
_START = "open_ipc_subprocess"
"""The function by which `dagster dev` starts its two services."""
_ENDED = "shut down unexpectedly"
"""Words of the error of `dagster dev` about a service that ended by itself."""
Headers = Iterable[tuple[bytes, bytes]]


class SameOriginOnly:
    """ASGI middleware that answers pages of this host alone, and clients that are no browser."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        """Give a request to the app, or answer 403 and why."""
        found = refusal(scope) if scope["type"] in ("http", "websocket") else ""
        if not found:
            await self.app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008, "reason": found[:100]})
        else:
            text = f"refused: {found}. Open the address of the UI itself, http://localhost and its port.\n".encode()
            headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(text)).encode())]
            await send({"type": "http.response.start", "status": 403, "headers": headers})
            await send({"type": "http.response.body", "body": text})


def refusal(scope: dict[str, Any]) -> str:
    """Return why a request is not answered, or the empty string.

    A page of another site cannot hide where it is: its browser sends Origin, Referer or Sec-Fetch-Site. What has none of them is no
    browser, or one whose page hides the referrer and asks for a picture: that may read no query, which could change something.
    """
    hosts, origins, referrers, sites, kinds = (
        _values(scope["headers"], name) for name in (b"host", b"origin", b"referer", b"sec-fetch-site", b"content-type")
    )
    if len(hosts) != 1 or _name(hosts[0]) not in HOST_NAMES:
        return f"the host is {', '.join(hosts) or 'not named'}, expected {', '.join(HOST_NAMES)}"
    port = (scope.get("server") or ("", None))[1]
    if port is not None and _port(hosts[0]) != port:
        return f"the host is {hosts[0]}, expected port {port}, that of the UI"
    own = {f"http://{hosts[0]}"}
    for origin in (*origins, *map(_origin_of, referrers)):
        if origin not in own:
            return f"it comes from {origin[:200]}, another origin"
    if any(site not in ("same-origin", "none") for site in sites):
        return "it comes from a page of another origin"
    if scope["type"] == "websocket":
        return ""
    if scope["method"] == "POST":
        is_simple = not any(kind.partition(";")[0].strip() == "application/json" for kind in kinds)
        return "it has neither an Origin nor the content type application/json" if is_simple and not origins else ""
    if scope["path"].rstrip("/").endswith("/graphql") and scope["query_string"]:
        return "a query in an address may change something, expected POST"
    return ""


def main(arguments: list[str]) -> int:
    """Run the UI and the daemon until they are stopped, or the webserver that they start."""
    if arguments[:1] == [_GUARDED]:
        serve(arguments[1:])
    parser = Parser(prog="python -m assets.web", description="The UI and the daemon, on localhost.")
    parser.add_argument("--port", type=whole_number(1, 65_535), default=3000)
    parser.add_argument("--read-only", action="store_true", help="the webserver alone, for a team; no daemon")
    parser.add_argument("--host", default="127.0.0.1", help="address that `--read-only` listens on")
    options = parser.parse_or_exit(arguments)
    port: int = options.port
    if options.host != parser.get_default("host") and not options.read_only:
        parser.exit(
            2, "error: found --host; expected it with --read-only alone: a UI that launches is for this machine.\n"
        )
    from assets.instance import home_of  # after the arguments are judged: it loads Dagster
    from assets.resources import declared_corpora, refusal_of

    os.chdir(ROOT)
    for number in (
        signal.SIGINT,
        signal.SIGTERM,
    ):  # both stop the services, also where a shell had this process ignore the first
        signal.signal(number, signal.default_int_handler)
    try:
        home = home_of(os.environ)
        if options.read_only:
            serve(["--read-only", "-h", options.host, "-p", str(port), "-w", str(home / WORKSPACE)])
        # What cannot be loaded is refused here in a sentence: the services would go on without it.
        for why in filter(None, map(refusal_of, declared_corpora())):
            print(f"warning: no build of it can begin: {why}", file=sys.stderr)
        with alone(home, port):
            _run_services(port)
    except SluiceError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"error: {describe_failure(error)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted before the UI was ready", file=sys.stderr)
        return 130
    return 0


@contextmanager
def alone(home: Path, port: int) -> Iterator[None]:
    """Hold the instance for the UI of this process. Raises LockedError if another UI has it, or another program the port."""
    from dagster._utils import is_port_in_use

    from assets.instance import DEV_LOCK

    with (home / DEV_LOCK).open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LockedError(
                "the UI", f"it runs already: {_read(file)}", "none", "Open it, or stop it first."
            ) from None
        if is_port_in_use("127.0.0.1", port):
            remedy = "Stop that program, or give another one, as `make dev PORT=N`."
            raise LockedError("the UI", f"port {port} is taken by another program", "a free port", remedy)
        file.truncate(0)
        file.write(f"http://localhost:{port}, process {os.getpid()}")
        file.flush()
        yield


def serve(arguments: list[str]) -> NoReturn:
    """Run Dagster's webserver behind the check, and end with its exit code."""
    from dagster_webserver import app
    from dagster_webserver.cli import cli
    from dagster_webserver.webserver import DagsterWebserver
    from starlette.middleware import Middleware
    from starlette.routing import BaseRoute, Route

    from assets.reporting import REPORTS

    class Guarded(DagsterWebserver[Any, Any]):
        """Dagster's webserver, with the check before all else."""

        def build_middleware(self) -> list[Middleware]:
            """Return the middleware, the check first."""
            return [Middleware(SameOriginOnly), *super().build_middleware()]

        def build_routes(self) -> list[BaseRoute]:
            """Return the routes, and that of the pages of reports."""
            routes: list[BaseRoute] = super().build_routes()  # type: ignore[no-untyped-call]
            return [Route(f"/{REPORTS}/{{name}}", report_page), *routes]

    setattr(app, DagsterWebserver.__name__, Guarded)
    sys.exit(cli(arguments, auto_envvar_prefix="DAGSTER_WEBSERVER"))


def report_page(request: Any) -> Any:
    """Send the page of a report, with the moves of refs until now. It shows names of files: a sandbox keeps it from the UI."""
    from starlette.responses import HTMLResponse, PlainTextResponse

    from assets.reporting import REPORTS
    from assets.resources import store_root
    from pipeline.lineage.ref_moves import with_moves
    from pipeline.store.store import Store

    name = request.path_params["name"]
    page = store_root() / REPORTS / name
    if not is_name(name) or not page.is_file():
        return PlainTextResponse("there is no such report\n", status_code=404)
    text = with_moves(page.read_text(encoding="utf-8"), Store(store_root()))
    return HTMLResponse(text, headers={"Content-Security-Policy": "sandbox allow-scripts", "Cache-Control": "no-store"})


def _run_services(port: int) -> None:
    """Run `dagster dev`, with our webserver in the place of its own. Fails if Dagster starts it by another name.

    Raises SluiceError where one of the services ended by itself: Dagster logs that as a traceback of its own and returns.
    """
    from click import Abort
    from dagster._cli import dev
    from dagster._core.errors import DagsterExecutionInterruptedError

    start, started = getattr(dev, _START), list[list[str]]()

    def start_guarded(command: list[str], **options: Any) -> Any:
        if not started and _SERVER not in command:
            raise RuntimeError(f"this version of Dagster starts no {_SERVER}: {command[:3]}")
        started.append(command)
        place = command.index(_SERVER) if _SERVER in command else None
        return start(
            command if place is None else [*command[:place], "assets.web", _GUARDED, *command[place + 1 :]], **options
        )

    ended: list[str] = []

    def is_told(record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            ended.append(" ".join(str(error).split()))
        return error is None or _ENDED not in str(error)

    logging.getLogger("dagster").addFilter(is_told)
    setattr(dev, _START, start_guarded)
    warnings.filterwarnings("ignore", "Function `dev_command`")  # `dg dev` starts the same services
    print(f"the UI is at http://localhost:{port}; Ctrl-C stops it", file=sys.stderr, flush=True)
    try:
        dev.dev_command(["-h", "127.0.0.1", "-p", str(port), "-w", WORKSPACE], standalone_mode=False)
    except (Abort, DagsterExecutionInterruptedError) as error:  # once its services run, it ends without one
        raise KeyboardInterrupt from error
    if ended:
        raise SluiceError("the UI", ended[0], "both of its services", "Start it again; runs that it has started go on.")


def _values(headers: Headers, name: bytes) -> list[str]:
    return [value.decode("latin-1").strip().lower() for key, value in headers if key.lower() == name]


def _name(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdecimal() else host


def _port(host: str) -> int:
    _, colon, port = host.rpartition(":")
    return int(port[:6]) if colon and port.isdecimal() else _PORT_OF_HTTP


def _origin_of(address: str) -> str:
    scheme, _, rest = address.partition("://")
    return f"{scheme}://{rest.partition('/')[0].partition('?')[0].partition('#')[0]}"


def _read(file: TextIO) -> str:
    file.seek(0)
    return file.read() or "it is just being started"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
