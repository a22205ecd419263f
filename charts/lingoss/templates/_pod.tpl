{{- /* SPDX-License-Identifier: MIT-0 */ -}}
{{- /*
Every pod of the chart comes from this one file, so what holds for all (restricted profile, no token, offline, labels,
knobs) is said once.
*/ -}}

{{- /*
Knobs of a pod: global.pod, then the workload's own. Mappings merge (the workload wins), lists follow one another,
single values are replaced. Input: ctx, workload. Returns a mapping as YAML.
*/ -}}
{{- define "lingoss.podKnobs" -}}
{{- $knobs := deepCopy .ctx.Values.global.pod -}}
{{- range $name, $value := (.workload.pod | default dict) -}}
{{- $base := index $knobs $name -}}
{{- if kindIs "map" $value -}}
{{- $_ := set $knobs $name (mergeOverwrite (deepCopy ($base | default dict)) (deepCopy $value)) -}}
{{- else if kindIs "slice" $value -}}
{{- $_ := set $knobs $name (concat ($base | default list) $value) -}}
{{- else if or (and $value (ne (toString $value) "")) (kindIs "bool" $value) -}}
{{- $_ := set $knobs $name $value -}}
{{- end -}}
{{- end -}}
{{- toYaml $knobs -}}
{{- end -}}

{{- /*
Resources of a container: requests equal limits for memory, GPUs and EFA devices; CPU is requested, not limited, because a
throttled data loader starves GPUs. A limit of the values below the request of the chart lowers the request too, for
Kubernetes takes no request above its limit. Input: gpus, efa, cpu, memory (all optional), override (resources of the
values, which win key by key; lingoss.checkRequests refuses requests that this would change).
*/ -}}
{{- define "lingoss.resources" -}}
{{- $limits := dict -}}
{{- with .memory -}}{{- $_ := set $limits "memory" . -}}{{- end -}}
{{- with .gpus -}}{{- $_ := set $limits "nvidia.com/gpu" (toString .) -}}{{- end -}}
{{- with .efa -}}{{- $_ := set $limits "vpc.amazonaws.com/efa" (toString .) -}}{{- end -}}
{{- $limits = mergeOverwrite $limits (deepCopy ((.override | default dict).limits | default dict)) -}}
{{- $requests := dict -}}
{{- if hasKey . "cpu" -}}{{- $_ := set $requests "cpu" (toString .cpu) -}}{{- end -}}
{{- $requests = mergeOverwrite $requests (deepCopy ((.override | default dict).requests | default dict)) -}}
{{- range $name, $value := $limits -}}
{{- if eq $name "cpu" -}}
{{- $asked := get $requests "cpu" | default $value -}}
{{- if lt (include "lingoss.milliCpu" $value | int) (include "lingoss.milliCpu" $asked | int) -}}{{- $_ := set $requests "cpu" $value -}}{{- end -}}
{{- else if not (and (eq $name "ephemeral-storage") (hasKey $requests $name)) -}}
{{- $_ := set $requests $name $value -}}
{{- end -}}
{{- end -}}
{{- toYaml (dict "limits" $limits "requests" $requests) -}}
{{- end -}}

{{- /*
NCCL and EFA variables of a GPU container as a list. EFA's go only where an EFA device is asked for: without one the
fabric provider silently falls back to TCP. Input: ctx, efa.
*/ -}}
{{- define "lingoss.networkEnv" -}}
{{- $network := .ctx.Values.global.network -}}
{{- $env := list (dict "name" "NCCL_DEBUG" "value" $network.nccl.debug) -}}
{{- with $network.nccl.socketIfname -}}{{- $env = append $env (dict "name" "NCCL_SOCKET_IFNAME" "value" .) -}}{{- end -}}
{{- /* Left out when empty: an empty NCCL_PROTO is not an unset one, and the EFA plugin chooses better than a constant. */ -}}
{{- with $network.nccl.proto -}}{{- $env = append $env (dict "name" "NCCL_PROTO" "value" .) -}}{{- end -}}
{{- range $name, $value := $network.nccl.env -}}{{- $env = append $env (dict "name" $name "value" (toString $value)) -}}{{- end -}}
{{- if .efa -}}
{{- range $name, $value := $network.efa.env -}}{{- $env = append $env (dict "name" $name "value" (toString $value)) -}}{{- end -}}
{{- end -}}
{{- toYaml $env -}}
{{- end -}}

