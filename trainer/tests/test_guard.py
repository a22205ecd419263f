# SPDX-License-Identifier: MIT-0
"""`lingoss guard` as the two hooks run it: a fake API server, real run folders on a read-only volume, one line."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import readonly
from fake_kubernetes import TOKEN, Cluster, claim, condition, serving, workload
from lingoss import config, runs
from lingoss.cli import main
from lingoss.config.common import StageConfig
from lingoss.evaluate.last_gate import last_gate
from lingoss.guard import api as api_module
from lingoss.guard.api import Api
from lingoss.guard.volume import facts

END = ", or pass --set guard.force=true\n"
GATE_END = ", or pass --set grpo.config.gate.force=true,guard.force=true\n"
Guard = Callable[..., tuple[int, str]]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    (folder / "evaluations").mkdir(parents=True)
    return folder


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
def server(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Api]:
    (tmp_path / "token").write_text(TOKEN)
    with serving(cluster) as port:
        api = Api(f"http://127.0.0.1:{port}", tmp_path, patience=0.1, timeout=5.0)
        monkeypatch.setattr(api_module, "in_cluster", lambda: api)
        yield api


@pytest.fixture
def guard(server: Api, root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Guard:
    """Run the commands for a stage with settings, as the hooks do; exit status and output of the last that ran."""

    def run(stage: str, *options: str, **settings: Any) -> tuple[int, str]:
        file = tmp_path / f"{stage}.yaml"
        file.write_text(json.dumps({"stage": stage, "root": str(root), **settings}))
        capsys.readouterr()
        code = main(["guard", "cluster", "--release", "lingoss", "--namespace", "team-a", "--stage", stage, *options])
        if code == 0 and stage not in ("none", "prepare") and not options:
            capsys.readouterr()
            code = main(["guard", "volume", "--stage", stage, "--config", str(file)])
        return code, capsys.readouterr().out

    return run


def settings_of(root: Path, stage: str, **changes: Any) -> StageConfig:
    return config.stage_type(stage).model_validate({"root": root, **changes})


def plant(root: Path, stage: str, parents: tuple[str, ...] = (), gate: Any = None, **changes: Any) -> str:
    """A finished run with weights that nobody loads; for an evaluation with the gate's outcome and what it judged."""
    with runs.open_run(root, stage, settings_of(root, stage, **changes), parents) as folder:
        folder.status("running", 1, 1)
        if stage in ("sft", "grpo"):
            folder.adapter.mkdir()
            (folder.adapter / "adapter_model.safetensors").write_bytes(b"weights")
            (folder.adapter / "adapter_config.json").write_text("{}")
        if gate is not None:
            outcome, judged = gate
            content = {"outcome": outcome, "languages": {}, "reasons": ["Because.\nSo."], "runs": [judged, "base"]}
            runs.write_json(folder.path / "gate.json", content)
        (root / "models").mkdir(exist_ok=True)
        model = {"path": "models", "digest": "0", "hub_id": "a/model", "revision": None}
        brought = {"prepared": {"model": model, "prompts": {}, "datasets": {}}} if stage == "prepare" else {}
        folder.finish(1, **brought)
    return folder.name


def begin(root: Path, stage: str, parents: tuple[str, ...] = (), **changes: Any) -> str:
    with runs.open_run(root, stage, settings_of(root, stage, **changes), parents) as folder:
        folder.status("running", 1, 5)
    return folder.name


