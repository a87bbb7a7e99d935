"""One address for the whole process, at which the model of the running case answers."""

from __future__ import annotations

import socket
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

from harness.case import endpoint as module
from harness.case.endpoint import Endpoint, endpoint
from harness.model.local import LocalModel
from harness.model.script import Script


@pytest.fixture
def address() -> Iterator[Endpoint]:
    """An endpoint of its own, which is closed afterwards."""
    made = Endpoint()
    yield made
    made.close()


def status(url: str) -> int:
    """How the address answers a request that no model has."""
    try:
        urllib.request.urlopen(f"{url}/v1/models")
    except urllib.error.HTTPError as error:
        with error:
            return error.code
    return 200


def test_the_process_has_one_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every case finds the same address; a forked child, where no server thread lives, gets another."""
    mine = endpoint()
    assert endpoint() is mine
    monkeypatch.setattr(module.os, "getpid", lambda: mine.pid + 1)
    monkeypatch.setattr(module.atexit, "register", lambda function: None)
    monkeypatch.setattr(module, "_current", mine)
    child = endpoint()
    assert child.url != mine.url
    child.close()


def test_the_port_is_held_before_anything_serves(address: Endpoint) -> None:
    """Nobody else can take the port, and a connection to it is refused at once rather than left waiting."""
    port = int(address.url.rpartition(":")[2])
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind(("127.0.0.1", port))
    with pytest.raises(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port)):
        pass


def test_the_address_stays_while_models_come_and_go(address: Endpoint) -> None:
    """Each model answers at the same URL while it is served, and afterwards it hears nothing more."""
    url = address.url
    models = [LocalModel(Script.parse([{"say": text}])) for text in ("one", "two")]
    for model in models:
        with address.serving(model):
            assert status(url) == 404
    assert (address.url, status(url)) == (url, 400)
    assert [len(model.faults) for model in models] == [1, 1]


def test_closing_ends_the_server(address: Endpoint) -> None:
    """After `close` nobody listens, and closing twice does no harm."""
    with address.serving(LocalModel(Script.parse([{"say": "x"}]))):
        pass
    address.close()
    address.close()
    with pytest.raises(urllib.error.URLError, match="refused"):
        urllib.request.urlopen(address.url)
