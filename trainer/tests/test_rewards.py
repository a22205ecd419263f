# SPDX-License-Identifier: MIT-0
"""The three adapters: the same verdict for the same transcript, every term in the logs, and nothing raises."""

import importlib.util
import json
import math
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lingoss import rewards
from lingoss.errors import LingossError
from lingoss.rewards import openrlhf, trl, verl
from lingoss.rewards.settings import VARIABLE, Settings, read
from lingoss.score import DEFAULT, TERMS, Request, Rules, score
from lingoss.transcript import chat_format, parse
from lingoss.transcript.formats.harmony import SPECIAL

ASKED = Request("A shop sells pens at 3 euros each. How much do 14 pens cost in euros?", "en", "fr", "fr", "42")
COLUMNS = {name: [getattr(ASKED, name)] for name in ("question", "question_language", "reasoning_language")}
COLUMNS |= {"answer_language": ["fr"], "gold": ["42"]}
TRACE, ANSWER = "Chaque stylo coûte 3 euros et il y en a 14 : 14 × 3 = 42.", "Les stylos coûtent 42 euros en tout."
GRID = 1 / 8192  # a reward is rounded to 1/4096
PROMPTS = {
    "think": "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n",
    "plain": "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n",
    "harmony": "<|start|>user<|message|>{}<|end|><|start|>assistant",
}


class Characters:
    """A tokenizer with one id for each character, above the special tokens of its vocabulary."""

    pad_token_id = 0
    eos_token_id = 2

    def __init__(self) -> None:
        self.special = {0: "<pad>", 2: "<|im_end|>"}

    def get_vocab(self) -> dict[str, int]:
        return {token: number for number, token in self.special.items()}

    def encode(self, text: str) -> list[int]:
        ids: list[int] = []
        while text:
            known = next(((n, token) for n, token in self.special.items() if text.startswith(token)), None)
            ids.append(known[0] if known else ord(text[0]) + 10)
            text = text[len(known[1]) if known else 1 :]
        return ids

    def decode(self, ids: list[int], skip_special_tokens: bool = False) -> str:
        return "".join(self.special.get(one, chr(one - 10) if one >= 10 else "") for one in ids)


class HarmonyCharacters(Characters):
    """The same with Harmony's special ids; ordinary ids stay below them."""

    eos_token_id = 200_002
    pad_token_id = 199_999

    def __init__(self) -> None:
        self.special = dict(SPECIAL)


def tokenizer(format: str) -> Characters:
    return HarmonyCharacters() if format == "harmony" else Characters()


def raw(format: str, reasoning: str = TRACE, answer: str = ANSWER, stop: bool = True) -> str:
    """What a model writes, its stop token included, or without it when it was cut."""
    text = chat_format(format).render(reasoning, answer)
    if format == "harmony":
        return text if stop else text.removesuffix("<|return|>")
    return text + "<|im_end|>" if stop else text


def by_trl(format: str, text: str, columns: dict[str, Any] = COLUMNS) -> tuple[float, trl.Reward]:
    chars = tokenizer(format)
    reward = trl.Reward(format, tokenizer=chars)
    return reward(prompts=["p"], completions=["c"], completion_ids=[chars.encode(text)], **columns)[0], reward


def by_openrlhf(format: str, text: str, label: Any = None) -> dict[str, Any]:
    prompt = PROMPTS[format].format(ASKED.question)
    return openrlhf.reward_func([prompt + text], [prompt], [label or rewards.request_to_json(ASKED)])


def by_verl(format: str, text: str) -> dict[str, float]:
    """veRL decodes without special tokens."""
    for token in (*chat_format(format).STOP, "<|im_start|>"):
        text = text.replace(token, "")
    return verl.compute_score("lingoss", text, rewards.request_to_json(ASKED), {"num_turns": 2}, extra=1)


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Any:
    return lambda format, **rules: monkeypatch.setenv(VARIABLE, Settings(format, Rules(**rules)).to_json())