def test_a_whole_life(guard: Guard, cluster: Cluster, root: Path) -> None:
    """prepare, sft, evaluate, grpo, evaluate, serve, none: each step refused until what it needs is there."""
    lacks = f"stage sft cannot start, sft needs a finished run of stage prepare below {root / 'runs'}: run it first"
    assert guard("prepare") == (0, "release lingoss may go on with stage prepare\n")
    assert guard("sft") == (1, lacks + END)
    prepare = begin(root, "prepare")
    assert guard("sft") == (1, f"{lacks}; unfinished: {prepare} is stopped{END}")
    assert guard("evaluate")[0] == 1
    assert plant(root, "prepare") == prepare
    assert guard("sft") == (0, f"stage sft starts from {prepare}\n")
    assert guard("evaluate")[0] == 0

    assert guard("grpo") == (
        1,
        f"stage grpo cannot start, grpo needs a finished run of stage sft below {root / 'runs'}: run it first{END}",
    )
    code, told = guard("serve")
    assert (code, told.count("\n")) == (1, 1)
    assert told.startswith("stage serve cannot start, ")
    assert told.endswith(END)
    sft = plant(root, "sft", (prepare,))
    assert guard("serve")[0] == 0
    assert guard("grpo") == (
        1,
        f"stage grpo cannot start, no finished evaluation has judged {sft}, so nobody knows whether GRPO would learn "
        f"anything: run stage evaluate first{GATE_END}",
    )
    plant(root, "evaluate", (prepare,), gate=("viable", "base"))
    assert "no finished evaluation has judged" in guard("grpo")[1]
    first = plant(root, "evaluate", (prepare, sft), gate=("sft-first", sft))
    assert guard("grpo") == (
        1,
        f"stage grpo is not worth starting, the gate of {first} says sft-first for {sft} (Because. So): train longer or "
        f"on more examples in stage sft, then evaluate again{GATE_END}",
    )
    assert guard("grpo", gate={"force": True})[0] == 0
    plant(root, "evaluate", (prepare, sft), gate=("viable", sft), run="2")
    assert guard("grpo")[0] == 0

    grpo = plant(root, "grpo", (sft,))
    plant(root, "evaluate", (prepare, sft, grpo), gate=("target-met", sft), run="3")
    assert guard("grpo") == (0, f"stage grpo has been done: {grpo}\n")  # flip back
    assert guard("grpo", max_steps=201)[0] == 1  # other settings are another run
    assert guard("grpo", run="2")[0] == 1
    assert guard("grpo", data={"files": ["./more.jsonl"]})[0] == 1
    assert guard("none") == (0, "release lingoss may go on with stage none\n")


def test_leaving_a_running_stage(guard: Guard, cluster: Cluster, root: Path) -> None:
    prepare = plant(root, "prepare")
    plant(root, "sft", (prepare,))
    job = workload("HyperPodPyTorchJob", "lingoss-sft-1", "sft", status={"conditions": [condition("Running")]})
    cluster.add(job)
    said = (
        "stage sft cannot be left for {}, HyperPodPyTorchJob lingoss-sft-1 is still running: wait until it has finished, "
        "or stop it with `kubectl delete hyperpodpytorchjob lingoss-sft-1`"
    )
    for stage in ("none", "prepare", "evaluate", "grpo", "serve"):
        assert guard(stage) == (1, said.format(stage) + END)
    assert guard("evaluate", "--force") == (
        0,
        f"warning, overridden by force: {said.format('evaluate')}\nrelease lingoss may go on with stage evaluate\n",
    )
    assert guard("sft", "--workload", "lingoss-sft-1")[1] == "release lingoss may go on with stage sft\n"
    code, told = guard("sft", "--workload", "lingoss-sft-2", "--workload", "lingoss-sft-3")
    assert code == 0
    assert told.splitlines()[0] == (
        "HyperPodPyTorchJob lingoss-sft-1 is running and will be stopped: lingoss-sft-2, lingoss-sft-3 takes its place, "
        "and resumes its run from the last checkpoint unless settings that change the result have changed"
    )
    job["status"]["conditions"].append(condition("Completed"))
    assert guard("evaluate")[0] == 0


