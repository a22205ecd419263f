# SPDX-License-Identifier: MIT-0
"""What the chart renders, read by the real programs: hyperpodrun's flags, and log rules on the log of a real run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from elastic.job import Job
from elastic.training import Run, new_run
from elastic.warm import Server
from harness.hyperpod.ranks import Policy
from render import charts

HYPERPOD = {"global.stage": "sft", "sft.runtime": "hyperpod", "sft.nodes": 2}
ELASTIC = {**HYPERPOD, "sft.elastic.enabled": True, "sft.elastic.maxNodes": 4}


def rendered(values: dict[str, Any]) -> dict[str, Any]:
    """The spec of the custom resource on the base layout."""
    (job,) = [one for one in charts.render(charts.BASE, values) if one["kind"] == "HyperPodPyTorchJob"]
    spec: dict[str, Any] = job["spec"]
    return spec


def test_hyperpodrun_takes_the_command() -> None:
    from hyperpod_elastic_agent.run import add_additional_hyperpod_args
    from torch.distributed.run import config_from_args, get_args_parser

    spec = rendered(ELASTIC)
    (container,) = spec["replicaSpecs"][0]["template"]["spec"]["containers"]
    command = container["command"]
    assert command[0] == "hyperpodrun"  # no shell in between: signals reach it
    parser = get_args_parser()
    add_additional_hyperpod_args(parser)
    given = parser.parse_args(command[1:])
    environment = charts.env(container)
    assert given.nnodes == environment["NNODES"] == "2"
    assert str(given.nproc_per_node) == spec["nprocPerNode"] == "4"
    assert (given.server_host, given.server_port) == ("0.0.0.0", 8080)
    assert {"name": "agent", "containerPort": 8080} in container["ports"]
    assert (given.shutdown_signal, given.shutdown_timeout) == ("SIGKILL", 600)
    assert environment["HYPERPOD_SIGNAL_COORDINATION"] == "distributed"
    assert given.training_script_args == ["sft", "--config", "/etc/lingoss/sft.yaml"]
    config, _, arguments = config_from_args(given)
    assert config.min_nodes == config.max_nodes == 2  # the agent refuses a range
    assert arguments[:3] == ["-u", "-m", "lingoss"]
    assert config.logs_specs.root_log_dir.startswith("/tmp/")  # the root file system is read-only
    assert "/opt/ml/input/config" in [mount["mountPath"] for mount in container["volumeMounts"]]


def test_every_time_limit_leaves_room_for_the_one_before() -> None:
    spec = rendered({**ELASTIC, "sft.stopSeconds": 900})
    pod = spec["replicaSpecs"][0]["template"]["spec"]
    assert spec["elasticPolicy"]["gracefulShutdownTimeoutInSeconds"] == 900
    assert "--shutdown-timeout=900" in pod["containers"][0]["command"]
    assert pod["terminationGracePeriodSeconds"] > 900
    assert pod["shareProcessNamespace"] is True  # else the agent ignores SIGTERM until it has started ranks


def test_the_log_rules_follow_a_real_run(
    server: Server, prepared: Path, environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two nodes, each with an agent of its own that judges by its own ranks' output."""
    from hyperpod_elastic_agent.logagent import log_agent

    rules = rendered(HYPERPOD)["runPolicy"]["logMonitoringConfiguration"]
    run: Run = new_run(prepared, tmp_path, 6)
    policy = Policy(sizes=(2,), graceful_seconds=60, log_rules=rules)
    with Job(server, tmp_path / "job", run.command, environment, policy, nodes=2) as job:
        job.until("the end", job.phase("completed"), 120)
        logs = [next(pod.folder.glob("*/attempt_0/0/stdout.log")).read_text() for pod in job.pods.values()]
    clock = [0.0]
    monkeypatch.setattr("time.time", lambda: clock[0])
    for log in logs:
        for rule in rules:
            clock[0] = 0.0
            evaluator = log_agent.LogEvaluator(rule)
            clock[0] = rule["expectedStartCutOffInSeconds"] - 1.0
            states = [evaluator.evaluate(line)[0].name for line in log.splitlines(keepends=True)]
            assert states[-1] == "HEALTHY"
            assert states.index("HEALTHY") == _first_step(log)
            clock[0] += rule["expectedRecurringFrequencyInSeconds"] - 1.0
            assert evaluator.evaluate("")[0].name == "HEALTHY"
            clock[0] += 2.0
            assert evaluator.evaluate("")[0].name == "HANGING"
            never = log_agent.LogEvaluator(rule)
            clock[0] += rule["expectedStartCutOffInSeconds"] + 1.0
            assert never.evaluate("")[0].name == "HANGING"


def _first_step(log: str) -> int:
    return next(at for at, line in enumerate(log.splitlines()) if '"done": 1,' in line)
