# SPDX-License-Identifier: MIT-0
"""May this release change to that stage? Asked by two Helm hooks before an upgrade or rollback changes anything.

The first asks the cluster and mounts nothing, so that it can tell of a volume that cannot be mounted; the second asks the
volume. `decide` has the rules, pure functions; `workloads`, `claim` and `volume` collect what they are asked about; `check`
prints the answer. A third hook, before an uninstall, is `cleanup`.
"""

from lingoss.guard.check import check_cluster, check_volume
from lingoss.guard.cleanup import clean_up

__all__ = ["check_cluster", "check_volume", "clean_up"]
