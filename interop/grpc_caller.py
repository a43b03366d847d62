"""A gRPC client that calls a backend through xDS: `grpc_caller.py TARGET`, with the bootstrap in the environment.

Each line of standard input is a call; the line that answers it holds the backend's tag or the error.
"""

import json
import sys

import grpc

from harness.backends import WHO


def main(target):
    """Serves until standard input ends."""
    call = grpc.insecure_channel(target).unary_unary(WHO)
    print(json.dumps({"ready": True}), flush=True)
    for _ in sys.stdin:
        try:
            answer = {"result": call(b"", timeout=2).decode()}
        except grpc.RpcError as error:
            answer = {"error": f"{error.code().name} {error.details()}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
