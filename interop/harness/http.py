"""HTTP requests to loopback."""

import urllib.error
import urllib.request
from typing import NamedTuple


class Response(NamedTuple):
    """What came back."""

    status: int
    body: str
    headers: dict


def get(port, path="/", timeout=5, host=None, method="GET"):
    """The response, whatever its status."""
    headers = {"host": host} if host else {}
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers=headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=timeout) as response:
            return Response(response.status, response.read().decode(), response.headers)
    except urllib.error.HTTPError as error:
        return Response(error.code, error.read().decode(), error.headers)
