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

{{- /* GPUs that the pods of the current stage hold at most, as a number. Input: the parent's context. */ -}}
{{- define "lingoss.stageGpus" -}}
{{- $stage := .Values.global.stage -}}
{{- $layout := .Values.global.layout -}}
{{- if eq $stage "sft" -}}
{{- $node := include "lingoss.node" (dict "ctx" .Subcharts.sft "workload" .Values.sft) | fromYaml -}}
{{- mul (int $node.gpus) (include "sft.range" .Subcharts.sft | fromYaml).max -}}
{{- else if and (eq $stage "grpo") (include "lingoss.rayJobName" .) -}}
{{- mul $layout.gpus $layout.nodes -}}
{{- else if eq $stage "grpo" -}}
{{- $node := include "lingoss.node" (dict "ctx" .Subcharts.grpo "workload" .Values.grpo) | fromYaml -}}
{{- mul (int $node.gpus) (add .Values.grpo.nodes (ternary 1 0 (eq (include "grpo.separateRollout" .Subcharts.grpo) "true"))) -}}
{{- else if eq $stage "evaluate" -}}
{{- include "inference.gpus" (dict "ctx" .Subcharts.inference "key" "inference.evaluate.generate.gpus"
  "asked" .Values.inference.evaluate.generate.gpus "default" $layout.gpus) -}}
{{- else if eq $stage "serve" -}}
{{- mul (include "inference.serveGpus" .Subcharts.inference) .Values.inference.serve.replicas -}}
{{- else -}}
0
{{- end -}}
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
