"""What is sent, and what comes of it at the other end."""

import dataclasses
import time

from ours import MAX_STEP_S


@dataclasses.dataclass
class Message:
    """A publication as a client says it, or gets it. `None` or empty is what it cannot say."""

    topic: str = ""
    payload: bytes = b""
    # How the payload stands there, where that is not as bytes.
    form: str = ""
    grade: int = 0
    retain: bool = False
    # Seconds.
    expiry: float | None = None
    content_type: str | None = None
    properties: list = dataclasses.field(default_factory=list)
    # All properties once more, where names are repeated.
    pairs: list | None = None
    reply: str | None = None
    correlation: object = None
    priority: int | None = None
    identifier: str | None = None
    # Seconds since 1970.
    created: int | None = None


def until(get, seconds=MAX_STEP_S):
    """What `get` has in the end, asked with the seconds that are left; None if nothing."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        found = get(left)
        if found is not None:
            return found
    return None
