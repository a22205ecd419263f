#!/usr/bin/env bash
# SPDX-License-Identifier: MIT-0
# Install or update the operators that the chart's jobs need, into the cluster of the current kubectl context:
# KubeRay always, Kueue with KUEUE=1. Each is its own Helm release in its own namespace, at a pinned version, so that
# `helm uninstall lingoss` never touches an operator that others use. Safe to run again.
set -euo pipefail
cd "$(dirname "$0")"

KUBERAY_VERSION=1.5.1
KUEUE_VERSION=0.17.0
HELM=${HELM:-helm}
KUBECTL=${KUBECTL:-kubectl}

say() { printf '\n%s\n' "$*"; }

# Helm installs a chart's crds/ once and never updates them, so they are applied here; server-side, since they are larger
# than the annotation that a client-side apply would write.
definitions() {
  say "Definitions of $1 $3 (server-side apply)"
  "$HELM" show crds "$1" --repo "$2" --version "$3" | "$KUBECTL" apply --server-side --force-conflicts -f -
}

say "Cluster: $("$KUBECTL" config current-context)"

definitions kuberay-operator https://ray-project.github.io/kuberay-helm/ "$KUBERAY_VERSION"
say "KubeRay $KUBERAY_VERSION: release kuberay-operator in namespace kuberay-system"
"$HELM" upgrade --install kuberay-operator kuberay-operator --repo https://ray-project.github.io/kuberay-helm/ \
  --version "$KUBERAY_VERSION" --namespace kuberay-system --create-namespace --skip-crds --wait --timeout 5m

if [[ ${KUEUE:-} == 1 ]]; then
  say "Kueue $KUEUE_VERSION: release kueue in namespace kueue-system (its definitions are templates: Helm updates them)"
  "$HELM" upgrade --install kueue oci://registry.k8s.io/kueue/charts/kueue \
    --version "$KUEUE_VERSION" --namespace kueue-system --create-namespace --values kueue.yaml --wait --timeout 5m
else
  say "Kueue: not asked for (KUEUE=1 installs $KUEUE_VERSION). On HyperPod its task governance add-on brings Kueue."
fi

say "Done. To remove: $HELM uninstall kuberay-operator -n kuberay-system${KUEUE:+; $HELM uninstall kueue -n kueue-system}"
echo "The definitions stay, and with them all objects of their kinds: kubectl delete crd removes both."