TEXTS = {
    "right": (TRACE, ANSWER),
    "wrong": (TRACE, "Les stylos coûtent 45 euros."),
    "english": ("Each pen costs 3 euros, and there are 14 of them, so I multiply.", ANSWER),
    "elsewhere": ("Le chat dort sur le toit de la maison pendant que la pluie tombe doucement dehors.", ANSWER),
    "looped": (f"{TRACE} " * 8, ANSWER),
    "silent": ("", "42"),
}


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("format", ["think", "plain", "harmony"])
def test_same_verdict_in_every_framework(format: str, name: str, use: Any) -> None:
    use(format)
    text = raw(format, *TEXTS[name])
    expected = score(parse(text, format), ASKED)
    reward, adapter = by_trl(format, text)
    assert adapter.last.verdicts == [expected]
    assert reward == expected.reward
    found = by_openrlhf(format, text)
    assert (found["rewards"], found["scores"]) == (expected.reward, expected.reward)
    assert found["extra_logs"] == rewards.numbers(expected)
    if format != "harmony":
        assert by_verl(format, text) == {
            "score": expected.reward,
            "acc": float(expected.grade == "correct"),
            **rewards.numbers(expected),
        }
    assert (expected.reward > 0.99) == (name == "right" or (format, name) == ("plain", "english") or
                                        (format == "plain" and name in ("elsewhere", "looped", "silent")))  # fmt: skip


@pytest.mark.parametrize("format", ["think", "plain", "harmony"])
def test_a_completion_without_a_stop_token_is_cut(format: str, use: Any) -> None:
    use(format)
    text = raw(format, stop=False)
    reward, adapter = by_trl(format, text)
    found = by_openrlhf(format, text)
    assert (reward, adapter.last.verdicts[0].truncated, adapter.last.finish_reasons) == (0.0, True, ["length"])
    assert (found["rewards"], found["extra_logs"]["truncated"]) == (0.0, 1.0)


def test_the_rollouts_own_finish_reason_decides() -> None:
    text = raw("think", stop=False)
    assert by_trl("think", text, {**COLUMNS, "finish_reason": ["stop"]})[0] > 0.99
    assert by_trl("think", raw("think"), {**COLUMNS, "finish_reason": ["length"]})[0] == 0.0


def test_padding_behind_the_stop_token_is_no_cut() -> None:
    assert by_trl("think", raw("think") + "<pad><pad>")[0] > 0.99
    assert by_trl("think", raw("think", stop=False) + "<pad>")[0] == 0.0


def test_harmony_typed_in_ordinary_tokens_opens_no_channel() -> None:
    """Text that only looks like special tokens has other ids, which the text of OpenRLHF cannot show."""
    chars = HarmonyCharacters()
    typed = [ord(char) + 10 for char in raw("harmony")]
    reward = trl.Reward("harmony", tokenizer=chars)
    assert reward(completion_ids=[[*typed, 200_002]], **COLUMNS) == [0.0]


def test_trl_logs_every_term_and_keeps_the_batch() -> None:
    extra: dict[str, list[Any]] = {}
    metrics: dict[str, float] = {}
    chars = Characters()
    ids = [chars.encode(raw("think", *TEXTS[name])) for name in ("right", "english", "elsewhere")]
    adapter = trl.Reward("think", tokenizer=chars)
    columns = {name: values * 3 for name, values in COLUMNS.items()}
    found = adapter(
        prompts=["p"] * 3, completions=["c"] * 3, completion_ids=ids, trainer_state=None,
        log_extra=extra.__setitem__, log_metric=metrics.__setitem__, **columns,
    )  # fmt: skip
    assert found == pytest.approx([1.0, 0.4, 0.4], abs=GRID)
    assert {name for name in extra if name.startswith("term/")} == {f"term/{name}" for name in TERMS}
    assert extra["grade"] == ["correct"] * 3
    assert extra["term/relevance"] == pytest.approx([0.0, 0.0, -0.6])
    assert metrics["term/language"] == pytest.approx(0.4)
    assert metrics["reasoning_share"] == pytest.approx(2 / 3)
    assert [verdict.reward for verdict in adapter.last.verdicts] == found
    assert adapter.last.requests == [ASKED] * 3


