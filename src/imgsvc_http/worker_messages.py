"""What the service and its worker processes send each other.

Little is imported here: whatever the process that forks workers imports, each of them holds.
"""

from __future__ import annotations

import struct

READY = b"r"
"""The fork server can fork, or a worker can work."""
FORK = b"f"
"""Fork a worker for the socket that is attached as a file descriptor."""
FORK_SERVER = b"s"
"""Fork another fork server for that socket."""
REQUEST = struct.Struct("<Q")
"""Before a pickled task: its size. The source is attached as a file descriptor."""
REPLY = struct.Struct("<QQ")
"""Before a reply: the sizes of its JSON and of the picture."""
