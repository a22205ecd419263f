# SPDX-License-Identifier: MIT-0
"""Every layout with every option: the released parsers take what we generate, and it asks for the layout's GPUs."""

import itertools
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import released
from lingoss.config import GrpoConfig
from lingoss.errors import LingossError
from lingoss.grpo.openrlhf import command as openrlhf
from lingoss.grpo.ray.engine import job_config
from lingoss.grpo.ray.layout import Layout, layout_of, require_enough, require_shares
from lingoss.grpo.ray.wait import gpus_of, wait
from lingoss.grpo.verl import command as verl

VALUES = sorted((Path(__file__).parents[2] / "values").glob("*.yaml"))
OPENRLHF_PATHS = openrlhf.Paths(*(Path("/data/it's a run") / name for name in ("m", "p", "v", "reward.py", "c", "e")))
VERL_PATHS = verl.Paths(*(Path("/data/it's {a} $run") / name for name in ("m", "t", "a", "p", "v", "r", "rm", "c")))
ADAPTER = verl.Adapter(8, 16, ["k_proj", "q_proj"])
OPTIONS: tuple[dict[str, Any], ...] = (
    {},
    {"beta": 0.05},
    {"importance_sampling": {"mode": "none"}},
    {"importance_sampling": {"threshold": 3.5}},
    {"optimizer": {"schedule": "cosine", "weight_decay": 0.1, "max_grad_norm": 0.5}},
    {"gradient_checkpointing": True},
    {"checkpoint": {"keep": 1, "save_steps": 7}},
    {"logging": {"report_to": "tensorboard"}},
    {"num_generations": 16, "sampling": {"temperature": 0.7}},
    {"trust_remote_code": True, "seed": 2**32 - 1},
)
OPENRLHF_OPTIONS = (*OPTIONS, {"openrlhf": {"offload_optimizer": False}}, {"optimizer": {"schedule": "linear"}})
VERL_OPTIONS = (*OPTIONS, {"verl": {"offload": True}}, {"loss_type": "dr_grpo"})


def layouts(engine: str) -> list[Any]:
    """(name, layout, the config of its values file) for each layout that has the engine."""
    found = []
    for path in VALUES:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
        layout, config = values["global"].get("layout", {}), values["grpo"]["config"]
        if engine in layout.get("engines", ()):
            separate = config["rollout"]["mode"] == "server"
            nodes = Layout(layout["nodes"] - separate, int(separate), layout["gpus"])
            found.append(pytest.param(nodes, config, id=path.stem))
    assert len(found) > 2, "the layouts have moved"
    return found


def openrlhf_config(**changes: Any) -> GrpoConfig:
    """A config of engine openrlhf that trains gpt-oss."""
    return GrpoConfig(
        **{"engine": "openrlhf", "format": "harmony", "template": "gpt-oss", "dtype": "bfloat16", **changes}
    )


def verl_config(**changes: Any) -> GrpoConfig:
    """A config of engine verl."""
    return GrpoConfig(**{"engine": "verl", "dtype": "bfloat16", "rollout": {"mode": "colocate"}, **changes})


@pytest.mark.parametrize(("layout", "config"), layouts("openrlhf"))
def test_openrlhf_takes_every_option_on_every_layout(layout: Layout, config: dict[str, Any]) -> None:
    for option in OPENRLHF_OPTIONS:
        made = openrlhf_config(**{**config, **option})
        openrlhf.require(made, layout)
        command = openrlhf.command(made, layout, OPENRLHF_PATHS, (1500, 1024), "eager", experts=True)
        found = released.openrlhf_arguments(command)
        _same_as_the_config(found, made, layout)
        assert openrlhf.asked_gpus(command) == layout.gpus