def test_terms_add_up_in_the_log() -> None:
    for name in TEXTS:
        verdict = score(parse(raw("think", *TEXTS[name]), "think"), ASKED)
        shown = rewards.numbers(verdict)
        assert sum(shown[f"term/{term}"] for term in TERMS) == pytest.approx(verdict.reward, abs=GRID)
        assert all(math.isfinite(value) for value in shown.values())


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.binary(max_size=8) | st.text(st.characters(), max_size=40),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=6,
)  # fmt: skip
ODD = [settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])]


@given(ids=st.lists(ANYTHING | st.lists(st.integers(-5, 201_100), max_size=12), max_size=3), columns=st.fixed_dictionaries(
    {name: ANYTHING | st.lists(ANYTHING, max_size=3) for name in (*COLUMNS, "finish_reason")}
), format=st.sampled_from(["think", "plain", "harmony"]))  # fmt: skip
@ODD[0]
def test_trl_never_raises(ids: list[Any], columns: dict[str, Any], format: str) -> None:
    found = trl.Reward(format, tokenizer=tokenizer(format))(completion_ids=ids, **columns)
    assert len(found) == len(ids)
    assert all(0.0 <= reward <= 1.0 for reward in found)


@given(query=ANYTHING, prompt=ANYTHING, label=ANYTHING)
@ODD[0]
def test_openrlhf_never_raises(query: Any, prompt: Any, label: Any, use: Any) -> None:
    use("harmony")
    found = openrlhf.reward_func([query], [prompt], [label])
    assert set(found["extra_logs"]) == set(rewards.numbers(score(parse("", "think"), ASKED)))
    assert found["rewards"] == 0.0
    openrlhf.reward_func(query, prompt, label)


@given(solution=ANYTHING, truth=ANYTHING, info=ANYTHING)
@ODD[0]
def test_verl_never_raises(solution: Any, truth: Any, info: Any, use: Any) -> None:
    use("think")
    found = verl.compute_score("x", solution, truth, info)
    assert found["score"] == 0.0
    assert set(found) == {"score", "acc", *rewards.numbers(score(parse("", "think"), ASKED))}


@given(text=st.text(st.characters(), max_size=300))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_gets_one_verdict(text: str, use: Any) -> None:
    """Surrogates, controls and half tags included. Text without special tokens reads the same everywhere."""
    use("plain")
    text = text.replace("<", "(")
    found = by_openrlhf("plain", text + "<|im_end|>")
    assert found["extra_logs"] == {
        key: value for key, value in by_verl("plain", text).items() if key not in ("score", "acc")
    }
    assert by_trl("plain", text + "<|im_end|>")[0] == found["rewards"]


@pytest.mark.parametrize("fault", [{"gold": True}, {"reasoning_language": "klingon"}, {"question": None}])
def test_what_cannot_be_scored_earns_nothing_and_is_counted(fault: dict[str, Any], use: Any) -> None:
    use("think")
    label = json.loads(rewards.request_to_json(ASKED)) | fault
    found = by_openrlhf("think", raw("think"), json.dumps(label))
    assert (found["rewards"], found["extra_logs"]["failed"], found["extra_logs"]["graded"]) == (0.0, 1.0, 0.0)
    reward, adapter = by_trl("think", raw("think"), {**COLUMNS, **{key: [value] for key, value in fault.items()}})
    assert (reward, adapter.last.verdicts[0].grade_rule) == (0.0, rewards.FAILED)


def test_a_prompt_that_lost_its_beginning_is_found_by_its_end() -> None:
    prompt = "x" * 900 + PROMPTS["think"].format("What is 3 × 14?") * 2
    assert openrlhf.completion(prompt + "answer", prompt) == "answer"
    assert openrlhf.completion(prompt[500:] + "answer" + prompt[-250:], prompt) == "answer" + prompt[-250:]
    with pytest.raises(LingossError, match="does not hold its prompt"):
        openrlhf.completion("something else", prompt)


def load_by_path(module: ModuleType, name: str) -> ModuleType:
    """As OpenRLHF and veRL import a file."""
    spec = importlib.util.spec_from_file_location(name, Path(str(module.__file__)))
    assert spec
    assert spec.loader
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def test_engines_load_the_files_by_path(use: Any) -> None:
    use("think", language=0.5)
    prompt = PROMPTS["think"].format(ASKED.question)
    found = load_by_path(openrlhf, "reward_func").reward_func(
        [prompt + raw("think")], [prompt], [rewards.request_to_json(ASKED)]
    )
    assert found["rewards"] == pytest.approx(0.9, abs=GRID)
    score_by_path = load_by_path(verl, "custom_module_1").compute_score
    assert score_by_path("x", raw("think").removesuffix("<|im_end|>"), rewards.request_to_json(ASKED))[
        "score"
    ] == pytest.approx(0.9, abs=GRID)


