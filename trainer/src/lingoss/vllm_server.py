# SPDX-License-Identifier: MIT-0
"""Become a vLLM server: the program of this environment, offline, without secrets that it has no use for."""

import os
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from lingoss.errors import LingossError

_OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
}


def become(
    arguments: Sequence[str], title: str, variables: Mapping[str, str] | None = None, without: Sequence[str] = ()
) -> None:
    """Print the title and the command, and become that `vllm serve`; does not return.

    `variables` are added to the environment, those in `without` are taken out of it beside HF_TOKEN.

    Raises:
        LingossError: there is no vLLM here.
    """
    program = Path(sys.executable).with_name("vllm")  # of this environment, also when it is not activated
    found = str(program) if program.exists() else shutil.which("vllm")
    if found is None:
        raise LingossError(
            "vllm is not installed here: serve in the trainer image (images/trainer), or on a machine with "
            "`pip install vllm==0.26.0`; --dry-run prints the command"
        )
    print(f"{title}\n{shlex.join(arguments)}", flush=True)
    kept = {name: value for name, value in os.environ.items() if name not in ("HF_TOKEN", *without)}
    os.execve(found, list(arguments), {**kept, **_OFFLINE, **(variables or {})})
