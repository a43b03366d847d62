"""The clock of a process, set wrong by Debian's `faketime`. What is linked statically is not reached by it."""

from pathlib import Path

LIBRARIES = ("/usr/lib/*/faketime/libfaketimeMT.so.1", "/usr/lib64/faketime/libfaketimeMT.so.1")


def clock(ahead):
    """The environment of a process whose clock is so many seconds ahead: the time of day alone, since how long something takes no
    clock that is set wrong changes."""
    found = [path for pattern in LIBRARIES for path in Path("/").glob(pattern.lstrip("/"))]
    if not found:
        raise RuntimeError("there is no libfaketime: the package is faketime")
    return {"LD_PRELOAD": str(found[0]), "FAKETIME": f"{ahead:+d}", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
