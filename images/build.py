# SPDX-License-Identifier: MIT-0
"""Build and push the images of docker-bake.hcl with what is there: docker buildx, else podman, else buildah.

`make build-images` and `make push-images` call it. It needs Python 3.11 and nothing else. All three builders read the same
Dockerfiles with the same arguments, so the images have the same contents; the end of each build is `lingoss doctor
--image` in the image itself. Pushing writes the digests that the registry gave into values/images.yaml.
"""

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import bake

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "images" / "docker-bake.hcl"
BUILDERS = ("docker", "podman", "buildah")
GPU = ("trainer", "openrlhf")


class BuildError(RuntimeError):
    """Why nothing can be built, in one line that says what to do."""


def main(argv: list[str] | None = None) -> int:
    """Build or push; returns the exit status: 0 done, 1 a build failed, 2 refused."""
    options = _parser().parse_args(argv)
    try:
        environment = {**os.environ, **_variables(options)}
        names = options.image.replace(",", " ").split()
        targets = [one for name in names for one in bake.read(FILE, environment).targets(name)]
        builder = options.builder or find_builder()
        platforms = _platforms(options.platform, targets, builder)
        for at, target in enumerate(targets, 1):
            say(
                f"[{at}/{len(targets)}] {target.tags[0]} with {builder}, for {', '.join(platforms or target.platforms)}"
            )
        if options.action == "push" and not environment["PREFIX"]:
            raise BuildError("a push needs a registry: REGISTRY=123456789012.dkr.ecr.eu-west-1.amazonaws.com/team")
        return _run(options, builder, targets, platforms, environment)
    except (BuildError, bake.BakeError) as error:
        print(f"images: {error}", file=sys.stderr)
        return 2


def find_builder() -> str:
    """The first builder of BUILDERS that works here. Raises BuildError when none does."""
    seen = []
    for name in BUILDERS:
        if shutil.which(name) is None:
            seen.append(f"{name} is not installed")
        elif name != "docker":
            return name
        elif not _works("docker", "buildx", "version"):
            seen.append("docker has no buildx")
        elif not _works("docker", "buildx", "inspect"):
            seen.append("docker's builder cannot be reached (docker buildx inspect)")
        else:
            return name
    raise BuildError(f"nothing here can build images: {'; '.join(seen)}. Install docker with buildx, podman or buildah")


def commands(
    builder: str, target: bake.Target, platforms: list[str], push: bool, attested: bool, folder: Path, extra: list[str]
) -> list[list[str]]:
    """What builds one image, and with `push` sends it to its registry; its digest will lie in `folder`."""
    reference, digest = target.tags[0], str(folder / "digest")
    if builder == "docker":
        command = ["docker", "buildx", "bake", "--file", str(FILE), "--metadata-file", digest, "--progress", "plain"]
        for platform in platforms:
            command += ["--set", f"*.platform={platform}"]
        if push and attested:
            command += ["--set", "*.attest=type=sbom", "--set", "*.attest=type=provenance,mode=max"]
        return [[*command, "--push" if push else "--load", *extra, target.name]]
    # SHELL is no part of the OCI format; registries and clusters take both.
    command = [builder, "build" if builder == "podman" else "bud", "--format", "docker", "--layers"]
    command += ["--platform", (platforms or target.platforms)[0], "--file", str(ROOT / target.dockerfile)]
    command += ["--target", target.target, *(f"--build-arg={name}={value}" for name, value in target.args.items())]
    command += [f"--build-arg=FRESH={time.time_ns()}"]
    made = [[*command, *(f"--tag={tag}" for tag in target.tags), *extra, str(ROOT / target.context)]]
    return [*made, [builder, "push", "--digestfile", digest, reference]] if push else made


def read_digest(builder: str, target: bake.Target, folder: Path) -> str:
    """The digest that the registry gave. Raises BuildError when the builder wrote none."""
    text = (folder / "digest").read_text(encoding="utf-8") if (folder / "digest").exists() else ""
    found = json.loads(text).get(target.name, {}).get("containerimage.digest", "") if builder == "docker" else text
    if not found.strip().startswith("sha256:"):
        raise BuildError(f"{builder} pushed {target.tags[0]} and named no digest; pin it by hand in values/images.yaml")
    return str(found.strip())


