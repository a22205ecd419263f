{{- /* SPDX-License-Identifier: MIT-0 */ -}}
{{- /*
Training of one stage on one or several nodes by plain Kubernetes: an Indexed Job whose pods find each other by the stable
name of pod 0. Shared by sft (runtime job) and grpo (engine trl).

Input of all templates here, one mapping:
  ctx                    the child's context; its values are the workload
  stage                  sft or grpo: part, command and name of the config file
  nodes                  pods that train
  server                 true: one pod more, which serves vLLM to the others
  text                   the config file
*/ -}}

{{- /* Processes of a pod. Input: ctx. */ -}}
{{- define "lingoss.processes" -}}
{{- $node := include "lingoss.node" (dict "ctx" .ctx "workload" .ctx.Values) | fromYaml -}}
{{- .ctx.Values.processesPerNode | default $node.gpus | default 1 | int -}}
{{- end -}}

{{- /* Service that gives the pods their names. */ -}}
{{- define "lingoss.peersName" -}}
{{- printf "%s-%s" (include "lingoss.fullname" .ctx) .stage -}}
{{- end -}}

{{- /* What a pod runs: a list in YAML. Exec form or exec in the shell, so that the process gets SIGTERM itself. */ -}}
{{- define "lingoss.distributedCommand" -}}
{{- $values := .ctx.Values -}}
{{- $nodes := int .nodes -}}
{{- $processes := include "lingoss.processes" . | int -}}
{{- $train := list .stage "--config" (printf "/etc/lingoss/%s.yaml" .stage) -}}
{{- $command := prepend $train "lingoss" -}}
{{- /* torchrun, but with all of stopSeconds for the ranks to save in. */ -}}
{{- $torchrun := list "python" "-m" "lingoss.torchrun" (printf "--nproc-per-node=%d" $processes) (printf "--max-restarts=%d" (int $values.maxRestarts)) -}}
{{- if gt $nodes 1 -}}
{{- /* Pod 0 is told that it hosts the store: its own name may not resolve yet when it asks. */ -}}
{{- $command = concat $torchrun (list
  (printf "--nnodes=%d" $nodes)
  "--rdzv-backend=c10d"
  (printf "--rdzv-endpoint=$LINGOSS_JOB-0.%s:29400" (include "lingoss.peersName" .))
  "--rdzv-id=$LINGOSS_JOB"
  (printf "--rdzv-conf=is_host=$host,join_timeout=%d,read_timeout=%d" (int $values.startSeconds) (int $values.startSeconds))
  "-m" "lingoss") $train -}}
{{- else if gt $processes 1 -}}
{{- $command = concat $torchrun (list "--standalone" "-m" "lingoss") $train -}}
{{- end -}}
{{- if or .server (gt $nodes 1) -}}
{{- $script := list -}}
{{- if .server -}}
{{- $script = append $script (printf "if [ \"$JOB_COMPLETION_INDEX\" -ge %d ]; then exec lingoss %s --part rollout; fi" $nodes (join " " $train)) -}}
{{- end -}}
{{- if gt $nodes 1 -}}
{{- $script = append $script "if [ \"$JOB_COMPLETION_INDEX\" = 0 ]; then host=true; else host=false; fi" -}}
{{- end -}}
{{- $script = append $script (printf "exec %s" (join " " $command)) -}}
{{- $command = list "/bin/sh" "-c" (join "\n" $script) -}}
{{- end -}}
{{- toYaml $command -}}
{{- end -}}

