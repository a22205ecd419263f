{{- /* SPDX-License-Identifier: MIT-0 */ -}}

{{- /* Base of every name: the release, with the chart's name unless it is in there already. Input: a context. */ -}}
{{- define "lingoss.fullname" -}}
{{- $release := .Release.Name -}}
{{- with .Values.global.fullnameOverride -}}
{{- . -}}
{{- else -}}
{{- if contains "lingoss" $release -}}{{ $release }}{{- else -}}{{ printf "%s-lingoss" $release }}{{- end -}}
{{- end -}}
{{- end -}}

{{- /* Labels that select the pods of one part. Input: ctx, part. */ -}}
{{- define "lingoss.selectorLabels" -}}
app.kubernetes.io/name: lingoss
app.kubernetes.io/instance: {{ .ctx.Release.Name }}
app.kubernetes.io/component: {{ .part }}
{{- end -}}

{{- /* Labels of an object. No chart version here: run-once objects would change with every chart. Input: ctx, part. */ -}}
{{- define "lingoss.labels" -}}
{{ include "lingoss.selectorLabels" . }}
app.kubernetes.io/part-of: lingoss
app.kubernetes.io/managed-by: {{ .ctx.Release.Service }}
{{- end -}}

{{- /* Eight hex digits of a text: names what runs once by its content, so that a new content is a new object. */ -}}
{{- define "lingoss.hash" -}}
{{- . | sha256sum | trunc 8 -}}
{{- end -}}

{{- /*
Name of a run-once object: <fullname>-<part>-<hash of its spec>. Kubernetes objects of this kind are immutable; the same
spec keeps its name and is left alone, a changed spec becomes a new object. Input: ctx, part, spec (text).
*/ -}}
{{- define "lingoss.runOnceName" -}}
{{- printf "%s-%s-%s" (include "lingoss.fullname" .ctx) .part (include "lingoss.hash" .spec) -}}
{{- end -}}

{{- /* The same for an object that Kueue may queue. The queue is part of the name: Kueue does not let a running workload change its queue. */ -}}
{{- define "lingoss.queuedName" -}}
{{- $hashed := printf "%s\n%s" .spec (include "lingoss.queueLabels" .ctx) -}}
{{- include "lingoss.runOnceName" (dict "ctx" .ctx "part" .part "spec" $hashed) -}}
{{- end -}}

{{- /* The claim that every pod mounts. Input: a context. */ -}}
{{- define "lingoss.claim" -}}
{{- .Values.global.storage.existingClaim | default (printf "%s-data" (include "lingoss.fullname" .)) -}}
{{- end -}}

{{- /* This release's folder on the claim. Input: a context. */ -}}
{{- define "lingoss.subPath" -}}
{{- .Values.global.storage.subPath | default .Release.Name -}}
{{- end -}}

{{- /* Name of the service account of a part. Input: ctx, part, workload. */ -}}
{{- define "lingoss.serviceAccountName" -}}
{{- $own := .workload.serviceAccount | default dict -}}
{{- if $own.create -}}
{{- $own.name | default (printf "%s-%s" (include "lingoss.fullname" .ctx) .part) -}}
{{- else -}}
{{- $own.name | default "default" -}}
{{- end -}}
{{- end -}}

{{- /* The service account itself, without a token: no stage but the guard talks to the API. Input: ctx, part, workload. */ -}}
{{- define "lingoss.serviceAccount" -}}
{{- if (.workload.serviceAccount | default dict).create }}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ include "lingoss.serviceAccountName" . }}
  namespace: {{ .ctx.Release.Namespace }}
  labels:
    {{- include "lingoss.labels" . | nindent 4 }}
  {{- with .workload.serviceAccount.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
automountServiceAccountToken: false
{{- end }}
{{- end -}}

{{- /* Labels that hand a workload to Kueue. Input: a context. Empty without a queue. */ -}}
{{- define "lingoss.queueLabels" -}}
{{- $queue := .Values.global.queue -}}
{{- $name := $queue.name -}}
{{- $priority := $queue.priorityClass -}}
{{- if eq $queue.scheme "hyperpod" -}}
{{- /* HyperPod task governance names its queues and priority classes itself. */ -}}
{{- with $queue.team -}}{{- $name = $name | default (printf "hyperpod-ns-%s-localqueue" .) -}}{{- end -}}
{{- with $priority -}}{{- $priority = ternary . (printf "%s-priority" .) (hasSuffix "-priority" .) -}}{{- end -}}
{{- end -}}
{{- with $name }}
kueue.x-k8s.io/queue-name: {{ . }}
{{- with $priority }}
kueue.x-k8s.io/priority-class: {{ . }}
{{- end }}
{{- end }}
{{- end -}}

{{- /* A number or a text as text. Numbers of a values file are floats, of which a large one would come out as 1e+06. */ -}}
{{- define "lingoss.text" -}}
{{- if kindIs "float64" . -}}{{- int64 . -}}{{- else -}}{{- . -}}{{- end -}}
{{- end -}}
