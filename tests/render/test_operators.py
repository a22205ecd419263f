# SPDX-License-Identifier: MIT-0
"""`make operators`, with programs that only note how they were called: which releases, where, at which versions."""

import os
import re
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "operators" / "install.sh"
MODULES = Path(__file__).parents[1] / "harness" / "go"


def pinned(module: str, path: str) -> str:
    """The version that the cluster tests build and run, without the leading v."""
    found = re.search(
        rf"^\s*(?:require )?{re.escape(path)} v(\S+)", (MODULES / module / "go.mod").read_text(), re.MULTILINE
    )
    assert found is not None
    return found[1]


KUBERAY = pinned("kubernetes", "github.com/ray-project/kuberay/ray-operator")
KUEUE = pinned("kueue", "sigs.k8s.io/kueue")


def calls(folder: Path, failing: str = "", **env: str) -> tuple[int, list[str], str]:
    """Exit status, the calls of helm and kubectl, and what the script printed."""
    log = folder / "calls"
    for name in ("helm", "kubectl"):
        stub = folder / name
        stub.write_text(
            f'#!/bin/sh\necho "{name} $*" >> {log}\ncase "$*" in *"{failing or "no such call"}"*) exit 1;; esac\n'
        )
        stub.chmod(0o755)
    programs = {"HELM": str(folder / "helm"), "KUBECTL": str(folder / "kubectl")}
    run = subprocess.run([SCRIPT], env=os.environ | programs | env, capture_output=True, text=True, check=False)
    return run.returncode, sorted(log.read_text().splitlines()), run.stdout


def test_kuberay_alone_at_the_tested_version(tmp_path: Path) -> None:
    status, made, printed = calls(tmp_path)
    assert status == 0
    (upgrade,) = [call for call in made if " upgrade " in call]
    assert "--install kuberay-operator kuberay-operator --repo https://ray-project.github.io/kuberay-helm/" in upgrade
    assert f"--version {KUBERAY} --namespace kuberay-system --create-namespace" in upgrade
    assert "kubectl apply --server-side --force-conflicts -f -" in made
    assert "release kuberay-operator in namespace kuberay-system" in printed
    assert "Kueue: not asked for" in printed


def test_kueue_on_request_as_its_own_release(tmp_path: Path) -> None:
    status, made, _ = calls(tmp_path, KUEUE="1")
    assert status == 0
    (kueue,) = [call for call in made if "oci://registry.k8s.io/kueue/charts/kueue" in call]
    assert f"upgrade --install kueue oci://registry.k8s.io/kueue/charts/kueue --version {KUEUE}" in kueue
    assert "--namespace kueue-system --create-namespace --values kueue.yaml" in kueue


def test_a_second_run_makes_the_same_calls(tmp_path: Path) -> None:
    first = calls(tmp_path, KUEUE="1")[1]
    (tmp_path / "calls").unlink()
    assert calls(tmp_path, KUEUE="1")[1] == first


@pytest.mark.parametrize("failing", ["show crds", "apply", "upgrade"])
def test_a_failing_step_stops_it(tmp_path: Path, failing: str) -> None:
    status, made, printed = calls(tmp_path, failing, KUEUE="1")
    assert status == 1
    assert "Done" not in printed
    assert not [call for call in made if "oci://" in call]
