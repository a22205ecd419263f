# SPDX-License-Identifier: MIT-0
"""What each value sets, and where: a line of knobs.yaml each, and four families that look the same everywhere."""

import json
import re
from pathlib import Path
from typing import Any

import charts
import pytest
import yaml
from charts import limits, requests
from mutations import CHOSEN, POD, SAMPLES, UNREAD, contexts, leaves
from test_values import MUTATED

from cases import EXTRA, Case, stages_of, values

TABLE = yaml.safe_load((Path(__file__).parent / "knobs.yaml").read_text())
NAMED = {case.name: case for case in [*stages_of(charts.BASE), *EXTRA]}

ACCOUNTS = [name.removesuffix(".create") for name in map(str, leaves()) if name.endswith("serviceAccount.create")]
RESOURCES = [str(leaf) for leaf in leaves() if leaf.value.hints.get("k8s") == "ResourceRequirements"]
IMAGES = [value.path[-1] for value in values()["global.images"].below]


def at(value: Any, path: str) -> Any:
    """What stands at `spec.containers[main].env[X].value`: in a list, [name] picks by name and [0] by position.

    None where the path leads nowhere. A key with dots stands in quotes: limits."nvidia.com/gpu".
    """
    for quoted, plain, item in re.findall(r'"([^"]+)"|([^.\[\]"]+)|\[([^\]]+)\]', path):
        if item and isinstance(value, list):
            named = [
                entry for entry in value if isinstance(entry, dict) and item in (entry.get("name"), entry.get("key"))
            ]
            value = value[int(item)] if item.isdigit() and int(item) < len(value) else next(iter(named), None)
        else:
            value = value.get(quoted or plain) if isinstance(value, dict) else None
    return value


def chosen(manifests: list[charts.Manifest], wanted: str) -> list[charts.Manifest]:
    """The manifests that `Kind/part` names; the part is the component label or the end of the name, `*` any."""
    kind, _, part = wanted.partition("/")
    found = charts.of_kind(manifests, kind)
    labelled = [
        one for one in found if (one["metadata"].get("labels") or {}).get("app.kubernetes.io/component") == part
    ]
    return found if part == "*" else labelled or [one for one in found if one["metadata"]["name"].endswith(f"-{part}")]


def holds(found: Any, entry: dict[str, Any]) -> bool:
    """Whether what stands there is what the line of the table says."""
    if "has" not in entry:
        return bool(found == entry.get("is", entry["set"]))
    return found is not None and entry["has"] in found


@pytest.mark.parametrize("entry", TABLE, ids=lambda entry: f"{entry['value']}={json.dumps(entry['set'])}")
def test_value_sets(entry: dict[str, Any]) -> None:
    base = NAMED[entry["like"]] if "like" in entry else Case("", charts.BASE, ())
    given = tuple({**base.values, **entry.get("when", {})}.items())
    apis = tuple(entry["apis"]) if "apis" in entry else base.apis
    case = Case("", base.layout, given, apis, entry.get("namespace", base.namespace))
    more = {entry["value"]: entry["set"]}
    if "refused" in entry:
        case.text()
        with pytest.raises(charts.RenderError, match=re.escape(entry["refused"])):
            case.text(more)
        return
    before, after = (chosen(case.manifests(), entry["of"]), chosen(case.manifests(more), entry["of"]))
    if "there" in entry:
        assert (bool(before), bool(after)) == (not entry["there"], entry["there"])
        return
    assert after, f"no {entry['of']} is rendered"
    for path in [entry["at"]] if isinstance(entry["at"], str) else entry["at"]:
        for manifest in after:
            assert holds(at(manifest, path), entry), f"{path} is {at(manifest, path)}"
        assert not all(holds(at(manifest, path), entry) for manifest in before), f"{path} is the same without the value"


@pytest.mark.parametrize("account", ACCOUNTS)
def test_a_service_account_is_made_named_annotated_or_left_out(account: str) -> None:
    case, plain = next(
        (case, made)
        for case in contexts(account)
        if (made := accounts(case, {}) - accounts(case, {f"{account}.create": False}))
    )
    (name,) = plain
    more = {f"{account}.name": "mine", f"{account}.annotations": {"eks.amazonaws.com/role-arn": "arn:x"}}
    manifests = case.manifests(more)
    (mine,) = [one for one in charts.of_kind(manifests, "ServiceAccount") if one["metadata"]["name"] == "mine"]
    assert mine["metadata"]["annotations"]["eks.amazonaws.com/role-arn"] == "arn:x"
    assert mine["automountServiceAccountToken"] is False
    assert name not in accounts(case, more)
    used = [pod.spec["serviceAccountName"] for pod in charts.pods(manifests)]
    before = [pod.spec["serviceAccountName"] for pod in case.pods()]
    assert used == ["mine" if one == name else one for one in before]
    left_out = [pod.spec["serviceAccountName"] for pod in case.pods({f"{account}.create": False})]
    assert left_out == ["default" if one == name else one for one in before]


def accounts(case: Case, more: charts.Values) -> set[str]:
    return {one["metadata"]["name"] for one in charts.of_kind(case.manifests(more), "ServiceAccount")}


