{{- /* SPDX-License-Identifier: MIT-0 */ -}}

{{- /*
Annotations that make an object part of a hook and take it away afterwards, however it ends. Input: part (guard: before
upgrade and rollback; cleanup: before uninstall), weight (text); lower ones are made first.
*/ -}}
{{- define "lingoss.hook" -}}
helm.sh/hook: {{ ternary "pre-upgrade,pre-rollback" "pre-delete" (eq .part "guard") }}
helm.sh/hook-weight: {{ .weight | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded,hook-failed
{{- end -}}

{{- /*
One job of a hook. One without a config has the account's token, one with a config the volume.
Input: ctx, part, workload (values of the part), name (appended to the fullname; also the container's), weight (text),
command, config (name of the ConfigMap), logs (hook-output-log-policy).
*/ -}}
{{- define "lingoss.hookJob" -}}
{{- $part := pick . "ctx" "part" "workload" -}}
{{- $config := .config | default "" -}}
{{- $container := include "lingoss.container" (dict
  "ctx" .ctx "workload" .workload "name" .name "image" "toolbox" "command" .command "config" $config
  "access" (ternary "read" "none" (ne $config ""))
  "resources" (include "lingoss.resources" (dict "cpu" "100m" "memory" "512Mi" "override" .workload.resources) | fromYaml)) | fromYaml -}}
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ include "lingoss.fullname" .ctx }}-{{ .name }}
  namespace: {{ .ctx.Release.Namespace }}
  labels:
    {{- include "lingoss.labels" $part | nindent 4 }}
  annotations:
    {{- include "lingoss.hook" . | nindent 4 }}
    helm.sh/hook-output-log-policy: {{ .logs }}
spec:
  backoffLimit: 0
  activeDeadlineSeconds: {{ int .workload.deadlineSeconds }}
  # Helm deletes the job itself; this is for a Helm that was stopped meanwhile.
  ttlSecondsAfterFinished: 600
  template:
    {{- include "lingoss.podTemplate" (merge (dict
      "containers" (list $container) "config" $config "noData" (eq $config "") "token" (eq $config "")
      "rest" (dict "restartPolicy" "Never")) $part) | nindent 4 }}
{{- end -}}

{{- /*
Account, Role and RoleBinding of a hook, which live as long as it does. Input: ctx, part, workload, verbs (on the run-once
workloads of this namespace), rules (further ones, as text; optional).
*/ -}}
{{- define "lingoss.hookAccess" -}}
{{- if .workload.serviceAccount.create }}
{{- $name := printf "%s-%s" (include "lingoss.fullname" .ctx) .part }}
{{- $first := include "lingoss.hook" (dict "part" .part "weight" "-2") }}
{{- $account := include "lingoss.serviceAccount" . | fromYaml }}
{{- $_ := set $account.metadata "annotations" (merge ($first | fromYaml) (.workload.serviceAccount.annotations | default dict)) }}
{{ toYaml $account }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {{ $name }}
  namespace: {{ .ctx.Release.Namespace }}
  labels:
    {{- include "lingoss.labels" . | nindent 4 }}
  annotations:
    {{- $first | nindent 4 }}
rules:
{{- range $group, $resource := dict "batch" "jobs" "ray.io" "rayjobs" "sagemaker.amazonaws.com" "hyperpodpytorchjobs" }}
  - apiGroups: [{{ $group }}]
    resources: [{{ $resource }}]
    verbs: [{{ join ", " $.verbs }}]
{{- end }}
{{- with .rules }}
  {{- . | nindent 2 }}
{{- end }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ $name }}
  namespace: {{ .ctx.Release.Namespace }}
  labels:
    {{- include "lingoss.labels" . | nindent 4 }}
  annotations:
    {{- include "lingoss.hook" (dict "part" .part "weight" "-1") | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: {{ $name }}
subjects:
  - kind: ServiceAccount
    name: {{ include "lingoss.serviceAccountName" . }}
    namespace: {{ .ctx.Release.Namespace }}
{{- end }}
{{- end -}}
