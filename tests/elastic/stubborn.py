# SPDX-License-Identifier: MIT-0
"""A rank that does not leave: it notes the SIGTERM in FOLDER and goes on. With LINGOSS_FAIL set, rank 1 fails instead."""

import os
import signal
import sys
import time
from pathlib import Path

folder, rank = Path(sys.argv[1]), os.environ["RANK"]
signal.signal(signal.SIGTERM, lambda *_: (folder / f"term-{rank}").touch())
(folder / f"started-{rank}").touch()
if rank == "1" and os.environ.get("LINGOSS_FAIL"):
    sys.exit(3)
while True:
    time.sleep(0.05)
