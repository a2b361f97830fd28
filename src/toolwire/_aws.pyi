from typing import final

from ._framing import Framer

@final
class AWSEventStreamFramer(Framer):
    def __init__(self, *, max_frame_bytes: int = 16 << 20) -> None: ...
