# SPDX-License-Identifier: MIT-0
"""Tests with the real vLLM on a CPU, in an environment of their own: `make test-engine`."""