{{- /*
Variables by name, later ones win: a list with a name twice is refused by server-side apply. Input: a list of lists.
*/ -}}
{{- define "lingoss.uniqueEnv" -}}
{{- $order := list -}}
{{- $byName := dict -}}
{{- range . -}}
{{- range . -}}
{{- if not (hasKey $byName .name) -}}{{- $order = append $order .name -}}{{- end -}}
{{- $_ := set $byName .name . -}}
{{- end -}}
{{- end -}}
{{- $env := list -}}
{{- range $order -}}{{- $env = append $env (index $byName .) -}}{{- end -}}
{{- toYaml $env -}}
{{- end -}}

{{- /*
One container. Input:
  ctx, workload          the caller's context, and the values that hold `pod` and `resources`
  name, image            image: trainer, openrlhf or toolbox
  command                list; exec form, so that the process gets SIGTERM itself; none where an operator writes it (Ray)
  resources              mapping, as lingoss.resources returns it
  access                 the volume: write (default), read or none
  gpus, efa              counts, 0 by default; they bring the NCCL and EFA variables and /dev/shm
  config                 name of the ConfigMap, mounted at /etc/lingoss
  env, mounts            further variables (lists of name/value) and volumeMounts
  online                 true where the Hub may be asked (prepare alone)
  rest                   mapping of further container fields: ports, probes, lifecycle
Returns a mapping as YAML.
*/ -}}
{{- define "lingoss.container" -}}
{{- $global := .ctx.Values.global -}}
{{- $knobs := include "lingoss.podKnobs" (dict "ctx" .ctx "workload" .workload) | fromYaml -}}
{{- $env := list
  (dict "name" "HOME" "value" "/tmp")
  (dict "name" "PYTHONUNBUFFERED" "value" "1")
  (dict "name" "LINGOSS_CACHE" "value" "/tmp/lingoss")
  (dict "name" "HF_HOME" "value" "/tmp/huggingface") -}}
{{- if not .online -}}
{{- $env = append $env (dict "name" "HF_HUB_OFFLINE" "value" "1") -}}
{{- end -}}
{{- $network := list -}}
{{- if .gpus -}}{{- $network = include "lingoss.networkEnv" (dict "ctx" .ctx "efa" .efa) | fromYamlArray -}}{{- end -}}
{{- $mounts := list (dict "name" "tmp" "mountPath" "/tmp") -}}
{{- if ne (.access | default "write") "none" -}}
{{- $data := dict "name" "data" "mountPath" $global.storage.mountPath "subPath" (include "lingoss.subPath" .ctx) -}}
{{- if eq (.access | default "write") "read" -}}{{- $_ := set $data "readOnly" true -}}{{- end -}}
{{- $mounts = append $mounts $data -}}
{{- end -}}
{{- if .config -}}{{- $mounts = append $mounts (dict "name" "config" "mountPath" "/etc/lingoss" "readOnly" true) -}}{{- end -}}
{{- if .gpus -}}{{- $mounts = append $mounts (dict "name" "shm" "mountPath" "/dev/shm") -}}{{- end -}}
{{- $container := dict
  "name" .name
  "image" (include "lingoss.image" (dict "ctx" .ctx "image" .image))
  "imagePullPolicy" $global.imagePullPolicy
  "resources" .resources
  "env" (include "lingoss.uniqueEnv" (list $env $network (.env | default list) $knobs.env) | fromYamlArray)
  "volumeMounts" (concat $mounts (.mounts | default list) $knobs.volumeMounts)
  "securityContext" (mergeOverwrite
    (dict "allowPrivilegeEscalation" false "readOnlyRootFilesystem" true "runAsNonRoot" true
      "capabilities" (dict "drop" (list "ALL")) "seccompProfile" (dict "type" "RuntimeDefault"))
    $knobs.containerSecurityContext)
  "terminationMessagePolicy" "FallbackToLogsOnError" -}}
{{- with .command -}}{{- $_ := set $container "command" . -}}{{- end -}}
{{- with $knobs.envFrom -}}{{- $_ := set $container "envFrom" . -}}{{- end -}}
{{- toYaml (mergeOverwrite $container (.rest | default dict)) -}}
{{- end -}}