def _same_as_the_config(found: Any, config: GrpoConfig, layout: Layout) -> None:
    """What OpenRLHF's `train` reads, against what was meant."""
    completions = config.prompts_per_step * config.num_generations
    assert (found.train.batch_size, found.train.micro_batch_size) == (completions, config.per_device_batch)
    assert (found.rollout.batch_size, found.rollout.n_samples_per_prompt) == (
        config.prompts_per_step,
        config.num_generations,
    )
    gpus = found.actor.num_nodes * found.actor.num_gpus_per_node
    assert gpus == layout.trainer_gpus
    assert completions % (config.per_device_batch * gpus) == 0  # DeepSpeed's own condition, at the start of the run
    engines = found.vllm.num_engines * found.vllm.tensor_parallel_size
    assert engines == (layout.rollout_gpus or layout.trainer_gpus)
    assert found.train.colocate_all == found.vllm.enable_sleep == found.ds.enable_sleep == (not layout.rollout_nodes)
    assert found.data.max_len == 1500
    assert found.rollout.max_new_tokens == 1024
    assert (found.algo.advantage.estimator, found.critic.model_name_or_path) == ("group_norm", None)
    assert (found.algo.kl.init_coef, found.algo.kl.use_loss) == (config.beta, config.beta > 0)
    corrected = config.importance_sampling.mode != "none"
    assert found.algo.advantage.is_correction_level == ("token" if corrected else "off")
    if corrected:
        assert found.algo.advantage.is_correction_threshold == [0.0, config.importance_sampling.threshold]
    assert found.actor.adam.lr == config.learning_rate == 5e-7
    assert (found.ckpt.max_num, found.ckpt.save_steps) == (config.checkpoint.keep + 1, config.checkpoint.save_steps)
    assert (found.ckpt.save_hf, found.ckpt.load_enable, found.ckpt.best_metric_key) == (False, True, "none")
    assert found.ds.lora.rank == 0
    assert found.ds.adam_offload is config.openrlhf.offload_optimizer
    assert found.reward.remote_url == [str(OPENRLHF_PATHS.reward)]
    assert found.logger.wandb.key is None


@given(
    trainer=st.integers(1, 6),
    rollout=st.integers(0, 2),
    gpus=st.sampled_from([1, 2, 3, 4, 8]),
    parallel=st.sampled_from([1, 2, 4, 8]),
    prompts=st.integers(1, 64),
    samples=st.sampled_from([2, 3, 8, 16]),
    batch=st.sampled_from([1, 2, 8]),
)
def test_what_we_let_pass_openrlhf_takes(
    trainer: int, rollout: int, gpus: int, parallel: int, prompts: int, samples: int, batch: int
) -> None:
    if (prompts * samples) % batch:
        return  # refused by the config itself
    layout, mode = Layout(trainer, rollout, gpus), "server" if rollout else "colocate"
    config = openrlhf_config(
        prompts_per_step=prompts,
        num_generations=samples,
        per_device_batch=batch,
        rollout={"mode": mode, "tensor_parallel": parallel},
    )
    try:
        openrlhf.require(config, layout)
    except LingossError:
        fits = gpus % parallel == 0 and (prompts * samples) % (batch * trainer * gpus) == 0
        assert not fits
        return
    command = openrlhf.command(config, layout, OPENRLHF_PATHS, (1500, 1024), "sdpa", experts=False)
    _same_as_the_config(released.openrlhf_arguments(command), config, layout)
    assert openrlhf.asked_gpus(command) == layout.gpus


def test_the_released_parser_refuses_what_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    config = openrlhf_config(rollout={"mode": "server", "tensor_parallel": 4}, per_device_batch=1)
    command = openrlhf.command(config, Layout(4, 1, 4), OPENRLHF_PATHS, (1500, 1024), "eager", experts=True)
    with pytest.raises(SystemExit):
        released.openrlhf_arguments([*command, "--vllm_num_engines", "1"])
    assert "unrecognized arguments: --vllm_num_engines" in capsys.readouterr().err
    with pytest.raises(AssertionError, match="number of sample batches"):
        released.openrlhf_arguments([*command, "--rollout.batch_size", "1"])


