# SPDX-License-Identifier: MIT-0
"""Stage prepare: base model, data sets and prompt sets onto the shared folder, so that everything later runs offline.

Reading order: `stage` (run, its two parts and the plan), `preflight` (what is checked before anything is written),
`hub` (the only place that talks to the Hub), `place` (files to their folder), `result` (what later stages read back).
"""

from lingoss.prepare.result import Prepared, base_of, prepared
from lingoss.prepare.stage import PARTS, cache_folder, plan, run

__all__ = ["PARTS", "Prepared", "base_of", "cache_folder", "plan", "prepared", "run"]