{{- /*
Affinity of a pod: the values', and on HyperPod only nodes that its health agent calls schedulable, those that passed the
deep checks first. Node selector terms are alternatives, so the requirement is added to each of them.
Input: ctx, affinity, gpus.
*/ -}}
{{- define "lingoss.affinity" -}}
{{- $affinity := deepCopy (.affinity | default dict) -}}
{{- if and .ctx.Values.global.hyperpod.nodeHealth .gpus -}}
{{- $node := $affinity.nodeAffinity | default dict -}}
{{- $healthy := dict "key" "sagemaker.amazonaws.com/node-health-status" "operator" "In" "values" (list "Schedulable") -}}
{{- $required := $node.requiredDuringSchedulingIgnoredDuringExecution | default dict -}}
{{- $terms := list -}}
{{- range ($required.nodeSelectorTerms | default (list dict)) -}}
{{- $terms = append $terms (mergeOverwrite (deepCopy .) (dict "matchExpressions" (append (.matchExpressions | default list) $healthy))) -}}
{{- end -}}
{{- $_ := set $node "requiredDuringSchedulingIgnoredDuringExecution" (dict "nodeSelectorTerms" $terms) -}}
{{- $passed := dict "weight" 100 "preference" (dict "matchExpressions" (list
  (dict "key" "sagemaker.amazonaws.com/deep-health-check-status" "operator" "In" "values" (list "Passed")))) -}}
{{- $_ := set $node "preferredDuringSchedulingIgnoredDuringExecution"
  (append ($node.preferredDuringSchedulingIgnoredDuringExecution | default list) $passed) -}}
{{- $_ := set $affinity "nodeAffinity" $node -}}
{{- end -}}
{{- toYaml $affinity -}}
{{- end -}}