def test_force_tells_every_reason(guard: Guard, cluster: Cluster) -> None:
    cluster.add(workload("Job", "lingoss-prepare-1", "prepare", status={"active": 1, "ready": 1}), claim("Pending"))
    code, told = guard("grpo", "--claim", "lingoss-data", "--force")
    assert code == 0
    first, second, last = told.splitlines()
    assert first.startswith("warning, overridden by force: stage prepare cannot be left for grpo")
    assert second.startswith("warning, overridden by force: stage grpo cannot start, claim lingoss-data is Pending")
    assert last == "release lingoss may go on with stage grpo"


def test_a_claim_that_no_pod_can_mount(guard: Guard, cluster: Cluster) -> None:
    missing = (
        "stage {} cannot start, there is no claim lingoss-data in namespace team-a: run stage prepare first, or name "
        "another claim (global.storage.existingClaim)"
    )
    pending = (
        "stage {} cannot start, claim lingoss-data is Pending, so no pod can mount it: `kubectl --namespace team-a describe "
        "pvc lingoss-data` says why; a class that waits for its first pod is bound by stage prepare"
    )
    asked = ("--claim", "lingoss-data")
    for found, text in ((None, missing), (claim("Pending"), pending)):
        cluster.objects = [found] if found else []
        for stage in ("sft", "grpo", "evaluate", "serve"):
            assert guard(stage, *asked) == (1, text.format(stage) + END)
        for stage in ("none", "prepare"):
            assert guard(stage, *asked)[0] == 0
    cluster.objects = [claim("Bound", deletionTimestamp="2026-11-30T16:00:00Z")]
    assert "claim lingoss-data is being deleted, so no pod can mount it" in guard("sft", *asked)[1]
    cluster.objects = [claim("Lost")]
    assert guard("sft", *asked)[1].endswith(f"describe pvc lingoss-data` says why{END}")
    cluster.objects = [claim("Bound")]
    assert guard("sft", *asked) == (0, "release lingoss may go on with stage sft\n")
    cluster.add(workload("Job", "lingoss-prepare-1", "prepare", status={"ready": 1}))
    assert guard("sft", *asked)[1].startswith("stage prepare cannot be left for sft")


def test_what_cannot_be_known_is_refused(guard: Guard, cluster: Cluster, root: Path, tmp_path: Path) -> None:
    plant(root, "prepare")
    cluster.answers = [(500, b"")] * 9
    code, told = guard("sft")
    assert code == 1
    assert told.startswith("the guard cannot decide, GET /apis/batch/v1/namespaces/team-a/jobs?")
    assert told.endswith(f": 500 Internal Server Error{END}")
    cluster.answers = []
    code, told = guard("sft", learning_rat=1)
    assert (code, told.count("\n")) == (1, 1)
    assert "learning_rat" in told
    assert told.endswith(END)
    (root / "runs").rename(tmp_path / "runs")
    (root / "runs").write_text("")
    assert "cannot be listed" in guard("sft")[1]


def test_each_question_names_what_it_needs(capsys: pytest.CaptureFixture[str]) -> None:
    for command, lacks in (
        ("", "cluster|volume"),
        ("cluster", "--release, --namespace, --stage"),
        ("volume", "--config"),
    ):
        stage = ["--stage", "sft"] if command == "volume" else []
        with pytest.raises(SystemExit) as stopped:
            main(["guard", *command.split(), *stage])
        assert stopped.value.code == 2
        assert f"the following arguments are required: {lacks}" in capsys.readouterr().err


def test_no_config(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["guard", "volume", "--stage", "sft", "--config", str(tmp_path / "sft.yaml")]) == 1
    told = capsys.readouterr().out
    assert told.startswith(f"the guard cannot decide, {tmp_path / 'sft.yaml'}")
    assert told.endswith(END)
    assert told.count("\n") == 1


