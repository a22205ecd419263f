{{- /* SPDX-License-Identifier: MIT-0 */ -}}

{{- /* Name of the server's Deployment and Service. Input: the child's context. */ -}}
{{- define "inference.serviceName" -}}
{{- printf "%s-serve" (include "lingoss.fullname" .) -}}
{{- end -}}

{{- /* Port of the Service. Input: the child's context. */ -}}
{{- define "inference.servicePort" -}}
{{- int .Values.serve.port -}}
{{- end -}}

{{- /* GPUs of one server: as many as share a copy of the model, unless values say otherwise. Input: a context. */ -}}
{{- define "inference.serveGpus" -}}
{{- $layout := .Values.global.layout -}}
{{- $shared := .Values.serve.config.tensor_parallel | default 1 | int -}}
{{- $gpus := include "inference.gpus" (dict "ctx" . "key" "inference.serve" "workload" .Values.serve
  "default" (ternary $shared 0 (gt (int $layout.gpus) 0))) | int -}}
{{- if and $gpus (lt $gpus $shared) -}}
{{- fail (printf "inference.serve asks for %d GPUs, but inference.serve.config.tensor_parallel=%d: set both to the same number"
  $gpus $shared) -}}
{{- end -}}
{{- $replicas := int .Values.serve.replicas -}}
{{- /* Node by node: a server does not span two. */ -}}
{{- if $gpus -}}
{{- $each := div (int $layout.gpus) $gpus -}}
{{- $room := mul $each (int $layout.nodes) -}}
{{- if gt $replicas (int $room) -}}
{{- fail (printf "inference.serve.replicas=%d of %d GPUs each do not fit %s, which takes %d, %d on each node: ask for fewer, or raise global.layout.nodes"
  $replicas $gpus (include "lingoss.layoutName" .) $room $each) -}}
{{- end -}}
{{- end -}}
{{- $gpus -}}
{{- end -}}

{{- /* One of the server's probes: vLLM answers /health, without a key, once the model is loaded. Input: a probe's values. */ -}}
{{- define "inference.probe" -}}
httpGet:
  path: /health
  port: http
periodSeconds: {{ int .periodSeconds }}
failureThreshold: {{ int .failureThreshold }}
timeoutSeconds: 5
{{- end -}}

{{- /* Seconds in which a server must be up: its startup probe's, and a quarter of an hour for the image. Input: the child's context. */ -}}
{{- define "inference.startSeconds" -}}
{{- $probe := .Values.serve.startupProbe -}}
{{- add 900 (mul (int $probe.periodSeconds) (int $probe.failureThreshold)) -}}
{{- end -}}

{{- /* The same in minutes, rounded up. Input: the child's context. */ -}}
{{- define "inference.startMinutes" -}}
{{- div (add (include "inference.startSeconds" .) 59) 60 -}}
{{- end -}}

{{- /* Pod template of the server. Input: the child's context. */ -}}
{{- define "inference.servePod" -}}
{{- $serve := .Values.serve -}}
{{- $gpus := include "inference.serveGpus" . | int -}}
{{- $text := include "inference.configText" . -}}
{{- $config := include "lingoss.configName" (dict "ctx" . "stage" "serve" "text" $text) -}}
{{- $env := list -}}
{{- with $serve.apiKey.secretName -}}
{{- $env = append $env (dict "name" "VLLM_API_KEY"
  "valueFrom" (dict "secretKeyRef" (dict "name" . "key" $serve.apiKey.key))) -}}
{{- end -}}
{{- $rest := dict
  "ports" (list (dict "name" "http" "containerPort" (int $serve.port)))
  "startupProbe" (include "inference.probe" $serve.startupProbe | fromYaml)
  "readinessProbe" (include "inference.probe" $serve.readinessProbe | fromYaml)
  "livenessProbe" (include "inference.probe" $serve.livenessProbe | fromYaml) -}}
{{- $container := include "lingoss.container" (dict "ctx" . "workload" $serve "name" "serve" "image" "trainer"
  "command" (list "lingoss" "serve" "--config" "/etc/lingoss/serve.yaml")
  "resources" (include "inference.resources" (dict "ctx" . "gpus" $gpus "override" $serve.resources) | fromYaml)
  "access" "read" "gpus" $gpus "config" $config "env" $env "rest" $rest) | fromYaml -}}
{{- include "lingoss.podTemplate" (dict "ctx" . "part" "serve" "workload" $serve "gpus" $gpus "config" $config
  "containers" (list $container)) -}}
{{- end -}}
