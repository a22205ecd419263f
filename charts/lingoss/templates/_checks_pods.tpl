{{- /* SPDX-License-Identifier: MIT-0 */ -}}
{{- /*
Pods that no node could take. What is compared is the finished pod template, so whatever raised a number is seen.
All templates take the parent's context unless they say otherwise.
*/ -}}

{{- /* The pods of the current stage that take a large share of a node: name for messages -> pod template. */ -}}
{{- define "lingoss.largePods" -}}
{{- $stage := .Values.global.stage -}}
{{- $pods := dict -}}
{{- if eq $stage "sft" -}}
{{- $ctx := .Subcharts.sft -}}
{{- if eq .Values.sft.runtime "hyperpod" -}}
{{- $_ := set $pods "sft" (include "sft.hyperpodTemplate" (dict "ctx" $ctx) | fromYaml) -}}
{{- else -}}
{{- $_ := set $pods "sft" (include "lingoss.distributedSpec" (set (include "sft.job" $ctx | fromYaml) "ctx" $ctx) | fromYaml).template -}}
{{- end -}}
{{- else if eq $stage "grpo" -}}
{{- $ctx := .Subcharts.grpo -}}
{{- if include "lingoss.usesRay" . -}}
{{- $ray := dict "ctx" $ctx "kuberay" .Values.kuberay -}}
{{- range ternary (list "trainer" "rollout") (list "trainer") (eq (include "grpo.separateRollout" $ctx) "true") -}}
{{- $_ := set $pods (printf "kuberay.%s" .) (include "kuberay.group" (mergeOverwrite (dict "name" .) $ray) | fromYaml).template -}}
{{- end -}}
{{- else -}}
{{- $_ := set $pods "grpo" (include "lingoss.distributedSpec" (set (include "grpo.job" $ctx | fromYaml) "ctx" $ctx) | fromYaml).template -}}
{{- end -}}
{{- else if eq $stage "evaluate" -}}
{{- $_ := set $pods "inference.evaluate.generate" (include "inference.jobSpec" (dict "ctx" .Subcharts.inference "job" "generate") | fromYaml).template -}}
{{- else if eq $stage "serve" -}}
{{- $_ := set $pods "inference.serve" (include "inference.servePod" .Subcharts.inference | fromYaml) -}}
{{- else if and (eq $stage "prepare") (eq 0 (int .Values.global.layout.gpus)) -}}
{{- /* Where there are GPU nodes, prepare may run on others, of which the layout says nothing. */ -}}
{{- $_ := set $pods "storage.prepare" (include "storage.prepareSpec" .Subcharts.storage | fromYaml).template -}}
{{- end -}}
{{- toYaml $pods -}}
{{- end -}}

{{- /*
What a pod asks for, as the scheduler counts: its containers together, with init containers that go on beside them
(restartPolicy Always), or any other init container with those that began before it, whichever is more. Input: pod template.
*/ -}}
{{- define "lingoss.podDemand" -}}
{{- $demand := dict -}}
{{- range $name := list "cpu" "memory" "nvidia.com/gpu" "vpc.amazonaws.com/efa" -}}
{{- $beside := 0 -}}
{{- $most := 0 -}}
{{- range ($.spec.initContainers | default list) -}}
{{- $asked := include "lingoss.asked" (dict "container" . "name" $name) | int -}}
{{- $most = max $most (add $beside $asked) -}}
{{- if eq (.restartPolicy | default "") "Always" -}}{{- $beside = add $beside $asked -}}{{- end -}}
{{- end -}}
{{- range $.spec.containers -}}
{{- $beside = add $beside (include "lingoss.asked" (dict "container" . "name" $name)) -}}
{{- end -}}
{{- $_ := set $demand $name (max $most $beside) -}}
{{- end -}}
{{- toYaml $demand -}}
{{- end -}}

{{- /* What a container asks for of a resource: thousandths of a CPU, MiB of memory, or a count. Input: container, name. */ -}}
{{- define "lingoss.asked" -}}
{{- $requests := mergeOverwrite (dict) (dig "resources" "limits" dict .container) (dig "resources" "requests" dict .container) -}}
{{- $asked := get $requests .name | default 0 -}}
{{- if eq .name "cpu" -}}{{- include "lingoss.milliCpu" $asked -}}
{{- else if eq .name "memory" -}}{{- include "lingoss.mebibytes" $asked -}}
{{- else -}}{{- int $asked -}}{{- end -}}
{{- end -}}

{{- define "lingoss.checkPods" -}}
{{- $layout := .Values.global.layout -}}
{{- $name := include "lingoss.layoutName" . -}}
{{- range $what, $pod := include "lingoss.largePods" . | fromYaml -}}
{{- $asked := include "lingoss.podDemand" $pod | fromYaml -}}
{{- $gpus := get $asked "nvidia.com/gpu" | int -}}
{{- $efa := get $asked "vpc.amazonaws.com/efa" | int -}}
{{- $key := get (dict "storage.prepare" "storage.prepare.convert.resources or storage.prepare.fetch.resources") $what | default (printf "%s.resources" $what) -}}
{{- $tail := printf "lower %s, or use another layout" $key -}}
{{- if gt $gpus (int $layout.gpus) -}}
{{- fail (printf "a pod of %s asks for %d GPUs, but a node of %s has %d: %s" $what $gpus $name (int $layout.gpus) $tail) -}}
{{- end -}}
{{- if and $efa (not $gpus) -}}
{{- fail (printf "a pod of %s asks for %d EFA devices and no GPU: %s" $what $efa $tail) -}}
{{- end -}}
{{- if gt $efa (int $layout.efa) -}}
{{- fail (printf "a pod of %s asks for %d EFA devices, but a node of %s has %d: %s" $what $efa $name (int $layout.efa) $tail) -}}
{{- end -}}
{{- if gt (int $asked.cpu) (mul $layout.cpu 1000 | int) -}}
{{- fail (printf "a pod of %s asks for %vm CPU, but global.layout.cpu=%v: %s" $what $asked.cpu $layout.cpu $tail) -}}
{{- end -}}
{{- if gt (int $asked.memory) (mul $layout.memoryGi 1024 | int) -}}
{{- fail (printf "a pod of %s asks for %vMi of memory, but global.layout.memoryGi=%v: %s" $what $asked.memory $layout.memoryGi $tail) -}}
{{- end -}}
{{- if le (int $asked.memory) 0 -}}
{{- /* Ray workers alone are sized by what others leave. */ -}}
{{- fail (printf "a pod of %s is left with no memory of global.layout.memoryGi=%v: lower kuberay.head.resources and kuberay.submitter.resources" $what $layout.memoryGi) -}}
{{- end -}}
{{- if and (le (int $asked.cpu) 0) (hasPrefix "kuberay." $what) -}}
{{- fail (printf "a pod of %s is left with no CPU of global.layout.cpu=%v: lower kuberay.head.resources and kuberay.submitter.resources" $what $layout.cpu) -}}
{{- end -}}
{{- if and $gpus (ge (mul $layout.shmGi 1024 | int) (int $asked.memory)) -}}
{{- fail (printf "a pod of %s asks for %vMi of memory, and its /dev/shm may take %vGi of it: lower global.layout.shmGi, or raise %s.resources.limits.memory" $what $asked.memory $layout.shmGi $what) -}}
{{- end -}}
{{- end -}}
{{- end -}}
