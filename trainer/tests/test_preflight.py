# SPDX-License-Identifier: MIT-0
"""The checks before prepare writes anything: rights, file system, space."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lingoss.errors import LingossError
from lingoss.prepare import preflight
from lingoss.prepare.preflight import Need

NOBODY = 65534


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user may enter; pytest's own are private."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def refusal(work: Callable[[], None]) -> str:
    """The message of the LingossError that `work` raises for a user who is not root; empty when it raises none."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        message = "another error"
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)
            work()
            message = ""
        except LingossError as error:
            message = str(error)
        finally:
            os.write(writing, message.encode())
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as stream:
        message = stream.read()
    os.waitpid(child, 0)
    return message


def test_a_root_of_another_user_is_told_with_the_command(open_folder: Path) -> None:
    root = open_folder / "fresh"
    root.mkdir(mode=0o555)
    uid, gid = (NOBODY, NOBODY) if os.geteuid() == 0 else (os.geteuid(), os.getegid())
    assert refusal(lambda: preflight.check_root(root)) == (
        f"{root} belongs to user {os.geteuid()}, group {root.stat().st_gid} (dr-xr-xr-x), and user {uid}, group {gid} cannot "
        f"write to it or to a folder in it: run `chown -R {uid}:{gid} {root}` as root, or let the chart do it once with "
        "--set storage.owner.create=true"
    )


def test_a_folder_of_another_user_below_the_root_counts_too(open_folder: Path) -> None:
    root = open_folder / "shared"
    (root / "models").mkdir(parents=True)
    (root / "models").chmod(0o555)
    root.chmod(0o777)
    assert "cannot write to it or to a folder in it: run `chown -R" in refusal(lambda: preflight.check_root(root))
    (root / "models").chmod(0o777)
    assert refusal(lambda: preflight.check_root(root)) == ""


def test_a_root_that_cannot_be_made_is_told_with_the_command(open_folder: Path) -> None:
    open_folder.chmod(0o555)
    root = open_folder / "new"
    assert refusal(lambda: preflight.check_root(root)).endswith(f"{root}` as root")


def test_a_root_that_is_missing_is_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    preflight.check_root(tmp_path / "a" / "b")
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == [
        f"preflight: user {os.geteuid()}, group {os.getegid()}",
        f"preflight: {tmp_path / 'a' / 'b'} was made and is writable",
    ]
    assert list((tmp_path / "a" / "b").iterdir()) == []


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/lingoss/runs/x", ("lustre", "10.0.0.7@tcp:/abcd", "/lingoss")),
        ("/lingoss2", ("overlay", "overlay", "/")),
        ("/with space/x", ("nfs4", "host:/share", "/with space")),
        ("/twice", ("ext4", "/dev/b", "/twice")),
    ],
)
def test_the_file_system_is_that_of_the_nearest_mount(
    path: str, expected: tuple[str, str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounts = (
        "overlay / overlay rw 0 0\n"
        "10.0.0.7@tcp:/abcd /lingoss lustre rw,flock 0 0\n"
        "host:/share /with\\040space nfs4 rw 0 0\n"
        "/dev/a /twice xfs rw 0 0\n"
        "/dev/b /twice ext4 rw 0 0\n"
    )
    (tmp_path / "mounts").write_text(mounts)
    monkeypatch.setattr(preflight, "MOUNTS", tmp_path / "mounts")
    assert preflight.file_system(Path(path)) == expected


def test_lustre_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mounts").write_text(f"a@tcp:/b {tmp_path} lustre rw 0 0\n")
    monkeypatch.setattr(preflight, "MOUNTS", tmp_path / "mounts")
    preflight.check_root(tmp_path)
    assert capsys.readouterr().out.splitlines()[2] == (
        f"preflight: file system of {tmp_path} is Lustre (a@tcp:/b at {tmp_path})"
    )


def test_space_is_one_line_with_both_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The figures of gpt-oss-20b: 13.8 GB of MXFP4 become 41.8 GB of bfloat16."""
    monkeypatch.setattr("lingoss.runs.free_bytes", lambda _: 60 * 10**9)
    needs = [Need("download of gpt-oss-20b", 13_800_000_000, 3_800_000_000), Need("bfloat16 copy", 41_830_000_000)]
    preflight.check_space(tmp_path, needs, 2.0)
    parts = "download of gpt-oss-20b 13.8 GB, bfloat16 copy 41.8 GB, less 3.8 GB that are here, reserve 2.0 GB"
    assert capsys.readouterr().out == f"preflight: needs 53.8 GB ({parts}); 60.0 GB are free\n"
    monkeypatch.setattr("lingoss.runs.free_bytes", lambda _: 50 * 10**9)
    with pytest.raises(LingossError) as refused:
        preflight.check_space(tmp_path, needs, 2.0)
    assert str(refused.value) == (
        f"prepare needs 53.8 GB ({parts}), but {tmp_path} has 50.0 GB free: free 3.8 GB or take a larger volume (or lower "
        "disk.reserve_gb)"
    )
