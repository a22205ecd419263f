{{- /* SPDX-License-Identifier: MIT-0 */ -}}

{{- /* Refuse a volume that cannot come about: each message names the flag. Input: the context of this chart. */ -}}
{{- define "storage.checks" -}}
{{- if eq .Values.kind "fsx-static" -}}
{{- range $key, $what := dict "volumeHandle" "the file system id, as fs-0123456789abcdef0" "dnsName" "its DNS name" "mountName" "its mount name" -}}
{{- if not (get $.Values.static $key) -}}
{{- fail (printf "storage.kind fsx-static needs storage.static.%s: --set storage.static.%s=… (%s)" $key $key $what) -}}
{{- end -}}
{{- end -}}
{{- else if eq .Values.kind "fsx-dynamic" -}}
{{- include "storage.dynamicChecks" . -}}
{{- end -}}
{{- end -}}

{{- define "storage.dynamicChecks" -}}
{{- $fsx := .Values.dynamic -}}
{{- if not $fsx.subnetId -}}
{{- fail "storage.kind fsx-dynamic needs a subnet: --set storage.dynamic.subnetId=subnet-…" -}}
{{- end -}}
{{- /* The driver splits an absent list into one empty id, which FSx refuses long after the install. */ -}}
{{- if not $fsx.securityGroupIds -}}
{{- fail "storage.kind fsx-dynamic needs a security group: --set 'storage.dynamic.securityGroupIds={sg-…}'" -}}
{{- end -}}
{{- if eq $fsx.storageType "HDD" -}}
{{- if ne $fsx.deploymentType "PERSISTENT_1" -}}
{{- fail (printf "storage.dynamic.storageType HDD exists for PERSISTENT_1 only, not %s: --set storage.dynamic.deploymentType=PERSISTENT_1" $fsx.deploymentType) -}}
{{- end -}}
{{- if not $fsx.driveCacheType -}}
{{- fail "storage.dynamic.storageType HDD needs a cache type: --set storage.dynamic.driveCacheType=NONE (or READ)" -}}
{{- end -}}
{{- end -}}
{{- include "storage.throughputCheck" $fsx -}}
{{- range $tag, $value := $fsx.extraTags -}}
{{- if regexMatch "[,=]" (printf "%s%s" $tag $value) -}}
{{- fail (printf "storage.dynamic.extraTags has %s: %s, but the driver reads one text of tags, as a=b,c=d: use no comma and no = in them" $tag $value) -}}
{{- end -}}
{{- end -}}
{{- if and (eq $fsx.metadataConfigurationMode "USER_PROVISIONED") (eq (toString $fsx.metadataIops) "") -}}
{{- fail "storage.dynamic.metadataConfigurationMode USER_PROVISIONED needs a number: --set storage.dynamic.metadataIops=1500" -}}
{{- end -}}
{{- if and $fsx.efaEnabled (or (ne $fsx.deploymentType "PERSISTENT_2") (not $fsx.metadataConfigurationMode)) -}}
{{- fail "storage.dynamic.efaEnabled needs PERSISTENT_2 and a metadata configuration: --set storage.dynamic.deploymentType=PERSISTENT_2,storage.dynamic.metadataConfigurationMode=AUTOMATIC" -}}
{{- end -}}
{{- $size := .Values.claim.size -}}
{{- $gib := trimSuffix "Gi" $size | int -}}
{{- if hasSuffix "Ti" $size -}}{{- $gib = mul 1024 (trimSuffix "Ti" $size | int) | int -}}{{- end -}}
{{- $sold := include "storage.soldGib" (dict "gib" $gib "fsx" $fsx) | int -}}
{{- if ne $gib $sold -}}
{{- fail (printf "storage.claim.size %s is not a size that FSx sells as %s: --set storage.claim.size=%dGi" $size (trimAll " " (printf "%s %s" $fsx.deploymentType $fsx.storageType)) $sold) -}}
{{- end -}}
{{- end -}}

{{- /* What FSx sells as PerUnitStorageThroughput of CreateFileSystemLustreConfiguration. Scratch types have none. Input: storage.dynamic. */ -}}
{{- define "storage.throughputCheck" -}}
{{- if hasPrefix "PERSISTENT" .deploymentType -}}
{{- $type := trim (printf "%s %s" .deploymentType .storageType) -}}
{{- $sold := list "125" "250" "500" "1000" -}}
{{- if eq $type "PERSISTENT_1 HDD" -}}{{- $sold = list "12" "40" -}}
{{- else if eq .deploymentType "PERSISTENT_1" -}}{{- $sold = list "50" "100" "200" -}}{{- end -}}
{{- $asked := include "lingoss.text" .perUnitStorageThroughput -}}
{{- if not (has $asked $sold) -}}
{{- fail (printf "storage.dynamic.perUnitStorageThroughput=%s is none that FSx sells as %s (%s): --set storage.dynamic.perUnitStorageThroughput=%s" $asked $type (join ", " $sold) (last $sold)) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /*
The size in GiB that the driver makes of a wished size; it rounds up silently, and the bill with it.
Source: RoundUpVolumeSize in pkg/util/util.go of aws-fsx-csi-driver. Input: gib, fsx (storage.dynamic).
*/ -}}
{{- define "storage.soldGib" -}}
{{- $unit := ternary 1200 2400 (lt .gib 2400) -}}
{{- if eq .fsx.storageType "HDD" -}}
{{- $unit = ternary 6000 1800 (eq (toString .fsx.perUnitStorageThroughput) "12") -}}
{{- else if eq .fsx.deploymentType "SCRATCH_1" -}}
{{- $unit = ternary 1200 3600 (lt .gib 3600) -}}
{{- end -}}
{{- mul $unit (div (add .gib $unit -1) $unit) -}}
{{- end -}}
