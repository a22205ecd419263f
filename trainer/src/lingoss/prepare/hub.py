# SPDX-License-Identifier: MIT-0
"""The Hugging Face Hub: which files a pinned commit has, their sizes, and their download. Nothing else talks to it.

The token is read from the environment variable HF_TOKEN here, given to each call and never printed; a token that
`hf auth login` stored is not used, so that a pod and a laptop see the same.
"""

import contextlib
import hashlib
import io
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from lingoss.config.prepare import Pinned
from lingoss.errors import LingossError, TemporaryError
from lingoss.models import is_model_file
from lingoss.models.shards import Spec
from lingoss.prepare.place import partial_of
from lingoss.progress import Bytes
from lingoss.runs.files import writing

Kind = Literal["model", "dataset"]
_DATA = (".parquet", ".jsonl", ".json", ".csv", ".tsv")
_PIECE = 1 << 24
_TRANSIENT = (408, 425, 429)


@dataclass(frozen=True, slots=True)
class HubFile:
    """A file of a repository. `digest` is its sha256, or for a small file that of git: the SHA-1 of a blob."""

    name: str
    size: int
    digest: str


@dataclass(frozen=True, slots=True)
class Listing:
    """The files that are needed of one repository at one commit."""

    source: str
    revision: str
    kind: Kind
    files: tuple[HubFile, ...]

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)

    @property
    def name(self) -> str:
        """The repository's name without its owner."""
        return self.source.rpartition("/")[2]


def download_folder(root: Path, source: Pinned) -> Path:
    """Where a repository is downloaded to, below the root."""
    return Path(root) / "downloads" / f"{source.source.replace('/', '--')}-{str(source.revision)[:12]}"


def listing(source: Pinned, kind: Kind) -> Listing:
    """Ask the Hub for the files of `source`: of a model safetensors and text files, of a data set its tables.

    Raises:
        LingossError: no such repository or commit, no right to read it, or nothing in it that is needed.
        TemporaryError: the Hub cannot be reached.
    """
    api = _api()
    from huggingface_hub.hf_api import RepoFile

    with _readable_errors(source, kind):
        entries = api.list_repo_tree(
            source.source, recursive=True, revision=source.revision, repo_type=kind, token=_token()
        )
        found = [entry for entry in entries if isinstance(entry, RepoFile)]
    files = tuple(
        HubFile(entry.path, entry.size, entry.lfs.sha256 if entry.lfs else entry.blob_id)
        for entry in sorted(found, key=lambda entry: str(entry.path))
        if _is_needed(str(entry.path), kind)
    )
    if not any(kind == "dataset" or file.name.endswith(".safetensors") for file in files):
        what = "no *.safetensors (pickles are not loaded)" if kind == "model" else f"no file of {', '.join(_DATA)}"
        raise LingossError(f"{source.source} at {source.revision} has {what}: choose another {kind}")
    return Listing(source.source, str(source.revision), kind, files)


def tensor_specs(source: Pinned, files: Listing) -> dict[str, Spec]:
    """Kind and shape of every tensor of a model, from the first bytes of its files. Raises as `listing`."""
    specs: dict[str, Spec] = {}
    with _readable_errors(source, "model"):
        for file in files.files:
            if file.name.endswith(".safetensors"):
                header = _api().parse_safetensors_file_metadata(
                    source.source, file.name, revision=source.revision, token=_token()
                )
                specs |= {name: Spec(one.dtype, tuple(one.shape)) for name, one in header.tensors.items()}
    return specs


def download(source: Pinned, files: Listing, target: Path) -> None:
    """Download the files into `target`; what is there already, also a part of a file, is not loaded again.

    The library's own download begins each file anew in every process, because it cannot trust locks on a shared volume;
    here the lock of the run folder guards the files, and each is compared with the digest that the Hub gives.

    Raises:
        LingossError: no right to read, no space, or no right to write.
        TemporaryError: the connection broke, or a file arrived damaged; the same command goes on.
    """
    with Bytes(f"download {files.name}", files.size) as report:
        for file in files.files:
            place = target / file.name
            if place.is_file() and place.stat().st_size == file.size:
                report(file.size)
            else:
                with writing(place), _readable_errors(source, files.kind):
                    _load(files, file, partial_of(place), report)
                    _check(partial_of(place), file)
                    os.replace(partial_of(place), place)


def _load(files: Listing, file: HubFile, partial: Path, report: Callable[[int], None]) -> None:
    """Append to `partial` what it lacks of the file."""
    api = _api()
    from huggingface_hub import hf_hub_url
    from huggingface_hub.file_download import http_get
    from huggingface_hub.utils import build_hf_headers, disable_progress_bars

    disable_progress_bars()  # they draw on a log as on a terminal
    url = hf_hub_url(files.source, file.name, repo_type=files.kind, revision=files.revision, endpoint=api.endpoint)
    headers = build_hf_headers(token=_token(), library_name="lingoss")
    partial.parent.mkdir(parents=True, exist_ok=True)
    with _Counted(partial, report) as stream:
        here = stream.tell()
        if here > file.size:  # of another file: begin again
            here = stream.truncate(stream.seek(0))
        report(here)
        http_get(url, stream, resume_size=here, headers=headers, expected_size=file.size)
        stream.flush()
        os.fsync(stream.fileno())