def test_a_defect_is_no_traceback_and_no_leave(
    guard: Guard, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(api_module, "in_cluster", lambda: 1 / 0)
    assert guard("none") == (1, f"the guard cannot decide, it failed with ZeroDivisionError: division by zero{END}")


def test_the_newest_gate_of_a_run(root: Path) -> None:
    assert last_gate(root, "sft-a") is None
    plant(root, "evaluate", gate=("saturated", "sft-a"))
    newer = plant(root, "evaluate", gate=("viable", "sft-a"), run="2")
    plant(root, "evaluate", gate=("saturated", "sft-b"), run="3")
    found = last_gate(root, "sft-a")
    assert found is not None
    assert (found.evaluation, found.outcome, found.reason) == (newer, "viable", "Because. So")
    broken = plant(root, "evaluate", gate=("viable", "sft-a"), run="4")
    (root / "runs" / broken / "gate.json").write_text("{")
    found = last_gate(root, "sft-a")
    assert found is not None
    assert (found.evaluation, found.outcome) == (broken, "unreadable")


def test_an_explicit_parent(root: Path) -> None:
    prepare = plant(root, "prepare")
    first = plant(root, "sft", (prepare,))
    plant(root, "sft", (prepare,), run="2")
    plant(root, "evaluate", (prepare, first), gate=("viable", first))
    assert facts("grpo", settings_of(root, "grpo")).gate is None
    found = facts("grpo", settings_of(root, "grpo", parent=first))
    assert (found.source, found.gate and found.gate.outcome) == (first, "viable")
    running = begin(root, "prepare", run="2")
    assert facts("evaluate", settings_of(root, "evaluate", parent=prepare)).source == prepare
    asked = facts("evaluate", settings_of(root, "evaluate", parent=running))
    assert asked.source is None
    assert asked.problem.startswith(f"{running} is not finished (stopped): run stage prepare to its end first")
    assert "give a run of stage prepare" in facts("evaluate", settings_of(root, "evaluate", parent=first)).problem


def test_a_volume_that_is_mounted_read_only(root: Path, tmp_path: Path) -> None:
    prepare = plant(root, "prepare")
    sft = plant(root, "sft", (prepare,))
    plant(root, "evaluate", (prepare, sft), gate=("viable", sft))
    before = {path: path.stat().st_mtime_ns for path in root.rglob("*")}
    file = tmp_path / "grpo.yaml"
    file.write_text(json.dumps({"root": str(root)}))
    code = (
        f"{readonly.NO_TORCH}\nfrom lingoss.cli import main\n"
        f"import sys\nsys.exit(main(['guard', 'volume', '--stage', 'grpo', '--config', {str(file)!r}]))\n"
    )
    log = tmp_path / "log"
    process = readonly.start(readonly.prefix(root), code, log)
    said, _ = process.communicate(timeout=60)
    assert (process.returncode, said) == (0, f"stage grpo starts from {sft}\n"), log.read_text()
    assert {path: path.stat().st_mtime_ns for path in root.rglob("*")} == before


def test_help_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["guard", "--help"])
    assert stopped.value.code == 0
    printed = capsys.readouterr().out
    commands = ("lingoss guard cluster --release", "lingoss guard volume --stage")
    for word in ("--set guard.force=true", "exit status: 0 allowed; 1 refused", "`viable`", *commands):
        assert word in printed


