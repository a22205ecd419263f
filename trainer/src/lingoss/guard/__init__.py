# SPDX-License-Identifier: MIT-0
"""May this release change to that stage? Asked by a Helm hook before an upgrade or rollback changes anything.

`decide` is the rule, a pure function; `workloads` and `volume` collect what it is asked about; `check` prints the answer.
"""

from lingoss.guard.check import check

__all__ = ["check"]
