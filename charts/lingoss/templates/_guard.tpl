{{- /* SPDX-License-Identifier: MIT-0 */ -}}

{{- /*
Annotations that make an object part of the guard's hook and take it away afterwards, however it ends. Input: weight (text);
lower ones are made first.
*/ -}}
{{- define "lingoss.guardHook" -}}
helm.sh/hook: pre-upgrade,pre-rollback
helm.sh/hook-weight: {{ . | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded,hook-failed
{{- end -}}

{{- /*
One job of the guard. Only the first has the account's token, only the one with a config the volume.
Input: ctx, name (appended to the fullname; also the container's), weight (text), command, config (name of the ConfigMap).
*/ -}}
{{- define "lingoss.guardJob" -}}
{{- $guard := .ctx.Values.guard -}}
{{- $part := dict "ctx" .ctx "part" "guard" "workload" $guard -}}
{{- $config := .config | default "" -}}
{{- $container := include "lingoss.container" (dict
  "ctx" .ctx "workload" $guard "name" .name "image" "toolbox" "command" .command "config" $config
  "access" (ternary "read" "none" (ne $config ""))
  "resources" (include "lingoss.resources" (dict "cpu" "100m" "memory" "512Mi" "override" $guard.resources) | fromYaml)) | fromYaml -}}
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ include "lingoss.fullname" .ctx }}-{{ .name }}
  namespace: {{ .ctx.Release.Namespace }}
  labels:
    {{- include "lingoss.labels" $part | nindent 4 }}
  annotations:
    {{- include "lingoss.guardHook" .weight | nindent 4 }}
    # With force it refuses nothing, so what it found is said all the same.
    helm.sh/hook-output-log-policy: {{ ternary "hook-succeeded,hook-failed" "hook-failed" $guard.force }}
spec:
  backoffLimit: 0
  activeDeadlineSeconds: {{ int $guard.deadlineSeconds }}
  # Helm deletes the job itself; this is for a Helm that was stopped meanwhile.
  ttlSecondsAfterFinished: 600
  template:
    {{- include "lingoss.podTemplate" (merge (dict
      "containers" (list $container) "config" $config "noData" (eq $config "") "token" (eq $config "")
      "rest" (dict "restartPolicy" "Never")) $part) | nindent 4 }}
{{- end -}}
