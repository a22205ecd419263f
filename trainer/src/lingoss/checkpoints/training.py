# SPDX-License-Identifier: MIT-0
"""What training holds, as named tensors: the trained weights by PEFT's names, and the optimizer's state beside them.

The frozen base is never part of it. Names: `adapter/<weight>` and `optimizer/<key>/<weight>`. Imports torch.
"""

from collections.abc import Mapping
from typing import Any

import torch

from lingoss.checkpoints.layout import Layout
from lingoss.checkpoints.sharded import TYPES, Read, load
from lingoss.errors import LingossError

ADAPTER, OPTIMIZER = "adapter/", "optimizer/"
GROUPS = "optimizer.json"
"""The document with the optimizer's groups: {names: [weight], settings: {…}} each."""

# What wrappers put into the names of weights: DistributedDataParallel, torch.compile, activation checkpointing.
_WRAPPERS = ("module.", "_orig_mod.", "_checkpoint_wrapped_module.")


def plain_name(name: str) -> str:
    """A weight's name as PEFT writes it to a file: without wrappers and without the name of the adapter."""
    for wrapper in _WRAPPERS:
        name = name.replace(f".{wrapper}", ".").removeprefix(wrapper)
    return name.replace(".default.", ".")


def trained(model: torch.nn.Module) -> dict[str, torch.nn.Parameter]:
    """The weights that are trained, by their plain names."""
    found: dict[str, torch.nn.Parameter] = {}
    for name, weight in model.named_parameters():
        if weight.requires_grad:
            if plain_name(name) in found:
                raise LingossError(f"two trained weights are called {plain_name(name)}: train one adapter, the default")
            found[plain_name(name)] = weight
    return found


def held(model: torch.nn.Module, optimizer: Any) -> tuple[dict[str, torch.Tensor], list[dict[str, Any]]]:
    """(tensors, groups): all that a later process needs to go on. The tensors are training's own, not copies.

    Raises:
        LingossError: the optimizer keeps something other than tensors, or trains what the model does not.
    """
    weights = trained(model)
    tensors: dict[str, torch.Tensor] = {ADAPTER + name: weight.detach() for name, weight in weights.items()}
    names = {id(weight): name for name, weight in weights.items()}
    groups = _groups(optimizer, names)
    for weight, state in optimizer.state.items():
        for key, value in state.items():
            if not isinstance(value, torch.Tensor):
                raise LingossError(
                    f"the optimizer keeps {key} as {type(value).__name__}, which cannot be saved in parts"
                )
            tensors[f"{OPTIMIZER}{key}/{names[id(weight)]}"] = value.detach()
    return tensors, groups


def restore(model: torch.nn.Module, optimizer: Any, layout: Layout, groups: list[dict[str, Any]], read: Read) -> None:
    """Put what was held into a model and an optimizer, however many ranks share them now.

    Raises:
        LingossError: the checkpoint holds other weights, shapes or number formats than the model trains, or the
            optimizer groups them otherwise.
    """
    weights = trained(model)
    stored = {name.removeprefix(ADAPTER) for name in layout if name.startswith(ADAPTER)}
    if odd := sorted(stored ^ weights.keys()):
        which = "does not train" if odd[0] in stored else "trains and the checkpoint lacks"
        raise LingossError(f"the checkpoint holds other weights than the model: {odd[0]} is one that it {which}")
    tensors: dict[str, torch.Tensor] = {ADAPTER + name: weight.detach() for name, weight in weights.items()}
    states: dict[str, dict[str, torch.Tensor]] = {name: {} for name in weights}
    for name, one in layout.items():
        if name.startswith(OPTIMIZER):
            key, _, weight_name = name.removeprefix(OPTIMIZER).partition("/")
            if weight_name not in weights:
                raise LingossError(f"the checkpoint holds the optimizer's {key} of {weight_name}, which is not trained")
            weight = weights[weight_name].detach()
            like = one.shape == tuple(weight.shape)
            # The moments lie as their weight does; the count of steps is one number on every rank.
            made = torch.zeros_like(weight, dtype=TYPES[one.dtype]) if like else None
            states[weight_name][key] = torch.zeros(one.shape, dtype=TYPES[one.dtype]) if made is None else made
            tensors[name] = states[weight_name][key]
    load(tensors, layout, read)
    names = {id(weight): name for name, weight in weights.items()}
    now = _groups(optimizer, names)
    if [group["names"] for group in groups] != [group["names"] for group in now]:
        raise LingossError("the optimizer groups its weights otherwise than when the checkpoint was written")
    order = [name for group in now for name in group["names"]]
    numbers = iter(range(len(order)))
    optimizer.load_state_dict(
        {
            "state": {number: states[name] for number, name in enumerate(order) if states[name]},
            "param_groups": [
                {
                    **{key: _like(own.get(key), value) for key, value in group["settings"].items()},
                    "params": [next(numbers) for _ in group["names"]],
                }
                for group, own in zip(groups, optimizer.param_groups, strict=True)
            ],
        }
    )


def named_groups(groups: list[dict[str, Any]], names: list[str]) -> list[dict[str, Any]]:
    """The groups of an optimizer's state_dict, with the names of the weights that it numbers, as a document."""
    return [
        {
            "names": [names[number] for number in group["params"]],
            "settings": {key: _plain(value) for key, value in group.items() if key != "params"},
        }
        for group in groups
    ]


def _groups(optimizer: Any, names: Mapping[int, str]) -> list[dict[str, Any]]:
    groups = []
    for group in optimizer.param_groups:
        if any(id(weight) not in names for weight in group["params"]):
            raise LingossError("the optimizer has weights that the model does not train")
        settings = {key: _plain(value) for key, value in group.items() if key != "params"}
        groups.append({"names": [names[id(weight)] for weight in group["params"]], "settings": settings})
    return groups


def _plain(value: Any) -> Any:
    """A setting as JSON has it: a tensor's number, a tuple as a list."""
    if isinstance(value, torch.Tensor):
        return value.item()
    return list(value) if isinstance(value, tuple) else value


def _like(own: Any, value: Any) -> Any:
    """A setting from JSON in the form that the optimizer gives it."""
    if isinstance(own, torch.Tensor):
        return torch.as_tensor(value, dtype=own.dtype, device=own.device)
    return tuple(value) if isinstance(own, tuple) else value
