{{- /* SPDX-License-Identifier: MIT-0 */ -}}

{{- /*
Resources of a pod that stays on one node: its share of the node is its share of the node's GPUs, and the whole node
where it has none of them. No EFA device: nothing here leaves the node. Input: ctx, gpus, override.
*/ -}}
{{- define "inference.resources" -}}
{{- $layout := .ctx.Values.global.layout -}}
{{- $part := .gpus | default 1 | int -}}
{{- $whole := ternary ($layout.gpus | default 1 | int) 1 (gt (int .gpus) 0) -}}
{{- $cpu := max 1 (div (mul (int $layout.cpu) $part) $whole) -}}
{{- $memory := max 1 (div (mul (int $layout.memoryGi) $part) $whole) -}}
{{- include "lingoss.resources" (dict "gpus" .gpus "cpu" $cpu "memory" (printf "%dGi" $memory) "override" .override) -}}
{{- end -}}

{{- /*
GPUs of a pod: what its `resources` limit it to, else its `gpus`, else the default; never more than a node has.
Input: ctx, key (of the workload, for the message), workload, default.
*/ -}}
{{- define "inference.gpus" -}}
{{- $layout := .ctx.Values.global.layout -}}
{{- $there := int $layout.gpus -}}
{{- $gpus := ternary .default .workload.gpus (kindIs "invalid" .workload.gpus) | int -}}
{{- $limits := (.workload.resources | default dict).limits | default dict -}}
{{- if hasKey $limits "nvidia.com/gpu" -}}{{- $gpus = get $limits "nvidia.com/gpu" | int -}}{{- end -}}
{{- if gt $gpus $there -}}
{{- fail (printf "%s asks for %d GPUs, but a node of %s has %d: set %s.gpus to %d or less, or use another layout"
  .key $gpus (include "lingoss.layoutName" .ctx) $there .key $there) -}}
{{- end -}}
{{- $gpus -}}
{{- end -}}
