# SPDX-License-Identifier: MIT-0
"""One report in three dresses: terminal, Markdown, and one self-contained HTML file that loads nothing."""

from pathlib import Path

from lingoss.evaluate.report.data import Curve, ReportData, write

__all__ = ["Curve", "ReportData", "build", "write", "write_reports"]


def build(report: ReportData) -> str:
    """The HTML page."""
    from lingoss.evaluate.report import html

    return html.build(report)


def write_reports(report: ReportData, folder: Path) -> list[str]:
    """Write report.html and report.md into `folder`, each whole or not at all; returns their names.

    Raises:
        LingossError: the folder cannot be written.
    """
    from lingoss.evaluate.report import markdown

    pages = {"report.html": build(report), "report.md": markdown.build(report)}
    for name, text in pages.items():
        write(folder / name, text)
    return list(pages)
