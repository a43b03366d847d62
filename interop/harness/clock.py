"""The clock of a process, set wrong by Debian's `faketime`. What is linked statically is not reached by it."""

from pathlib import Path


def clock(ahead):
    """The environment of a process whose clock is so many seconds ahead: the time of day alone, since how long something takes no
    clock that is set wrong changes."""
    library = next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)
    if library is None:
        raise RuntimeError("there is no libfaketime: the package is faketime")
    return {"LD_PRELOAD": str(library), "FAKETIME": f"{ahead:+d}", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
