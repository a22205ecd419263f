{{- /* SPDX-License-Identifier: MIT-0 */ -}}

{{- /* What is this chart's own to make: nothing where the user names a claim. */ -}}
{{- define "storage.ownClaim" -}}
{{- if not .Values.global.storage.existingClaim -}}true{{- end -}}
{{- end -}}

{{- /*
Name of a cluster-wide object. A dot cannot be part of a namespace, so two releases in two namespaces never meet.
*/ -}}
{{- define "storage.clusterName" -}}
{{- printf "%s.%s" .Release.Namespace (include "lingoss.claim" .) -}}
{{- end -}}

{{- define "storage.ownerName" -}}
{{- include "lingoss.runOnceName" (dict "ctx" . "part" "owner" "spec" (include "storage.ownerSpec" .)) -}}
{{- end -}}

{{- define "storage.prepareName" -}}
{{- include "lingoss.queuedName" (dict "ctx" . "part" "prepare" "spec" (include "storage.prepareSpec" .)) -}}
{{- end -}}

{{- /* Names of the run-once objects that the current stage renders, as a list. */ -}}
{{- define "storage.workloads" -}}
{{- $names := list -}}
{{- if eq .Values.global.stage "prepare" -}}
{{- if .Values.owner.create -}}{{- $names = append $names (include "storage.ownerName" .) -}}{{- end -}}
{{- $names = append $names (include "storage.prepareName" .) -}}
{{- end -}}
{{- toYaml $names -}}
{{- end -}}

{{- /* Config of stage prepare as text; empty in other stages. */ -}}
{{- define "storage.configText" -}}
{{- if eq .Values.global.stage "prepare" -}}
{{- include "lingoss.config" (dict "ctx" . "stage" "prepare" "config" .Values.prepare.config) -}}
{{- end -}}
{{- end -}}
