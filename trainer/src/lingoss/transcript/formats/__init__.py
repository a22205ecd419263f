# SPDX-License-Identifier: MIT-0
"""One module for each chat format; `lingoss.transcript` finds them by their file names."""