def test_cleanup_deletes_what_the_release_still_has_and_nothing_else(
    server: Api, cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    stays = [
        workload("Job", "lingoss-grpo-1-submitter", "grpo", metadata={"ownerReferences": [{"kind": "RayJob"}]}),
        workload("Job", "other-sft-1", "sft", release="other"),
        workload("ConfigMap", "other-sft-1", "sft", release="other"),
        workload("ConfigMap", "mine", "sft", metadata={"labels": {"app.kubernetes.io/instance": "lingoss"}}),
        workload(
            "ServiceAccount", "lingoss-cleanup", "cleanup", metadata={"annotations": {"helm.sh/hook": "pre-delete"}}
        ),
        workload("Service", "kept", "serve", metadata={"annotations": {"helm.sh/resource-policy": "keep"}}),
        claim("Bound", labels={"app.kubernetes.io/name": "lingoss", "app.kubernetes.io/instance": "lingoss"}),
    ]
    cluster.add(
        workload("Job", "lingoss-sft-1", "sft", status={"ready": 1}),
        workload("RayJob", "lingoss-grpo-1", "grpo"),
        workload("ServiceAccount", "lingoss-sft", "sft"),
        workload("ConfigMap", "lingoss-sft-1", "sft"),
        workload("Service", "lingoss-serve", "serve"),
        workload("PodDisruptionBudget", "lingoss-serve", "serve"),
        workload("NetworkPolicy", "lingoss-sft", "sft"),
        workload("Deployment", "lingoss-serve", "serve"),
        *stays,
    )

    assert main(["guard", "cleanup", "--release", "lingoss", "--namespace", "team-a"]) == 0

    assert cluster.objects == stays
    assert capsys.readouterr().out.splitlines() == [
        "deleted Job lingoss-sft-1 (running)",
        "deleted RayJob lingoss-grpo-1 (queued or starting)",
        "deleted Deployment lingoss-serve",
        "deleted Service lingoss-serve",
        "deleted NetworkPolicy lingoss-sft",
        "deleted PodDisruptionBudget lingoss-serve",
        "deleted ConfigMap lingoss-sft-1",
        "deleted ServiceAccount lingoss-sft",
    ]


def test_cleanup_says_what_is_left_to_do_when_it_may_not(
    server: Api, cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.answers = [(500, b"{}")] * 20

    assert main(["guard", "cleanup", "--release", "lingoss", "--namespace", "team-a"]) == 1

    told = capsys.readouterr().out
    assert told.startswith("something may be left: GET /apis/batch/v1/namespaces/team-a/jobs")
    assert told.endswith("uninstall with --no-hooks and delete it by hand\n")


def test_a_newer_run_that_is_not_finished_is_not_passed_over(root: Path) -> None:
    prepare = plant(root, "prepare")
    sft = plant(root, "sft", (prepare,))
    age(root, prepare, "2026-11-29T10:00:00Z")
    age(root, sft, "2026-11-29T11:00:00Z")
    other = begin(root, "prepare", run="2")
    said = f"{other} began after {prepare}, and is stopped: run stage prepare to its end, or start from the older one with "
    for stage, values in (("sft", "sft.config"), ("evaluate", "inference.evaluate.config")):
        found = facts(stage, settings_of(root, stage))
        assert (found.source, found.problem) == (None, f"{said}--set {values}.parent={prepare}")
        assert facts(stage, settings_of(root, stage, parent=prepare)).source == prepare
    assert facts("grpo", settings_of(root, "grpo")).source == sft
    second = begin(root, "sft", (prepare,), run="2")
    assert second in facts("serve", settings_of(root, "serve")).problem
    age(root, second, "2026-11-28T00:00:00Z")
    assert facts("serve", settings_of(root, "serve")).source == sft


def age(root: Path, name: str, started: str) -> None:
    """Let a run have begun then."""
    for file in ("status.json", "DONE.json"):
        path = root / "runs" / name / file
        if path.exists():
            record = json.loads(path.read_text())
            if "started" in record:
                path.write_text(json.dumps({**record, "started": started}))


def test_remedies_are_told_in_the_words_of_the_chart(root: Path) -> None:
    plant(root, "prepare")
    assert facts("serve", settings_of(root, "serve")).problem.endswith(
        "run stage sft first, or serve the base model with --set inference.serve.config.parent=latest:prepare"
    )


def test_only_the_kinds_that_are_named_are_asked_for(server: Api, cluster: Cluster) -> None:
    asked = ["guard", "cluster", "--release", "lingoss", "--namespace", "team-a", "--stage", "none"]
    assert main([*asked, "--kinds", "Job"]) == 0
    assert [path.split("?")[0] for path in cluster.asked] == ["/apis/batch/v1/namespaces/team-a/jobs"]
