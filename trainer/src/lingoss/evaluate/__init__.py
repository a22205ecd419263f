# SPDX-License-Identifier: MIT-0
"""generate -> score -> report, compare, gate, accept; power before any of them. Every rate has an interval."""
