# SPDX-License-Identifier: MIT-0
"""Print the pins of a lock whose names match a pattern, with their hashes: pick.py LOCK REGEX.

So an environment is installed in a few layers, which a node pulls and unpacks side by side.
"""

import re
import sys
from pathlib import Path

PIN = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)==.*?(?=^\S|\Z)", re.MULTILINE | re.DOTALL)


def pick(lock: str, pattern: str) -> str:
    """The text of every pin whose name is matched as a whole. Raises ValueError when there is none."""
    found = [match[0] for match in PIN.finditer(lock) if re.fullmatch(pattern, match[1])]
    if not found:
        raise ValueError(f"no pin is called {pattern}")
    return "".join(found)


if __name__ == "__main__":
    sys.stdout.write(pick(Path(sys.argv[1]).read_text(encoding="utf-8"), sys.argv[2]))
