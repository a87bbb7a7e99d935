"""During a run nothing leaves the machine, and afterwards everything is as it was."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest

from harness.case.offline import PLACEHOLDER, REAL_API, offline
from harness.errors import NetworkBlockedError

REMEDY = (
    "scripted and recorded cases stay on this machine; let the loop take 'client' or read ANTHROPIC_BASE_URL when it "
    "runs, and let the case stub tools that need the network"
)


def test_keys_and_proxies_are_out_of_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys become placeholders, proxies vanish, the base URL points to the model; afterwards all is as it was."""
    for name, value in {
        "ANTHROPIC_API_KEY": "sk-real",
        "ANTHROPIC_AUTH_TOKEN": "real",
        "ANTHROPIC_CUSTOM_HEADERS": "authorization: real",
        "OPENAI_API_KEY": "real",
        "AWS_SECRET_ACCESS_KEY": "real",
        "REPLICATE_API_TOKEN": "real",
        "HTTPS_PROXY": "http://proxy:3128",
        "http_proxy": "http://proxy:3128",
        "NO_PROXY": "intranet",
        "MY_SETTING": "kept",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("ANTHROPIC_BASE_URL", raising=False)
    before = dict(os.environ)
    with offline("http://127.0.0.1:9/"):
        changed = {
            name: os.environ.get(name) for name in {*before, *os.environ} if before.get(name) != os.environ.get(name)
        }
        assert changed == {
            **dict.fromkeys(
                [
                    "ANTHROPIC_API_KEY",
                    "ANTHROPIC_AUTH_TOKEN",
                    "OPENAI_API_KEY",
                    "AWS_SECRET_ACCESS_KEY",
                    "REPLICATE_API_TOKEN",
                ],
                PLACEHOLDER,
            ),
            **dict.fromkeys(["ANTHROPIC_CUSTOM_HEADERS", "HTTPS_PROXY", "http_proxy"], None),
            "NO_PROXY": "*",
            "no_proxy": "*",
            "ANTHROPIC_BASE_URL": "http://127.0.0.1:9/",
        }
    assert dict(os.environ) == before


def test_a_key_is_there_even_if_none_was_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client can be built in a run on a machine without any key, and a gateway of the environment is not asked."""
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://localhost:4000")
    with offline():
        assert (os.environ["ANTHROPIC_API_KEY"], os.environ["ANTHROPIC_BASE_URL"]) == (PLACEHOLDER, REAL_API)
    assert "ANTHROPIC_API_KEY" not in os.environ
    assert os.environ["ANTHROPIC_BASE_URL"] == "http://localhost:4000"


def udp(host: str, family: int = socket.AF_INET) -> None:
    with socket.socket(family, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"x", (host, 53))


def tcp(address: tuple[Any, ...], family: int = socket.AF_INET, call: str = "connect") -> None:
    with socket.socket(family) as client:
        getattr(client, call)(address)


ATTEMPTS: dict[str, tuple[Callable[[], object], str]] = {
    "connect": (lambda: tcp(("192.0.2.1", 443)), "192.0.2.1:443"),
    "connect over IPv6": (lambda: tcp(("2001:db8::1", 443), socket.AF_INET6), "[2001:db8::1]:443"),
    "connect without raising": (lambda: tcp(("192.0.2.1", 80), call="connect_ex"), "192.0.2.1:80"),
    "create_connection": (lambda: socket.create_connection(("example.org", 8443)), "example.org:8443"),
    "look up": (lambda: socket.getaddrinfo(b"example.org", "https"), "example.org:https"),
    "look up by an old call": (lambda: socket.gethostbyname("example.org"), "example.org"),
    "look up in reverse": (lambda: socket.getnameinfo(("192.0.2.1", 80), 0), "192.0.2.1:80"),
    "datagram": (lambda: udp("192.0.2.1"), "192.0.2.1:53"),
    "URL": (lambda: urllib.request.urlopen("http://example.org/x"), "example.org:80"),
    "asyncio": (lambda: asyncio.run(asyncio.open_connection("example.org", 443)), "example.org:443"),
    "a name that only looks local": (
        lambda: socket.getaddrinfo("localhost.example.org", 80),
        "localhost.example.org:80",
    ),
    "a mapped address": (lambda: tcp(("::ffff:192.0.2.1", 80), socket.AF_INET6), "[::ffff:192.0.2.1]:80"),
}


@pytest.mark.parametrize(("attempt", "target"), ATTEMPTS.values(), ids=ATTEMPTS.keys())
def test_a_way_out_is_blocked_by_name(attempt: Callable[[], object], target: str) -> None:
    """Connecting, sending and looking names up raise an error that names host and port, and are remembered."""
    with offline() as blocked:
        with pytest.raises(NetworkBlockedError) as caught:
            attempt()
        with pytest.raises(NetworkBlockedError):
            attempt()
    assert str(caught.value) == f"blocked a connection to {target}: {REMEDY}"
    assert blocked == [target]


def test_a_client_of_the_sdk_is_blocked_by_name() -> None:
    """A loop that would call the real API learns where it wanted to go."""
    import anthropic

    with offline() as blocked:
        client = anthropic.Anthropic(max_retries=0)
        with pytest.raises(Exception) as caught:  # noqa: PT011 - what the SDK makes of it is the SDK's
            client.messages.create(model="m", max_tokens=1, messages=[{"role": "user", "content": "hi"}])
        client.close()
    chain = [caught.value, caught.value.__cause__, caught.value.__context__]
    assert any(isinstance(error, NetworkBlockedError) for error in chain)
    assert blocked == ["api.anthropic.com:443"]


def test_threads_are_guarded_too() -> None:
    """The guard belongs to the process, not to the thread that set it up."""
    found: list[BaseException] = []

    def work() -> None:
        try:
            tcp(("192.0.2.1", 443))
        except BaseException as error:
            found.append(error)

    with offline() as blocked:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert [type(error) for error in found] == [NetworkBlockedError]
    assert blocked == ["192.0.2.1:443"]


def test_this_machine_stays_within_reach() -> None:
    """Loopback by name and address, both families, Unix sockets and the own host name are not blocked."""
    with offline() as blocked:
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            for host in ("127.0.0.1", "localhost"):
                socket.create_connection((host, port)).close()
        with socket.socket(socket.AF_UNIX) as client, pytest.raises(FileNotFoundError):
            client.connect("/nonexistent.socket")
        for host in (None, "LOCALHOST", "127.8.8.8", "::1", "0.0.0.0", "::ffff:127.0.0.1"):
            socket.getaddrinfo(host, 80)
        one, other = socket.socketpair()
        one.close()
        other.close()
    assert blocked == []


def test_afterwards_the_network_is_open_again() -> None:
    """Outside a run the guard does nothing: a refused connection is the system's word, not ours."""
    with offline():
        pass
    with socket.socket() as client, pytest.raises(OSError, match="refused"):
        client.connect(("127.0.0.1", 1))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.connect(("192.0.2.1", 9))  # a datagram socket only remembers the address


def test_runs_inside_runs_are_undone_in_order() -> None:
    """A guard inside a guard leaves the outer one in force."""
    with offline("http://127.0.0.1:1") as outer:
        with offline("http://127.0.0.1:2") as inner:
            assert os.environ["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:2"
        assert os.environ["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:1"
        with pytest.raises(NetworkBlockedError):
            tcp(("192.0.2.1", 1))
    assert (outer, inner) == (["192.0.2.1:1"], [])


def test_a_child_process_inherits_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that the loop starts finds placeholders, not keys."""
    monkeypatch.setenv("OPENAI_API_KEY", "real")
    code = "import os; print(os.environ['OPENAI_API_KEY'])"
    with offline():
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == PLACEHOLDER
