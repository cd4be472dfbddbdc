"""The files of `deploy/` name what exists: services, programs, options, files, volumes, variables and classes."""

import re
import shlex
import tomllib
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

import click
import pytest
import yaml
from dagster._cli import cli as dagster_cli
from dagster._core.instance.config import dagster_instance_config
from dagster._core.workspace.load import location_origins_from_yaml_paths
from dagster._daemon.cli import cli as daemon_cli

from pipeline.build.recipes import RECIPES
from pipeline.pins.corpora import load_corpora
from tests.deploy.compose_services import DEPLOY, PORTS, command_of, declared_services
from tests.support.paths import ROOT

SERVICES = declared_services()
IMAGE_OF_SLUICE = "sluice"
OTHER_PROGRAMS = {"postgres": "postgres", "objects": "minio"}
"""Programs that the images of others bring, by service."""
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
DOCKERFILE = (DEPLOY / "Dockerfile").read_text()


def _lines(name: str) -> list[list[str]]:
    """Return the commands of a service: those that its shell is given, or the one that it is, and that of the health check."""
    words = command_of(SERVICES[name])
    lines = [words]
    if words[:2] == ["sh", "-c"]:
        lines = [shlex.split(line.strip().removeprefix("exec ")) for line in words[2].split("&&")]
    check = SERVICES[name].get("healthcheck", {}).get("test", [])[1:]
    return [line for line in (*lines, check) if line]


OWN_LINES = [
    pytest.param(line, id=f"{name} {line[0]}")
    for name, service in SERVICES.items()
    if service["image"] == IMAGE_OF_SLUICE
    for line in _lines(name)
]


def test_the_services_of_a_team_are_there() -> None:
    assert set(SERVICES) == {"postgres", "objects", "ray-head", "ray-node", "code", "daemon", "webserver"}
    assert [name for name, program in OTHER_PROGRAMS.items() if not any(program in line for line in _lines(name))] == []


@pytest.mark.parametrize("line", OWN_LINES)
def test_a_command_and_its_options_exist(line: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    program, *words = line
    groups: dict[str, click.Command] = {"dagster": dagster_cli, "dagster-daemon": daemon_cli}
    if program == "ray":
        _check_ray(words)
    elif program == "python":
        with pytest.raises(SystemExit):
            import_module(words[1]).main(["--help"])
        assert {word for word in words if word.startswith("--")} <= set(
            re.findall(r"--[\w-]+", capsys.readouterr().out)
        )
    else:
        command, rest = groups[program], words
        while isinstance(command, click.Group):
            command, rest = command.commands[rest[0]], rest[1:]
        command.make_context(program, [*rest], resilient_parsing=False)


def _check_ray(words: list[str]) -> None:
    """Ray is no library of this environment: where it is not installed, its options are those that its own tests have used."""
    known = {"start", "--head", "--port", "--block", "--address", "--num-cpus"}
    assert {word.partition("=")[0] for word in words} <= known
    assert "ray = [" in (ROOT / "pyproject.toml").read_text()


def test_every_file_that_a_service_names_exists() -> None:
    words = [word for name in SERVICES for line in _lines(name) for word in line]
    words += [str(value) for service in SERVICES.values() for value in service.get("environment", {}).values()]
    files = {word.removeprefix("/sluice/") for word in words if re.fullmatch(r"(/sluice/)?deploy/\S+", word)}

    assert files == {"deploy/workspace.yaml", "deploy/corpora.toml"}
    assert all((ROOT / name).is_file() for name in files)
    build = COMPOSE["x-sluice"]["build"]
    assert (DEPLOY / build["context"] / build["dockerfile"]).resolve() == DEPLOY / "Dockerfile"


def test_the_image_copies_what_is_there_and_installs_extras_and_versions_that_are_declared() -> None:
    copied = [word for line in re.findall(r"^COPY (.*)$", DOCKERFILE, re.M) for word in line.split()[:-1]]
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = re.findall(r"\.\[([\w,]+)\]", DOCKERFILE)[0].split(",")

    assert [name for name in copied if not (ROOT / name).exists()] == []
    assert set(declared["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]) <= set(copied)
    assert {"postgres", "ray", "s3"} <= set(extras) <= set(declared["project"]["optional-dependencies"])
    assert "DAGSTER_HOME=/sluice/deploy" in DOCKERFILE
    assert re.findall(r"^USER (\w+)", DOCKERFILE, re.M) == ["sluice"]


def test_volumes_and_services_that_are_named_are_declared_and_every_secret_is_required() -> None:
    mounts = {mount.partition(":")[0] for service in SERVICES.values() for mount in service.get("volumes", [])}
    needed = {name for service in SERVICES.values() for name in service.get("depends_on", {})}
    text = (DEPLOY / "compose.yaml").read_text()

    assert mounts == set(COMPOSE["volumes"])
    assert needed <= set(SERVICES)
    assert all(":?" in each for each in re.findall(r"\$\{[^}]*\}", text))
    assert re.findall(r'"(\S+):\d+:\d+"', text) == ["127.0.0.1"], "no port is published beyond this host"


def test_every_variable_of_sluice_is_one_that_the_code_or_these_files_read() -> None:
    names = {name for name in COMPOSE["x-sluice"]["environment"] if name.startswith("SLUICE_")}
    sources = [path for folder in ("assets", "pipeline", "trainer") for path in (ROOT / folder).rglob("*.py")]
    read = "".join(path.read_text() for path in [*sources, DEPLOY / "dagster.yaml"])

    assert {name for name in names if name not in read} == set()


def test_the_instance_is_one_that_dagster_takes_and_its_classes_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SLUICE_DATABASE", "SLUICE_LOGS"):
        monkeypatch.setenv(name, "x")
    config, _ = dagster_instance_config(str(DEPLOY))

    named = [value for value in _nested(config) if isinstance(value, dict) and "class" in value and "module" in value]
    assert len(named) >= 4
    for each in named:
        kind = getattr(import_module(each["module"]), each["class"])
        assert not each["module"].startswith("assets") or callable(kind.from_config_value)
    assert config["run_retries"]["retry_on_asset_or_op_failure"] is False


def _nested(value: Any) -> list[Any]:
    inner = value.values() if isinstance(value, dict) else []
    return [value, *(each for part in inner for each in _nested(part))]


def test_the_workspace_is_the_code_service_under_the_name_that_it_has() -> None:
    (origin,) = location_origins_from_yaml_paths([str(DEPLOY / "workspace.yaml")])
    served = next(line for line in _lines("code") if line[0] == "dagster")

    assert (origin.host, origin.port) == ("code", PORTS["code"])  # type: ignore[attr-defined]
    assert str(PORTS["code"]) in served
    assert origin.location_name == served[served.index("--location-name") + 1] == "sluice"


def test_the_corpora_of_the_team_can_be_built_and_name_the_cluster() -> None:
    corpora = load_corpora(DEPLOY / "corpora.toml", RECIPES.names)

    assert {corpus.address for corpus in corpora} == {f"ray-head:{PORTS['ray-head']}"}
    assert {corpus.engine for corpus in corpora} == {"ray"}


def test_the_programs_of_the_image_are_those_of_its_libraries() -> None:
    for name in ("dagster", "dagster-daemon"):
        assert entry_points(group="console_scripts", name=name)
