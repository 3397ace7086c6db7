{{/* Pods of components of the release, as peers: (dict "root" $ "components" …) */}}
{{- define "assay.peers" -}}
- podSelector:
    matchLabels:
      app.kubernetes.io/name: {{ .root.Chart.Name }}
      app.kubernetes.io/instance: {{ .root.Release.Name }}
    matchExpressions:
      - {key: app.kubernetes.io/component, operator: In, values: {{ toJson .components }}}
{{- end }}

{{- define "assay.toDns" -}}
{{- with .Values.networkPolicy.to.dns -}}
- to: {{- toYaml . | nindent 4 }}
  ports: [{protocol: UDP, port: 53}, {protocol: TCP, port: 53}]
{{- else -}}
- ports: [{protocol: UDP, port: 53}, {protocol: TCP, port: 53}]
{{- end }}
{{- end }}

{{/* Egress to PostgreSQL or NATS, bundled or not: (dict "root" $ "server" … "port" port of the bundled one) */}}
{{- define "assay.toServer" -}}
{{- if (index .root.Values .server).bundled -}}
- to: {{- include "assay.peers" (dict "root" .root "components" (list .server)) | nindent 4 }}
  ports: [{protocol: TCP, port: {{ .port }}}]
{{- else -}}
{{- $port := ternary .root.Values.nats.port .root.Values.databases.port (eq .server "nats") -}}
{{- include "assay.toOther" (dict "to" (index .root.Values.networkPolicy.to .server) "port" $port) }}
{{- end }}
{{- end }}

{{/* Egress to a server outside the release: (dict "to" peers, empty for anywhere, "port" …) */}}
{{- define "assay.toOther" -}}
{{- with .to -}}
- to: {{- toYaml . | nindent 4 }}
  ports: [{protocol: TCP, port: {{ $.port }}}]
{{- else -}}
- ports: [{protocol: TCP, port: {{ .port }}}]
{{- end }}
{{- end }}
