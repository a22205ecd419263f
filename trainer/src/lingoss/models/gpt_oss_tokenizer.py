# SPDX-License-Identifier: MIT-0
"""The gpt-oss tokenizer for transformers, made from the o200k vocabulary instead of a model hub.

The published file is `openai/gpt-oss-20b/tokenizer.json`; the ids agree with openai-harmony's encoding (tested).
"""

import base64
import hashlib
import os
import shutil
import tempfile
from pathlib import Path

from lingoss import vocab
from lingoss.data import chat
from lingoss.errors import LingossError
from lingoss.models.load import offline

VOCABULARY_SIZE = 201_088  # rows of the model's embedding; ids from 200019 on are unused
FIRST_SPECIAL = 199_998
_NAMED = {
    199_998: "<|startoftext|>",
    199_999: "<|endoftext|>",
    200_002: "<|return|>",
    200_003: "<|constrain|>",
    200_005: "<|channel|>",
    200_006: "<|start|>",
    200_007: "<|end|>",
    200_008: "<|message|>",
    200_012: "<|call|>",
    200_018: "<|endofprompt|>",
}
SPECIAL = [_NAMED.get(i, f"<|reserved_{i}|>") for i in range(FIRST_SPECIAL, 200_019)]
CONTEXT = 131_072
# How o200k cuts text before merging: words with their leading character, English contractions, up to three digits,
# punctuation with line ends, spaces.
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
_LEAD = r"[^\r\n\p{L}\p{N}]?"
PATTERN = "|".join(
    (
        f"{_LEAD}{_UPPER}*{_LOWER}+{_CONTRACTION}",
        f"{_LEAD}{_UPPER}+{_LOWER}*{_CONTRACTION}",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    )
)
# Counts changes of the conversion itself.
RECIPE = 1


def convert_o200k(cache: Path | str) -> Path:
    """A folder with the gpt-oss tokenizer as a fast tokenizer, and our pinned chat template, under `cache`.

    Made once (a few seconds) and found again by the digest in its name. It appears by one rename.

    Raises:
        LingossError: the vocabulary cannot be had or `cache` cannot be written.
    """
    key = hashlib.sha256(f"{vocab.SHA256}:{RECIPE}:{chat.template('gpt-oss')}".encode()).hexdigest()[:12]
    target = Path(cache) / f"o200k-harmony-{key}"
    if target.is_dir():
        return target
    source = vocab.o200k(Path(cache))
    work = None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}-"))
        _convert(source, work / "tokenizer")
        try:
            os.rename(work / "tokenizer", target)
        except OSError:
            if not target.is_dir():  # otherwise another process was quicker, with the same result
                raise
    except OSError as error:
        raise LingossError(f"cannot write the gpt-oss tokenizer into {cache}: {error}; give another folder") from error
    finally:
        if work is not None:
            shutil.rmtree(work, ignore_errors=True)
    return target


def _convert(source: Path, target: Path) -> None:
    offline()
    from transformers import PreTrainedTokenizerFast
    from transformers.convert_slow_tokenizer import TikTokenConverter, bytes_to_unicode

    class Converter(TikTokenConverter):  # type: ignore[misc]
        """transformers' converter; only its file reader is replaced, which needs the package tiktoken for base64."""

        def extract_vocab_merges_from_model(self, path: str) -> tuple[dict[str, int], list[tuple[str, str]]]:
            ranks = _read_ranks(Path(path))
            letters = bytes_to_unicode()
            text = {token: "".join(letters[byte] for byte in token) for token in ranks}
            merges = [(text[a], text[b]) for token in ranks for a, b in _splits(token, ranks)]
            return {text[token]: rank for token, rank in ranks.items()}, merges

    backend = Converter(vocab_file=str(source), pattern=PATTERN, extra_special_tokens=SPECIAL).converted()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        bos_token="<|startoftext|>",
        eos_token="<|return|>",
        pad_token="<|endoftext|>",
        model_max_length=CONTEXT,
        clean_up_tokenization_spaces=False,
    )
    tokenizer.chat_template = chat.template("gpt-oss")
    tokenizer.save_pretrained(target)


def _read_ranks(path: Path) -> dict[bytes, int]:
    """Token bytes to rank, in the order of rank: lines of base64 and a number."""
    lines = path.read_bytes().splitlines()
    return {base64.b64decode(token): int(rank) for token, rank in (line.split() for line in lines if line)}


def _splits(token: bytes, ranks: dict[bytes, int]) -> list[tuple[bytes, bytes]]:
    """The pairs of known tokens that make up `token`, those that were merged first in front."""
    pairs = [(token[:i], token[i:]) for i in range(1, len(token)) if token[:i] in ranks and token[i:] in ranks]
    return sorted(pairs, key=lambda pair: (ranks[pair[0]], ranks[pair[1]]))
