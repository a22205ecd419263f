# SPDX-License-Identifier: MIT-0
"""Where a run's folder lies. Every run is found as `<root>/runs/<name>`; for a stage of HOMES that is a link.

Evaluation pods see the volume read-only but for one folder, so what they write has to lie in that folder.
"""

import errno
from pathlib import Path

from lingoss.errors import LingossError
from lingoss.runs.files import make_folder

HOMES = {"evaluate": "evaluations"}
"""Stage -> folder below the root in which its run folders really lie; all others lie in `runs/` itself."""

_READ_ONLY = {errno.EROFS, errno.EACCES}


def make_home(path: Path, stage: str) -> None:
    """Make the run folder `path`, for a stage of HOMES with the link to it. A folder that is there stays as it is.

    Raises LingossError when something is in the way, nothing may be written, or there are no symbolic links.
    """
    if path.is_dir():
        return
    if stage not in HOMES:
        make_folder(path)
        return
    target = Path("..") / HOMES[stage] / path.name  # relative: pods may mount the root elsewhere
    make_folder(path.parent.parent / HOMES[stage] / path.name)
    if path.is_dir():  # the link was there already
        return
    make_folder(path.parent)
    try:
        path.symlink_to(target, target_is_directory=True)
    except FileExistsError:
        if not path.is_dir():  # else another process was faster
            raise LingossError(f"{path} is in the way, it should be a link to {target}: remove it") from None
    except OSError as error:
        raise LingossError(_reason(error, path, target)) from error


def _reason(error: OSError, path: Path, target: Path) -> str:
    told = f"{path} cannot be made as a link to {target} ({error.strerror or error})"
    if error.errno in _READ_ONLY:
        return f"{told}: run `lingoss evaluate --part open` where {path.parent} is writable, then this again"
    return f"{told}: choose a root on a file system with symbolic links, as FSx for Lustre, EFS and NFS have"
