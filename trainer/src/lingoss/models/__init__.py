# SPDX-License-Identifier: MIT-0
"""Base models: fetch the small one, convert any, load any, tell two apart. Nothing here asks a hub for anything."""

from lingoss.models.convert import convert_folder, is_model_file
from lingoss.models.gpt_oss_tokenizer import convert_o200k
from lingoss.models.identity import ModelCard, model_card, model_digest, write_model_card
from lingoss.models.load import fastest_dtype, load_model, load_tokenizer, offline
from lingoss.models.smollm2 import convert_smollm2, fetch_smollm2, smollm2_folder

__all__ = [
    "ModelCard",
    "convert_folder",
    "convert_o200k",
    "convert_smollm2",
    "fastest_dtype",
    "fetch_smollm2",
    "is_model_file",
    "load_model",
    "load_tokenizer",
    "model_card",
    "model_digest",
    "offline",
    "smollm2_folder",
    "write_model_card",
]
