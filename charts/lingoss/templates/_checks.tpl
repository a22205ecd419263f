{{- /* SPDX-License-Identifier: MIT-0 */ -}}
{{- /*
What no schema can say: values that contradict each other, the hardware or the cluster. Each refusal is one line that says
what, which value, and what to do. All templates take the parent's context unless they say otherwise.
*/ -}}

{{- define "lingoss.checks" -}}
{{- include "lingoss.checkNames" . -}}
{{- include "lingoss.checkLayout" . -}}
{{- include "lingoss.checkFolders" . -}}
{{- include "lingoss.checkQueue" . -}}
{{- include "lingoss.checkAccounts" . -}}
{{- include "lingoss.checkRequests" . -}}
{{- if eq .Values.global.stage "sft" -}}{{- include "lingoss.checkSft" . -}}{{- end -}}
{{- if eq .Values.global.stage "grpo" -}}{{- include "lingoss.checkGrpo" . -}}{{- end -}}
{{- if eq .Values.global.stage "evaluate" -}}{{- include "lingoss.checkGate" . -}}{{- end -}}
{{- if eq .Values.global.stage "serve" -}}{{- include "lingoss.checkServe" . -}}{{- end -}}
{{- include "lingoss.checkPods" . -}}
{{- if eq .Values.global.stage "sft" -}}{{- include "lingoss.checkSizes" . -}}{{- end -}}
{{- include "lingoss.checkCRDs" . -}}
{{- end -}}

{{- /* How messages call the layout. */ -}}
{{- define "lingoss.layoutName" -}}
{{- with .Values.global.layout.name }}layout {{ . }}{{ else }}the layout{{ end -}}
{{- end -}}

{{- /* Names: 63 characters at most with what is appended to the base; a RayJob's 47, for KubeRay appends more. */ -}}
{{- define "lingoss.checkNames" -}}
{{- $base := include "lingoss.fullname" . -}}
{{- $override := .Values.global.fullnameOverride -}}
{{- $own := ternary "global.fullnameOverride" "release name" (ne $override "") -}}
{{- $name := $override | default .Release.Name -}}
{{- if not (regexMatch "^[a-z]([-a-z0-9]*[a-z0-9])?$" $base) -}}
{{- fail (printf "%s %s cannot name a Service, whose names have a-z, 0-9 and - and begin with a letter: choose another release name, or --set global.fullnameOverride=lingoss" $own $name) -}}
{{- end -}}
{{- $most := 40 -}}
{{- $why := "an object's name would pass 63 characters" -}}
{{- $kept := "" -}}
{{- if ne .Values.grpo.engine "trl" -}}
{{- /* In every stage: to learn it after days of sft is too late for another name. */ -}}
{{- $ray := printf "%s-grpo-%s" $base (include "lingoss.hash" "") -}}
{{- $most = sub 47 (sub (len $ray) (len $base)) | int -}}
{{- $why = printf "its RayJob's would have %d and may have 47" (len $ray) -}}
{{- if not .Values.global.storage.existingClaim -}}
{{- $kept = printf "; an installed release keeps its volume with global.storage.existingClaim=%s-data" $base -}}
{{- end -}}
{{- end -}}
{{- if gt (len $base) $most -}}
{{- $room := sub $most (sub (len $base) (len $name)) | int -}}
{{- fail (printf "%s %s has %d characters, so %s: use at most %d, or --set global.fullnameOverride=<at most %d>%s" $own $name (len $name) $why $room $most $kept) -}}
{{- end -}}
{{- end -}}

