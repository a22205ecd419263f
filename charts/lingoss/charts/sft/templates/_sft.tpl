{{- /* SPDX-License-Identifier: MIT-0 */ -}}
{{- /* All templates of this file take the child's context. */ -}}

{{- /* The config file as the trainer reads it. */ -}}
{{- define "sft.configText" -}}
{{- if eq .Values.global.stage "sft" -}}
{{- $extra := dict "stop_seconds" (int .Values.stopSeconds) -}}
{{- with .Values.global.layout.gpuMemoryGi -}}{{- $_ := set $extra "card_gib" . -}}{{- end -}}
{{- include "lingoss.config" (dict "ctx" . "stage" "sft" "config" .Values.config "extra" $extra) -}}
{{- end -}}
{{- end -}}

{{- /* Input of the lingoss.distributed templates. Its text is computed here once for all of them. */ -}}
{{- define "sft.job" -}}
{{- toYaml (dict "stage" "sft" "nodes" (int .Values.nodes) "server" false "text" (include "sft.configText" .)) -}}
{{- end -}}

{{- /* Names of the run-once objects of the current stage, as a list in YAML. */ -}}
{{- define "sft.workloads" -}}
{{- if eq .Values.global.stage "sft" -}}
- {{ include (printf "sft.%sName" .Values.runtime) . }}
{{- end -}}
{{- end -}}

{{- define "sft.jobName" -}}
{{- include "lingoss.distributedName" (set (include "sft.job" . | fromYaml) "ctx" .) -}}
{{- end -}}

{{- /* Fewest and most nodes, the same without elastic training: min, max as YAML. */ -}}
{{- define "sft.range" -}}
{{- $nodes := int .Values.nodes -}}
{{- if .Values.elastic.enabled -}}
{{- toYaml (dict "min" (int .Values.elastic.minNodes) "max" (.Values.elastic.maxNodes | default $nodes | int)) -}}
{{- else -}}
{{- toYaml (dict "min" $nodes "max" $nodes) -}}
{{- end -}}
{{- end -}}

{{- /*
Nodes that the custom resource begins with. Of two groups (partial preemption) the one that may be preempted begins with no
pod, as AWS documents it, and grows when there is room. Input: the child's context.
*/ -}}
{{- define "sft.firstNodes" -}}
{{- $both := and .Values.elastic.enabled .Values.elastic.partialPreemption.enabled -}}
{{- ternary (include "sft.range" . | fromYaml).min .Values.nodes $both | int -}}
{{- end -}}

{{- /*
Node counts from `from` to `to` whose processes share the global batch out evenly, as a list in YAML. The default is the
trainer's (lingoss.config.sft), the rule too (lingoss.sft.share). Input: ctx, from, to.
*/ -}}
{{- define "sft.sizes" -}}
{{- $batch := get .ctx.Values.config "global_batch" | default 16 | int -}}
{{- $processes := include "lingoss.processes" (dict "ctx" .ctx) | int -}}
{{- $sizes := list -}}
{{- range $nodes := untilStep (int .from) (add .to 1 | int) 1 -}}
{{- if eq 0 (mod $batch (mul $nodes $processes)) -}}{{- $sizes = append $sizes $nodes -}}{{- end -}}
{{- end -}}
{{- toYaml $sizes -}}
{{- end -}}
