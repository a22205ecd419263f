# SPDX-License-Identifier: MIT-0
"""Prompts and training examples: drawn from problem families, read from a user's file or from public sets.

Rows are `Prompt` and `Example`; every set has a digest, and the language table shows what a set asks for.
"""

from lingoss.data.files import load_examples, load_prompts, read_examples, read_prompts
from lingoss.data.prompt_sets import grpo_prompts, prompt_set, sft_examples
from lingoss.data.rows import BadRow, Example, Loaded, Prompt, digest, prompt_digest
from lingoss.data.table import LanguageTable, language_table

__all__ = [
    "BadRow",
    "Example",
    "LanguageTable",
    "Loaded",
    "Prompt",
    "digest",
    "grpo_prompts",
    "language_table",
    "load_examples",
    "load_prompts",
    "prompt_digest",
    "prompt_set",
    "read_examples",
    "read_prompts",
    "sft_examples",
]
