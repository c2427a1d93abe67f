"""Messages between a pool and its worker processes.

Little is imported here: whatever the process that forks workers imports, each of them holds.
"""

from __future__ import annotations

import struct

READY = b"r"
"""The fork server can fork, or a worker can work: file descriptors of its process and notes are attached."""
FAILED = b"m"
"""The fork server cannot import a module. Its name and the reason follow."""
FORK = b"f"
"""Fork a worker for the socket that is attached as a file descriptor."""
FORK_SERVER = b"s"
"""Fork another fork server for that socket."""
REFUSED = b"x"
"""The machine refuses another process."""
REQUEST = struct.Struct("<Q")
"""Before a pickled task: its size. A source may be attached as a file descriptor."""
REPLY = struct.Struct("<QQ")
"""Before a reply: the sizes of its JSON and of its data, such as a picture."""
SHORT, CAUSE = 0, 1
"""Bytes of the notes of a worker: that of `show_shortage`, and the `Cause` of its end."""
