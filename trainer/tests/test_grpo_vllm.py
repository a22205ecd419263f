# SPDX-License-Identifier: MIT-0
"""The way through TRL's vLLM engine, with an engine of our own in its place; the real one has tests of its own.

The stand-in has TRL's interface and keeps a model of its own, so it draws by what it was last sent.
"""

import copy
import importlib.util
from pathlib import Path
from typing import Any

import pytest
import torch

from grpo_helpers import EvenScorer, tiny_grpo, trained_root
from lingoss import runs
from lingoss.errors import LingossError, TemporaryError
from lingoss.evaluate.decoding import Draw, decode_batch
from lingoss.grpo import run
from lingoss.grpo.vllm_engine import engine_made_with, readable_server_errors, require_sampling_logprobs
from test_sft_run import adapter


class Engine:
    """As `trl.generation.vllm_generation.VLLMGeneration`. `error` is added to every log-probability it tells."""

    mode = "colocate"
    error = 0.0
    made: "list[Engine]" = []  # noqa: RUF012

    def __init__(self, model: Any, temperature: float, max_completion_length: int, **settings: Any) -> None:
        self.policy, self.settings, self.temperature, self.limit = model, settings, temperature, max_completion_length
        self.model: Any = None
        self.syncs: list[int] = []
        self.drawn = 0
        self.temperatures: list[float] = []
        Engine.made.append(self)

    def sync_weights(self) -> None:
        self.policy.merge_adapter()
        self.model = copy.deepcopy(self.policy)
        self.policy.unmerge_adapter()
        self.syncs.append(self.drawn)

    def generate(self, prompts: list[list[int]], images: None, num_generations: int, profiler: Any = None) -> Any:
        self.temperatures.append(self.temperature)
        self.drawn += len(prompts)
        draws = [Draw(place, self.drawn + place) for place in range(len(prompts))]
        stops = self.settings["generation_kwargs"]["stop_token_ids"]
        found = decode_batch(self.model.eval(), prompts, draws, stops, self.limit, self.temperature)
        likely: list[Any] = [[[value + self.error] for value in one.logprobs or [0.0] * len(one.ids)] for one in found]
        if self.error:
            likely[0][0] = [None]  # TRL writes None for NaN
        return prompts, [one.ids for one in found], likely, None


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory, tiny_llama: Path) -> Path:
    return trained_root(tiny_llama, tmp_path_factory.mktemp("vllm"))


@pytest.fixture(autouse=True)
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lingoss.grpo.stage.Scorer", EvenScorer)
    monkeypatch.setattr("trl.trainer.grpo_trainer.VLLMGeneration", Engine)
    monkeypatch.setattr("lingoss.grpo.stage.parity_check", lambda *args: probed.append)
    monkeypatch.setattr(Engine, "made", [])
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *args: "here" if name == "vllm" else find(name, *args)
    )
    probed.clear()


probed: list[Any] = []


def test_the_engine_gets_the_weights_before_it_is_asked_and_is_probed_once(root: Path) -> None:
    info = run(tiny_grpo(root, rollout={"mode": "colocate"}))
    (engine,) = Engine.made
    # Validation before step 1, four steps of 16, validation after 2 and 4; a sync whenever the weights are new.
    assert engine.temperatures == [0.0, 1.0, 1.0, 0.0, 1.0, 1.0, 0.0]
    assert engine.syncs == [0, 20, 36, 56, 72]
    assert [type(one).__name__ for one in probed] == ["Trainer"]
    assert engine.settings["max_model_length"] > 12
    assert engine.settings["max_num_seqs"] == 16
    rows = list(runs.read_metrics(info.path))[1:]
    for row in rows:
        assert row["importance_ratio/max"] == pytest.approx(1, abs=1e-3)
        assert row["importance_ratio/min"] == pytest.approx(1, abs=1e-3)
    assert sum(row["seconds/sync"] for row in rows[1:]) > 0


