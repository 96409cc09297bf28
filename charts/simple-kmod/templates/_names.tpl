{{- /* The image stream, the account with its rights, and the DaemonSet share one name. */ -}}
{{- define "simple-kmod.driverContainer" -}}
{{ .Values.specialresource.metadata.name }}-{{ .Values.groupName.driverContainer }}
{{- end }}

{{- define "simple-kmod.driverBuild" -}}
{{ .Values.specialresource.metadata.name }}-{{ .Values.groupName.driverBuild }}
{{- end }}
