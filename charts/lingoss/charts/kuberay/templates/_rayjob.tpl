{{- /* SPDX-License-Identifier: MIT-0 */ -}}
{{- /*
The RayJob of stage grpo. Only the parent sees both halves, so it calls these templates (templates/rayjob.yaml).
Input of all, one mapping: ctx (the context of child grpo) and kuberay (the values of child kuberay).
*/ -}}

{{- /* What the templates for all pods read of a workload, for one kind of Ray pod. Input also: name (head, trainer, rollout, submitter). */ -}}
{{- define "kuberay.workload" -}}
{{- $account := include "lingoss.serviceAccountName" (dict "ctx" .ctx "part" "grpo" "workload" .ctx.Values) -}}
{{- $part := index .kuberay .name -}}
{{- toYaml (dict "pod" $part.pod "resources" $part.resources "serviceAccount" (dict "create" true "name" $account)) -}}
{{- end -}}

{{- /* Image that holds the engine. */ -}}
{{- define "kuberay.image" -}}
{{- ternary "openrlhf" "trainer" (eq .ctx.Values.engine "openrlhf") -}}
{{- end -}}

{{- /* Nodes of a worker group. Input also: name (trainer or rollout). */ -}}
{{- define "kuberay.nodes" -}}
{{- $rollout := ternary (int .kuberay.rollout.nodes) 0 (eq (include "grpo.separateRollout" .ctx) "true") -}}
{{- if eq .name "rollout" -}}{{- $rollout -}}
{{- else -}}{{- .kuberay.trainer.nodes | default (sub .ctx.Values.global.layout.nodes $rollout) | int -}}{{- end -}}
{{- end -}}

{{- /* A worker's share of its node: what head and submitter leave of it. Input also: name. Returns what lingoss.node does. */ -}}
{{- define "kuberay.worker" -}}
{{- $layout := .ctx.Values.global.layout -}}
{{- $cpu := mul $layout.cpu 1000 -}}
{{- $memory := mul $layout.memoryGi 1024 -}}
{{- range list .kuberay.head.resources .kuberay.submitter.resources -}}
{{- $asked := include "lingoss.resources" (dict "override" .) | fromYaml -}}
{{- with $asked.requests.cpu -}}{{- $cpu = sub $cpu (include "lingoss.milliCpu" . | int) -}}{{- end -}}
{{- with $asked.requests.memory -}}{{- $memory = sub $memory (include "lingoss.mebibytes" . | int) -}}{{- end -}}
{{- end -}}
{{- include "lingoss.node" (dict "ctx" .ctx "workload" (index .kuberay .name) "cpu" (div $cpu 1000 | int) "memoryGi" (div $memory 1024 | int)) -}}
{{- end -}}

{{- /* Variables of every Ray pod, the submitter too. */ -}}
{{- define "kuberay.env" -}}
# Ray's own killer strikes at the short peaks of ZeRO-3's start; the memory limit of the pod is what counts. Each node reads
# this when it starts.
- name: RAY_memory_monitor_refresh_ms
  value: "0"
# Nothing is sent to an outside service.
- name: RAY_USAGE_STATS_ENABLED
  value: "0"
{{- if not .kuberay.tokenAuth }}
# Said and not left to Ray's default, which is another one in ray.init() than in ray start.
- name: RAY_AUTH_MODE
  value: disabled
{{- end }}
{{- end -}}

{{- /* Bytes for Ray's objects: half of /dev/shm, the rest is NCCL's. Ray's own default is a share of the memory and may be more than there is. Input: GiB. */ -}}
{{- define "kuberay.objectStore" -}}
{{- mul . 536870912 -}}
{{- end -}}

{{- define "kuberay.head" -}}
{{- $kuberay := .kuberay -}}
{{- $workload := include "kuberay.workload" (mergeOverwrite (dict "name" "head") .) | fromYaml -}}
{{- $config := include "lingoss.configName" (dict "ctx" .ctx "stage" "grpo" "text" (include "grpo.configText" .ctx)) -}}
{{- $trainer := include "kuberay.worker" (mergeOverwrite (dict "name" "trainer") .) | fromYaml -}}
{{- /* The driver waits for as many before it begins: Ray starts a job as soon as the head is there. */ -}}
{{- $cluster := list
  (dict "name" "LINGOSS_TRAINER_NODES" "value" (include "kuberay.nodes" (mergeOverwrite (dict "name" "trainer") .)))
  (dict "name" "LINGOSS_ROLLOUT_NODES" "value" (include "kuberay.nodes" (mergeOverwrite (dict "name" "rollout") .)))
  (dict "name" "LINGOSS_GPUS_PER_NODE" "value" (toString $trainer.gpus)) -}}
{{- $container := include "lingoss.container" (dict "ctx" .ctx "workload" $workload "name" "ray-head"
  "image" (include "kuberay.image" .) "config" $config
  "resources" (include "lingoss.resources" (dict "override" $workload.resources) | fromYaml)
  "env" (concat (include "kuberay.env" . | fromYamlArray) $cluster)
  "mounts" (list (dict "name" "shm" "mountPath" "/dev/shm"))) | fromYaml -}}
{{- $template := include "lingoss.podTemplate" (dict "ctx" .ctx "part" "grpo" "workload" $workload "config" $config
  "containers" (list $container)
  "volumes" (list (dict "name" "shm" "emptyDir" (dict "medium" "Memory" "sizeLimit" (printf "%vGi" $kuberay.head.shmGi))))) | fromYaml -}}
{{- /* No tasks on the head either: NCCL must not reach a pod without EFA. */ -}}
{{- toYaml (dict
  "rayStartParams" (dict "num-cpus" "0" "num-gpus" "0" "object-store-memory" (include "kuberay.objectStore" $kuberay.head.shmGi))
  "template" $template) -}}
{{- end -}}