class _Counted(io.BufferedWriter):
    """A file that is appended to and tells how much is written."""

    def __init__(self, path: Path, report: Callable[[int], None]) -> None:
        super().__init__(io.FileIO(path, "ab"))
        self._report = report

    def write(self, data: Any) -> int:
        """As of any file."""
        self._report(len(data))
        return super().write(data)


def _check(path: Path, file: HubFile) -> None:
    """Compare with what the Hub said; a damaged file is removed, so that the next start loads it anew."""
    large = len(file.digest) == hashlib.sha256().digest_size * 2
    digest = hashlib.sha256() if large else hashlib.sha1(f"blob {file.size}\0".encode(), usedforsecurity=False)
    with path.open("rb") as stream:
        while piece := stream.read(_PIECE):
            digest.update(piece)
    if digest.hexdigest() != file.digest:
        path.unlink()
        raise TemporaryError(f"{file.name} arrived damaged and was removed: start again, and only it is loaded again")


def _is_needed(name: str, kind: Kind) -> bool:
    if kind == "model":
        return is_model_file(name)
    return name.endswith(_DATA) and not any(part.startswith(".") for part in Path(name).parts)


def _api() -> Any:
    """The library's client. Called before anything else of it is imported: then it reads the environment, once."""
    os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
    try:
        from huggingface_hub import HfApi
    except ModuleNotFoundError as error:
        raise LingossError(
            f"{error.name} is not installed: pip install 'lingoss[hub]', or use the toolbox image"
        ) from error
    return HfApi(library_name="lingoss")


def _token() -> str | Literal[False]:
    token = os.environ.get("HF_TOKEN", "").strip()  # a Secret made from a file ends with a line break
    if not (token.isascii() and token.isprintable()) or " " in token:
        raise LingossError("HF_TOKEN holds characters that no token has: make the Secret again")
    return token or False


@contextlib.contextmanager
def _readable_errors(source: Pinned, kind: Kind) -> Iterator[None]:
    """What the Hub's library raises, in one line that says what to do."""
    import httpx
    from huggingface_hub import errors

    name = f"{kind} {source.source}"
    try:
        yield
    except errors.GatedRepoError as error:
        raise LingossError(_gated(name)) from error
    except errors.RepositoryNotFoundError as error:
        raise LingossError(_not_found(name)) from error
    except errors.RevisionNotFoundError as error:
        raise LingossError(
            f"{name} has no commit {source.revision} on the Hub: set revision to one that its page lists"
        ) from error
    except errors.OfflineModeIsEnabled as error:
        raise LingossError(f"{name} cannot be downloaded while HF_HUB_OFFLINE is set: unset it for prepare") from error
    except errors.HfHubHTTPError as error:
        raise _http_error(name, error.response.status_code) from error
    except errors.LocalEntryNotFoundError as error:  # the library's way to say that a file could not be asked for
        cause = error.__cause__
        if isinstance(cause, errors.HfHubHTTPError):
            raise _http_error(name, cause.response.status_code) from error
        raise _unreachable(name, cause or error) from error
    except (httpx.HTTPError, ConnectionError, TimeoutError) as error:
        raise _unreachable(name, error) from error
    except OSError as error:
        if error.errno is None:  # not of the disk: the answer ended before its end
            raise _unreachable(name, error) from error
        raise


def _gated(name: str) -> str:
    if not _token():
        return f"{name} is gated and HF_TOKEN is not set: accept its terms on its page, then give a token ({_SECRET})"
    return (
        f"{name} is gated, and the account of HF_TOKEN may not read it: accept its terms on its page with that account"
    )


def _not_found(name: str) -> str:
    if not _token():
        return f"{name} is not on the Hub, or is private and HF_TOKEN is not set: check the name, or give a token ({_SECRET})"
    return f"{name} is not on the Hub, or the account of HF_TOKEN may not see it: check the name and the token"


def _http_error(name: str, status: int) -> LingossError:
    if status in (401, 403):
        return LingossError(
            f"the Hub refused the token in HF_TOKEN for {name} ({status}): make a new one that may read it ({_SECRET})"
        )
    if status in _TRANSIENT or status >= 500:
        return TemporaryError(f"the Hub answered {status} for {name}: start again later, it goes on where it was")
    return LingossError(f"the Hub answered {status} for {name}: check source and revision")


def _unreachable(name: str, error: BaseException) -> TemporaryError:
    from huggingface_hub import constants

    reason = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
    return TemporaryError(
        f"cannot reach the Hub at {constants.ENDPOINT} for {name} ({reason}): check network, proxy and network policy, "
        "then start again, it goes on where it was"
    )


_SECRET = "on a cluster: kubectl create secret generic hf-token --from-literal=token=…"
