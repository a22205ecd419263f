# SPDX-License-Identifier: MIT-0
"""Import what the toolbox's commands import, so that the image holds the bytecode of that and of nothing else.

Pods cannot write it (their root is read-only) and would compile each module at each start. Bytecode of everything would
be 100 MB, three times as much.
"""

import importlib

MODULES = (
    "fasttext", "huggingface_hub", "huggingface_hub.file_download", "huggingface_hub.hf_api", "jinja2", "math_verify",
    "numpy", "openai_harmony", "packaging.requirements", "pyarrow.parquet", "pydantic", "rich.console", "rich.progress",
    "rich.table", "safetensors.numpy", "scipy.optimize", "scipy.stats", "statsmodels.stats.contingency_tables",
    "statsmodels.stats.multitest", "statsmodels.stats.power", "statsmodels.stats.proportion", "sympy", "text_to_num",
    "wordfreq", "yaml",
)  # fmt: skip

for module in MODULES:
    importlib.import_module(module)
