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
