# SPDX-License-Identifier: MIT-0
"""Load a model or a tokenizer from a local folder, and never from a hub."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lingoss.errors import LingossError

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

DTYPES = ("float32", "bfloat16")


def offline() -> None:
    """Keep transformers, peft, datasets and TRL from calling out. Call it before any of them is used.

    TRL's trainers and huggingface_hub report usage otherwise, and a missing file would be looked for at the hub.
    """
    hub = sys.modules.get("huggingface_hub.constants")
    if hub is not None:  # imported before us, so it has read the environment already
        hub.HF_HUB_OFFLINE = hub.HF_HUB_DISABLE_TELEMETRY = True  # type: ignore[attr-defined]
    os.environ.update(HF_HUB_OFFLINE="1", HF_HUB_DISABLE_TELEMETRY="1", HF_DATASETS_OFFLINE="1", DO_NOT_TRACK="1")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    # The fast tokenizer forks no worker threads: they only fight the two cores that torch computes on.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


def fastest_dtype() -> str:
    """The number format in which this CPU generates fastest: bfloat16 where it multiplies it in hardware.

    Measured on two cores with AMX: 1.6 to 2.3 times the tokens per second of float32. Without such instructions it is
    emulated and several times slower.
    """
    try:
        flags = set(Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").split())
    except OSError:  # not Linux
        return "float32"
    return "bfloat16" if flags & {"amx_bf16", "avx512_bf16", "bf16"} else "float32"


def load_tokenizer(path: Path | str) -> "PreTrainedTokenizerFast":
    """The tokenizer in `path`, with a padding token.

    Raises:
        LingossError: there is no tokenizer, or it has neither a padding nor an end-of-turn token.
    """
    offline()
    from transformers import AutoTokenizer
    from transformers.utils import logging

    logging.disable_progress_bar()
    folder = _model_folder(path, "tokenizer.json")
    try:
        tokenizer: Any = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except Exception as error:  # the library raises whatever its parser met
        raise LingossError(f"cannot read the tokenizer in {folder}: {_first_line(error)}") from error
    if tokenizer.pad_token_id is None:
        if tokenizer.eos_token_id is None:
            raise LingossError(f"the tokenizer in {folder} has neither a padding nor an end-of-turn token; set one")
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer  # type: ignore[no-any-return]


def load_model(
    path: Path | str, adapter: Path | str | None = None, dtype: str = "float32", trainable: bool = False
) -> "PreTrainedModel":
    """The causal language model in `path`, with the PEFT adapter in `adapter` if one is given.

    For inference (`trainable=False`) the adapter is merged, so that each token costs what it costs in the base model.
    `dtype` is float32 or bfloat16. The model is returned on the CPU, in evaluation mode.

    Raises:
        LingossError: a folder is missing or damaged, the adapter does not fit the model, or the dtype is unknown.
    """
    offline()
    if dtype not in DTYPES:
        raise LingossError(f"unknown dtype {dtype!r}; use one of {', '.join(DTYPES)}")
    folder = _model_folder(path, "config.json")
    import torch
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging

    logging.disable_progress_bar()
    try:
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=getattr(torch, dtype), local_files_only=True)
    except Exception as error:
        raise LingossError(f"cannot load the model in {folder}: {_first_line(error)}") from error
    if adapter is not None:
        model = _with_adapter(model, _model_folder(adapter, "adapter_config.json"), trainable)
    model.eval()
    return model


def _with_adapter(model: Any, folder: Path, trainable: bool) -> Any:
    from peft import PeftModel

    try:
        adapted = PeftModel.from_pretrained(model, folder, is_trainable=trainable)
    except Exception as error:
        raise LingossError(
            f"the adapter in {folder} does not fit the model: {_first_line(error)}; use the base it was trained on"
        ) from error
    return adapted if trainable else adapted.merge_and_unload(safe_merge=True)


def _model_folder(path: Path | str, needed: str) -> Path:
    folder = Path(path)
    if not (folder / needed).is_file():
        raise LingossError(
            f"{folder} holds no {needed}; give the folder of a local model (models are never downloaded)"
        )
    return folder


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
