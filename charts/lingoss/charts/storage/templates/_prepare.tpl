{{- /* SPDX-License-Identifier: MIT-0 */ -}}

{{- /* Spec of the prepare job: `fetch` brings files and alone has the token, `convert` needs torch and none. */ -}}
{{- define "storage.prepareSpec" -}}
{{- $prepare := .Values.prepare -}}
{{- $config := include "lingoss.configName" (dict "ctx" . "stage" "prepare" "text" (include "storage.configText" .)) -}}
{{- $init := list -}}
{{- if .Values.owner.create -}}
{{- $init = append $init (include "storage.waitForOwner" . | fromYaml) -}}
{{- end -}}
{{- $token := list -}}
{{- with $prepare.token.secretName -}}
{{- /* Optional: without it a missing Secret would keep the pod from starting, without a word in its log. */ -}}
{{- $token = list (dict "name" "HF_TOKEN" "valueFrom" (dict "secretKeyRef" (dict "name" . "key" $prepare.token.key "optional" true))) -}}
{{- end -}}
{{- $init = append $init (include "lingoss.container" (dict
  "ctx" . "workload" $prepare "name" "fetch" "image" "toolbox" "config" $config "online" true "env" $token
  "command" (list "lingoss" "prepare" "--config" "/etc/lingoss/prepare.yaml" "--part" "fetch")
  "resources" (include "lingoss.resources" (dict "override" $prepare.fetch.resources) | fromYaml)) | fromYaml) -}}
{{- $convert := include "lingoss.container" (dict
  "ctx" . "workload" $prepare "name" "convert" "image" "trainer" "config" $config
  "command" (list "lingoss" "prepare" "--config" "/etc/lingoss/prepare.yaml" "--part" "convert")
  "resources" (include "lingoss.resources" (dict "override" $prepare.convert.resources) | fromYaml)) | fromYaml -}}
{{- $template := include "lingoss.podTemplate" (dict
  "ctx" . "part" "prepare" "workload" $prepare "config" $config
  "initContainers" $init "containers" (list $convert) "rest" (dict "restartPolicy" "Never")) | fromYaml -}}
{{- $policy := include "lingoss.jobPolicy" (dict "backoffLimit" $prepare.retries) | fromYaml -}}
{{- toYaml (merge $policy (dict "template" $template)) -}}
{{- end -}}

{{- /* Init container that waits for the owner job: the folder is there at once (the kubelet makes it, for root), its owner later. */ -}}
{{- define "storage.waitForOwner" -}}
{{- $script := `end=$(($(date +%s) + 300))
until [ -w "$1" ]; do
  if [ "$(date +%s)" -ge "$end" ]; then
    echo "after 300 s folder $1 is still not writable for $(id -u):$(id -g); why: kubectl --namespace $3 describe job/$2, and its log"
    exit 1
  fi
  sleep 2
done` -}}
{{- include "lingoss.container" (dict
  "ctx" . "workload" .Values.prepare "name" "wait-for-owner" "image" "toolbox"
  "command" (list "sh" "-c" $script "wait-for-owner" .Values.global.storage.mountPath (include "storage.ownerName" .) .Release.Namespace)
  "resources" (include "lingoss.resources" (dict "cpu" "100m" "memory" "128Mi") | fromYaml)) -}}
{{- end -}}
