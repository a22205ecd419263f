# SPDX-License-Identifier: MIT-0
"""A real, small Kubernetes on one machine, from Python and without a container engine. See README.md."""
