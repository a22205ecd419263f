# SPDX-License-Identifier: MIT-0
"""The chart on a real API server."""