def test_verl_takes_every_option() -> None:
    asked, meant, cases = [], [], layouts("verl")
    for number, option in enumerate(VERL_OPTIONS):  # 1 s each, so each on one layout and with one kind of weights
        layout, adapter = cases[number % len(cases)].values[0], None if number % 2 else ADAPTER
        weights = "adapter" if adapter else "full"
        config = verl_config(weights=weights, prompts_per_step=5 * layout.gpus_per_node, per_device_batch=2, **option)
        verl.require(config, layout)
        asked.append(verl.overrides(config, layout, VERL_PATHS, (500, 1024), adapter))
        meant.append((layout, config, adapter))
    for found, (layout, config, adapter) in zip(released.verl_configs(asked), meant, strict=True):
        assert isinstance(found, dict), found
        _verl_as_meant(found, config, layout, adapter)


def _verl_as_meant(found: dict[str, Any], config: GrpoConfig, layout: Layout, adapter: verl.Adapter | None) -> None:
    actor, rollout = (found["actor_rollout_ref"][part] for part in ("actor", "rollout"))
    model, trainer = found["actor_rollout_ref"]["model"], found["trainer"]
    assert trainer["nnodes"] * trainer["n_gpus_per_node"] == layout.gpus
    assert trainer["logger"][:2] == ["console", "file"]
    assert "wandb" not in trainer["logger"]
    assert (found["data"]["train_batch_size"], actor["ppo_mini_batch_size"]) == (config.prompts_per_step,) * 2
    assert (rollout["n"], rollout["temperature"]) == (config.num_generations, config.sampling.temperature)
    assert (rollout["max_model_len"], rollout["response_length"], rollout["prompt_length"]) == (1524, 1024, 500)
    assert actor["optim"]["lr"] == config.learning_rate
    assert found["algorithm"]["norm_adv_by_std_in_grpo"] is (config.loss_type == "dapo")
    assert (actor["use_kl_loss"], actor["kl_loss_coef"]) == (config.beta > 0, config.beta)
    assert found["reward"]["custom_reward_function"]["path"] == str(VERL_PATHS.reward)
    assert found["reward"]["reward_manager"]["module"]["path"] == str(VERL_PATHS.manager)
    assert model["path"] == str(VERL_PATHS.model)
    assert model["trust_remote_code"] is found["data"]["trust_remote_code"] is config.trust_remote_code
    assert actor["checkpoint"].get("save_lora_only", False) is (adapter is not None)
    assert model["lora_rank"] == (8 if adapter else 0)
    assert model["lora_adapter_path"] == (str(VERL_PATHS.adapter) if adapter else None)
    assert trainer["max_actor_ckpt_to_keep"] == config.checkpoint.keep + 1


def test_verl_refuses_an_unknown_key() -> None:
    config = verl_config(prompts_per_step=16)
    right = verl.overrides(config, Layout(1, 0, 8), VERL_PATHS, (500, 1024), ADAPTER)
    refused, taken = released.verl_configs([[*right, "trainer.save_freqs=1"], right])
    assert "Could not override 'trainer.save_freqs'" in refused
    assert taken["trainer"]["save_freq"] == 50


def test_twenty_gpus_do_not_hold_twenty_four() -> None:
    config = openrlhf_config(rollout={"mode": "server", "tensor_parallel": 4}, per_device_batch=1)
    greedy = Layout(5, 1, 4)  # AWS's sample: five nodes in all, five of them told to the training
    with pytest.raises(LingossError, match=r"24 GPUs are asked for .* and the Ray cluster has 20: lower"):
        require_enough(greedy, 20)
    require_enough(Layout(4, 1, 4), 20)
    with pytest.raises(LingossError, match=r"128 completions do not divide among 20 GPUs: set prompts_per_step=15"):
        openrlhf.require(config, greedy)


