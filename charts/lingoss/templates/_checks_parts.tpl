{{- /* SPDX-License-Identifier: MIT-0 */ -}}
{{- /* Checks of values that every part has. All templates take the parent's context. */ -}}

{{- /* Two parts that make the same service account: one's would be the other's, and a hook deletes its own when it ends. */ -}}
{{- define "lingoss.checkAccounts" -}}
{{- $parts := dict
  "guard" (list "guard" .Values.guard)
  "cleanup" (list "cleanup" (.Values.cleanup | default dict))
  "storage.owner" (list "owner" .Values.storage.owner)
  "storage.prepare" (list "prepare" .Values.storage.prepare)
  "storage.shell" (list "shell" .Values.storage.shell)
  "sft" (list "sft" .Values.sft)
  "grpo" (list "grpo" .Values.grpo)
  "inference.evaluate.generate" (list "evaluate" .Values.inference.evaluate.generate)
  "inference.evaluate.report" (list "report" .Values.inference.evaluate.report)
  "inference.serve" (list "serve" .Values.inference.serve) -}}
{{- $owners := dict -}}
{{- range $key, $part := $parts -}}
{{- if dig "serviceAccount" "create" false (last $part) -}}
{{- $name := include "lingoss.serviceAccountName" (dict "ctx" $ "part" (first $part) "workload" (last $part)) -}}
{{- with get $owners $name -}}
{{- fail (printf "%s.serviceAccount and %s.serviceAccount would both make the account %s: use two names, or --set %s.serviceAccount.create=false for one that exists" . $key $name $key) -}}
{{- end -}}
{{- $_ := set $owners $name $key -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* Requests that the chart would not follow: memory and devices are requested as they are limited. */ -}}
{{- define "lingoss.checkRequests" -}}
{{- $resources := dict
  "guard" .Values.guard.resources
  "cleanup" (.Values.cleanup | default dict).resources
  "test" .Values.test.resources
  "storage.owner" .Values.storage.owner.resources
  "storage.prepare.fetch" .Values.storage.prepare.fetch.resources
  "storage.prepare.convert" .Values.storage.prepare.convert.resources
  "storage.shell" .Values.storage.shell.resources
  "sft" .Values.sft.resources
  "grpo" .Values.grpo.resources
  "kuberay.head" .Values.kuberay.head.resources
  "kuberay.trainer" .Values.kuberay.trainer.resources
  "kuberay.rollout" .Values.kuberay.rollout.resources
  "kuberay.submitter" .Values.kuberay.submitter.resources
  "inference.evaluate.generate" .Values.inference.evaluate.generate.resources
  "inference.evaluate.report" .Values.inference.evaluate.report.resources
  "inference.serve" .Values.inference.serve.resources -}}
{{- range $key, $given := $resources -}}
{{- $limits := ($given | default dict).limits | default dict -}}
{{- range $name, $asked := omit (($given | default dict).requests | default dict) "cpu" "ephemeral-storage" -}}
{{- $limit := get $limits $name -}}
{{- if ne (include "lingoss.text" $asked) (include "lingoss.text" $limit) -}}
{{- fail (printf "%s.resources.requests.%s=%s is not its limit, and only the limit counts: set %s.resources.limits.%s; the request follows" $key $name (include "lingoss.text" $asked) $key $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
