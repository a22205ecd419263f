# SPDX-License-Identifier: MIT-0
"""Compile and load a small Python extension, as Triton does with the launcher of each kernel."""

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from lingoss.errors import LingossError

_SOURCE = """\
#include <Python.h>
static PyObject *answer(PyObject *self, PyObject *none) { return PyLong_FromLong(42); }
static PyMethodDef methods[] = {{"answer", answer, METH_NOARGS, ""}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "probe", NULL, -1, methods};
PyMODINIT_FUNC PyInit_probe(void) { return PyModule_Create(&module); }
"""
_LOAD = "import sys; sys.path.insert(0, sys.argv[1]); import probe; sys.exit(probe.answer() != 42)"


def probe() -> str:
    """The compiler that worked, as a phrase. Raises LingossError with the reason when none does.

    Triton takes CC, else gcc, else clang, and the headers of the running Python (triton/runtime/build.py).
    """
    found = os.environ.get("CC") or shutil.which("gcc") or shutil.which("clang")
    if not found:
        raise LingossError("no C compiler: neither CC nor gcc nor clang")
    scheme = sysconfig.get_default_scheme()
    # Debian's scheme for `pip install` names folders that its headers do not lie in.
    headers = sysconfig.get_paths(scheme="posix_prefix" if scheme == "posix_local" else scheme)["include"]
    if not (Path(headers) / "Python.h").is_file():
        raise LingossError(f"{found} is there, but {headers}/Python.h is not")
    with tempfile.TemporaryDirectory(prefix="lingoss-doctor-") as folder:
        source, library = Path(folder) / "probe.c", Path(folder) / "probe.so"
        source.write_text(_SOURCE, encoding="ascii")
        command = [found, str(source), "-O3", "-shared", "-fPIC", "-o", str(library), f"-I{headers}"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False, timeout=60)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise LingossError(f"{found} cannot be run: {error}") from error
        if done.returncode:
            told = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr.strip()[:200])
            raise LingossError(f"{found} cannot compile an extension: {told.strip()}")
        # A scratch mounted noexec lets it be built and not be loaded.
        loaded = subprocess.run(
            [sys.executable, "-c", _LOAD, folder], capture_output=True, text=True, errors="replace", check=False
        )
        if loaded.returncode:
            told = (loaded.stderr.strip().splitlines() or ["no output"])[-1]
            raise LingossError(f"what {found} built in {folder} does not load: {told}")
    return f"{found} with {headers}/Python.h"
