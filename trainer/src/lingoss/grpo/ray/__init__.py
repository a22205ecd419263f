# SPDX-License-Identifier: MIT-0
"""What the engines that run on a Ray cluster share: which nodes there are, the framework as a child process, its room
on the disk, and the prompts in the order in which they are asked.

The framework trains with its own command. What is around it is ours: the input, the checks before anything starts, the
way on after a lost cluster, the run folder.
"""
