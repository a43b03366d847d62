"""Waiting without sleeping longer than needed, and never without end."""

import time

# In seconds.
MOMENT = 2.0


class Unmet(AssertionError):
    """What a test waited for did not come about."""


def until(what, condition, within=10.0):
    """Polls until the condition gives something true, and gives that back. An exception counts as "not yet"."""
    begun = time.monotonic()
    end = begun + within
    while True:
        try:
            last = condition()
            if last:
                return last
        except Exception as error:
            last = error
        if time.monotonic() > end:
            raise Unmet(f"not within {within:g} s: {what}; last: {brief(last)}")
        # What takes longer than a moment is not looked at as often.
        time.sleep(0.02 if time.monotonic() - begun < MOMENT else 0.05)


def throughout(what, condition, seconds):
    """Holds for the whole time; for "nothing happens", where there is nothing to wait for."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        check(condition(), f"did not hold throughout {seconds:g} s: {what}")
        time.sleep(0.05)


def until_still(what, count, seconds, within=20.0):
    """Waits until a count stays what it is for so long: who asks again and again never comes to that."""
    end = time.monotonic() + within
    last, since = count(), time.monotonic()
    while time.monotonic() < since + seconds:
        check(time.monotonic() < end, f"never still for {seconds:g} s within {within:g} s: {what}")
        time.sleep(0.05)
        if (now := count()) != last:
            last, since = now, time.monotonic()


def check(condition, what):
    """An assertion that survives `python -O` and says what was expected."""
    if not condition:
        raise Unmet(what)


def equal(actual, expected, what):
    """Equality that shows both sides."""
    if actual != expected:
        raise Unmet(f"{what}: {brief(actual)}, expected {brief(expected)}")


def brief(value):
    """Enough of a value to understand a failure."""
    text = repr(value)
    return text if len(text) <= 600 else text[:600] + "..."