def test_a_wrong_set_up_fails_when_the_file_is_loaded(use: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    use("harmony")
    load_by_path(openrlhf, "reward_func")
    with pytest.raises(LingossError, match="without special tokens, which hides the channels of Harmony"):
        load_by_path(verl, "custom_module_1")
    assert verl.compute_score("x", raw("harmony"), rewards.request_to_json(ASKED))["failed"] == 1.0
    monkeypatch.delenv(VARIABLE)
    for module, name in ((openrlhf, "reward_func"), (verl, "custom_module_1")):
        with pytest.raises(LingossError, match="LINGOSS_REWARD is not set"):
            load_by_path(module, name)
    assert by_openrlhf("think", raw("think"))["extra_logs"]["failed"] == 1.0


def test_settings_survive_their_json() -> None:
    chosen = Settings("think", Rules(language=0.5, correctness=0.5, languages=("fr", "de")))
    assert read(chosen.to_json()) == chosen
    assert read('{"format": "plain"}') == Settings("plain", DEFAULT)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "not valid JSON"),
        ("[]", "must be an object"),
        ('{"format": "xml"}', "unknown chat format 'xml'"),
        ('{"format": "think", "mode": 1}', "must be an object"),
        ('{"format": "think", "rules": {"langage": 1}}', "'langage' is no rule"),
        ('{"format": "think", "rules": {"language": "1"}}', "language must be a number, found '1'"),
        ('{"format": "think", "rules": {"languages": ["xx"]}}', "unknown language 'xx'"),
    ],
)
def test_wrong_settings_say_what_is_wrong(text: str, said: str) -> None:
    with pytest.raises(LingossError, match=said):
        read(text)


def test_trl_set_up_is_checked() -> None:
    with pytest.raises(LingossError, match="no stop token of format 'think' is known"):
        trl.Reward("think")
    reward = trl.Reward("harmony", stop_ids=[200_002])
    with pytest.raises(LingossError, match="no column gold"):
        reward.check([name for name in COLUMNS if name != "gold"])
    reward.check([*COLUMNS, "prompt"])


@pytest.mark.slow
def test_trl_calls_it_so() -> None:
    """TRL's own method that calls reward functions, on a stand-in for the trainer."""
    from collections import defaultdict
    from types import SimpleNamespace

    import torch
    from accelerate import PartialState
    from trl import GRPOTrainer

    PartialState(cpu=True)
    chars = Characters()
    adapter = trl.Reward("think", tokenizer=chars)
    trainer = SimpleNamespace(
        accelerator=SimpleNamespace(device=torch.device("cpu"), is_main_process=False),
        reward_funcs=[adapter],
        reward_processing_classes=[None],
        reward_func_names=["Reward"],
        state=SimpleNamespace(global_step=3),
        environments=None,
        _pending_extra_logs=defaultdict(list),
        _pending_metrics=defaultdict(list),
        args=SimpleNamespace(report_to=[]),
    )
    trainer._log_completion_extra = lambda *given: GRPOTrainer._log_completion_extra(trainer, *given)
    trainer._log_metric = lambda *given: GRPOTrainer._log_metric(trainer, *given)
    rows = [{name: values[0] for name, values in COLUMNS.items()} | {"prompt": "p", "id": n} for n in range(2)]
    ids = [chars.encode(raw("think", *TEXTS[name])) for name in ("right", "elsewhere")]
    found = GRPOTrainer._calculate_rewards(trainer, rows, ["p", "p"], ["c", "c"], ids)
    assert found.tolist() == [[pytest.approx(1.0)], [pytest.approx(0.4, abs=GRID)]]
    assert trainer._pending_extra_logs["term/relevance"] == pytest.approx([0.0, -0.6])
    assert trainer._pending_metrics["term/correctness"] == [pytest.approx(0.4)]
