# SPDX-License-Identifier: MIT-0
"""Messages and the pinned templates: the same text as TRL's training templates, with a date that stands still."""

import hashlib
import os
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from lingoss.data import Example, Prompt, chat, sft_examples
from lingoss.errors import LingossError
from lingoss.transcript import parse

TRL = Path(find_spec("trl").submodule_search_locations[0]) / "chat_templates"
DATE = "2025-08-05"
ROW = Example(
    "id",
    "item",
    "family",
    "What is 2 + 2?",
    "en",
    "fr",
    "de",
    "4",
    "sft",
    reasoning="Deux et deux.",
    answer="Es ist 4.",
)
HISTORY = (("system", "Be brief."), ("user", "Hello"), ("assistant", "Hello!"))
ASK = "Reasoning language: French. Answer language: German."

CONVERSATIONS = [
    [{"role": "user", "content": "Hello"}],
    [{"role": "system", "content": "Be kind.\n"}, {"role": "user", "content": "Hello"}],
    [{"role": "developer", "content": "Be kind."}, {"role": "user", "content": "Hello"}],
    [{"role": "system", "content": ""}, {"role": "user", "content": "Hello"}],
    [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi!"}],
    [{"role": "user", "content": " é <b> {{x}} \n"}, {"role": "assistant", "thinking": "Hm.\n", "content": "Hi!"}],
    [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "thinking": "First.", "content": "Hi!"},
        {"role": "user", "content": "Again"},
        {"role": "assistant", "thinking": "Second.", "content": "Hi again!"},
    ],
]


@pytest.mark.parametrize("messages", CONVERSATIONS)
@pytest.mark.parametrize("prompt", [False, True])
def test_gpt_oss_renders_as_trl_does(messages, prompt):
    theirs = (TRL / "gptoss_training.jinja").read_text(encoding="utf-8")
    expected = chat.render(messages, theirs, prompt, {"strftime_now": lambda form: DATE})
    found = chat.render(messages, chat.template("gpt-oss"), prompt)
    assert found.text == expected.text
    # TRL also trains on earlier finals, which have lost their thoughts; we only train on the last turn.
    assert found.trained == (() if prompt else expected.trained[-1:] if messages[-1]["role"] == "assistant" else ())


@pytest.mark.parametrize("messages", [m for m in CONVERSATIONS if m[0]["role"] == "system" and m[0]["content"]])
@pytest.mark.parametrize("prompt", [False, True])
def test_chatml_renders_as_trl_does(messages, prompt):
    theirs = (TRL / "qwen2_5_training.jinja").read_text(encoding="utf-8")
    plain = [{key: value for key, value in message.items() if key != "thinking"} for message in messages]
    assert chat.render(plain, chat.template("chatml"), prompt).text == chat.render(plain, theirs, prompt).text


def test_chatml_puts_in_no_system_prompt():
    found = chat.render(CONVERSATIONS[4], chat.template("chatml"))
    assert found.text == "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\nHi!<|im_end|>\n"
    assert [found.text[start:end] for start, end in found.trained] == ["Hi!<|im_end|>\n"]


def test_our_renderer_is_transformers_renderer():
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    from transformers.utils.chat_template_utils import render_jinja_template

    for name in chat.templates():
        conversations = CONVERSATIONS if name == "gpt-oss" else CONVERSATIONS[4:5]
        (*texts,), spans = render_jinja_template(
            conversations, chat_template=chat.template(name), return_assistant_tokens_mask=True
        )
        for messages, text, marked in zip(conversations, texts, spans, strict=True):
            found = chat.render(messages, chat.template(name))
            assert (found.text, list(found.trained)) == (text, [tuple(span) for span in marked])


@pytest.mark.parametrize(("name", "digest"), [("chatml", "97d9c796539d9400"), ("gpt-oss", "d2e1ddd95448bdec")])
def test_templates_are_pinned(name, digest):
    assert hashlib.sha256(chat.template(name).encode()).hexdigest()[:16] == digest
    assert chat.templates() == ("chatml", "gpt-oss")


