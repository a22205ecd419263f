# SPDX-License-Identifier: MIT-0
"""The one error that a user may meet: what happened, with which value, and what to do."""


class LingossError(ValueError):
    """Bad input or a refused action. The command line prints its message as one line and exits with 2."""
