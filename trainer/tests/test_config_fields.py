# SPDX-License-Identifier: MIT-0
"""The fields: which of them name the run, that all are documented, and that every config survives its dump."""

import subprocess
import sys
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import annotated_types
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from pydantic.fields import FieldInfo

import lingoss
from lingoss import config
from lingoss.config.common import Mark, Section
from lingoss.config.docs import field_docs, sections
from lingoss.config.explain import known_paths
from lingoss.errors import LingossError

STAGES = sorted(config.STAGES)

SHARED_FREE = {"stage", "root", "run", "lock_wait", "parent"}
MODEL_IN = {"seed", "format", "template", "dtype"}
MODEL_FREE = SHARED_FREE | {"threads"}
OPTIMIZER = {
    f"optimizer.{name}" for name in ("learning_rate", "schedule", "warmup_ratio", "weight_decay", "max_grad_norm")
}
SAVES_AND_LOGS = {
    "checkpoint.save_steps",
    "checkpoint.keep",
    "checkpoint.disk_budget_gb",
    "logging.log_steps",
    "logging.report_to",
}

IDENTITY = {
    "prepare": {"seed", "model.source", "model.revision", "model.dtype", "datasets", "prompt_sets", "languages"},
    "sft": MODEL_IN
    | OPTIMIZER
    | {"data.languages", "data.examples_per_language", "data.mix"}
    | {"max_length", "epochs", "max_steps", "global_batch", "router_aux_loss_coef"}
    | {"lora.rank", "lora.alpha", "lora.dropout", "lora.target_modules", "lora.experts"},
    "grpo": MODEL_IN
    | OPTIMIZER
    | {"engine", "weights", "data.languages", "data.prompts_per_language", "data.without_gold"}
    | {"max_steps", "prompts_per_step", "num_generations", "max_completion_length", "loss_type", "beta"}
    | {"importance_sampling.mode", "importance_sampling.threshold", "mask_truncated_completions", "dynamic_sampling"}
    | {"dynamic_rounds", "validation.steps", "validation.prompts_per_language"}
    | {"sampling.temperature", "sampling.top_p", "sampling.top_k", "sampling.min_p", "reward"},
    "evaluate": MODEL_IN
    | {"prompts.sets", "prompts.languages", "prompts.limit", "bootstrap_draws"}
    | {"generate.k", "generate.temperature", "generate.max_new_tokens"}
    | {
        "gate.prompts_per_language",
        "gate.k",
        "gate.temperature",
        "gate.floor",
        "gate.target",
        "gate.correctness_margin",
    }
    | {"gate.prompts_per_step", "gate.informative_groups", "gate.waive_prompts"}
    | {"gate.max_completion_length", "gate.reward", "gate.mask_truncated_completions"}
    | {"accept.language_margin", "accept.correctness_margin", "accept.format_margin", "accept.repetition_margin"}
    | {"accept.length_ratio", "accept.alpha"},
    "serve": {"seed"},
}
FREE = {
    "prepare": SHARED_FREE | {"disk.reserve_gb"},
    "sft": MODEL_FREE
    | SAVES_AND_LOGS
    | {"data.multilingual_thinking", "data.files", "per_device_batch", "gradient_checkpointing"}
    | {"parallelism", "card_gib", "stop_seconds", "hang_seconds"},
    "grpo": MODEL_FREE
    | SAVES_AND_LOGS
    | {"data.files", "per_device_batch", "gradient_checkpointing", "gate.force"}
    | {"rollout.mode", "rollout.server_url", "rollout.server_timeout", "rollout.gpu_memory_utilization"}
    | {"openrlhf.offload_optimizer", "verl.offload", "cluster_wait", "trust_remote_code"}
    | {"rollout.tensor_parallel", "rollout.batch_tokens", "logging.completions_steps", "logging.completions"}
    | {f"safety.{name}" for name in ("override", "window", "correctness_drop", "share_rise", "length_factor")}
    | {f"safety.{name}" for name in ("informative_floor", "kl", "rollout_kl", "importance_ratio")},
    "evaluate": MODEL_FREE | {"runs", "prompts.files", "generate.batch_tokens", "gate.files"},
    "serve": SHARED_FREE | {"name", "host", "port", "max_model_len", "tensor_parallel", "vllm_args"},
}


def marks(section: type[Section], prefix: str = "") -> dict[str, list[bool]]:
    """Every leaf with its marks."""
    found: dict[str, list[bool]] = {}
    for name, field in section.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, Section):
            found.update(marks(field.annotation, f"{prefix}{name}."))
        else:
            found[prefix + name] = [mark.identity for mark in field.metadata if isinstance(mark, Mark)]
    return found


