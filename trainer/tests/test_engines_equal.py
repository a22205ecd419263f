# SPDX-License-Identifier: MIT-0
"""The same completions earn the same in all three frameworks, to the last bit, each by its own call path; and the same
rewards make the same advantages, by each framework's own code."""

import asyncio
import itertools
import math
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import released
from lingoss.config import GrpoConfig
from lingoss.data import chat, sft_examples
from lingoss.grpo import verl as our_verl
from lingoss.grpo.groups import EPSILON, advantages
from lingoss.grpo.rollout import Completion
from lingoss.grpo.scoring import Scorer
from lingoss.rewards import VARIABLE, Settings, openrlhf, request_to_json, verl
from lingoss.score import Rules
from lingoss.transcript import chat_format, stop_ids

GRID = 4096


def completions(format: str, tokenizer: Any) -> list[Completion]:
    """Right ones, wrong ones, cut ones, broken ones: one sample each, as an engine would have drawn them."""
    found = []
    for number, row in enumerate(sft_examples(2)):
        render, stop = chat_format(format).render, chat_format(format).STOP[0]
        right = render(row.reasoning, row.answer).removesuffix(stop)
        texts = [
            right + stop,
            render(row.reasoning, "17 und sonst nichts.").removesuffix(stop) + stop,
            right,  # cut exactly before its stop token
            right[: len(right) * 2 // 3],
            right + stop.replace("|>", "") + stop,
            right + "<|im_start|>" + stop if format != "harmony" else right + "<|call|>",
            stop,
            (f"{row.reasoning} " * 6) + stop,
        ]
        text = texts[number % len(texts)]
        ids = list(tokenizer(text, add_special_tokens=False)["input_ids"])
        ended = bool(ids) and ids[-1] in stop_ids(format, tokenizer)
        prompt = list(tokenizer(chat.prompt_text(row, format), add_special_tokens=False)["input_ids"])
        found.append(Completion(row, 0, prompt, ids, [], "stop" if ended else "length"))
    return found


def by_trl(format: str, tokenizer: Any, drawn: Sequence[Completion]) -> list[float]:
    template = "gpt-oss" if format == "harmony" else "chatml"
    scorer = Scorer(GrpoConfig(format=format, template=template), tokenizer, sorted(stop_ids(format, tokenizer)))
    return [verdict.reward for verdict in scorer(drawn)]


def by_openrlhf(format: str, tokenizer: Any, drawn: Sequence[Completion]) -> list[float]:
    """`SingleTurnAgentExecutor.execute` of the released package, which loads the reward by its path and decodes."""

    class Engine:
        def __init__(self, one: Completion) -> None:
            self.one = one

        async def generate(self, prompt_ids: list[int], params: Any, multi_modal_data: Any) -> Any:
            assert prompt_ids == self.one.prompt_ids  # what it makes of our rendered prompt
            output = SimpleNamespace(token_ids=self.one.ids, finish_reason=self.one.finish_reason, logprobs=None)
            return SimpleNamespace(outputs=[output])

    def tensors(text: str, add_special_tokens: bool, return_tensors: str) -> dict[str, Any]:
        return {"input_ids": [np.array(tokenizer(text, add_special_tokens=add_special_tokens)["input_ids"])]}

    class Tokenizer:
        __call__ = staticmethod(tensors)
        decode = staticmethod(tokenizer.decode)

    async def all_of_them(executor: Any) -> list[float]:
        found = []
        for one in drawn:
            params = SimpleNamespace(max_tokens=len(one.ids) or 1, logprobs=None)
            label = request_to_json(one.prompt.request())
            text, longest = chat.prompt_text(one.prompt, format), len(one.prompt_ids) + len(one.ids) + 1
            output = await executor.execute(text, label, params, longest, Tokenizer(), Engine(one))
            assert output["truncated"] == (one.finish_reason == "length")
            found.append(output["reward"])
        return found

    with released.importable(), released.bare(["openrlhf", "openrlhf.utils"], ["aiohttp"]):
        from openrlhf.utils.agent import SingleTurnAgentExecutor  # type: ignore[import-not-found]

        return asyncio.run(all_of_them(SingleTurnAgentExecutor([openrlhf.__file__])))


class Sample:
    """A batch of one, as far as veRL's reward manager reads its DataProto."""

    def __init__(self, batch: dict[str, Any], values: dict[str, Any]) -> None:
        self.batch, self.non_tensor_batch = batch, values

    def __getitem__(self, at: Any) -> "Sample":
        if isinstance(at, slice):
            return Sample(self.batch, dict(self.non_tensor_batch))
        batch = {name: column[at] for name, column in self.batch.items()}
        return Sample(batch, {name: column[at] for name, column in self.non_tensor_batch.items()})


def by_verl(format: str, tokenizer: Any, drawn: Sequence[Completion]) -> list[float]:
    """`NaiveRewardManager` of the released package under ours, and its own loading of both files by path."""
    import torch

    def sample(one: Completion, longest: int) -> Sample:
        padding = longest - len(one.ids)
        responses = torch.tensor([one.ids + [0] * padding])
        attention = torch.tensor([[1] * len(one.prompt_ids) + [1] * len(one.ids) + [0] * padding])
        truth = {"style": "rule", "ground_truth": request_to_json(one.prompt.request())}
        values = {"data_source": "lingoss", "reward_model": truth, "extra_info": {"id": one.prompt.id}}
        columns = {name: np.array([value], dtype=object) for name, value in values.items()}
        return Sample({"responses": responses, "attention_mask": attention}, columns)

    async def all_of_them(load: Any) -> list[float]:
        manager_file = str(Path(our_verl.__file__).with_name("reward_manager.py"))
        compute = load(module_path=verl.__file__, object_name="compute_score")
        manager = load(module_path=manager_file, object_name="RewardManager")(None, tokenizer, compute)
        longest = max(len(one.ids) for one in drawn) + 3
        found = [await manager.run_single(sample(one, longest)) for one in drawn]
        assert all(one["reward_extra_info"]["score"] == one["reward_score"] for one in found)
        return [one["reward_score"] for one in found]

    packages = ["verl", "verl.experimental", "verl.experimental.reward_loop", "verl.utils", "verl.trainer"]
    absent = ["ray", "tensordict", "transfer_queue", "omegaconf"]
    with released.importable(), released.bare([*packages, "verl.trainer.ppo"], absent):
        import verl as package  # type: ignore[import-not-found]

        package.DataProto = Sample
        from verl.utils.import_utils import load_extern_object  # type: ignore[import-not-found]

        return asyncio.run(all_of_them(load_extern_object))


@pytest.mark.parametrize("format", ["think", "plain"])
def test_rewards_are_equal_to_the_last_bit(format: str, tiny_llama: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from lingoss.models import load_tokenizer

    tokenizer = load_tokenizer(tiny_llama)
    monkeypatch.setenv(VARIABLE, Settings(format, Rules()).to_json())
    drawn = completions(format, tokenizer)
    expected = by_trl(format, tokenizer, drawn)
    assert by_openrlhf(format, tokenizer, drawn) == expected
    assert by_verl(format, tokenizer, drawn) == expected
    _tell_something(expected, drawn)


def test_harmony_rewards_are_equal_to_the_last_bit(
    gpt_oss_tokenizer_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lingoss.models import load_tokenizer

    tokenizer = load_tokenizer(gpt_oss_tokenizer_folder)
    monkeypatch.setenv(VARIABLE, Settings("harmony", Rules()).to_json())
    drawn = completions("harmony", tokenizer)
    expected = by_trl("harmony", tokenizer, drawn)
    assert by_openrlhf("harmony", tokenizer, drawn) == expected
    _tell_something(expected, drawn)


def _tell_something(rewards: Sequence[float], drawn: Sequence[Completion]) -> None:
    """Whether these completions can tell a difference: some earn all, some nothing, and no cut one anything."""
    assert max(rewards) > 0.9
    assert rewards.count(0.0) < len(rewards) / 2 + len(rewards) / 4
    cut = [reward for reward, one in zip(rewards, drawn, strict=True) if one.finish_reason == "length"]
    assert len(cut) >= 2
    assert set(cut) == {0.0}
    assert all((reward * GRID).is_integer() for reward in rewards)


def by_openrlhfs_code(rewards: Sequence[float], size: int) -> list[float]:
    """`RemoteExperienceMaker.compute_advantages_and_returns`: one experience for each sample, two tokens long."""
    import torch

    tools: dict[str, Any] = {
        "torch": torch,
        "Optional": __import__("typing").Optional,
        "Union": __import__("typing").Union,
    }
    tools |= {"Tuple": __import__("typing").Tuple, "List": list, "Experience": object}
    compute = released.method("openrlhf/models/utils.py", None, "compute_reward", dict(tools))
    maker = "openrlhf/trainer/ppo_utils/experience_maker.py", "RemoteExperienceMaker"
    names = {**tools, "itertools": itertools, "compute_reward": compute, "apply_length_penalties": lambda *_: None}
    settings = released.arguments(
        algo={"advantage": {"estimator": "group_norm", "gamma": 1.0, "no_std_norm": False}},
        rollout={"n_samples_per_prompt": size},
        reward={"clip_range": (-10, 10)},
    )
    experiences = [
        SimpleNamespace(
            index=[number],
            rewards=torch.tensor([reward], dtype=torch.float32),
            action_mask=torch.ones(1, 2),
            kl=torch.zeros(1, 2),
            info={},
        )
        for number, reward in enumerate(rewards)
    ]
    maker_self = SimpleNamespace(
        strategy=SimpleNamespace(args=settings),
        kl_ctl=SimpleNamespace(value=0.0),
        advantage_estimator="group_norm",
    )
    returns = released.method(*maker, "get_cumulative_returns", names)
    maker_self.get_cumulative_returns = lambda *given: returns(maker_self, *given)
    found = released.method(*maker, "compute_advantages_and_returns", names)(maker_self, experiences)
    assert all(one.advantages[0, 0] == one.advantages[0, 1] for one in found)  # every token has its sample's
    return [float(one.advantages[0, 0]) for one in found]


def by_verls_code(rewards: Sequence[float], size: int, scaled: bool = True) -> list[float]:
    """`compute_grpo_outcome_advantage`: the reward at a sample's last token, groups by prompt."""
    import collections

    import torch

    names = {
        "torch": torch,
        "np": np,
        "defaultdict": collections.defaultdict,
        "Optional": __import__("typing").Optional,
    }
    names["AlgoConfig"] = object
    compute = released.method("verl/trainer/ppo/core_algos.py", None, "compute_grpo_outcome_advantage", names)
    table = torch.zeros(len(rewards), 2)
    table[:, 1] = torch.tensor(rewards)
    groups = np.array([number // size for number in range(len(rewards))])
    found, _ = compute(table, torch.ones(len(rewards), 2), groups, norm_adv_by_std_in_grpo=scaled)
    return [float(row[0]) for row in found]


GROUPS = st.integers(2, 16).flatmap(
    lambda size: st.lists(
        st.lists(st.integers(0, GRID).map(lambda grid: grid / GRID), min_size=size, max_size=size),
        min_size=1,
        max_size=4,
    )
)


@settings(max_examples=40)
@given(groups=GROUPS)
@example(groups=[[0.7001953125] * 8])
@example(groups=[[1.0] * 3, [0.0, 0.0, 1 / GRID]])
def test_advantages_agree_with_trls(groups: list[list[float]]) -> None:
    size, rewards = len(groups[0]), [reward for group in groups for reward in group]
    ours, unscaled = advantages(rewards, size), advantages(rewards, size, scaled=False)
    deviation = [float(np.std(group, ddof=1)) for group in groups for _ in group]
    # Each framework adds another constant to the deviation: TRL 1e-4, veRL 1e-6, OpenRLHF 1e-9.
    for theirs, epsilon in ((by_openrlhfs_code(rewards, size), 1e-9), (by_verls_code(rewards, size), 1e-6)):
        for own, other, spread in zip(ours, theirs, deviation, strict=True):
            if spread == 0:
                assert own == other == 0
            else:
                assert other * (spread + epsilon) == pytest.approx(own * (spread + EPSILON), rel=1e-3, abs=3e-7)
                assert other == pytest.approx(own, rel=1.1 * EPSILON / spread + 1e-3, abs=1e-4)
    assert by_verls_code(rewards, size, scaled=False) == pytest.approx(unscaled, abs=3e-7)


def test_why_rewards_lie_on_a_grid() -> None:
    """Sixteen groups of eight equal rewards, which float32 cannot sum exactly: OpenRLHF divides the rounding error by
    1e-9, and all eight completions are pushed as if they had been far better or worse than each other."""
    off = max((number / 37 for number in range(1, 20)), key=lambda one: abs(by_openrlhfs_code([one] * 128, 8)[0]))
    on = math.floor(off * GRID) / GRID
    assert abs(by_openrlhfs_code([off] * 128, 8)[0]) == 10  # where its own clip ends it
    assert abs(by_verls_code([off] * 128, 8)[0]) > 0.01
    assert by_openrlhfs_code([on] * 128, 8) == by_verls_code([on] * 128, 8) == [0.0] * 128
