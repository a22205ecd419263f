# SPDX-License-Identifier: MIT-0
"""A scoring process, started by `parallel`: reads batches from its input and writes verdicts to its output.

Not a `multiprocessing` process: a spawned one would import the trainer's main module, and torch with it, and would
outlive a trainer that was killed. This one imports the score alone and ends with its input.
"""

import os
import pickle
import struct
import sys
from typing import Any, BinaryIO

_SIZE = struct.Struct(">Q")


def send(stream: BinaryIO, message: Any) -> None:
    """Write one message, its length before it."""
    data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    stream.write(_SIZE.pack(len(data)) + data)
    stream.flush()


def receive(stream: BinaryIO) -> Any:
    """Read one message.

    Raises:
        EOFError: the other side has ended.
    """
    data = _exactly(stream, _SIZE.unpack(_exactly(stream, _SIZE.size))[0])
    return pickle.loads(data)


def _exactly(stream: BinaryIO, size: int) -> bytes:
    data = stream.read(size)
    if len(data) < size:
        raise EOFError("the other side of the pipe has ended")
    return data


def main() -> None:
    """Score batches of (transcript, request) until the input ends."""
    from lingoss.rewards.safe import verdict

    source = sys.stdin.buffer
    target = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whatever a library prints must not get between the messages
    while True:
        try:
            batch, rules = receive(source)
        except EOFError:
            return
        send(target, [verdict(transcript, request, rules) for transcript, request in batch])