def leaves(values: dict[str, Any], prefix: str = "") -> set[str]:
    return {
        path
        for name, value in values.items()
        for path in (leaves(value, f"{name}.") if isinstance(value, dict) and name != "reward" else {prefix + name})
    }


@pytest.mark.parametrize("stage", STAGES)
def test_every_field_is_in_one_of_the_two_sets(stage: str) -> None:
    found = marks(config.STAGES[stage])
    assert {path for path, mark in found.items() if mark == [True]} == IDENTITY[stage]
    assert {path for path, mark in found.items() if mark == [False]} == FREE[stage]
    assert set(found) == IDENTITY[stage] | FREE[stage]


@pytest.mark.parametrize("stage", STAGES)
def test_identity_holds_the_marked_fields(stage: str) -> None:
    assert leaves(config.identity(config.load(stage))) == IDENTITY[stage]


def test_identity_ignores_free_fields_and_sees_the_others() -> None:
    base = config.identity(config.load("sft"))
    free = ["root=/elsewhere", "run=9", "per_device_batch=2", "checkpoint.save_steps=3", "threads=1", "lock_wait=0"]
    assert config.identity(config.load("sft", None, free)) == base
    changed = config.identity(config.load("sft", None, ["lora.rank=9"]))
    assert changed == {**base, "lora": {**base["lora"], "rank": 9}}


def test_identity_of_items_in_a_list() -> None:
    found = config.load("prepare", None, [f"datasets=[{{source: a/b, revision: '{'0' * 40}'}}]"])
    assert config.identity(found)["datasets"] == [{"source": "a/b", "revision": "0" * 40}]


@pytest.mark.parametrize("stage", STAGES)
def test_every_field_has_its_sentence(stage: str) -> None:
    for section in sections(config.STAGES[stage]).values():
        documented = field_docs(section)
        for name in section.model_fields:
            assert documented.get(name, "").endswith("."), f"{section.__name__}.{name}"


@pytest.mark.parametrize("stage", STAGES)
def test_configs_are_frozen_and_closed(stage: str) -> None:
    found = config.load(stage)
    with pytest.raises(ValidationError, match="frozen"):
        found.seed = 3
    for section in sections(config.STAGES[stage]).values():
        assert section.model_config["frozen"]
        assert section.model_config["extra"] == "forbid"


@pytest.mark.parametrize("stage", STAGES)
def test_schema_is_strict_described_and_complete(stage: str) -> None:
    made = config.schema(stage)
    for entry in (made, *made.get("$defs", {}).values()):
        assert entry["additionalProperties"] is False
        assert all(field.get("description") for field in entry["properties"].values())
    assert set(made["properties"]) == set(config.STAGES[stage].model_fields)


def test_schema_knows_the_choices_of_other_rooms() -> None:
    properties = config.schema("sft")["properties"]
    assert {"harmony", "plain", "think"} <= set(properties["format"]["enum"])
    assert {"chatml", "gpt-oss"} <= set(properties["template"]["enum"])
    assert properties["stage"]["const"] == "sft"


def test_the_committed_page_is_fresh() -> None:
    page = Path(lingoss.__file__).parents[3] / "docs" / "configuration.md"
    assert page.read_text(encoding="utf-8") == config.markdown(), (
        "docs/configuration.md is stale: run `python -m lingoss.config > docs/configuration.md`"
    )


def test_the_page_names_every_key() -> None:
    page = config.markdown()
    for stage, config_type in config.STAGES.items():
        part = page.partition(f"\n## {stage}\n")[2].partition("\n## ")[0]
        listed = {line.split("`")[1] for line in part.splitlines() if line.startswith("| `")}
        assert listed == set(marks(config_type)), stage


def test_import_is_light() -> None:
    program = (
        "import sys, time; start = time.process_time(); import lingoss.config; spent = time.process_time() - start;"
        "heavy = {'torch', 'transformers', 'numpy', 'trl', 'peft', 'pandas', 'scipy'} & set(sys.modules);"
        "print(spent, sorted(heavy))"
    )
    spent, heavy = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    ).stdout.split(" ", 1)
    assert heavy.strip() == "[]"
    assert float(spent) < 0.5


