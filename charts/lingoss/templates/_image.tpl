{{- /* SPDX-License-Identifier: MIT-0 */ -}}

{{- /* registry/repository:tag@digest of an image of global.images. Input: ctx, image (trainer, openrlhf or toolbox). */ -}}
{{- define "lingoss.image" -}}
{{- $image := index .ctx.Values.global.images .image -}}
{{- with $image.registry -}}{{- printf "%s/" . -}}{{- end -}}
{{- $image.repository -}}
{{- with $image.tag | default (ternary "" .ctx.Chart.AppVersion (ne $image.digest "")) -}}{{- printf ":%s" . -}}{{- end -}}
{{- with $image.digest -}}{{- printf "@%s" . -}}{{- end -}}
{{- end -}}
