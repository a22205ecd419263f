# SPDX-License-Identifier: MIT-0
"""Makes `harness` importable in every test below this folder."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
