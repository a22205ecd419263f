# SPDX-License-Identifier: MIT-0
"""The one error that a user may meet: what happened, with which value, and what to do."""


class LingossError(ValueError):
    """Bad input or a refused action. The command line prints its message as one line and exits with 2."""


class StopError(LingossError):
    """Work that was going well was stopped on purpose: what it reached is saved, and its run is stopped, not failed."""


class TemporaryError(LingossError):
    """Something outside failed that may work in a moment: a hub out of reach, a server in trouble.

    The stages exit with 1 instead of 2, so that a Kubernetes Job tries again.
    """
