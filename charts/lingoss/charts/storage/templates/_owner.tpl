{{- /* SPDX-License-Identifier: MIT-0 */ -}}

{{- /*
Spec of the job that makes this release's folder. It alone runs as root and mounts the whole claim; of root's powers it
keeps CHOWN, and DAC_OVERRIDE and FOWNER for folders of others. It runs in the group of the folder, for which root too
may set the group bit without a further power.
*/ -}}
{{- define "storage.ownerSpec" -}}
{{- $owner := .Values.owner -}}
{{- $user := .Values.global.user -}}
{{- $script := `set -eu
folder="/volume/$1"
mkdir -p "$folder"
chown "$2:$3" "$folder"
chmod 2770 "$folder"
echo "$1 on the claim belongs to $2:$3 now"
ls -ld "$folder"` -}}
{{- $container := include "lingoss.container" (dict
  "ctx" . "workload" $owner "name" "owner" "image" "toolbox" "access" "none"
  "command" (list "sh" "-c" $script "owner" (include "lingoss.subPath" .) (include "lingoss.text" $user.uid) (include "lingoss.text" $user.gid))
  "mounts" (list (dict "name" "data" "mountPath" "/volume"))
  "resources" (include "lingoss.resources" (dict "cpu" "100m" "memory" "128Mi" "override" $owner.resources) | fromYaml)
  "rest" (dict "securityContext" (dict
    "runAsNonRoot" false "runAsUser" 0
    "capabilities" (dict "drop" (list "ALL") "add" (list "CHOWN" "DAC_OVERRIDE" "FOWNER"))))) | fromYaml -}}
{{- $template := include "lingoss.podTemplate" (dict
  "ctx" . "part" "owner" "workload" $owner "containers" (list $container)
  "rest" (dict "restartPolicy" "Never")) | fromYaml -}}
{{- $policy := include "lingoss.jobPolicy" (dict "backoffLimit" 3) | fromYaml -}}
{{- toYaml (merge $policy (dict "template" $template)) -}}
{{- end -}}