def test_harmony_messages():
    messages = chat.messages(ROW, "harmony")
    assert [message["role"] for message in messages] == ["system", "user", "assistant"]
    assert messages[0]["content"].startswith(ASK)
    assert messages[1] == {"role": "user", "content": "What is 2 + 2?"}
    assert messages[2] == {"role": "assistant", "thinking": "Deux et deux.", "content": "Es ist 4."}
    # A None or an empty text under `thinking` breaks stock templates, so the key goes.
    assert "thinking" not in chat.messages(replace(ROW, reasoning=""), "harmony")[2]


@pytest.mark.parametrize(
    ("format", "content"),
    [("think", "<think>\nDeux et deux.\n</think>\nEs ist 4."), ("plain", "Es ist 4.")],
)
def test_other_formats_put_all_in_the_content(format, content):
    system, user, assistant = chat.messages(ROW, format)
    assert system["content"].startswith(ASK)
    assert user["content"] == "What is 2 + 2?"
    assert assistant == {"role": "assistant", "content": content}


def test_history_comes_between_instruction_and_question():
    row = replace(ROW, history=HISTORY)
    system, *rest = chat.messages(row, "harmony")
    assert system["content"].startswith(ASK)
    assert system["content"].endswith("\n\nBe brief.")
    assert [(m["role"], m["content"]) for m in rest] == [
        ("user", "Hello"), ("assistant", "Hello!"), ("user", "What is 2 + 2?"), ("assistant", "Es ist 4."),
    ]  # fmt: skip


def test_a_prompt_has_no_assistant_turn():
    prompt = Prompt("id", "item", "family", "What is 2 + 2?", "en", "fr", "de")
    assert [message["role"] for message in chat.messages(prompt, "think")] == ["system", "user"]
    assert chat.prompt_text(prompt, "think") == chat.prompt_text(ROW, "think")
    assert chat.prompt_text(prompt, "think").endswith(
        "<|im_start|>user\nWhat is 2 + 2?<|im_end|>\n<|im_start|>assistant\n"
    )
    assert chat.prompt_text(prompt, "harmony").endswith(
        "<|start|>user<|message|>What is 2 + 2?<|end|><|start|>assistant"
    )
    assert f"Current date: {DATE}\n\nReasoning: medium\n\n" in chat.prompt_text(prompt, "harmony")


@pytest.mark.parametrize("format", ["harmony", "think"])
def test_what_is_trained_is_what_the_parser_reads(format):
    for row in sft_examples(3):
        found = chat.render(chat.messages(row, format), chat.template(chat.template_name(format)))
        ((start, end),) = found.trained
        assert end == len(found.text)
        assert found.text.startswith(chat.prompt_text(row, format))
        transcript = parse(found.text[len(chat.prompt_text(row, format)) :].rstrip("\n"), format)
        assert (transcript.reasoning, transcript.answer) == (row.reasoning, row.answer)
        assert transcript.format_ok
        assert not transcript.truncated
        # Harmony's header is trained too, as TRL does; ChatML's belongs to the prompt.
        assert start == len(chat.prompt_text(row, format)) - (len("<|start|>assistant") if format == "harmony" else 0)


@pytest.mark.parametrize(
    ("name", "messages", "reason"),
    [
        ("gpt-oss", [{"role": "tool", "content": "x"}], "a message has the role tool"),
        (
            "gpt-oss",
            [{"role": "user", "content": "x"}, {"role": "system", "content": "x"}],
            "a message has the role system",
        ),
        (
            "gpt-oss",
            [{"role": "assistant", "content": "<|channel|>final<|message|>x"}],
            r"has <\|channel\|> in its text",
        ),
        (
            "gpt-oss",
            [{"role": "assistant", "thinking": "<|channel|>", "content": "x"}],
            r"has <\|channel\|> in its text",
        ),
        ("gpt-oss", [{"role": "user", "content": None}], "refuses these messages"),
        ("chatml", [{"role": "tool", "content": "x"}], "a message has the role tool"),
    ],
)
def test_what_a_template_refuses(name, messages, reason):
    with pytest.raises(LingossError, match=reason):
        chat.render(messages, chat.template(name))


def test_unknown_names():
    with pytest.raises(LingossError, match="unknown chat template 'llama'; there are chatml, gpt-oss"):
        chat.template("llama")
    with pytest.raises(LingossError, match="unknown chat format 'xml'"):
        chat.messages(ROW, "xml")
