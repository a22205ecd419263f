# SPDX-License-Identifier: MIT-0
"""The whole pipeline in pods that really run."""
