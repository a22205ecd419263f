# SPDX-License-Identifier: MIT-0
"""Names of what runs once: the same spec keeps its name (and so its pods), another spec gets another."""

import json
import re
import shutil
from pathlib import Path

import charts
import pytest
from mutations import UNREAD, Leaf, another, effect, leaves, stage_of
from test_values import MUTATED

from cases import KINDS, Case, each, stages_of, values

RUNNING = [case for case in KINDS if case.stage not in ("none", "serve")]


def specs(manifests: list[charts.Manifest]) -> dict[str, str]:
    """Name to everything else of each run-once object."""
    found = {}
    for manifest in charts.run_once(manifests):
        metadata = {key: value for key, value in manifest["metadata"].items() if key != "name"}
        found[f"{manifest['kind']}/{manifest['metadata']['name']}"] = json.dumps({**manifest, "metadata": metadata})
    return found


def readers(manifests: list[charts.Manifest]) -> set[str]:
    """The run-once objects with a pod that mounts a config."""
    return {
        f"{pod.owner['kind']}/{pod.owner['metadata']['name']}"
        for pod in charts.pods(charts.run_once(manifests))
        if any("configMap" in volume for volume in pod.spec["volumes"])
    }


def part(name: str) -> str:
    return re.sub("-[0-9a-f]{8}$", "", name)


def consistent(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """Objects whose name stayed although their spec changed, or changed although their spec stayed."""
    wrong = [f"{name} kept its name" for name, spec in after.items() if name in before and before[name] != spec]
    texts = {spec: name for name, spec in before.items()}
    return wrong + [f"{name} was renamed" for name, spec in after.items() if spec in texts and texts[spec] != name]


@each(RUNNING)
def test_the_same_values_give_the_same_names_on_install_and_upgrade(case: Case) -> None:
    assert specs(case.manifests(upgrade=False)) == specs(case.manifests(upgrade=True))


@each(RUNNING)
def test_the_version_of_the_chart_changes_no_name(case: Case, tmp_path_factory: pytest.TempPathFactory) -> None:
    assert specs(case.manifests()) == specs(case.manifests(chart=newer(tmp_path_factory)))


def newer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The chart as its next version."""
    folder = tmp_path_factory.getbasetemp() / "newer"
    if not folder.exists():
        shutil.copytree(charts.CHART, folder)
        for file in folder.rglob("Chart.yaml"):
            file.write_text(re.sub(r"(?m)^version: .*$", "version: 99.0.0", file.read_text()))
    return folder


@pytest.mark.parametrize("leaf", [leaf for leaf in MUTATED if leaf.name not in UNREAD], ids=str)
def test_a_name_changes_exactly_when_the_spec_does(leaf: Leaf) -> None:
    found = effect(leaf)
    if found and found[1] == "manifests":
        case, _ = found
        assert consistent(specs(case.manifests()), specs(case.manifests({leaf.name: another(leaf)}))) == []


@each(RUNNING)
def test_values_of_other_stages_change_no_name(case: Case) -> None:
    """More memory, another image or another config of a stage that does not run restarts nothing."""
    stage = case.stage
    foreign = {}
    for leaf in leaves():
        section = stage_of(leaf.name)
        if section and section != stage and leaf.value.path[-1] in ("resources", "config", "annotations"):
            foreign[leaf.name] = another(leaf)
    assert len(foreign) > 5
    assert specs(case.manifests(foreign)) == specs(case.manifests())


@each(RUNNING)
def test_an_image_renames_only_what_runs_it(case: Case) -> None:
    own = charts.layout(case.layout)["global"].get("images", {})
    for image in [value.path[-1] for value in values()["global.images"].below]:
        repository = own.get(image, {}).get("repository", values()[f"global.images.{image}.repository"].default)
        more = {f"global.images.{image}.digest": f"sha256:{'b' * 64}"}
        before, after = specs(case.manifests()), specs(case.manifests(more))
        for name, spec in before.items():
            uses = f'"{repository}:' in spec
            assert (name not in after) is uses, f"{name} and image {image}"


@each(RUNNING)
def test_another_config_is_another_run_and_another_configmap(case: Case) -> None:
    config = next(name for name, value in values().items() if value.hints.get("config") == case.stage)
    before, after = (readers(case.manifests()), readers(case.manifests({f"{config}.seed": 4242})))
    assert sorted(map(part, before)) == sorted(map(part, after))
    assert before
    assert not before & after


@each(RUNNING)
def test_the_label_of_a_repetition_renames_every_run(case: Case) -> None:
    before, after = (readers(case.manifests()), readers(case.manifests({"global.run": "again"})))
    assert sorted(map(part, before)) == sorted(map(part, after))
    assert before
    assert not before & after


@each(RUNNING)
def test_another_queue_is_another_object(case: Case) -> None:
    """Kueue refuses to move what it has admitted to another queue, and with it the whole upgrade."""
    before, after = case.manifests({"global.queue.name": "one"}), case.manifests({"global.queue.name": "two"})
    assert consistent(specs(before), specs(after)) == []


@each(stages_of(charts.BASE))
def test_two_releases_share_no_name(case: Case) -> None:
    one, other = case.manifests(release="one"), case.manifests(release="other")
    names = {charts.identifier(manifest) for manifest in one} & {charts.identifier(manifest) for manifest in other}
    assert names == set()


@each(stages_of(charts.BASE))
@pytest.mark.parametrize("release", ["a", "lingoss", "l" * 30, "l" * 53])
def test_long_names_fit_or_are_refused_with_their_length(case: Case, release: str) -> None:
    try:
        manifests = case.manifests(release=release)
    except charts.RenderError as error:
        said = str(error)
        manifests = []
    else:
        said = ""
    assert not said or (len(release) > 20 and re.search(r"\b\d\d\b", said)), said
    for manifest in charts.run_once(manifests):
        assert len(manifest["metadata"]["name"]) <= (47 if manifest["kind"] == "RayJob" else 63)


def test_a_deployment_keeps_its_name() -> None:
    case = Case("", charts.BASE, (("global.stage", "serve"),))
    for more in ({}, {"global.run": "again"}, {"inference.serve.replicas": 2}):
        (server,) = charts.of_kind(case.manifests(more), "Deployment")
        assert server["metadata"]["name"] == "lingoss-serve"
        assert server["spec"]["strategy"] == {"type": "Recreate"}
