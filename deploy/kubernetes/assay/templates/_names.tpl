{{/*
The programs: the port of each, and the services it calls by gRPC. Variables, Services and network
policies are derived from this.
*/}}
{{- define "assay.programs" -}}
gateway: {port: 8080, calls: [identity, catalog, execution, notification]}
identity: {port: 50051, calls: []}
catalog: {port: 50052, calls: [identity]}
execution: {port: 50053, calls: [identity, catalog]}
notification: {port: 50054, calls: [identity]}
{{- end }}

{{/*
The prefix of all names: the name of the release, which is unique in its namespace. A long name is cut,
and a hash keeps it unique; the longest suffix has 29 characters.
*/}}
{{- define "assay.fullname" -}}
{{- $name := .Values.fullnameOverride | default .Release.Name }}
{{- if gt (len $name) 34 }}
{{- $name = printf "%s-%s" ($name | trunc 25 | trimSuffix "-") (sha256sum $name | trunc 8) }}
{{- end }}
{{- $name }}
{{- end }}

{{/* Selector labels of a component's pods: (dict "root" $ "component" …) */}}
{{- define "assay.selector" -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "assay.labels" -}}
{{ include "assay.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- end }}

{{/* The image of a program: (dict "root" $ "program" …) */}}
{{- define "assay.image" -}}
{{- $image := (index .root.Values .program).image }}
{{- $name := printf "%s/%s" .root.Values.image.registry $image.repository }}
{{- if $image.digest }}
{{- printf "%s@%s" $name $image.digest }}
{{- else }}
{{- printf "%s:%s" $name (.root.Values.image.tag | default .root.Chart.AppVersion) }}
{{- end }}
{{- end }}

{{/* The port of a URL */}}
{{- define "assay.portOf" -}}
{{- $url := urlParse . }}
{{- regexFind "[0-9]+$" (regexFind ":[0-9]+$" $url.host) | default (ternary 443 80 (eq $url.scheme "https")) }}
{{- end }}
