# SPDX-License-Identifier: MIT-0
"""`python -m lingoss` is `lingoss`."""

from lingoss.cli import entry

if __name__ == "__main__":
    entry()