def test_merging_leaves_the_base_bit_for_bit(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from lingoss.grpo.trainer import Trainer

    bases: list[dict[str, torch.Tensor]] = []
    original = Trainer._sync

    def spied(self: Any) -> None:
        original(self)
        weights = {n: p.detach().clone() for n, p in self.model.named_parameters() if "lora_" not in n}
        bases.append(weights)

    monkeypatch.setattr(Trainer, "_sync", spied)
    run(tiny_grpo(root, run="merged", rollout={"mode": "colocate"}, max_steps=3))
    assert len(bases) > 3
    assert all(torch.equal(one[name], bases[0][name]) for one in bases for name in bases[0])


def test_the_correction_is_trls_own_without_its_second_forward(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Our ratio within the loss against TRL's, which it computes beforehand, for an engine that is off by 0.9."""
    from trl import GRPOTrainer

    from lingoss.grpo import stage
    from lingoss.grpo.trainer import Trainer

    monkeypatch.setattr(Engine, "error", -0.9)  # ratio 2.46, which is cut at 2
    one = {"rollout": {"mode": "colocate"}, "max_steps": 1, "optimizer": {"max_grad_norm": 1e9, "warmup_ratio": 0.0}}
    ours = run(tiny_grpo(root, run="ours", **one))
    row = list(runs.read_metrics(ours.path))[-1]
    assert row["importance_ratio/max"] == pytest.approx(torch.tensor(0.9).exp().item(), rel=1e-3)
    assert row["importance_ratio/min"] == 1  # the token that the engine could not tell
    plain = run(tiny_grpo(root, run="plain", importance_sampling={"mode": "none"}, **one))

    arguments = stage.arguments
    trl = {
        "vllm_importance_sampling_correction": True,
        "vllm_importance_sampling_mode": "token_truncate",
        "vllm_importance_sampling_clip_max": 2.0,
    }
    monkeypatch.setattr(stage, "arguments", lambda *args: {**arguments(*args), **trl})
    logps = GRPOTrainer._get_per_token_logps_and_entropies
    monkeypatch.setattr(Trainer, "_get_per_token_logps_and_entropies", logps)
    theirs = run(tiny_grpo(root, run="theirs", **one))

    def step(info: runs.RunInfo) -> dict[str, torch.Tensor]:
        # AdamW's first step is the sign of the gradient, so the gradient itself is compared.
        state = torch.load(info.path / "checkpoints" / "checkpoint-1" / "optimizer.pt", weights_only=True)
        return {str(key): value["exp_avg"] for key, value in state["state"].items()}

    for name, moment in step(ours).items():
        assert torch.allclose(moment, step(theirs)[name], rtol=1e-3, atol=1e-7), name
    assert any(not torch.allclose(step(ours)[name], step(plain)[name], rtol=0.1) for name in step(ours))
    assert adapter(ours).keys() == adapter(theirs).keys()


def test_engine_arguments_reach_the_engine_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    from trl.generation import vllm_generation

    made = lambda **settings: settings  # noqa: E731
    monkeypatch.setattr(vllm_generation, "LLM", made, raising=False)
    with engine_made_with({"moe_backend": "triton", "max_num_seqs": 325}):
        assert vllm_generation.LLM(seed=3, max_num_seqs=128) == {
            "moe_backend": "triton",
            "max_num_seqs": 325,
            "seed": 3,
        }
    assert vllm_generation.LLM is made


def test_a_server_with_other_logprobs_is_refused() -> None:
    class Client:
        mode = "raw_logprobs"

        def get_server_info(self) -> dict[str, Any]:
            return {"model_config": {"logprobs_mode": self.mode}}

    class Generation:
        vllm_client = Client()

    with pytest.raises(LingossError, match=r"gives raw_logprobs, .*--logprobs-mode processed_logprobs$"):
        require_sampling_logprobs(Generation)
    Client.mode = "processed_logprobs"
    require_sampling_logprobs(Generation)


@pytest.mark.parametrize("error", [ConnectionError("refused"), Exception("Request failed: 500, out of cards")])
def test_a_server_in_trouble_is_worth_another_try(error: Exception) -> None:
    told = r"^the vLLM server at http://a:1 does not work \((refused|Request failed: 500)"
    with pytest.raises(TemporaryError, match=told), readable_server_errors("http://a:1"):
        raise error


@pytest.mark.parametrize("error", [KeyError("x"), LingossError("Requests are odd")])
def test_other_errors_pass_as_they_are(error: Exception) -> None:
    with pytest.raises(type(error)) as raised, readable_server_errors("http://a:1"):
        raise error
    assert raised.value is error


def test_one_process_holds_one_engine(root: Path) -> None:
    config = tiny_grpo(root, run="two cards", rollout={"mode": "colocate", "tensor_parallel": 2})
    with pytest.raises(LingossError, match=r"tensor_parallel=2 with rollout\.mode=colocate needs as many"):
        run(config)