@pytest.mark.parametrize("name", RESOURCES)
def test_resources_of_values_win_key_by_key(name: str) -> None:
    sample = CHOSEN.get(name) or SAMPLES["ResourceRequirements"]
    memory, cpu = sample["limits"]["memory"], sample["requests"]["cpu"]
    for case in contexts(name):
        found = [
            (container, before)
            for pod, old in zip(case.pods({name: sample}), case.pods(), strict=True)
            for container, before in zip(pod.containers, old.containers, strict=True)
            if limits(container)["memory"] == memory and container["name"] != "plan"
        ]
        if found:
            for container, before in found:
                assert requests(container) == {**requests(before), "memory": memory, "cpu": cpu}
                assert limits(container) == {**limits(before), "memory": memory}
            assert len({container["name"] for container, _ in found}) == 1
            return
    pytest.fail(f"no container takes its resources from {name}")


@pytest.mark.parametrize("name", RESOURCES)
def test_a_request_that_would_not_be_followed_is_refused(name: str) -> None:
    more = {name: {"limits": {"memory": "9Gi"}, "requests": {"memory": "8Gi"}}}
    said = charts.refusal(charts.BASE, more)
    assert f"{name}.requests.memory=8Gi is not its limit" in said
    assert f"set {name}.limits.memory; the request follows" in said


@pytest.mark.parametrize(
    ("name", "stage"),
    [("guard.resources", "prepare"), ("storage.prepare.fetch.resources", "prepare"), ("sft.resources", "sft")],
)
def test_a_limit_of_cpu_below_the_charts_request_lowers_it(name: str, stage: str) -> None:
    case = NAMED[f"{charts.BASE}-{stage}"]
    changed = [
        container["resources"]
        for pod, old in zip(case.pods({f"{name}.limits": {"cpu": "50m"}}), case.pods(), strict=True)
        for container, before in zip(pod.containers, old.containers, strict=True)
        if container["resources"] != before["resources"]
    ]
    assert changed
    for resources in changed:
        assert (resources["limits"]["cpu"], resources["requests"]["cpu"]) == ("50m", "50m")


def test_a_limit_of_cpu_above_the_charts_request_leaves_it() -> None:
    case = NAMED[f"{charts.BASE}-sft"]
    (sft,) = [pod for pod in case.pods({"sft.resources.limits": {"cpu": 44}}) if pod.part == "sft"]
    main = sft.spec["containers"][0]
    assert (limits(main)["cpu"], requests(main)["cpu"]) == (44, "40")


def test_storage_on_the_node_may_be_requested_below_its_limit() -> None:
    given = {"limits": {"ephemeral-storage": "9Gi"}, "requests": {"ephemeral-storage": "1Gi"}}
    (sft,) = [pod for pod in NAMED[f"{charts.BASE}-sft"].pods({"sft.resources": given}) if pod.part == "sft"]
    main = sft.spec["containers"][0]
    assert (limits(main)["ephemeral-storage"], requests(main)["ephemeral-storage"]) == ("9Gi", "1Gi")


@pytest.mark.parametrize("account", ACCOUNTS)
def test_two_parts_do_not_make_one_account(account: str) -> None:
    other = "guard.serviceAccount" if account != "guard.serviceAccount" else "sft.serviceAccount"
    more = {f"{account}.name": "shared", f"{other}.name": "shared"}
    said = charts.refusal(charts.BASE, more)
    assert account in said
    assert other in said
    assert "would both make the account shared" in said
    charts.text(charts.BASE, {**more, f"{account}.create": False})


@pytest.mark.parametrize("image", IMAGES)
@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"registry": "registry.example/team"}, r"registry.example/team/lingoss/IMAGE:[\w.]+"),
        ({"repository": "mine"}, r"mine:[\w.]+"),
        ({"tag": "v7"}, "lingoss/IMAGE:v7"),
        ({"digest": f"sha256:{'c' * 64}"}, f"lingoss/IMAGE@sha256:{'c' * 64}"),
        ({"tag": "v7", "digest": f"sha256:{'c' * 64}"}, f"lingoss/IMAGE:v7@sha256:{'c' * 64}"),
    ],
)
def test_an_image_is_built_from_registry_repository_tag_and_digest(
    image: str, given: dict[str, str], wanted: str
) -> None:
    case = NAMED[f"{charts.BASE}-grpo-openrlhf" if image == "openrlhf" else f"{charts.BASE}-prepare"]
    more = {f"global.images.{image}.{key}": value for key, value in given.items()}
    repository = f"lingoss/{image}:"
    changed = 0
    for pod, old in zip(case.pods(more), case.pods(), strict=True):
        for container, before in zip(pod.containers, old.containers, strict=True):
            if before["image"].startswith(repository):
                assert re.fullmatch(wanted.replace("IMAGE", image), container["image"]), container["image"]
                changed += 1
            else:
                assert container["image"] == before["image"]
    assert changed


def test_every_value_has_its_line_in_the_table() -> None:
    families = (*ACCOUNTS, *RESOURCES, "global.images", POD)
    wanted = {str(leaf) for leaf in MUTATED if "config" not in leaf.value.hints} - set(UNREAD)
    missing = [name for name in wanted if not any(f"{name}.".startswith(f"{family}.") for family in families)]
    assert sorted(set(missing) - {entry["value"] for entry in TABLE}) == [], "say in knobs.yaml what these set"


def test_the_table_names_values_that_there_are() -> None:
    assert {entry["value"] for entry in TABLE} - {str(leaf) for leaf in leaves()} == set()
