# SPDX-License-Identifier: MIT-0
"""A STAND-IN for AWS's closed HyperPod training operator: lists jobs and pods, and does what `plan.py` says; the agents
in pods that really run do what `ranks.py` says.

    python -m harness.hyperpod.stand_in --kubeconfig FILE [--kind HyperPodPyTorchJob]

It looks at everything again each quarter of a second instead of following a watch: with a handful of jobs that is as
quick, and there is no state that could go stale.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from harness.api import Api, ApiError, Object
from harness.hyperpod import plan as decide
from harness.hyperpod.agents import Agent
from harness.hyperpod.definition import GROUP, KIND, VERSION
from harness.hyperpod.ranks import Memory, Ranks

API_VERSION = f"{GROUP}/{VERSION}"
KUEUE = "kueue.x-k8s.io/v1beta2"
MEMORY = "lingoss-test/agents"  # annotation of a job: what is remembered of its agents
REAL = "real-"  # how names of nodes begin whose pods really run; nobody listens in the others
AGENT_PORT, STORE_PORT = 8080, 20000


class Operator:
    """One pass at a time over all namespaces; `step` is one pass."""

    def __init__(self, api: Api, kind: str = KIND) -> None:
        self.api, self.kind = api, kind

    def step(self) -> None:
        """Bring every job one step forward. A conflict or a vanished object is left to the next pass."""
        jobs = self.api.list(API_VERSION, self.kind)
        pods = self.api.list("v1", "Pod", labelSelector=decide.JOB_LABEL) if jobs else []
        for job in jobs:
            if "deletionTimestamp" in job["metadata"]:
                continue
            try:
                self._reconcile(job, [pod for pod in pods if _owned(pod, job)])
            except ApiError as error:
                print(f"{job['metadata']['namespace']}/{job['metadata']['name']}: {error}", flush=True)

    def _reconcile(self, job: Object, pods: list[Object]) -> None:
        memory = _memory(job)
        plan = decide.plan(job, pods, self._workload(job), datetime.now(UTC), memory)
        for pod in plan.create:
            self.api.create(pod)
        for pod in plan.delete:
            self.api.delete(pod)
        if plan.patch:
            self.api.merge(job, plan.patch)
        if plan.status:
            self.api.merge(job, {"status": plan.status}, "status")
        if plan.delete_job:
            self.api.delete(job)
        elif not (plan.create or plan.delete) and memory.phase not in ("completed", "failed"):
            self._lead(job, pods, memory)

    def _lead(self, job: Object, pods: list[Object], memory: Memory) -> None:
        """Look at the agents of pods that really run, and tell them what to do."""
        agents = {
            pod["metadata"]["name"]: Agent(f"{pod['status']['podIP']}:{AGENT_PORT}")
            for pod in pods
            if pod["spec"].get("nodeName", "").startswith(REAL) and pod["status"].get("podIP")
        }
        if not agents:
            return
        ranks = Ranks(decide.policy_of(job), memory)
        port = STORE_PORT + len(memory.told) % 1000  # another one each time: the last store's may not be free yet
        ranks.step(agents, decide.nodes_of(job), time.time(), lambda: port)
        if ranks.memory != memory:
            self.api.merge(job, {"metadata": {"annotations": {MEMORY: json.dumps(ranks.memory.to_dict())}}})

    def _workload(self, job: Object) -> Object | None:
        """The job's Kueue workload, made if it has a queue and none; ended with the job, so that its quota is free."""
        if decide.QUEUE not in (job["metadata"].get("labels") or {}):
            return None
        wanted = decide.workload_of(job)
        meta = wanted["metadata"]
        try:
            found = self.api.get(KUEUE, "Workload", meta["namespace"], meta["name"])
        except LookupError:
            return None  # no Kueue: nobody admits, the job stays suspended
        except ApiError as error:
            if error.code != 404:
                raise
            return self.api.create(wanted)
        if {"Completed", "Failed"} & decide.true_states(job.get("status") or {}):
            self._finish(found)
        found["nodeLabels"] = self._node_labels(found)
        return found

    def _finish(self, workload: Object) -> None:
        conditions = workload.get("status", {}).get("conditions", [])
        if "Finished" in decide.true_states(workload.get("status") or {}):
            return
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        done = {"type": "Finished", "status": "True", "reason": "JobFinished", "message": "the job ended"}
        self.api.merge(
            workload, {"status": {"conditions": [*conditions, done | {"lastTransitionTime": now}]}}, "status"
        )

    def _node_labels(self, workload: Object) -> dict[str, dict[str, str]]:
        """By pod set: the labels of the nodes of the flavors that Kueue assigned."""
        admission = (workload.get("status") or {}).get("admission") or {}
        result: dict[str, dict[str, str]] = {}
        for assignment in admission.get("podSetAssignments", []):
            labels: dict[str, str] = {}
            for flavor in set((assignment.get("flavors") or {}).values()):
                labels |= self.api.get(KUEUE, "ResourceFlavor", None, flavor)["spec"].get("nodeLabels") or {}
            result[assignment["name"]] = labels
        return result


def _memory(job: Object) -> Memory:
    kept = (job["metadata"].get("annotations") or {}).get(MEMORY)
    return Memory.from_dict(json.loads(kept)) if kept else Memory()


def _owned(pod: Object, job: Object) -> bool:
    return any(ref["uid"] == job["metadata"]["uid"] for ref in pod["metadata"].get("ownerReferences", []))


def main() -> None:
    parser = argparse.ArgumentParser(description="stand-in for the HyperPod training operator (tests only)")
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("--kind", default=KIND)
    arguments = parser.parse_args()
    operator = Operator(Api(arguments.kubeconfig), arguments.kind)
    print("STAND-IN operator, not AWS's: started", flush=True)
    while True:
        try:
            operator.step()
        except (ApiError, LookupError, OSError) as error:
            print(f"next try: {error}", file=sys.stderr, flush=True)
        time.sleep(0.25)


if __name__ == "__main__":
    main()
