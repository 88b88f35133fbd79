"""The port of a server of this project."""

import socket

from docgemma.errors import UsageError


def listen(host: str, port: int) -> socket.socket:
    """A bound socket; port 0 takes a free one. Raises UsageError, with the reason."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=128)
    except (OSError, OverflowError) as error:
        raise UsageError(
            f"The address {host} port {port} cannot be used ({getattr(error, 'strerror', None) or error}).",
            hint="Choose another with --port, or 0 for any free one.",
        ) from error
