{{/*
SPDX-FileCopyrightText: The veo-exporter authors
SPDX-License-Identifier: Apache-2.0

Every value may be missing: `helm upgrade --reuse-values` renders new templates with an older
release's values. Hence (.Values.section).key, which is nothing where there is no section.
*/}}

{{- define "veo-exporter.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* 63 characters, since it is a label's value and a Service's name too. */}}
{{- define "veo-exporter.fullname" -}}
{{- $name := include "veo-exporter.name" . -}}
{{- $full := contains $name .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name $name) -}}
{{- .Values.fullnameOverride | default $full | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "veo-exporter.selectorLabels" -}}
app.kubernetes.io/name: {{ include "veo-exporter.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "veo-exporter.labels" -}}
{{ include "veo-exporter.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end -}}

{{- define "veo-exporter.serviceAccountName" -}}
{{- $create := dig "create" true (.Values.serviceAccount | default dict) -}}
{{- (.Values.serviceAccount).name | default (ternary (include "veo-exporter.fullname" .) "default" $create) -}}
{{- end -}}

{{- define "veo-exporter.image" -}}
{{- $image := .Values.image | default dict -}}
{{- $repository := $image.repository | default "veo-exporter" -}}
{{- if $image.digest -}}
{{ $repository }}@{{ $image.digest }}
{{- else -}}
{{ $repository }}:{{ $image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- define "veo-exporter.config" -}}
{{- toYaml (.Values.config | default dict) -}}
{{- end -}}

{{/* The port to listen on, from the one place where it is configured. */}}
{{- define "veo-exporter.port" -}}
{{- $address := ((.Values.config).web).listen_address | default ":9420" -}}
{{- if regexMatch "^(localhost|127\\..*|\\[::1\\]):" $address -}}
{{- fail (printf "config.web.listen_address is %s: Prometheus and the kubelet come from outside the pod; write :9420" $address) -}}
{{- end -}}
{{- $port := regexFind "[0-9]+$" $address -}}
{{- if not (int $port) -}}
{{- fail (printf "config.web.listen_address is %q: name a port, such as :9420" $address) -}}
{{- end -}}
{{- $port -}}
{{- end -}}

{{- define "veo-exporter.sysfsRoot" -}}
{{- $root := ((.Values.config).gpu).sysfs_root | default "/sys" -}}
{{- if and (not (dig "hostSysfs" true .Values.AsMap)) (ne $root "/sys") -}}
{{- fail (printf "hostSysfs is false, so nothing is mounted at config.gpu.sysfs_root (%s): set that to /sys" $root) -}}
{{- end -}}
{{- $root -}}
{{- end -}}

{{/* The folder of the kubelet's socket in the container, from the one place where the socket is configured. */}}
{{- define "veo-exporter.kubeletFolder" -}}
{{- ((.Values.config).kubernetes).kubelet_socket | default "/var/lib/kubelet/pod-resources/kubelet.sock" | dir -}}
{{- end -}}

{{- define "veo-exporter.deviceAccess" -}}
{{- .Values.deviceAccess | default "runtimeClass" -}}
{{- end -}}

{{/* Seconds in a duration as Prometheus writes it, such as 1m30s. */}}
{{- define "veo-exporter.seconds" -}}
{{- $sizes := dict "s" 1 "m" 60 "h" 3600 "d" 86400 "w" 604800 "y" 31536000 -}}
{{- $total := 0 -}}
{{- range regexFindAll "[0-9]+[smhdwy]" . -1 -}}
{{- $total = add $total (mul (regexFind "[0-9]+" . | atoi) (get $sizes (regexFind "[a-z]" .))) -}}
{{- end -}}
{{- $total -}}
{{- end -}}
