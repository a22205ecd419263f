{{- /* SPDX-License-Identifier: MIT-0 */ -}}

{{- /*
The trainer's config file of a stage: what values say, plus the keys that only the chart knows.
Input: ctx, stage, config (mapping), extra (mapping of defaults that the chart computes; what values say wins).
*/ -}}
{{- define "lingoss.config" -}}
{{- $global := .ctx.Values.global -}}
{{- $config := mergeOverwrite (deepCopy (.extra | default dict)) (deepCopy (.config | default dict)) -}}
{{- $_ := set $config "stage" .stage -}}
{{- $_ := set $config "root" $global.storage.mountPath -}}
{{- with include "lingoss.text" $global.run -}}{{- $_ := set $config "run" . -}}{{- end -}}
{{- toYaml $config -}}
{{- end -}}

{{- /* Name of the ConfigMap that holds a config: a new content is a new object, so a running pod keeps its own. Input: ctx, stage, text. */ -}}
{{- define "lingoss.configName" -}}
{{- printf "%s-%s-%s" (include "lingoss.fullname" .ctx) .stage (include "lingoss.hash" .text) -}}
{{- end -}}

{{- /* The ConfigMap. Input: ctx, stage, part, text. */ -}}
{{- define "lingoss.configMap" -}}
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ include "lingoss.configName" . }}
  namespace: {{ .ctx.Release.Namespace }}
  labels:
    {{- include "lingoss.labels" . | nindent 4 }}
immutable: true
data:
  {{ .stage }}.yaml: |
    {{- .text | nindent 4 }}
{{- end -}}