{{- /* A layout that contradicts itself. */ -}}
{{- define "lingoss.checkLayout" -}}
{{- $layout := .Values.global.layout -}}
{{- $name := include "lingoss.layoutName" . -}}
{{- if eq 0 (int $layout.gpus) -}}
{{- range $key := list "efa" "gpuMemoryGi" -}}
{{- if get $layout $key -}}
{{- fail (printf "%s has no GPUs (global.layout.gpus=0), but global.layout.%s=%v: set it to 0, or global.layout.gpus to what a node has" $name $key (get $layout $key)) -}}
{{- end -}}
{{- end -}}
{{- if $layout.gpuDirect -}}
{{- fail (printf "%s has no GPUs (global.layout.gpus=0), but global.layout.gpuDirect=true: set it to false, or global.layout.gpus to what a node has" $name) -}}
{{- end -}}
{{- else -}}
{{- if and $layout.gpuDirect (eq 0 (int $layout.efa)) -}}
{{- fail (printf "%s has global.layout.gpuDirect=true, but no EFA device (global.layout.efa=0): set gpuDirect to false, or efa to what a node has" $name) -}}
{{- end -}}
{{- if ge (int $layout.shmGi) (int $layout.memoryGi) -}}
{{- fail (printf "%s has global.layout.shmGi=%v of global.layout.memoryGi=%v: /dev/shm counts towards a pod's memory, so set shmGi well below it" $name $layout.shmGi $layout.memoryGi) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* Folders that would hide what a pod needs, or that Kubernetes does not mount. */ -}}
{{- define "lingoss.checkFolders" -}}
{{- $storage := .Values.global.storage -}}
{{- $path := clean $storage.mountPath -}}
{{- if or (eq $path "/") (regexMatch "^/(tmp|etc|dev|proc|sys|usr|bin|sbin|lib|lib64|opt/ml)(/|$)" $path) -}}
{{- fail (printf "global.storage.mountPath=%s is a folder of the pod's own or in one: use a path such as /lingoss" $storage.mountPath) -}}
{{- end -}}
{{- if has ".." (splitList "/" $storage.subPath) -}}
{{- fail (printf "global.storage.subPath=%s leads out of the claim: use a path without .." $storage.subPath) -}}
{{- end -}}
{{- end -}}

{{- define "lingoss.checkQueue" -}}
{{- $queue := .Values.global.queue -}}
{{- if eq $queue.scheme "hyperpod" -}}
{{- if not $queue.team -}}
{{- fail "global.queue.scheme=hyperpod names its queues by team: --set global.queue.team=<team>, or --set global.queue.scheme=kueue" -}}
{{- end -}}
{{- $namespace := printf "hyperpod-ns-%s" $queue.team -}}
{{- if ne .Release.Namespace $namespace -}}
{{- fail (printf "global.queue.team=%s has its queue in namespace %s, but the release is in %s: helm … --namespace %s" $queue.team $namespace .Release.Namespace $namespace) -}}
{{- end -}}
{{- else if $queue.team -}}
{{- fail (printf "global.queue.team=%s means nothing to global.queue.scheme=kueue: --set global.queue.scheme=hyperpod, or give the queue as global.queue.name" $queue.team) -}}
{{- else if and $queue.priorityClass (not $queue.name) -}}
{{- fail (printf "global.queue.priorityClass=%s needs a queue: --set global.queue.name=<LocalQueue>" $queue.priorityClass) -}}
{{- end -}}
{{- end -}}

{{- /* A custom resource that the cluster does not have. The one place that asks the cluster. */ -}}
{{- define "lingoss.checkCRDs" -}}
{{- if .Values.global.checkCRDs -}}
{{- $offline := "(without a cluster: --set global.checkCRDs=false)" -}}
{{- if and (include "lingoss.usesRay" .) (not (.Capabilities.APIVersions.Has "ray.io/v1")) -}}
{{- fail (printf "grpo.engine=%s needs the custom resource RayJob (ray.io/v1), which this cluster does not have: run `make operators`, or --set grpo.engine=trl %s" .Values.grpo.engine $offline) -}}
{{- end -}}
{{- if and (eq .Values.global.stage "sft") (eq .Values.sft.runtime "hyperpod") -}}
{{- $kind := .Values.sft.hyperpod.kind -}}
{{- $other := ternary "HyperPodPytorchJob" "HyperPodPyTorchJob" (eq $kind "HyperPodPyTorchJob") -}}
{{- if .Capabilities.APIVersions.Has (printf "sagemaker.amazonaws.com/v1/%s" $other) -}}
{{- fail (printf "this cluster spells the custom resource %s, but sft.hyperpod.kind=%s: --set sft.hyperpod.kind=%s" $other $kind $other) -}}
{{- end -}}
{{- if not (.Capabilities.APIVersions.Has "sagemaker.amazonaws.com/v1") -}}
{{- fail (printf "sft.runtime=hyperpod needs the custom resource %s (sagemaker.amazonaws.com/v1), which this cluster does not have: install the EKS add-on amazon-sagemaker-hyperpod-training-operator, or --set sft.runtime=job %s" $kind $offline) -}}
{{- end -}}
{{- end -}}
{{- if and (include "lingoss.queueLabels" .) (ne .Values.global.stage "none") (not (join " " .Capabilities.APIVersions | contains "kueue.x-k8s.io/")) -}}
{{- /* Without Kueue nobody reads the label, and the job would start outside every quota. */ -}}
{{- fail (printf "global.queue names a queue, but this cluster does not have Kueue (kueue.x-k8s.io): run `make operators`, or take global.queue out of the values %s" $offline) -}}
{{- end -}}
{{- end -}}
{{- end -}}
