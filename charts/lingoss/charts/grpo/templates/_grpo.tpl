{{- /* SPDX-License-Identifier: MIT-0 */ -}}
{{- /* All templates of this file take the child's context. */ -}}

{{- /* `true` where completions come from nodes of their own, whatever the engine. */ -}}
{{- define "grpo.separateRollout" -}}
{{- if eq (dig "rollout" "mode" "colocate" .Values.config) "server" -}}true{{- end -}}
{{- end -}}

{{- /* Service of TRL's vLLM server. A fixed name, because the config names it and the Job's name hangs on the config. */ -}}
{{- define "grpo.serverName" -}}
{{- printf "%s-grpo-rollout" (include "lingoss.fullname" .) -}}
{{- end -}}

{{- /* The config file as the trainer reads it. */ -}}
{{- define "grpo.configText" -}}
{{- if eq .Values.global.stage "grpo" -}}
{{- $extra := dict "engine" .Values.engine -}}
{{- if and (eq .Values.engine "trl") (include "grpo.separateRollout" .) -}}
{{- $_ := set $extra "rollout" (dict "server_url" (printf "http://%s:8000" (include "grpo.serverName" .))) -}}
{{- end -}}
{{- include "lingoss.config" (dict "ctx" . "stage" "grpo" "config" .Values.config "extra" $extra) -}}
{{- end -}}
{{- end -}}

{{- /* Input of the lingoss.distributed templates for engine trl, less ctx. */ -}}
{{- define "grpo.job" -}}
{{- toYaml (dict "stage" "grpo" "nodes" (int .Values.nodes) "server" (eq (include "grpo.separateRollout" .) "true")
  "text" (include "grpo.configText" .)) -}}
{{- end -}}

{{- define "grpo.jobName" -}}
{{- include "lingoss.distributedName" (set (include "grpo.job" . | fromYaml) "ctx" .) -}}
{{- end -}}

{{- /* Names of the run-once objects of the current stage, as a list in YAML. A RayJob's is `lingoss.rayJobName`. */ -}}
{{- define "grpo.workloads" -}}
{{- if and (eq .Values.global.stage "grpo") (eq .Values.engine "trl") -}}
- {{ include "grpo.jobName" . }}
{{- end -}}
{{- end -}}
