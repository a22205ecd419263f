# SPDX-License-Identifier: MIT-0
"""lingoss: reasoning models that think and answer in the language they are asked for."""

__version__ = "0.1.0.dev0"
