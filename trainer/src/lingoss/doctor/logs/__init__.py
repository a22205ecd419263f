# SPDX-License-Identifier: MIT-0
"""Logs of all ranks, pods and nodes on one time line, and the first failure in them.

`source` reads bytes of any kind as lines; `anchors` and `scan` find the few lines that say something; `clock` reads their
times; `diagnosis` decides which failure was first and which ones only follow from it.
"""

from lingoss.doctor.logs.diagnosis import Diagnosis, diagnose

__all__ = ["Diagnosis", "diagnose"]
