# SPDX-License-Identifier: MIT-0
"""Whether a trained model is whole: the tensors of the base that it came from, and finite."""

from pathlib import Path

from lingoss.checkpoints import base_shapes, check_tensors, tensor_shapes
from lingoss.errors import LingossError
from lingoss.runs.files import read_json

_TIED = "lm_head.weight"


def check_model(folder: Path, base: Path) -> None:
    """All tensors of the base with their shapes, all finite; a head that is tied to the embedding may be left out.

    Raises:
        LingossError: names what is wrong.
    """
    found, wanted = tensor_shapes(folder), dict(base_shapes(base))
    if (read_json(base / "config.json")[0] or {}).get("tie_word_embeddings"):
        found.pop(_TIED, None)
        wanted.pop(_TIED, None)
    for name in sorted(wanted.keys() ^ found.keys()):
        raise LingossError(f"{folder} {'lacks' if name in wanted else 'holds'} {name}, unlike the model it came from")
    for path in sorted(folder.glob("*.safetensors")):
        check_tensors(path, {name: wanted.get(name, shape) for name, shape in tensor_shapes(path).items()})