{{- /*
A pod template (metadata and spec). Input:
  ctx, part, workload
  containers             list of mappings (lingoss.container | fromYaml); initContainers likewise, optional
  gpus                   GPUs of the pod: brings /dev/shm, the instance type and the health affinity
  config                 name of the ConfigMap, optional
  labels                 further pod labels (mapping), optional
  volumes                further volumes (list), optional
  noData                 true for a pod without the volume
  token                  true for a pod that talks to the API (guard, cleanup)
  hook                   true for a pod whose end Helm waits for: without global.pod.containers, which may never end
  rest                   mapping of further fields of the pod's spec: restartPolicy, subdomain ...
*/ -}}
{{- define "lingoss.podTemplate" -}}
{{- $global := .ctx.Values.global -}}
{{- $knobs := include "lingoss.podKnobs" (dict "ctx" .ctx "workload" .workload) | fromYaml -}}
{{- $labels := mergeOverwrite (deepCopy $knobs.labels) (.labels | default dict)
  (include "lingoss.selectorLabels" (dict "ctx" .ctx "part" .part) | fromYaml) -}}
{{- $metadata := dict "labels" $labels -}}
{{- with $knobs.annotations -}}{{- $_ := set $metadata "annotations" . -}}{{- end -}}
{{- $volumes := list (dict "name" "tmp" "emptyDir" (dict "sizeLimit" $global.scratchSize)) -}}
{{- if not .noData -}}
{{- $volumes = append $volumes (dict "name" "data" "persistentVolumeClaim" (dict "claimName" (include "lingoss.claim" .ctx))) -}}
{{- end -}}
{{- if .config -}}{{- $volumes = append $volumes (dict "name" "config" "configMap" (dict "name" .config)) -}}{{- end -}}
{{- if .gpus -}}
{{- /* In memory, and so part of the containers' memory limit; the default 64 MiB stops NCCL and data loaders. */ -}}
{{- $volumes = append $volumes (dict "name" "shm" "emptyDir" (dict "medium" "Memory" "sizeLimit" (printf "%vGi" $global.layout.shmGi))) -}}
{{- end -}}
{{- $selector := deepCopy $knobs.nodeSelector -}}
{{- if and .gpus $global.layout.instanceType -}}
{{- $_ := set $selector "node.kubernetes.io/instance-type" $global.layout.instanceType -}}
{{- end -}}
{{- $spec := dict
  "serviceAccountName" (include "lingoss.serviceAccountName" (dict "ctx" .ctx "part" .part "workload" .workload))
  "automountServiceAccountToken" (.token | default false)
  "enableServiceLinks" false
  "securityContext" (mergeOverwrite
    (dict "runAsNonRoot" true "runAsUser" $global.user.uid "runAsGroup" $global.user.gid "fsGroup" $global.user.gid
      "fsGroupChangePolicy" "OnRootMismatch" "seccompProfile" (dict "type" "RuntimeDefault"))
    $knobs.securityContext)
  "containers" (concat .containers (ternary ((.workload.pod | default dict).containers | default list) $knobs.containers (.hook | default false)))
  "volumes" (concat $volumes (.volumes | default list) $knobs.volumes) -}}
{{- with concat (.initContainers | default list) $knobs.initContainers -}}{{- $_ := set $spec "initContainers" . -}}{{- end -}}
{{- with $global.imagePullSecrets -}}{{- $_ := set $spec "imagePullSecrets" . -}}{{- end -}}
{{- with $selector -}}{{- $_ := set $spec "nodeSelector" . -}}{{- end -}}
{{- with include "lingoss.affinity" (dict "ctx" .ctx "affinity" $knobs.affinity "gpus" .gpus) | fromYaml -}}{{- $_ := set $spec "affinity" . -}}{{- end -}}
{{- with $knobs.tolerations -}}{{- $_ := set $spec "tolerations" . -}}{{- end -}}
{{- with $knobs.topologySpreadConstraints -}}{{- $_ := set $spec "topologySpreadConstraints" . -}}{{- end -}}
{{- with $knobs.priorityClassName -}}{{- $_ := set $spec "priorityClassName" . -}}{{- end -}}
{{- with $knobs.terminationGracePeriodSeconds -}}{{- $_ := set $spec "terminationGracePeriodSeconds" (int .) -}}{{- end -}}
{{- toYaml (dict "metadata" $metadata "spec" (mergeOverwrite $spec (.rest | default dict))) -}}
{{- end -}}

{{- /*
The part of a Job's spec that all run-once Jobs share: what retries and what does not. Exit status 2 is input that the
command refused, which no retry mends; a drained or preempted pod does not count as a failure. Input: backoffLimit,
deadlineSeconds (0 = none). Returns a mapping as YAML.
*/ -}}
{{- define "lingoss.jobPolicy" -}}
{{- $policy := dict
  "backoffLimit" (int .backoffLimit)
  "podReplacementPolicy" "Failed"
  "podFailurePolicy" (dict "rules" (list
    (dict "action" "Ignore" "onPodConditions" (list (dict "type" "DisruptionTarget" "status" "True")))
    (dict "action" "FailJob" "onExitCodes" (dict "operator" "In" "values" (list 2))))) -}}
{{- with int (.deadlineSeconds | default 0) -}}{{- $_ := set $policy "activeDeadlineSeconds" . -}}{{- end -}}
{{- toYaml $policy -}}
{{- end -}}
