{{- define "memcached.name" -}}
{{ printf "%s-memcached" .Release.Name | trunc 63 | trimSuffix "-" }}
{{- end -}}

{{- define "memcached.labels" -}}
app.kubernetes.io/name: memcached
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}
