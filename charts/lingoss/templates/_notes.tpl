{{- /* SPDX-License-Identifier: MIT-0 */ -}}
{{- /* The sentences of NOTES.txt that differ by stage. */ -}}

{{- /* What runs now. Input: the parent's context. */ -}}
{{- define "lingoss.stageText" -}}
{{- get (dict
  "none" "nothing runs; the volume waits."
  "prepare" "model, data set and prompt sets go to the volume."
  "sft" (printf "supervised fine-tuning (%s)." .Values.sft.runtime)
  "grpo" (printf "GRPO with %s." .Values.grpo.engine)
  "evaluate" "samples of every finished run, then scores, comparison, report and a decision."
  "serve" "an OpenAI-compatible server for one run."
) .Values.global.stage -}}
{{- end -}}

{{- /* The commands that come next. Input: stage, upgrade (the command up to --set). */ -}}
{{- define "lingoss.nextStages" -}}
{{- if eq .stage "evaluate" -}}
{{ .upgrade }} global.stage=grpo     # before GRPO, once complete, if the gate says viable
{{ .upgrade }} global.stage=serve     # at the end
{{- else -}}
{{ .upgrade }} global.stage={{ get (dict "none" "prepare" "prepare" "sft" "sft" "evaluate" "grpo" "evaluate" "serve" "none") .stage }}
{{- if has .stage (list "prepare" "sft" "grpo") }}     # once the job is complete{{ end }}
{{- end -}}
{{- end -}}

{{- /* What it costs to leave it so. Input: stage, gpus. */ -}}
{{- define "lingoss.costText" -}}
{{- if eq .stage "none" -}}
the volume alone.
{{- else if eq .stage "prepare" -}}
CPU and the volume; no GPU.
{{- else if not .gpus -}}
CPU and the volume; this layout has no GPU.
{{- else if eq .stage "serve" -}}
{{ .gpus }} GPU{{ if gt .gpus 1 }}s{{ end }}, day and night, until you leave the stage.
{{- else -}}
up to {{ .gpus }} GPU{{ if gt .gpus 1 }}s{{ end }} until the job ends; a finished job holds none.
{{- end -}}
{{- end -}}

{{- /* Repositories of the images that this stage and its hooks run, of those without registry and digest, as a list. Input: the parent's context. */ -}}
{{- define "lingoss.unplacedImages" -}}
{{- $runs := get (dict
  "none" (list)
  "prepare" (list "toolbox" "trainer")
  "sft" (list "trainer")
  "grpo" (list (include "kuberay.image" (dict "ctx" .Subcharts.grpo)))
  "evaluate" (list "toolbox" "trainer")
  "serve" (list "trainer")
) .Values.global.stage -}}
{{- if or .Values.guard.enabled .Values.storage.shell.enabled -}}{{- $runs = append $runs "toolbox" -}}{{- end -}}
{{- $found := list -}}
{{- range uniq $runs -}}
{{- $image := index $.Values.global.images . -}}
{{- if not (or $image.registry $image.digest) -}}{{- $found = append $found $image.repository -}}{{- end -}}
{{- end -}}
{{- toYaml $found -}}
{{- end -}}

{{- /* What the chart can start and the commands in its images cannot do yet; empty where there is nothing. Input: the parent's context. */ -}}
{{- define "lingoss.notYet" -}}
{{- if and (eq .Values.global.stage "grpo") (not (include "lingoss.usesRay" .)) -}}
{{- $processes := mul .Values.grpo.nodes (include "lingoss.processes" (dict "ctx" .Subcharts.grpo)) -}}
{{- if gt (int $processes) 1 -}}
engine trl trains in one process, and {{ $processes }} are started: --set grpo.nodes=1,grpo.processesPerNode=1
{{- end -}}
{{- end -}}
{{- end -}}
