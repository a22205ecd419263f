# SPDX-License-Identifier: MIT-0
"""The locks of the images: each resolves to itself, and one that does not is noticed. Asks the package index."""

from pathlib import Path

import lock
import pytest

from images.dockerfiles import ROOT


@pytest.mark.parametrize("one", lock.LOCKS, ids=lambda one: one.path)
def test_resolving_again_changes_nothing(one: lock.Lock) -> None:
    before = (ROOT / one.path).read_text(encoding="utf-8")
    assert before.startswith(f"# {one.title} Made by `make lock-images`.\n")
    assert lock.stale(before, lock.resolve(one)) == []


def test_a_requirement_that_is_not_met_is_noticed(tmp_path: Path) -> None:
    """The smallest lock, in a repository whose requirements went on without it."""
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "build.in").write_text("hatchling\nwheel\neditables\n", encoding="utf-8")
    (tmp_path / "images" / "build.lock").write_text((ROOT / "images" / "build.lock").read_text("utf-8"), "utf-8")
    (tmp_path / "trainer").mkdir()
    (tmp_path / "trainer" / "requirements.lock").write_text("editables==0.5\n", encoding="utf-8")
    (one,) = (one for one in lock.LOCKS if one.path == "images/build.lock")
    changes = lock.stale((ROOT / one.path).read_text("utf-8"), lock.resolve(one, tmp_path))
    assert changes == ["editables==0.5 would come", "setuptools==81.0.0 would go"]


def test_requirements_without_a_solution_are_told(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "build.in").write_text("wheel==0.48.0\nwheel==0.47.0\n", encoding="utf-8")
    (tmp_path / "trainer").mkdir()
    (tmp_path / "trainer" / "requirements.lock").write_text("", encoding="utf-8")
    (one,) = (one for one in lock.LOCKS if one.path == "images/build.lock")
    with pytest.raises(lock.LockError, match=r"images/build\.lock: .*wheel==0\.48\.0 and wheel==0\.47\.0"):
        lock.resolve(one, tmp_path)


def test_what_counts_as_stale() -> None:
    before = "# t\na==1 \\\n    --hash=sha256:11 \\\n    --hash=sha256:22\nb==2 ; x == 'y' \\\n    --hash=sha256:33\n"
    assert lock.stale(before, before.replace("# t", "# another title")) == []
    assert lock.stale(before, before + "    --hash=sha256:44\n") == []  # a wheel was added to a release
    assert lock.stale(before, before.replace("sha256:22", "sha256:55")) == ["sha256:22 is withdrawn"]
    assert lock.stale(before, before.replace("b==2 ;", "b==3 ;")) == [
        "b==2 ; x == 'y' would go",
        "b==3 ; x == 'y' would come",
    ]