# Configs at random: each field by its type and bounds; combinations that a rule refuses are dropped.

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=12)
CHOICES = {
    "format": st.sampled_from(["think", "plain", "harmony"]),
    "template": st.sampled_from(["chatml", "gpt-oss"]),
    "languages": st.lists(st.sampled_from(["en", "fr", "ja", "ar"]), min_size=1, unique=True),
    "source": st.sampled_from(["wheel:x", "./a b", "owner/name"]),
    "revision": st.none() | st.just("0123456789" * 4),
    "router_aux_loss_coef": st.just(0.0),
    "top_p": st.just(1.0),
    "top_k": st.just(0),
    "min_p": st.just(0.0),
    "reward": st.dictionaries(st.sampled_from(["language", "correctness"]), st.floats(0.125, 9)),
    "stage": st.nothing(),
}


def values_of(annotation: Any, metadata: list[Any]) -> st.SearchStrategy[Any]:
    """Values of a type as they would stand in YAML."""
    if hasattr(annotation, "__metadata__"):
        extra = [
            part
            for given_part in annotation.__metadata__
            for part in (given_part.metadata if isinstance(given_part, FieldInfo) else [given_part])
        ]
        return values_of(annotation.__origin__, [*metadata, *extra])
    arguments = get_args(annotation)
    if get_origin(annotation) is Literal:
        return st.sampled_from(arguments)
    if type(None) in arguments:
        return st.none() | values_of(arguments[0], metadata)
    if get_origin(annotation) is tuple:
        return st.lists(values_of(arguments[0], []), min_size=1, max_size=3)
    if issubclass(annotation, Section):
        return raw(annotation)
    if annotation is bool:
        return st.booleans()
    if annotation in (int, float):
        bounds = {
            key: getattr(part, key)
            for part in metadata
            for key in ("ge", "gt", "le", "lt")
            if isinstance(part, annotated_types.BaseMetadata) and hasattr(part, key)
        }
        low, high = bounds.get("ge", bounds.get("gt", -1000)), bounds.get("le", bounds.get("lt", 10**6))
        if annotation is int:
            return st.integers(low, min(high, 10**6) - ("lt" in bounds))
        return st.floats(low, high, exclude_min="gt" in bounds, exclude_max="lt" in bounds)
    return TEXTS


def raw(section: type[Section]) -> st.SearchStrategy[dict[str, Any]]:
    """Some fields of a section at random; the rest is left to its default."""
    fields = {
        name: CHOICES.get(name, values_of(field.annotation, list(field.metadata)))
        for name, field in section.model_fields.items()
    }
    chosen = st.lists(st.sampled_from(sorted(set(fields) - {"stage"})), max_size=4, unique=True)
    return chosen.flatmap(lambda names: st.fixed_dictionaries({name: fields[name] for name in names}))


@pytest.mark.parametrize("stage", STAGES)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(data=st.data())
def test_dump_loads_back_equal(stage: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    try:
        made = config.STAGES[stage].model_validate(data.draw(raw(config.STAGES[stage])))
    except ValidationError:
        assume(False)
    path = tmp_path_factory.getbasetemp() / f"dump-{stage}.yaml"
    path.write_text(config.dump(made), encoding="utf-8")
    assert config.load(stage, path) == made
    assert config.identity(config.load(stage, path)) == config.identity(made)


def test_random_configs_are_often_accepted() -> None:
    """Guards the property above against a generator that only makes configs which rules refuse."""
    accepted = dict.fromkeys(STAGES, 0)

    @settings(max_examples=200, deadline=None, database=None, derandomize=True)
    @given(st.sampled_from(STAGES).flatmap(lambda stage: raw(config.STAGES[stage]).map(lambda values: (stage, values))))
    def count(drawn: tuple[str, dict[str, Any]]) -> None:
        stage, values = drawn
        try:
            config.STAGES[stage].model_validate(values)
            accepted[stage] += bool(values)
        except ValidationError:
            pass

    count()
    assert min(accepted.values()) >= 2, accepted


def test_known_paths_lists_sections_and_leaves() -> None:
    paths = known_paths(config.SftConfig)
    assert paths["lora"] is False
    assert paths["lora.rank"] is True


def test_resolved_is_what_dump_writes(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    import json

    made = config.load("sft", None, ["data.files=[./a.jsonl]", "optimizer.learning_rate=1e-5"])
    path.write_text(json.dumps(made.resolved()))
    assert config.load("sft", path) == made


def test_direct_construction_names_the_field() -> None:
    with pytest.raises(ValidationError, match="rnak"):
        config.SftConfig.model_validate({"lora": {"rnak": 3}})
    with pytest.raises(LingossError):
        config.load("sft", None, ["lora.rnak=3"])
