# SPDX-License-Identifier: MIT-0
