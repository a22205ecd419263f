# SPDX-License-Identifier: MIT-0
"""Configs: one frozen type per stage, read from YAML and `--set`, importable without torch."""

from lingoss.config.common import Section, StageConfig
from lingoss.config.docs import markdown, schema
from lingoss.config.evaluate import EvaluateConfig
from lingoss.config.grpo import GrpoConfig
from lingoss.config.load import STAGES, dump, identity, load, stage_type
from lingoss.config.prepare import PrepareConfig
from lingoss.config.serve import ServeConfig
from lingoss.config.sft import SftConfig

__all__ = [
    "STAGES",
    "EvaluateConfig",
    "GrpoConfig",
    "PrepareConfig",
    "Section",
    "ServeConfig",
    "SftConfig",
    "StageConfig",
    "dump",
    "identity",
    "load",
    "markdown",
    "schema",
    "stage_type",
]