{{- /* A worker group of fixed size. Input also: name. KubeRay puts an init container (wait-gcs-ready) before the container, with
its image, variables, mounts and security context, so it is as restricted. */ -}}
{{- define "kuberay.group" -}}
{{- $workload := include "kuberay.workload" . | fromYaml -}}
{{- $node := include "kuberay.worker" . | fromYaml -}}
{{- $nodes := include "kuberay.nodes" . | int -}}
{{- $config := include "lingoss.configName" (dict "ctx" .ctx "stage" "grpo" "text" (include "grpo.configText" .ctx)) -}}
{{- $container := include "lingoss.container" (dict "ctx" .ctx "workload" $workload "name" "ray-worker"
  "image" (include "kuberay.image" .) "config" $config "resources" $node.resources "gpus" $node.gpus "efa" $node.efa
  "env" (include "kuberay.env" . | fromYamlArray)) | fromYaml -}}
{{- $template := include "lingoss.podTemplate" (dict "ctx" .ctx "part" "grpo" "workload" $workload "config" $config
  "containers" (list $container) "gpus" $node.gpus) | fromYaml -}}
{{- /* The last two are what KubeRay writes into its RayJob. It owns the whole list then, and Helm 4, which applies on the
server, would call every later upgrade a conflict if the chart's list were another. */ -}}
{{- toYaml (dict "groupName" .name "replicas" $nodes "minReplicas" $nodes "maxReplicas" $nodes "numOfHosts" 1 "scaleStrategy" dict
  "rayStartParams" (dict "object-store-memory" (include "kuberay.objectStore" .ctx.Values.global.layout.shmGi))
  "template" $template) -}}
{{- end -}}

{{- define "kuberay.submitter" -}}
{{- $workload := include "kuberay.workload" (mergeOverwrite (dict "name" "submitter") .) | fromYaml -}}
{{- $container := include "lingoss.container" (dict "ctx" .ctx "workload" $workload "name" "ray-job-submitter"
  "image" (include "kuberay.image" .) "access" "none" "env" (include "kuberay.env" . | fromYamlArray)
  "resources" (include "lingoss.resources" (dict "override" $workload.resources) | fromYaml)) | fromYaml -}}
{{- include "lingoss.podTemplate" (dict "ctx" .ctx "part" "grpo" "workload" $workload "noData" true
  "containers" (list $container) "rest" (dict "restartPolicy" "Never")) -}}
{{- end -}}

{{- /* The RayJob's spec as YAML. `suspend` is Kueue's and never rendered. */ -}}
{{- define "kuberay.spec" -}}
{{- $kuberay := .kuberay -}}
{{- $groups := list (include "kuberay.group" (mergeOverwrite (dict "name" "trainer") .) | fromYaml) -}}
{{- if include "grpo.separateRollout" .ctx -}}
{{- $groups = append $groups (include "kuberay.group" (mergeOverwrite (dict "name" "rollout") .) | fromYaml) -}}
{{- end -}}
{{- $cluster := dict
  "rayVersion" (index $kuberay.rayVersions .ctx.Values.engine)
  "headGroupSpec" (include "kuberay.head" . | fromYaml)
  "workerGroupSpecs" $groups -}}
{{- if $kuberay.tokenAuth -}}{{- $_ := set $cluster "authOptions" (dict "mode" "token") -}}{{- end -}}
{{- $spec := dict
  "entrypoint" "lingoss grpo --config /etc/lingoss/grpo.yaml"
  "submissionMode" "K8sJobMode"
  "submitterPodTemplate" (include "kuberay.submitter" . | fromYaml)
  "submitterConfig" (dict "backoffLimit" (int $kuberay.submitter.retries))
  "backoffLimit" (int $kuberay.retries)
  "shutdownAfterJobFinishes" true
  "ttlSecondsAfterFinished" (int $kuberay.ttlSeconds)
  "rayClusterSpec" $cluster -}}
{{- with int .ctx.Values.deadlineSeconds -}}{{- $_ := set $spec "activeDeadlineSeconds" . -}}{{- end -}}
{{- with int $kuberay.preRunningDeadlineSeconds -}}{{- $_ := set $spec "preRunningDeadlineSeconds" . -}}{{- end -}}
{{- toYaml $spec -}}
{{- end -}}

{{- /* Name of the RayJob. */ -}}
{{- define "kuberay.name" -}}
{{- include "lingoss.queuedName" (dict "ctx" .ctx "part" "grpo" "spec" (include "kuberay.spec" .)) -}}
{{- end -}}

{{- define "kuberay.rayJob" -}}
apiVersion: ray.io/v1
kind: RayJob
metadata:
  name: {{ include "kuberay.name" . }}
  namespace: {{ .ctx.Release.Namespace }}
  labels:
    {{- include "lingoss.labels" (dict "ctx" .ctx "part" "grpo") | nindent 4 }}
    {{- with include "lingoss.queueLabels" .ctx }}{{ . | trim | nindent 4 }}{{ end }}
spec:
  {{- include "kuberay.spec" . | nindent 2 }}
{{- end -}}
