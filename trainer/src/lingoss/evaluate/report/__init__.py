# SPDX-License-Identifier: MIT-0
"""One report in three dresses: terminal, Markdown, and one self-contained HTML file that loads nothing."""

from lingoss.evaluate.report.data import Curve, ReportData, write

__all__ = ["Curve", "ReportData", "write"]
