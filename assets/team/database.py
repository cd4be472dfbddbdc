"""The database of a team: Dagster's runs, events and schedules in PostgreSQL, which every service and every host reaches.

`deploy/dagster.yaml` names `TeamStorage`. dagster-postgres, of the extra `postgres`, reads and writes; a database that it cannot
use is refused here, in a sentence, before Dagster repeats its attempts.
"""

import time
from typing import Any

import dagster as dg
from click import ClickException
from dagster._core.storage.base_storage import DagsterStorage
from dagster._core.storage.config import pg_config
from dagster._serdes import ConfigurableClass
from sqlalchemy import create_engine, make_url, text
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError

from assets.checks import taking_plans_back
from pipeline.core.errors import StoreError

WAITS_SECONDS = (0.5, 1.0, 2.0, 4.0, 8.0)
"""Between attempts to reach a server that refuses connections, as while it restarts."""
_CONNECT_SECONDS = 5
_EXPECTED = "the address of a PostgreSQL database, as postgresql://USER:PASSWORD@HOST:5432/NAME"
_REMEDY = "Start the server, or correct the address: `storage` in dagster.yaml says where it is from."
_LASTING = ("authentication failed", "does not exist", "could not translate host name", "no password supplied")
"""Answers that another attempt does not change."""


class TeamStorage(DagsterStorage, ConfigurableClass):
    """Dagster's storage in PostgreSQL, once the database has answered. The class of what it makes is that of dagster-postgres.

    Raises ClickException for a database that cannot be used: Dagster's commands are click's, which prints it without a traceback.
    """

    @classmethod
    def config_type(cls) -> Any:
        return pg_config()

    @classmethod
    def from_config_value(cls, inst_data: Any, config_value: Any) -> Any:
        try:
            from dagster_postgres import DagsterPostgresStorage
            from dagster_postgres.utils import pg_url_from_config

            address = _with_driver(pg_url_from_config(config_value))
            wait_for_answer(address)
        except ImportError as error:
            remedy = 'Install it: python -m pip install -e ".[postgres]"'
            refused = StoreError("storage in PostgreSQL", str(error), "dagster-postgres", remedy)
            raise ClickException(str(refused)) from None
        except StoreError as error:
            raise ClickException(str(error)) from None
        return taking_plans_back(DagsterPostgresStorage(address, inst_data=inst_data))


def wait_for_answer(address: str) -> None:
    """Wait until a database answers, for a quarter of a minute while its server starts. Raises StoreError otherwise."""
    for seconds in (*WAITS_SECONDS, None):
        found = _problem_of(address)
        if not found:
            return
        if seconds is None or any(each in found for each in _LASTING):
            raise StoreError(f"database {shown_address(address)}", found, "an answer", _REMEDY)
        time.sleep(seconds)


def shown_address(address: str) -> str:
    """Return an address without its password."""
    return make_url(address).render_as_string(hide_password=True)


def database_of(instance: dg.DagsterInstance) -> str | None:
    """Return the address of the database of an instance; None where it is kept in files of one machine."""
    return getattr(instance.run_storage, "postgres_url", None)


def database_size(address: str) -> int:
    """Return how many bytes a database takes."""
    engine = create_engine(address)
    with engine.connect() as connection:
        size = int(connection.execute(text("select pg_database_size(current_database())")).scalar_one())
    engine.dispose()
    return size


def _with_driver(address: str) -> str:
    """Return an address that names the driver which dagster-postgres brings: SQLAlchemy would take another one from 2.1 on."""
    try:
        url = make_url(address)
    except ArgumentError:
        raise StoreError("database", "its address cannot be read", _EXPECTED, _REMEDY) from None
    if url.drivername in ("postgresql", "postgres"):
        url = url.set(drivername="postgresql+psycopg2")
    return url.render_as_string(hide_password=False)


def _problem_of(address: str) -> str:
    """Return what keeps a database from answering, in one line; nothing if it answers."""
    try:
        engine = create_engine(address, connect_args={"connect_timeout": _CONNECT_SECONDS})
    except NoSuchModuleError:
        raise StoreError(f"database {shown_address(address)}", "it is of another kind", _EXPECTED, _REMEDY) from None
    try:
        engine.connect().close()
    except SQLAlchemyError as error:
        said = str(getattr(error, "orig", None) or error).strip().splitlines()
        return (said or ["it closed the connection"])[0].strip()
    finally:
        engine.dispose()
    return ""
