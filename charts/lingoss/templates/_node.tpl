{{- /* SPDX-License-Identifier: MIT-0 */ -}}
{{- /* What a pod may take of a node of the layout. */ -}}

{{- /*
The share of a node that a workload's pod takes: all of it, and what `resources` of the values say wins key by key. EFA
devices serve GPUs, so a pod without GPUs gets none. Input: ctx, workload, and cpu and memoryGi where less than the node's
is meant. Returns a mapping as YAML: gpus, efa (counts) and resources.
*/ -}}
{{- define "lingoss.node" -}}
{{- $layout := .ctx.Values.global.layout -}}
{{- $override := .workload.resources | default dict -}}
{{- $limits := $override.limits | default dict -}}
{{- $gpus := int $layout.gpus -}}
{{- if hasKey $limits "nvidia.com/gpu" -}}{{- $gpus = int (get $limits "nvidia.com/gpu") -}}{{- end -}}
{{- $efa := ternary (int $layout.efa) 0 (gt $gpus 0) -}}
{{- if hasKey $limits "vpc.amazonaws.com/efa" -}}{{- $efa = int (get $limits "vpc.amazonaws.com/efa") -}}{{- end -}}
{{- $resources := include "lingoss.resources" (dict
  "gpus" $gpus "efa" $efa
  "cpu" (ternary .cpu $layout.cpu (hasKey . "cpu"))
  "memory" (printf "%vGi" (ternary .memoryGi $layout.memoryGi (hasKey . "memoryGi")))
  "override" $override) | fromYaml -}}
{{- toYaml (dict "gpus" $gpus "efa" $efa "resources" $resources) -}}
{{- end -}}

{{- /* A CPU quantity as thousandths of a CPU: 500m, 2, 1.5. */ -}}
{{- define "lingoss.milliCpu" -}}
{{- $text := toString . -}}
{{- if hasSuffix "m" $text -}}{{- trimSuffix "m" $text | int -}}
{{- else -}}{{- mulf (float64 $text) 1000 | ceil | int -}}{{- end -}}
{{- end -}}

{{- /* A memory quantity as MiB, rounded up: 512Mi, 64Gi, 2G, 1073741824. */ -}}
{{- define "lingoss.mebibytes" -}}
{{- $text := toString . -}}
{{- $unit := regexFind "[A-Za-z]*$" $text -}}
{{- $bytes := dict "" 1.0 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12
  "Ki" 1024.0 "Mi" 1048576.0 "Gi" 1073741824.0 "Ti" 1099511627776.0 -}}
{{- if not (hasKey $bytes $unit) -}}{{- fail (printf "memory %s: write it with Mi, Gi or Ti, for example 64Gi" $text) -}}{{- end -}}
{{- ceil (divf (mulf (float64 (trimSuffix $unit $text)) (get $bytes $unit)) 1048576.0) | int -}}
{{- end -}}
