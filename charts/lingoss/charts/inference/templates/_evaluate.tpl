{{- /* SPDX-License-Identifier: MIT-0 */ -}}

{{- /* Config file of the current stage, empty in stages of other parts. Input: the child's context. */ -}}
{{- define "inference.configText" -}}
{{- if eq .Values.global.stage "evaluate" -}}
{{- include "lingoss.config" (dict "ctx" . "stage" "evaluate" "config" .Values.evaluate.config) -}}
{{- else if eq .Values.global.stage "serve" -}}
{{- include "lingoss.config" (dict "ctx" . "stage" "serve" "config" .Values.serve.config
  "extra" (dict "host" "0.0.0.0" "port" (int .Values.serve.port))) -}}
{{- end -}}
{{- end -}}

{{- /* Names of the run-once objects of the current stage, as a list. Input: the child's context. */ -}}
{{- define "inference.workloads" -}}
{{- if eq .Values.global.stage "evaluate" -}}
{{- range list "generate" "report" }}
- {{ include "inference.jobName" (dict "ctx" $ "job" .) }}
{{- end }}
{{- else -}}
[]
{{- end -}}
{{- end -}}

{{- /* The part that a job of stage evaluate is, in names and labels. */ -}}
{{- define "inference.jobPart" -}}
{{- get (dict "generate" "evaluate" "report" "report") . -}}
{{- end -}}

{{- /* Name of a job of stage evaluate. Input: ctx, job (generate or report). */ -}}
{{- define "inference.jobName" -}}
{{- include "lingoss.queuedName" (dict "ctx" .ctx "part" (include "inference.jobPart" .job) "spec" (include "inference.jobSpec" .)) -}}
{{- end -}}

{{- /*
Spec of a job of stage evaluate. What it judges must not change under it, so the volume is read-only but for the folder
of evaluations. Only the step before, which makes the run's folder and links it into runs/, may write more: it has the
release's whole folder, because a folder that the kubelet had to make for a mount would belong to root. Input: ctx, job.
*/ -}}
{{- define "inference.jobSpec" -}}
{{- $evaluate := .ctx.Values.evaluate -}}
{{- $workload := index $evaluate .job -}}
{{- $part := include "inference.jobPart" .job -}}
{{- $text := include "inference.configText" .ctx -}}
{{- $config := include "lingoss.configName" (dict "ctx" .ctx "stage" "evaluate" "text" $text) -}}
{{- $command := list "lingoss" "evaluate" "--config" "/etc/lingoss/evaluate.yaml" "--part" .job -}}
{{- $gpus := 0 -}}
{{- $image := "toolbox" -}}
{{- $resources := "" -}}
{{- if eq .job "generate" -}}
{{- $gpus = include "inference.gpus" (dict "ctx" .ctx "key" "inference.evaluate.generate" "workload" $workload
  "default" .ctx.Values.global.layout.gpus) | int -}}
{{- $image = "trainer" -}}
{{- $resources = include "inference.resources" (dict "ctx" .ctx "gpus" $gpus "override" $workload.resources) -}}
{{- else -}}
{{- $command = concat $command (list "--wait" (toString (int $workload.waitSeconds))) -}}
{{- /* Small on purpose: it waits beside the other job, which may want all the rest of a small node. */ -}}
{{- $resources = include "lingoss.resources" (dict "cpu" "100m" "memory" "2Gi" "override" $workload.resources) -}}
{{- end -}}
{{- $mount := dict "name" "data"
  "mountPath" (printf "%s/evaluations" (.ctx.Values.global.storage.mountPath | trimSuffix "/"))
  "subPath" (printf "%s/evaluations" (include "lingoss.subPath" .ctx | trimSuffix "/")) -}}
{{- $open := include "lingoss.container" (dict "ctx" .ctx "workload" $workload "name" "open" "image" "toolbox"
  "command" (list "lingoss" "evaluate" "--config" "/etc/lingoss/evaluate.yaml" "--part" "open")
  "resources" (include "lingoss.resources" (dict "cpu" "100m" "memory" "1Gi") | fromYaml)
  "config" $config) | fromYaml -}}
{{- $main := include "lingoss.container" (dict "ctx" .ctx "workload" $workload "name" $part "image" $image
  "command" $command "resources" ($resources | fromYaml) "access" "read" "gpus" $gpus "config" $config
  "mounts" (list $mount)) | fromYaml -}}
{{- $template := include "lingoss.podTemplate" (dict "ctx" .ctx "part" $part "workload" $workload "gpus" $gpus
  "config" $config "initContainers" (list $open) "containers" (list $main) "rest" (dict "restartPolicy" "Never")) | fromYaml -}}
{{- $policy := include "lingoss.jobPolicy" (dict "backoffLimit" $evaluate.retries) | fromYaml -}}
{{- toYaml (merge $policy (dict "template" $template)) -}}
{{- end -}}