def values(targets: list[bake.Target], digests: list[str], before: str) -> str:
    """The text of a values file for these images, and for those that the file named before: JSON, which YAML includes."""
    text = "\n".join(line for line in before.splitlines() if not line.startswith("#"))
    images = json.loads(text)["global"]["images"] if text.strip() else {}
    for target, digest in zip(targets, digests, strict=True):
        path, _, tag = target.tags[0].rpartition(":")
        registry, _, name = path.rpartition("/lingoss/")
        entry = {"registry": registry, "repository": f"lingoss/{name}", "tag": tag, "digest": digest}
        for key in ("trainer", "toolbox") if name == "toolbox-train" else (name,):
            images[key] = entry
    head = "# SPDX-License-Identifier: MIT-0\n# Written by `make push-images`: helm install … -f values/images.yaml\n"
    return head + json.dumps({"global": {"images": images}}, indent=2) + "\n"


def values_file(target: bake.Target) -> Path:
    """Where an image's digest goes: the layout without GPUs runs toolbox-train in place of the others."""
    return ROOT / "values" / ("images-local-cpu.yaml" if target.name == "toolbox-train" else "images.yaml")


def say(line: str) -> None:
    """Progress, on stderr."""
    print(f"images: {line}", file=sys.stderr, flush=True)


def _run(
    options: argparse.Namespace,
    builder: str,
    targets: list[bake.Target],
    platforms: list[str],
    environment: dict[str, str],
) -> int:
    push = options.action == "push"
    attested = push and builder == "docker" and _attests()
    if push and not attested:
        say(f"{builder} here makes no SBOM and no provenance (docker buildx with a container driver does)")
    for target in targets:
        start = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="lingoss-images-") as name:
            folder = Path(name)
            for command in commands(builder, target, platforms, push, attested, folder, shlex.split(options.flags)):
                say(shlex.join(command))
                done = subprocess.run(command, cwd=ROOT, env=environment, check=False)
                if done.returncode:
                    say(f"{target.name} failed with status {done.returncode} after {time.monotonic() - start:.0f} s")
                    return 1
            if push:
                file = values_file(target)
                before = file.read_text(encoding="utf-8") if file.exists() else ""
                file.write_text(values([target], [read_digest(builder, target, folder)], before), encoding="utf-8")
                say(f"{file.relative_to(ROOT)} names the digest of {target.tags[0]}")
        say(f"{target.tags[0]} is {'pushed' if push else 'built'}, {time.monotonic() - start:.0f} s")
    return 0


def _variables(options: argparse.Namespace) -> dict[str, str]:
    """Variables of the bake file that the command line or the repository decides."""
    found = {"PREFIX": f"{options.registry.rstrip('/')}/" if options.registry else os.environ.get("PREFIX", "")}
    if options.tag:
        found["TAG"] = options.tag
    revision = ""
    if shutil.which("git"):
        command = ["git", "describe", "--always", "--dirty", "--abbrev=40"]
        revision = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
    return found | ({"REVISION": revision} if revision else {})


def _platforms(text: str, targets: list[bake.Target], builder: str) -> list[str]:
    """The platforms asked for; empty means each image's own. Raises BuildError when they cannot be built."""
    found = text.replace(",", " ").split()
    if len(found) > 1 and builder != "docker":
        raise BuildError(f"{builder} builds one platform at a time here, and PLATFORM is {text}: use docker buildx")
    for target in targets:
        if target.name in GPU and found and found != ["linux/amd64"]:
            raise BuildError(f"{target.name} is locked for linux/amd64 alone, and PLATFORM is {text}")
    return found


def _attests() -> bool:
    """Whether docker's builder can write an SBOM and provenance: its built-in driver cannot."""
    done = subprocess.run(["docker", "buildx", "inspect"], capture_output=True, text=True, check=False)
    drivers = [line.split(":", 1)[1].strip() for line in done.stdout.splitlines() if line.startswith("Driver:")]
    return bool(drivers) and drivers[0] != "docker"


def _works(*command: str) -> bool:
    try:
        return subprocess.run(command, capture_output=True, check=False, timeout=30).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="images/build.py", description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=("build", "push"))
    parser.add_argument("--image", default="default", help="names or groups of the bake file (default, all)")
    parser.add_argument("--registry", default="", help="registry and path before lingoss/…, without a slash at the end")
    parser.add_argument("--tag", default="", help="tag of the images (the chart's appVersion)")
    parser.add_argument("--platform", default="", help="linux/amd64; the toolbox also linux/arm64")
    parser.add_argument("--builder", choices=BUILDERS, help="do not look for one")
    parser.add_argument("--flags", default="", help="more flags for the builder, as one text")
    return parser


if __name__ == "__main__":
    sys.exit(main())
