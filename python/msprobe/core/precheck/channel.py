"""Messages between who hands out operators and the processes that run them: JSON of known length."""

from __future__ import annotations

import json
import socket
import struct
from typing import Any

_LENGTH = struct.Struct(">I")
MAX_BYTES = 1 << 28


class Channel:
    """One end of a pair of connected sockets."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end

    def fileno(self) -> int:
        return self._end.fileno()

    def send(self, message: Any) -> None:
        """Raises ``OSError`` where the other end is gone."""
        data = json.dumps(message).encode()
        self._end.sendall(_LENGTH.pack(len(data)) + data)

    def receive(self) -> Any | None:
        """The next message; None where the other end is gone."""
        try:
            header = self._exactly(_LENGTH.size)
            if header is None:
                return None
            (length,) = _LENGTH.unpack(header)
            data = self._exactly(length) if length <= MAX_BYTES else None
        except OSError:
            return None
        return None if data is None else json.loads(data)

    def _exactly(self, count: int) -> bytes | None:
        parts = bytearray()
        while len(parts) < count:
            part = self._end.recv(min(count - len(parts), 1 << 16))
            if not part:
                return None
            parts += part
        return bytes(parts)

    def close(self) -> None:
        self._end.close()
