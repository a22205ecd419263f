# SPDX-License-Identifier: MIT-0
"""MXFP4 weights of gpt-oss as bfloat16, exactly, on any CPU.

OCP Microscaling Formats v1.0: 32 numbers of four bits (sign, two bits of exponent, one of mantissa) share a scale, a
power of two. A checkpoint stores them as `<name>_blocks`, two numbers in a byte (the first in the low half), and
`<name>_scales`, the exponents plus 127. Every product is a bfloat16, so nothing is rounded. The layout and the meaning
agree with transformers 5.10 (`integrations/mxfp4.py`), tested number by number.
"""

import functools

import numpy as np
import numpy.typing as npt

_VALUES = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], dtype=np.float32)
_BIAS = 127
_ROWS = 64  # turned at once: they fit into the processor's cache, which makes it twice as fast


def dequantise(blocks: npt.NDArray[np.uint8], scales: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint16]:
    """The bits of the bfloat16 matrix of one expert, as the model holds it.

    `blocks` [out, groups, 16] and `scales` [out, groups] give [groups * 32, out].
    """
    out, groups, width = blocks.shape
    made = np.empty((groups * width * 2, out), np.uint16)
    for first in range(0, out, _ROWS):
        rows = slice(first, first + _ROWS)
        place = scales[rows].astype(np.uint16)[:, :, None] << 8 | blocks[rows]
        pairs = _pairs().take(place, mode="clip")  # (no place is out of range; without the mode numpy makes a copy)
        made[:, rows] = pairs.view(np.uint16).reshape(len(place), -1).T
    return made


@functools.cache
def _pairs() -> npt.NDArray[np.uint32]:
    """256 * scale + byte to the two bfloat16 numbers that they mean, the first in the low half."""
    with np.errstate(over="ignore", invalid="ignore"):  # 6 * 2**127 is infinite here as there
        scale = np.float32(2) ** (np.arange(256, dtype=np.float32) - _BIAS)
        values = scale[:, None] * _VALUES
    bits = (values.view(np.uint32) >> 16).astype(np.uint32)
    byte = np.arange(256)
    pairs = bits[:, byte & 15] | bits[:, byte >> 4] << 16
    return pairs.astype(np.uint32).ravel()
