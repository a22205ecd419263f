{{- /* SPDX-License-Identifier: MIT-0 */ -}}
{{- /* Checks of one stage's values. All templates take the parent's context unless they say otherwise. */ -}}

{{- /* Nodes asked for against the layout's. Input: root, what (the values that ask, for the message), nodes, gpus (of one). */ -}}
{{- define "lingoss.checkNodes" -}}
{{- $layout := .root.Values.global.layout -}}
{{- $name := include "lingoss.layoutName" .root -}}
{{- $asked := mul .nodes .gpus -}}
{{- $there := mul $layout.nodes $layout.gpus -}}
{{- if gt (int .nodes) (int $layout.nodes) -}}
{{- if $there -}}
{{- fail (printf "%s comes to %d GPUs on %d nodes, but %s has %d on %d: ask for fewer nodes, or raise global.layout.nodes if the group has more" .what $asked (int .nodes) $name $there (int $layout.nodes)) -}}
{{- else -}}
{{- fail (printf "%s comes to %d nodes, but %s has %d: ask for fewer, or raise global.layout.nodes if there are more" .what (int .nodes) $name (int $layout.nodes)) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* Processes and grace period of a part. Input: ctx (the child's context), part. */ -}}
{{- define "lingoss.checkProcesses" -}}
{{- $node := include "lingoss.node" (dict "ctx" .ctx "workload" .ctx.Values) | fromYaml -}}
{{- if and $node.gpus (gt (int .ctx.Values.processesPerNode) (int $node.gpus)) -}}
{{- fail (printf "%s.processesPerNode=%d, but a pod has %d GPUs: set it to %d or fewer, or to 0 for one on each GPU" .part (int .ctx.Values.processesPerNode) (int $node.gpus) (int $node.gpus)) -}}
{{- end -}}
{{- $grace := include "lingoss.gracePeriod" .ctx | int -}}
{{- if le $grace (int .ctx.Values.stopSeconds) -}}
{{- fail (printf "terminationGracePeriodSeconds=%d kills pods of %s before the %d seconds of %s.stopSeconds are over and the checkpoint is complete: raise the one or lower the other" $grace .part (int .ctx.Values.stopSeconds) .part) -}}
{{- end -}}
{{- end -}}

{{- define "lingoss.checkSft" -}}
{{- $sft := .Values.sft -}}
{{- $ctx := .Subcharts.sft -}}
{{- $layout := .Values.global.layout -}}
{{- $elastic := $sft.elastic -}}
{{- $range := include "sft.range" $ctx | fromYaml -}}
{{- $key := ternary "sft.elastic.maxNodes" "sft.nodes" (and $elastic.enabled (gt (int $elastic.maxNodes) 0)) -}}
{{- $node := include "lingoss.node" (dict "ctx" $ctx "workload" $ctx.Values) | fromYaml -}}
{{- include "lingoss.checkNodes" (dict "root" . "what" (printf "%s=%d" $key (int $range.max)) "nodes" $range.max "gpus" $node.gpus) -}}
{{- include "lingoss.checkProcesses" (dict "ctx" $ctx "part" "sft") -}}
{{- if and (eq $sft.runtime "hyperpod") (not (hasPrefix "ml." $layout.instanceType)) -}}
{{- fail (printf "sft.runtime=hyperpod runs on HyperPod nodes, whose instance types begin with ml., but global.layout.instanceType=%q: use a layout of values/, or --set sft.runtime=job" $layout.instanceType) -}}
{{- end -}}
{{- if $elastic.enabled -}}
{{- if ne $sft.runtime "hyperpod" -}}
{{- fail (printf "sft.elastic.enabled needs the HyperPod training operator, but sft.runtime=%s: --set sft.runtime=hyperpod, or --set sft.elastic.enabled=false" $sft.runtime) -}}
{{- end -}}
{{- if or (lt (int $sft.nodes) (int $range.min)) (gt (int $sft.nodes) (int $range.max)) -}}
{{- fail (printf "sft.nodes=%d is not between sft.elastic.minNodes=%d and sft.elastic.maxNodes=%d, which it begins between: change one of them" (int $sft.nodes) (int $range.min) (int $range.max)) -}}
{{- end -}}
{{- end -}}
{{- $partial := $elastic.partialPreemption -}}
{{- if $partial.enabled -}}
{{- if not $elastic.enabled -}}
{{- fail "sft.elastic.partialPreemption.enabled needs elastic training: --set sft.elastic.enabled=true" -}}
{{- end -}}
{{- if eq (int $range.min) (int $range.max) -}}
{{- fail (printf "sft.elastic.partialPreemption.enabled keeps minNodes=%d and lets go of the rest, but there is none: raise sft.elastic.maxNodes, or lower sft.elastic.minNodes" (int $range.min)) -}}
{{- end -}}
{{- range $name := list "basePriorityClass" "elasticPriorityClass" -}}
{{- if not (get $partial $name) -}}
{{- fail (printf "sft.elastic.partialPreemption tells its two groups apart by priority: --set sft.elastic.partialPreemption.%s=<PriorityClass>" $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* Node counts that do not divide the global batch; the trainer refuses them too, but only when the GPUs are taken. */ -}}
{{- define "lingoss.checkSizes" -}}
{{- $sft := .Values.sft -}}
{{- $ctx := .Subcharts.sft -}}
{{- $sizes := include "sft.sizes" (dict "ctx" $ctx "from" 1 "to" .Values.global.layout.nodes) | fromYamlArray -}}
{{- $asked := dict "sft.nodes" $sft.nodes -}}
{{- if $sft.elastic.enabled -}}
{{- $_ := set $asked "sft.elastic.minNodes" $sft.elastic.minNodes -}}
{{- with $sft.elastic.maxNodes -}}{{- $_ := set $asked "sft.elastic.maxNodes" . -}}{{- end -}}
{{- end -}}
{{- range $key, $nodes := $asked -}}
{{- if not (has (float64 $nodes) $sizes) -}}
{{- $batch := get $sft.config "global_batch" | default 16 | int -}}
{{- $processes := include "lingoss.processes" (dict "ctx" $ctx) | int -}}
{{- $remedy := printf "set it to %s, or change the batch" (join " or " $sizes) -}}
{{- if not $sizes -}}{{- $remedy = "no number of nodes does, so change the batch" -}}{{- end -}}
{{- fail (printf "%s=%d x %d processes does not divide sft.config.global_batch=%d: %s" $key (int $nodes) $processes $batch $remedy) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "lingoss.checkGrpo" -}}
{{- $grpo := .Values.grpo -}}
{{- $ctx := .Subcharts.grpo -}}
{{- $layout := .Values.global.layout -}}
{{- $separate := eq (include "grpo.separateRollout" $ctx) "true" -}}
{{- if not (has $grpo.engine $layout.engines) -}}
{{- fail (printf "grpo.engine=%s does not fit %s, which runs %s: --set grpo.engine=%s, or use another layout" $grpo.engine (include "lingoss.layoutName" .) (join ", " $layout.engines) (first $layout.engines)) -}}
{{- end -}}
{{- if and (eq $grpo.engine "verl") (eq (get $grpo.config "format") "harmony") -}}
{{- /* The trainer refuses it too, but on a cluster of GPUs that has started for nothing. */ -}}
{{- fail "grpo.engine=verl hides the channels of grpo.config.format=harmony from the reward: --set grpo.engine=trl, or train a model with format think or plain" -}}
{{- end -}}
{{- if eq $grpo.engine "trl" -}}
{{- include "lingoss.checkProcesses" (dict "ctx" $ctx "part" "grpo") -}}
{{- $node := include "lingoss.node" (dict "ctx" $ctx "workload" $ctx.Values) | fromYaml -}}
{{- $what := printf "grpo.nodes=%d" (int $grpo.nodes) -}}
{{- if $separate -}}{{- $what = printf "%s with one more for the vLLM server (grpo.config.rollout.mode=server)" $what -}}{{- end -}}
{{- include "lingoss.checkNodes" (dict "root" . "what" $what "nodes" (add $grpo.nodes (ternary 1 0 $separate)) "gpus" $node.gpus) -}}
{{- else -}}
{{- $version := get .Values.kuberay.rayVersions $grpo.engine -}}
{{- if and .Values.kuberay.tokenAuth (semverCompare "<2.52.0" $version) -}}
{{- fail (printf "kuberay.tokenAuth needs Ray 2.52, but kuberay.rayVersions.%s=%s: use an image with a newer Ray, or --set kuberay.tokenAuth=false" $grpo.engine $version) -}}
{{- end -}}
{{- $ray := dict "ctx" $ctx "kuberay" .Values.kuberay -}}
{{- $trainer := include "kuberay.nodes" (mergeOverwrite (dict "name" "trainer") $ray) | int -}}
{{- $rollout := include "kuberay.nodes" (mergeOverwrite (dict "name" "rollout") $ray) | int -}}
{{- if lt $trainer 1 -}}
{{- fail (printf "kuberay.rollout.nodes=%d leaves no node of the %d of %s to train on: ask for fewer, or --set grpo.config.rollout.mode=colocate" $rollout (int $layout.nodes) (include "lingoss.layoutName" .)) -}}
{{- end -}}
{{- $node := include "kuberay.worker" (mergeOverwrite (dict "name" "trainer") $ray) | fromYaml -}}
{{- $what := printf "kuberay.trainer.nodes=%d" $trainer -}}
{{- if $rollout -}}{{- $what = printf "%s and kuberay.rollout.nodes=%d" $what $rollout -}}{{- end -}}
{{- include "lingoss.checkNodes" (dict "root" . "what" $what "nodes" (add $trainer $rollout) "gpus" $node.gpus) -}}
{{- end -}}
{{- end -}}

{{- define "lingoss.checkServe" -}}
{{- $serve := .Values.inference.serve -}}
{{- $stay := int $serve.podDisruptionBudget.minAvailable -}}
{{- if and $serve.podDisruptionBudget.enabled (ge $stay (int $serve.replicas)) -}}
{{- fail (printf "inference.serve.podDisruptionBudget.minAvailable=%d of inference.serve.replicas=%d would make every drain of a node wait for a person: raise replicas, or --set inference.serve.podDisruptionBudget.enabled=false" $stay (int $serve.replicas)) -}}
{{- end -}}
{{- end -}}

{{- /* Stage evaluate measures whether GRPO is worth it, which it can only by sampling as stage grpo would. */ -}}
{{- define "lingoss.checkGate" -}}
{{- $gate := dig "gate" dict .Values.inference.evaluate.config -}}
{{- $grpo := .Values.grpo.config -}}
{{- range list
  (list "k" "num_generations" (dig "num_generations" 8 $grpo) 8)
  (list "temperature" "sampling.temperature" (dig "sampling" "temperature" 1 $grpo) 1)
  (list "prompts_per_step" "prompts_per_step" (dig "prompts_per_step" 16 $grpo) 16)
  (list "max_completion_length" "max_completion_length" (dig "max_completion_length" nil $grpo) nil)
  (list "mask_truncated_completions" "mask_truncated_completions" (dig "mask_truncated_completions" true $grpo) true)
  (list "reward" "reward" (dig "reward" dict $grpo) dict)
}}
{{- $own := dig (first .) (last .) $gate -}}
{{- $trained := index . 2 -}}
{{- if ne (toJson $own) (toJson $trained) -}}
{{- fail (printf "the gate of stage evaluate would not sample as stage grpo does: inference.evaluate.config.gate.%s=%s, but grpo.config.%s=%s: set both alike" (first .) (toJson $own) (index . 1) (toJson $trained)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
