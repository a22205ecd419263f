# SPDX-License-Identifier: MIT-0
"""What is wrong, why, and what to do: with an image, with the machine or pod it runs in, or with a run that left logs.

`image` checks an image at the end of its build, `live` the machine or pod, `logs` names the first failure in logs.
`causes/` holds what is known, one file a cause; `page` makes docs/troubleshooting.md of it.
"""
