# SPDX-License-Identifier: MIT-0
# All images. `make build-images` reads this file with docker buildx, or with images/build.py where there is podman or
# buildah; `docker buildx bake -f images/docker-bake.hcl` at the root of the repository does too. An environment variable
# of the same name overrides a variable.

variable "PREFIX" { default = "" }  # registry and path with a slash at the end: 1234.dkr.ecr.us-west-2.amazonaws.com/team/
variable "TAG" { default = "0.1.0.dev0" }  # the chart's appVersion, which it asks for unless told otherwise
variable "REVISION" { default = "unknown" }  # commit of the sources, for a label

# Pinned: `make lock-images` adds the digests and the checksum that it can reach.
variable "PYTHON_BASE" { default = "docker.io/library/python:3.12.12-slim-bookworm" }
variable "CUDA_BASE" { default = "docker.io/nvidia/cuda:13.0.2-base-ubuntu24.04" }
variable "CUDA_COMPILER" { default = "docker.io/nvidia/cuda:13.0.2-devel-ubuntu24.04" }
variable "EFA" { default = "1.48.0" }
variable "EFA_SHA256" { default = "" }
variable "NETWORK" { default = "efa" }  # or `system`: images without EFA's libraries

# What a cluster with GPUs needs; OpenRLHF and the images for a CPU alone are built by name.
group "default" { targets = ["toolbox", "trainer"] }
group "all" { targets = ["toolbox", "toolbox-train", "trainer", "openrlhf"] }

target "toolbox" {
  context = "."
  dockerfile = "images/toolbox/Dockerfile"
  target = "toolbox"
  tags = ["${PREFIX}lingoss/toolbox:${TAG}"]
  platforms = ["linux/amd64"]
  args = { BASE = "${PYTHON_BASE}", VERSION = "${TAG}", REVISION = "${REVISION}" }
}

target "toolbox-train" {
  inherits = ["toolbox"]
  target = "toolbox-train"
  tags = ["${PREFIX}lingoss/toolbox-train:${TAG}"]
}

target "trainer" {
  context = "."
  dockerfile = "images/trainer/Dockerfile"
  target = "trainer"
  tags = ["${PREFIX}lingoss/trainer:${TAG}"]
  platforms = ["linux/amd64"]
  args = {
    BASE = "${CUDA_BASE}"
    NETWORK = "${NETWORK}"
    EFA = "${EFA}"
    EFA_SHA256 = "${EFA_SHA256}"
    VERSION = "${TAG}"
    REVISION = "${REVISION}"
  }
}

target "openrlhf" {
  inherits = ["trainer"]
  dockerfile = "images/openrlhf/Dockerfile"
  target = "openrlhf"
  tags = ["${PREFIX}lingoss/openrlhf:${TAG}"]
  args = { COMPILER = "${CUDA_COMPILER}" }
}
