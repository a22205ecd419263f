# SPDX-License-Identifier: MIT-0
"""Where the rows of a mix come from."""

import json
from pathlib import Path

import pytest

from lingoss.config import SftConfig
from lingoss.errors import LingossError
from lingoss.sft.examples import build_mix
from test_data_multilingual_thinking import published_rows

PREPARED = SftConfig.model_validate({"data": {"examples_per_language": 0, "multilingual_thinking": "prepared"}})


def test_the_prepared_copy_of_multilingual_thinking_is_found_by_its_name(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in published_rows(60)), encoding="utf-8")
    named = SftConfig.model_validate({"data": {"examples_per_language": 0, "multilingual_thinking": str(file)}})

    mix = build_mix(PREPARED, {"other": tmp_path / "nothing", "Multilingual-Thinking-0123abcd": file})

    assert mix.examples == build_mix(named).examples
    assert mix.counts["multilingual_thinking"] == len(mix.examples) > 30


def test_without_a_prepared_copy_the_message_says_where_it_comes_from() -> None:
    with pytest.raises(LingossError, match=r"brought no data set: add HuggingFaceH4/Multilingual-Thinking to the prep"):
        build_mix(PREPARED)
    with pytest.raises(LingossError, match="the prepare run brought other"):
        build_mix(PREPARED, {"other": Path("x")})
