{{- define "weir.labels" -}}
app.kubernetes.io/part-of: weir
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* of an image's values, and the appVersion */}}
{{- define "weir.image" -}}
{{- $image := index . 0 -}}
{{- if $image.digest -}}
{{ $image.repository }}@{{ $image.digest }}
{{- else -}}
{{ $image.repository }}:{{ default (index . 1) $image.tag }}
{{- end -}}
{{- end -}}

{{/* namespaces whose endpoints are asked for with the pod's own token, as a list in JSON */}}
{{- define "weir.hostsNamespaces" -}}
{{- $found := .Values.control.policies.namespaces -}}
{{- range $cluster := .Values.control.clusters -}}
{{- with $cluster.kubernetes -}}
{{- if not (or .kubeconfig .inference_pool) -}}
{{- $found = append $found .namespace -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $found | uniq | sortAlpha | toJson -}}
{{- end -}}

{{/* those of InferencePools, of the same kind */}}
{{- define "weir.poolsNamespaces" -}}
{{- $policies := .Values.control.policies -}}
{{- $found := ternary $policies.namespaces list $policies.inferencePools -}}
{{- range $cluster := .Values.control.clusters -}}
{{- with $cluster.kubernetes -}}
{{- if and .inference_pool (not .kubeconfig) -}}
{{- $found = append $found .namespace -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $found | uniq | sortAlpha | toJson -}}
{{- end -}}

{{- define "weir.isOfSeveral" -}}
{{- if gt (int .Values.control.replicas) 1 }}true{{ end -}}
{{- end -}}

{{/* whether weir-control asks the API server */}}
{{- define "weir.hasToken" -}}
{{- if or (include "weir.isOfSeveral" .) (include "weir.hostsNamespaces" . | fromJsonArray) (include "weir.poolsNamespaces" . | fromJsonArray) }}true{{ end -}}
{{- end -}}

{{/* of pods; values may be older than it */}}
{{- define "weir.listenAddress" -}}
{{ default "0.0.0.0" .Values.listenAddress }}
{{- end -}}

{{/* weir-control.yaml */}}
{{- define "weir.config" -}}
{{- $xds := dict "listen" (printf "%s:18000" (include "weir.listenAddress" .)) -}}
{{- $replicas := dict "lease" (dict "namespace" .Release.Namespace "duration" .Values.control.lease.duration) -}}
{{- if .Values.control.tls.secretName -}}
{{- $place := "/etc/weir-tls" -}}
{{- $_ := set $xds "tls" (dict "certificate" (printf "%s/tls.crt" $place) "key" (printf "%s/tls.key" $place) "client_ca" (printf "%s/ca.crt" $place)) -}}
{{- $_ := set $replicas "certificate" $xds.tls.certificate -}}
{{- $_ := set $replicas "private_key" $xds.tls.key -}}
{{- $_ := set $replicas "ca" $xds.tls.client_ca -}}
{{- else -}}
{{- $_ := set $xds "plaintext" true -}}
{{- end -}}
{{- $config := deepCopy .Values.control.config -}}
{{- $_ := set $config "xds" $xds -}}
{{- $_ := set $config "admin" (dict "listen" (printf "%s:19000" (include "weir.listenAddress" .)) "plaintext" true) -}}
{{- with .Values.control.clusters -}}
{{- $_ := set $config "clusters" . -}}
{{- end -}}
{{- with .Values.control.policies.namespaces -}}
{{- $_ := set $config "policies" (dict "namespaces" . "controller_name" (printf "weir.dev/%s/weir-control" $.Release.Namespace)) -}}
{{- end -}}
{{- if include "weir.isOfSeveral" . -}}
{{- $_ := set $config "replicas" $replicas -}}
{{- end -}}
{{- toYaml $config -}}
{{- end -}}

{{/* what of weir-control.yaml is taken up by a new process alone: of another listener or lock the running one would
refuse the whole file */}}
{{- define "weir.bound" -}}
{{- $config := include "weir.config" . | fromYaml -}}
{{- $reports := pick (default dict $config.reports) "max_proxies" "max_waiting_bytes" -}}
{{- $bound := pick $config "xds" "admin" "replicas" "policies" "discovery" -}}
{{- $_ := set $bound "reports" $reports -}}
{{- $_ := set $bound "receipts" (pick (default dict $config.receipts) "file" "max_size" "keep") -}}
{{- toJson $bound -}}
{{- end -}}

{{/* weir-governor.yaml */}}
{{- define "weir.governorConfig" -}}
{{- $config := deepCopy .Values.governor.config -}}
{{- if not (or $config.policy $config.core_policy) -}}
{{- $_ := set $config "policy" (dict "schedutil" dict) -}}
{{- end -}}
{{- $_ := set $config "admin" (dict "listen" (printf "%s:9414" (include "weir.listenAddress" .)) "plaintext" true) -}}
{{- toYaml $config -}}
{{- end -}}
