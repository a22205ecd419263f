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
      "containers" (list $container) "config" $config "noData" (eq $config "") "token" (eq $config "") "hook" true
      "rest" (dict "restartPolicy" "Never")) $part) | nindent 4 }}
{{- end -}}

{{- /*
Kinds of run-once workloads that this release can have, as the guard and the cleanup take them. What decides is the
hardware, not the runtime and engine of the moment: those may be changed while the old kind still runs. No kind more than
that: whoever installs the chart must hold every right that its Roles give, and the admin of a namespace holds none for
resources that the cluster does not have. Only a layout with a Ray engine can have RayJobs, and HyperPodPyTorchJobs run on
HyperPod nodes, whose instance types begin with ml. (lingoss.checkSft refuses others). Input: the parent's context.
*/ -}}
{{- define "lingoss.kinds" -}}
- Job
{{- if or (without .Values.global.layout.engines "trl") (ne .Values.grpo.engine "trl") }}
- RayJob
{{- end }}
{{- if hasPrefix "ml." .Values.global.layout.instanceType }}
- HyperPodPyTorchJob
{{- end }}
{{- end -}}

{{- /* `true` where a hook before the uninstall is rendered. Values that were stored before there was one have none. Input: the parent's context. */ -}}
{{- define "lingoss.cleansUp" -}}
{{- if and .Release.IsUpgrade (dig "enabled" false (.Values.cleanup | default dict)) -}}true{{- end -}}
{{- end -}}

{{- /* A rule of a Role. Input: group, resources, verbs, names (of the objects; optional). */ -}}
{{- define "lingoss.rule" -}}
- apiGroups: [{{ .group | quote }}]
  resources: [{{ join ", " .resources }}]
  {{- with .names }}
  resourceNames: [{{ join ", " . }}]
  {{- end }}
  verbs: [{{ join ", " .verbs }}]
{{- end -}}

{{- /*
Account, Role and RoleBinding of a hook, which live as long as it does. Input: ctx (the parent's), part, workload, verbs (on
the run-once workloads of this namespace), rules (further ones, as lingoss.rule takes them; with these verbs unless they say
others).
*/ -}}
{{- define "lingoss.hookAccess" -}}
{{- if .workload.serviceAccount.create }}
{{- $name := printf "%s-%s" (include "lingoss.fullname" .ctx) .part }}
{{- $first := include "lingoss.hook" (dict "part" .part "weight" "-2") }}
{{- $account := include "lingoss.serviceAccount" . | fromYaml }}
{{- $_ := set $account.metadata "annotations" (merge ($first | fromYaml) (.workload.serviceAccount.annotations | default dict)) }}
{{- $groups := dict "Job" "batch" "RayJob" "ray.io" "HyperPodPyTorchJob" "sagemaker.amazonaws.com" }}
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
{{- range include "lingoss.kinds" .ctx | fromYamlArray }}
  {{- include "lingoss.rule" (dict "group" (get $groups .) "resources" (list (printf "%ss" (lower .))) "verbs" $.verbs) | nindent 2 }}
{{- end }}
{{- range .rules }}
  {{- include "lingoss.rule" (merge (dict) . (dict "verbs" $.verbs)) | nindent 2 }}
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
