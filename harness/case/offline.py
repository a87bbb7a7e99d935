"""While a scripted or recorded case runs, nothing leaves this machine: no key, no request, no name lookup.

What is watched are Python's own sockets, through the interpreter's audit events.  Code in C that opens sockets by
itself and processes that the loop starts are out of reach; they find placeholders where the keys were.  A host name
that is given to `socket.connect` itself, past `getaddrinfo`, is looked up by the system before the event: then the
connection is blocked by its address.
"""

from __future__ import annotations

import ipaddress
import os
import socket
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from harness.errors import NetworkBlockedError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["PLACEHOLDER", "REAL_API", "offline"]

PLACEHOLDER: Final = "placeholder-of-the-trajectory-harness"
"""What keys hold during a run.  Clients refuse to be built without a key, so they get one that opens nothing."""

REAL_API: Final = "https://api.anthropic.com"
"""Where a client of the loop's own points when no local model serves it: a request there is blocked by name, whereas
the gateway on this machine that the environment may name would pass it on."""

_KEY_SUFFIXES: Final = ("_API_KEY", "_API_TOKEN", "_AUTH_TOKEN")
_KEYS: Final = frozenset(
    {
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_IDENTITY_TOKEN",
        "AWS_ACCESS_KEY_ID",
        "AWS_BEARER_TOKEN_BEDROCK",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "HF_TOKEN",
        "HUGGING_FACE_HUB_TOKEN",
    }
)
_REMOVED: Final = frozenset(
    {
        "ANTHROPIC_CUSTOM_HEADERS",  # may carry a key, in a form that no placeholder could keep
        "GOOGLE_APPLICATION_CREDENTIALS",  # a file with a key
        *(f"{scheme}_proxy" for scheme in ("all", "http", "https")),
        *(f"{scheme}_PROXY" for scheme in ("ALL", "HTTP", "HTTPS")),
    }
)

_HOST_FIRST: Final = frozenset({"socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"})
_SOCKET_FIRST: Final = frozenset({"socket.connect", "socket.sendto", "socket.sendmsg"})

_watchers: list[
    list[str]
] = []  # one list of blocked targets a run in progress; the hook does nothing while there is none
_installed = False


@contextmanager
def offline(base_url: str = REAL_API) -> Iterator[list[str]]:
    """Cut this process off from the network for the duration of a run.

    The guard and the environment belong to the process: threads of the loop are guarded as well, and two runs must
    not overlap in one process.

    Args:
        base_url: where clients that the loop builds itself find the API.

    Yields:
        The targets (`host:port`) that were blocked so far, each once.  A loop that swallows the error has still tried.
    """
    _install()
    blocked: list[str] = []
    before = dict(os.environ)
    _guard_environment(base_url)
    _watchers.append(blocked)
    try:
        yield blocked
    finally:
        _watchers[:] = [one for one in _watchers if one is not blocked]  # `remove` would take an equal list for it
        _restore_environment(before)


def _restore_environment(before: Mapping[str, str]) -> None:
    """As it was, also where the loop set or removed something: the next case must not see it."""
    for name in os.environ.keys() - before.keys():
        del os.environ[name]
    for name, value in before.items():
        if os.environ.get(name) != value:
            os.environ[name] = value


def _guard_environment(base_url: str) -> None:
    """Replaces what would lead outside."""
    changes: dict[str, str | None] = dict.fromkeys((name for name in _REMOVED if name in os.environ), None)
    for name in os.environ:
        if name in _KEYS or name.endswith(_KEY_SUFFIXES):
            changes[name] = PLACEHOLDER
    changes |= {"ANTHROPIC_API_KEY": PLACEHOLDER, "ANTHROPIC_BASE_URL": base_url, "NO_PROXY": "*", "no_proxy": "*"}
    for name, value in changes.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def _install() -> None:
    """Audit hooks cannot be removed, so one is installed at the first run and stays, idle, for the process."""
    global _installed  # noqa: PLW0603 - the hook belongs to the process as well
    if not _installed:
        sys.addaudithook(_audit)
        _installed = True


def _audit(event: str, args: tuple[Any, ...]) -> None:
    # Called for every import, file and compilation of the process: the first test must be the cheapest.
    if not _watchers or not event.startswith("socket."):
        return
    if event in _HOST_FIRST:
        _check(args[0], args[1] if len(args) > 1 else None)
    elif event in _SOCKET_FIRST and args[0].family in (socket.AF_INET, socket.AF_INET6) and args[1]:
        _check(args[1][0], args[1][1])
    elif event == "socket.getnameinfo":
        _check(args[0][0], args[0][1])


def _check(host: str | bytes | bytearray | None, port: Any) -> None:
    name = host.decode("ascii", "replace") if isinstance(host, bytes | bytearray) else host or ""
    if _is_local(name.partition("%")[0].rstrip(".").lower()):
        return
    bracketed = f"[{name}]" if ":" in name else name
    target = f"{bracketed}:{port}" if port is not None else bracketed
    if _watchers and target not in _watchers[-1]:
        _watchers[-1].append(target)
    raise NetworkBlockedError(
        f"blocked a connection to {target}: scripted and recorded cases stay on this machine; let the loop take "
        "'client' or read ANTHROPIC_BASE_URL when it runs, and let the case stub tools that need the network"
    )


def _is_local(host: str) -> bool:
    if host in ("", "localhost", socket.gethostname().lower()) or host.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None) or address
    return bool(mapped.is_loopback or mapped.is_unspecified)
