{{- /* SPDX-License-Identifier: MIT-0 */ -}}
{{- /* Runtime hyperpod: a custom resource of the HyperPod training operator. All templates take the child's context. */ -}}

{{- /* The pod template. Input: ctx, priority (PriorityClass, optional). */ -}}
{{- define "sft.hyperpodTemplate" -}}
{{- $values := .ctx.Values -}}
{{- $node := include "lingoss.node" (dict "ctx" .ctx "workload" $values) | fromYaml -}}
{{- $config := include "lingoss.configName" (dict "ctx" .ctx "stage" "sft" "text" (include "sft.configText" .ctx)) -}}
{{- $nodes := include "sft.firstNodes" .ctx -}}
{{- /* The two signals differ: SIGTERM (the pod goes) leaves --shutdown-timeout to save in; the agent's other ends follow a
fault, after which the ranks that are left wait for the lost one and have nothing to save. */ -}}
{{- $command := list "hyperpodrun"
  (printf "--nnodes=%s" $nodes)
  (printf "--nproc-per-node=%d" (include "lingoss.processes" (dict "ctx" .ctx) | int))
  "--server-host=0.0.0.0" "--server-port=8080"
  "--shutdown-signal=SIGKILL" (printf "--shutdown-timeout=%d" (int $values.stopSeconds))
  "--log_dir=/tmp/hyperpod" "--tee=3"
  "-m" "lingoss" "sft" "--config" "/etc/lingoss/sft.yaml" -}}
{{- $env := list
  (dict "name" "NNODES" "value" $nodes)
  (dict "name" "HYPERPOD_SIGNAL_COORDINATION" "value" "distributed") -}}
{{- $main := include "lingoss.container" (dict "ctx" .ctx "workload" $values "name" "sft" "image" "trainer"
  "command" $command "resources" $node.resources "gpus" $node.gpus "efa" $node.efa "config" $config "env" $env
  "mounts" (list (dict "name" "agent" "mountPath" "/opt/ml/input/config"))
  "rest" (dict "ports" (list (dict "name" "agent" "containerPort" 8080)))) | fromYaml -}}
{{- $rest := dict "terminationGracePeriodSeconds" (include "lingoss.gracePeriod" .ctx | int)
  "shareProcessNamespace" true -}}
{{- /* shareProcessNamespace: see lingoss.distributedSpec. */ -}}
{{- with .priority -}}{{- $_ := set $rest "priorityClassName" . -}}{{- end -}}
{{- include "lingoss.podTemplate" (dict "ctx" .ctx "part" "sft" "workload" $values "containers" (list $main)
  "gpus" $node.gpus "config" $config "labels" (include "lingoss.queueLabels" .ctx | fromYaml) "rest" $rest
  "volumes" (list (dict "name" "agent" "emptyDir" (dict "sizeLimit" "16Mi")))) -}}
{{- end -}}

{{- /* replicaSpecs: one group, or for partial preemption a base that is kept and a group that may be taken away. */ -}}
{{- define "sft.hyperpodReplicas" -}}
{{- $elastic := .Values.elastic -}}
{{- $range := include "sft.range" . | fromYaml -}}
{{- $template := dict "ctx" . -}}
{{- if and $elastic.enabled $elastic.partialPreemption.enabled -}}
{{- $base := set $template "priority" $elastic.partialPreemption.basePriorityClass | include "sft.hyperpodTemplate" | fromYaml -}}
{{- $more := set $template "priority" $elastic.partialPreemption.elasticPriorityClass | include "sft.hyperpodTemplate" | fromYaml -}}
{{- toYaml (list
  (dict "name" "base" "replicas" (include "sft.firstNodes" . | int) "maxReplicas" (int $range.min) "template" $base)
  (dict "name" "elastic" "replicas" 0 "maxReplicas" (sub $range.max $range.min | int) "template" $more)) -}}
{{- else -}}
{{- toYaml (list (dict "name" "worker" "replicas" (include "sft.firstNodes" . | int) "maxReplicas" (int $range.max)
  "template" (include "sft.hyperpodTemplate" $template | fromYaml))) -}}
{{- end -}}
{{- end -}}

{{- /* The custom resource's spec. `suspend` is Kueue's and never rendered. */ -}}
{{- define "sft.hyperpodSpec" -}}
{{- $hyperpod := .Values.hyperpod -}}
{{- $elastic := .Values.elastic -}}
{{- $run := dict
  "cleanPodPolicy" $hyperpod.cleanPodPolicy
  "jobMaxRetryCount" (int $hyperpod.retries)
  "ttlSecondsAfterFinished" (int $hyperpod.ttlSeconds)
  "restartPolicy" (dict
    "evalPeriodSeconds" (int $hyperpod.restart.evalPeriodSeconds)
    "numRestartBeforeFullJobRestart" (int $hyperpod.restart.processRestarts)
    "maxFullJobRestarts" (int $hyperpod.restart.fullRestarts)
    "scaleUpSnoozeTimeInSeconds" (int $hyperpod.restart.scaleUpSnoozeSeconds)) -}}
{{- with int $hyperpod.startupDeadlineSeconds -}}{{- $_ := set $run "startupDeadlineSeconds" . -}}{{- end -}}
{{- with int .Values.deadlineSeconds -}}{{- $_ := set $run "activeDeadlineSeconds" . -}}{{- end -}}
{{- with $hyperpod.logRules -}}{{- $_ := set $run "logMonitoringConfiguration" . -}}{{- end -}}
{{- $spec := dict
  "nprocPerNode" (include "lingoss.processes" (dict "ctx" .))
  "replicaSpecs" (include "sft.hyperpodReplicas" . | fromYamlArray)
  "runPolicy" $run -}}
{{- if $elastic.enabled -}}
{{- $range := include "sft.range" . | fromYaml -}}
{{- $_ := set $spec "elasticPolicy" (dict
  "minReplicas" (int $range.min)
  "maxReplicas" (int $range.max)
  "replicaDiscreteValues" (include "sft.sizes" (dict "ctx" . "from" $range.min "to" $range.max) | fromYamlArray)
  "scalingTimeoutInSeconds" (int $elastic.scalingSeconds)
  "gracefulShutdownTimeoutInSeconds" (int .Values.stopSeconds)
  "faultyScaleDownTimeoutInSeconds" (int $elastic.faultScaleDownSeconds)) -}}
{{- end -}}
{{- toYaml $spec -}}
{{- end -}}

{{- define "sft.hyperpodName" -}}
{{- include "lingoss.runOnceName" (dict "ctx" . "part" "sft" "spec" (include "sft.hyperpodSpec" .)) -}}
{{- end -}}
