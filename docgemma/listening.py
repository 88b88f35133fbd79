"""The port of a server of this project, and which requests to it come from this machine alone."""

import ipaddress
import socket
from collections.abc import Iterable

from docgemma.errors import UsageError


def listen(host: str, port: int) -> socket.socket:
    """A bound socket; port 0 takes a free one. Raises UsageError, with the reason."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        server = socket.create_server((host, port), family=family, backlog=128)
        server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # connections inherit it: small answers go at once
        return server
    except (OSError, OverflowError) as error:
        raise UsageError(
            f"The address {host} port {port} cannot be used ({getattr(error, 'strerror', None) or error}).",
            hint="Choose another with --port, or 0 for any free one.",
        ) from error


def is_loopback(host: str) -> bool:
    """Whether this name or address means this machine alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def from_this_machine(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Whether a request was sent by a program or a page of this machine.

    A page of another site, opened in a browser here, connects from here too, also under a name of its own that was
    pointed here (DNS rebinding). But its browser says that name, or where the page comes from.

    Args:
        headers: names in lower case, as ASGI gives them.
    """
    known = {key: value.decode("latin-1") for key, value in headers}
    host, origin = known.get(b"host", ""), known.get(b"origin")
    name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
    return is_loopback(name) and (origin is None or origin.partition("://")[2] == host)
