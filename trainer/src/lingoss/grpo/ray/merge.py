# SPDX-License-Identifier: MIT-0
"""What training of all weights starts from: the base with the SFT adapter merged in, as the run's own first step."""

import json
import shutil
from pathlib import Path

from lingoss import transcript
from lingoss.export import export_run
from lingoss.grpo.setting import Setting
from lingoss.models import load_tokenizer
from lingoss.progress import note
from lingoss.runs import write_json
from lingoss.runs.files import read_json

_FILE = "generation_config.json"


def merged(setting: Setting, target: Path) -> Path:
    """The merged model in `target`; made unless it is there, where it appears whole.

    Raises:
        LingossError: too little space or memory, or the SFT run has changed.
    """
    if not (target / "config.json").is_file():
        shutil.rmtree(target, ignore_errors=True)
        note("merge", {"run": setting.sft.name, "into": str(target)})
        export_run(setting.config.root, setting.sft.name, target, merged=True)
    set_stops(target, setting.config.format)
    return target


def set_stops(model: Path, format: str) -> None:
    """Let vLLM end completions at every stop token of the format: it takes them from `generation_config.json`."""
    tokenizer = load_tokenizer(model)
    found, _ = read_json(model / _FILE)
    own = (found or {}).get("eos_token_id")
    ids = {*transcript.stop_ids(format, tokenizer), *(own if isinstance(own, list) else [own])}
    stops = sorted(one for one in ids if isinstance(one, int))
    # Sampling filters of the base would bias the importance ratios, so none is kept.
    wanted = {"eos_token_id": stops, "pad_token_id": tokenizer.pad_token_id}
    if bos := (found or {}).get("bos_token_id"):
        wanted["bos_token_id"] = bos
    if json.dumps(wanted) != json.dumps(found):
        write_json(model / _FILE, wanted)
