# SPDX-License-Identifier: MIT-0
"""The config that a pod reads is exactly the trainer's config file: the trainer's own parser takes every rendered one."""

import itertools
from pathlib import Path

import charts
import pytest
import yaml

import lingoss.config
from cases import KINDS, Case, each, everywhere, values

CONFIGS = {name: value for name, value in values().items() if "config" in value.hints}


def configs(manifests: list[charts.Manifest]) -> dict[str, str]:
    """Stage to config text of the rendered ConfigMaps."""
    return {
        file.removesuffix(".yaml"): text
        for manifest in charts.of_kind(manifests, "ConfigMap")
        for file, text in manifest["data"].items()
        if file.removesuffix(".yaml") in lingoss.config.STAGES
    }


def loaded(case: Case, stage: str, tmp_path: Path, more: charts.Values | None = None) -> lingoss.config.StageConfig:
    file = tmp_path / f"{stage}.yaml"
    file.write_text(configs(case.manifests(more))[stage])
    return lingoss.config.load(stage, file)


@everywhere
def test_the_trainer_parses_every_rendered_config(case: Case, tmp_path: Path) -> None:
    found = configs(case.manifests())
    if case.stage != "none":
        assert case.stage in found
    for stage in found:
        root = str(loaded(case, stage, tmp_path).root)
        assert root == case.values.get("global.storage.mountPath", "/lingoss")


@each([case for case in KINDS if case.stage != "none"])
def test_the_label_of_a_repetition_reaches_the_config(case: Case, tmp_path: Path) -> None:
    stage = case.stage
    assert loaded(case, stage, tmp_path).run == "1"
    assert loaded(case, stage, tmp_path, {"global.run": "again"}).run == "again"


@everywhere
def test_pods_read_the_config_that_is_mounted(case: Case) -> None:
    for pod in case.pods():
        mounted = [volume["configMap"]["name"] for volume in pod.spec.get("volumes", []) if "configMap" in volume]
        for container in pod.containers:
            words = [str(word) for word in [*container.get("command", []), *container.get("args", [])]]
            for word, file in itertools.pairwise(words):
                if word == "--config" and pod.part != "guard":
                    assert file.startswith("/etc/lingoss/"), pod.name
                    assert any(mount["mountPath"] == "/etc/lingoss" for mount in container["volumeMounts"]), pod.name
                    assert mounted, pod.name


def test_every_stage_of_the_trainer_has_its_config_among_the_values() -> None:
    assert sorted(value.hints["config"] for value in CONFIGS.values()) == sorted(lingoss.config.STAGES)


@pytest.mark.parametrize("name", CONFIGS)
def test_helm_refuses_unknown_keys_of_a_config(name: str) -> None:
    said = charts.refusal(charts.BASE, {f"{name}.lerning_rate": 1})
    assert "lerning_rate" in said


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("key", ["root", "stage", "run"])
def test_helm_refuses_config_keys_that_the_chart_sets(name: str, key: str) -> None:
    assert key in charts.refusal(charts.BASE, {f"{name}.{key}": "x"})


@pytest.mark.parametrize("name", CONFIGS)
def test_the_defaults_of_a_config_are_complete_and_right_for_the_trainer(name: str, tmp_path: Path) -> None:
    """Checked alone too, because only the current stage's config is rendered."""
    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump(CONFIGS[name].default))
    lingoss.config.load(CONFIGS[name].hints["config"], file)