def test_a_step_that_does_not_divide_is_told_the_nearest_that_does() -> None:
    for gpus, whole, prompts in itertools.product((3, 4, 6, 16, 20), (1, 2, 8), (1, 7, 16)):
        config = openrlhf_config(prompts_per_step=prompts, per_device_batch=1)
        try:
            require_shares(config, gpus, whole)
        except LingossError as refusal:
            advised = int(str(refusal).split("prompts_per_step=")[1].split()[0].rstrip(","))
            require_shares(config.model_copy(update={"prompts_per_step": advised}), gpus, whole)
        else:
            assert prompts * 8 % (gpus * whole) == 0


@pytest.mark.parametrize(
    ("environment", "told"),
    [
        ({}, "LINGOSS_TRAINER_NODES is not set"),
        ({"LINGOSS_TRAINER_NODES": "4", "LINGOSS_GPUS_PER_NODE": "four"}, "'four' is no number"),
        ({"LINGOSS_TRAINER_NODES": "4", "LINGOSS_GPUS_PER_NODE": "0"}, "leave no GPU"),
    ],
)
def test_a_cluster_that_nobody_knows(environment: dict[str, str], told: str) -> None:
    with pytest.raises(LingossError, match=told):
        layout_of(environment)


def test_the_layout_of_the_chart() -> None:
    told = {"LINGOSS_TRAINER_NODES": "4", "LINGOSS_ROLLOUT_NODES": "1", "LINGOSS_GPUS_PER_NODE": "4"}
    assert layout_of(told) == Layout(4, 1, 4)
    assert (layout_of(told).trainer_gpus, layout_of(told).gpus) == (16, 20)


@pytest.mark.parametrize(
    ("changes", "layout", "told"),
    [
        ({"dtype": "float32"}, Layout(1, 0, 8), "set dtype=bfloat16"),
        ({"rollout": {"mode": "server"}}, Layout(1, 0, 8), "needs nodes of their own"),
        ({}, Layout(1, 1, 8), "set rollout.mode=server"),
        ({"rollout": {"tensor_parallel": 3}}, Layout(1, 0, 8), "one of 1, 2, 4, 8"),
    ],
)
def test_what_openrlhf_cannot_do(changes: dict[str, Any], layout: Layout, told: str) -> None:
    with pytest.raises(LingossError, match=told):
        openrlhf.require(openrlhf_config(**changes), layout)


def test_what_verl_cannot_do() -> None:
    with pytest.raises(LingossError, match=r"set optimizer\.schedule=constant or cosine"):
        verl.require(verl_config(optimizer={"schedule": "linear"}), Layout(1, 0, 8))
    with pytest.raises(LingossError, match="computes in bfloat16"):
        verl.require(verl_config(dtype="float32"), Layout(1, 0, 8))


def test_waiting_ends_with_enough_gpus_or_with_the_time() -> None:
    seen = iter([0, 4, 20])
    assert wait(20, 60.0, lambda: next(seen), look=0.0) == 20
    assert wait(24, 0.0, lambda: 20) == 20
    nodes = [{"Alive": True, "Resources": {"GPU": 4.0, "CPU": 8.0}}, {"Alive": False, "Resources": {"GPU": 4.0}}]
    assert gpus_of([*nodes, {"Alive": True, "Resources": {"CPU": 4.0}}]) == 4


def test_a_ray_jobs_own_settings_stay() -> None:
    given = '{"runtime_env": {"env_vars": {"A": "1"}, "working_dir": "gcs://x"}, "metadata": {"job": "j"}}'
    assert job_config(given, {"B": "2"}) == (
        '{"metadata": {"job": "j"}, "runtime_env": {"env_vars": {"A": "1", "B": "2"}, "working_dir": "gcs://x"}}'
    )
    with pytest.raises(LingossError, match="cannot be read"):
        job_config("[]", {})
