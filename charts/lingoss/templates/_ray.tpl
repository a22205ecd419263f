{{- /* SPDX-License-Identifier: MIT-0 */ -}}
{{- /* The RayJob is wired here: its shape is the child kuberay's, its config the child grpo's. All take the parent's context. */ -}}

{{- /* `true` in stage grpo with an engine that runs on Ray. */ -}}
{{- define "lingoss.usesRay" -}}
{{- if and (eq .Values.global.stage "grpo") (ne .Values.grpo.engine "trl") -}}true{{- end -}}
{{- end -}}

{{- /* Name of the RayJob; empty when there is none. */ -}}
{{- define "lingoss.rayJobName" -}}
{{- if include "lingoss.usesRay" . -}}
{{- include "kuberay.name" (dict "ctx" .Subcharts.grpo "kuberay" .Values.kuberay) -}}
{{- end -}}
{{- end -}}