{{- /* The Job's spec as YAML. */ -}}
{{- define "lingoss.distributedSpec" -}}
{{- $values := .ctx.Values -}}
{{- $nodes := int .nodes -}}
{{- $pods := add $nodes (ternary 1 0 .server) | int -}}
{{- $node := include "lingoss.node" (dict "ctx" .ctx "workload" $values) | fromYaml -}}
{{- $config := include "lingoss.configName" . -}}
{{- $common := dict "ctx" .ctx "workload" $values "image" "trainer" "config" $config "gpus" $node.gpus "efa" $node.efa -}}
{{- $env := list -}}
{{- if gt $nodes 1 -}}
{{- /* Not written into the command: the Job's name is a hash of this very spec. */ -}}
{{- $env = list (dict "name" "LINGOSS_JOB" "valueFrom" (dict "fieldRef" (dict "fieldPath" "metadata.labels['batch.kubernetes.io/job-name']"))) -}}
{{- end -}}
{{- $command := include "lingoss.distributedCommand" . | fromYamlArray -}}
{{- $init := list -}}
{{- if ne (first $command) "lingoss" -}}
{{- /* torchrun exits with 1 whatever a process's status was. So what the trainer refuses (2: no retry mends it) is told
before, by a plan that loads no model. */ -}}
{{- $plain := dict "limits" (omit $node.resources.limits "nvidia.com/gpu" "vpc.amazonaws.com/efa") "requests" (omit $node.resources.requests "nvidia.com/gpu" "vpc.amazonaws.com/efa") -}}
{{- $plan := list "lingoss" .stage "--config" (printf "/etc/lingoss/%s.yaml" .stage) "--dry-run" -}}
{{- $init = append $init (include "lingoss.container" (mergeOverwrite (dict) $common (dict "name" "plan" "command" $plan "resources" $plain "gpus" 0 "efa" 0)) | fromYaml) -}}
{{- end -}}
{{- $rest := dict "restartPolicy" "Never" -}}
{{- if ne (first $command) "lingoss" -}}
{{- /* While they wait for other nodes, torchrun and hyperpodrun do not handle SIGTERM, which the kernel keeps from the
first process of a namespace: the pod would hold its GPUs for the whole grace period. */ -}}
{{- $_ := set $rest "shareProcessNamespace" true -}}
{{- $env = append $env (dict "name" "LINGOSS_STOP_SECONDS" "value" (toString $values.stopSeconds)) -}}
{{- end -}}
{{- if gt $nodes 1 -}}{{- $_ := set $rest "subdomain" (include "lingoss.peersName" .) -}}{{- end -}}
{{- $main := include "lingoss.container" (mergeOverwrite (dict) $common (dict "name" .stage "command" $command "resources" $node.resources "env" $env)) | fromYaml -}}
{{- $_ := set $rest "terminationGracePeriodSeconds" (include "lingoss.gracePeriod" .ctx | int) -}}
{{- $template := include "lingoss.podTemplate" (dict "ctx" .ctx "part" .stage "workload" $values "containers" (list $main)
  "initContainers" $init "gpus" $node.gpus "config" $config "rest" $rest) | fromYaml -}}
{{- /* A fault takes down the pods of all nodes, and each counts. */ -}}
{{- $spec := include "lingoss.jobPolicy" (dict "backoffLimit" (mul $values.retries $pods) "deadlineSeconds" $values.deadlineSeconds) | fromYaml -}}
{{- $_ := set $spec "completionMode" "Indexed" -}}
{{- $_ := set $spec "completions" $pods -}}
{{- $_ := set $spec "parallelism" $pods -}}
{{- if .server -}}
{{- /* The server never ends by itself: when the training pods have succeeded, the Job is done and its GPUs are freed. */ -}}
{{- $_ := set $spec "successPolicy" (dict "rules" (list (dict "succeededIndexes" (ternary "0" (printf "0-%d" (sub $nodes 1)) (eq $nodes 1))))) -}}
{{- end -}}
{{- $_ := set $spec "template" $template -}}
{{- toYaml $spec -}}
{{- end -}}

{{- /* Name of the Job. */ -}}
{{- define "lingoss.distributedName" -}}
{{- include "lingoss.queuedName" (dict "ctx" .ctx "part" .stage "spec" (include "lingoss.distributedSpec" .)) -}}
{{- end -}}

{{- /* The Job, and for several pods the Service of their names. */ -}}
{{- define "lingoss.distributedJob" -}}
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ include "lingoss.distributedName" . }}
  namespace: {{ .ctx.Release.Namespace }}
  labels:
    {{- include "lingoss.labels" (dict "ctx" .ctx "part" .stage) | nindent 4 }}
    {{- with include "lingoss.queueLabels" .ctx }}{{ . | trim | nindent 4 }}{{ end }}
spec:
  {{- include "lingoss.distributedSpec" . | nindent 2 }}
{{- if gt (int .nodes) 1 }}
---
apiVersion: v1
kind: Service
metadata:
  name: {{ include "lingoss.peersName" . }}
  namespace: {{ .ctx.Release.Namespace }}
  labels:
    {{- include "lingoss.labels" (dict "ctx" .ctx "part" .stage) | nindent 4 }}
spec:
  clusterIP: None
  # Pods look for each other before they are ready.
  publishNotReadyAddresses: true
  selector:
    {{- include "lingoss.selectorLabels" (dict "ctx" .ctx "part" .stage) | nindent 4 }}
  ports:
    - name: rendezvous
      port: 29400
{{- end }}
{{- end -}}

{{- /* Seconds between SIGTERM and SIGKILL: what the values say, or enough for a checkpoint. Input: the child's context. */ -}}
{{- define "lingoss.gracePeriod" -}}
{{- $knobs := include "lingoss.podKnobs" (dict "ctx" . "workload" .Values) | fromYaml -}}
{{- $knobs.terminationGracePeriodSeconds | default (add .Values.stopSeconds 60) | int -}}
{{- end -}}
