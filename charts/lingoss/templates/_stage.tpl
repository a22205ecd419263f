{{- /* SPDX-License-Identifier: MIT-0 */ -}}
{{- /* What the current stage renders, for the guard and the notes. Only the parent sees all its children. */ -}}

{{- /* Names of the run-once objects of the current stage, as a list. Input: the parent's context. */ -}}
{{- define "lingoss.workloads" -}}
{{- $names := list -}}
{{- range $child := list "storage" "sft" "grpo" "inference" -}}
{{- $names = concat $names (include (printf "%s.workloads" $child) (index $.Subcharts $child) | fromYamlArray) -}}
{{- end -}}
{{- with include "lingoss.rayJobName" . -}}{{- $names = append $names . -}}{{- end -}}
{{- toYaml $names -}}
{{- end -}}

{{- /* The trainer's config of the current stage as text; empty in stage none. Input: the parent's context. */ -}}
{{- define "lingoss.stageConfig" -}}
{{- range $child := list "storage" "sft" "grpo" "inference" -}}
{{- include (printf "%s.configText" $child) (index $.Subcharts $child) -}}
{{- end -}}
{{- end -}}

{{- /*
GPUs that the pods of the current stage hold at most, as a number: what the finished pod templates ask for, times their
number. Input: the parent's context.
*/ -}}
{{- define "lingoss.stageGpus" -}}
{{- $total := 0 -}}
{{- range $what, $pod := include "lingoss.largePods" . | fromYaml -}}
{{- $pods := 1 -}}
{{- if eq $what "sft" -}}{{- $pods = (include "sft.range" $.Subcharts.sft | fromYaml).max -}}
{{- else if eq $what "grpo" -}}{{- $pods = add $.Values.grpo.nodes (ternary 1 0 (eq (include "grpo.separateRollout" $.Subcharts.grpo) "true")) -}}
{{- else if hasPrefix "kuberay." $what -}}
{{- $pods = (include "kuberay.group" (dict "ctx" $.Subcharts.grpo "kuberay" $.Values.kuberay "name" (trimPrefix "kuberay." $what)) | fromYaml).replicas -}}
{{- else if eq $what "inference.serve" -}}{{- $pods = $.Values.inference.serve.replicas -}}
{{- end -}}
{{- $total = add $total (mul (get (include "lingoss.podDemand" $pod | fromYaml) "nvidia.com/gpu") $pods) -}}
{{- end -}}
{{- $total -}}
{{- end -}}

{{- /* Resource and name of the objects to watch in the current stage, as kubectl takes them, in a list. Input: the parent's context. */ -}}
{{- define "lingoss.watched" -}}
{{- $stage := .Values.global.stage -}}
{{- $kind := "job" -}}
{{- if include "lingoss.rayJobName" . -}}{{- $kind = "rayjob" -}}
{{- else if and (eq $stage "sft") (eq .Values.sft.runtime "hyperpod") -}}{{- $kind = "hyperpodpytorchjob" -}}{{- end -}}
{{- $found := list -}}
{{- range include "lingoss.workloads" . | fromYamlArray -}}{{- $found = append $found (printf "%s/%s" $kind .) -}}{{- end -}}
{{- if eq $stage "serve" -}}{{- $found = append $found (printf "deployment/%s-serve" (include "lingoss.fullname" .)) -}}{{- end -}}
{{- toYaml $found -}}
{{- end -}}
