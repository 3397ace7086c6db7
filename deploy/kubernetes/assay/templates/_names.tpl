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
{{- $own := (index .root.Values .program).image }}
{{- $all := .root.Values.image }}
{{- $repository := printf "%s/%s" $all.registry $own.repository }}
{{- include "assay.otherImage" (dict "repository" $repository "tag" ($all.tag | default .root.Chart.AppVersion) "digest" $own.digest) }}
{{- end }}

{{/* An image of others: (dict "repository" … "tag" … "digest" …) */}}
{{- define "assay.otherImage" -}}
{{- .digest | empty | ternary (printf "%s:%s" .repository .tag) (printf "%s@%s" .repository .digest) }}
{{- end }}

{{/* Metadata of an object: (dict "root" $ "component" …, "suffix" of its name, the component by default) */}}
{{- define "assay.metadata" -}}
name: {{ include "assay.fullname" .root }}-{{ .suffix | default .component }}
namespace: {{ .root.Release.Namespace }}
labels: {{- include "assay.labels" . | nindent 2 }}
{{- end }}

{{/*
Annotations of an object that exists before anything else changes, with its weight. It stays until the
next time: a Job keeps its log, and a migration that takes longer than Helm waits keeps what it needs.
*/}}
{{- define "assay.hook" -}}
helm.sh/hook: pre-install,pre-upgrade
helm.sh/hook-weight: {{ . | quote }}
helm.sh/hook-delete-policy: before-hook-creation
{{- end }}

{{/* The port of a URL */}}
{{- define "assay.portOf" -}}
{{- $url := urlParse . }}
{{- regexFind "[0-9]+$" (regexFind ":[0-9]+$" $url.host) | default (ternary 443 80 (eq $url.scheme "https")) }}
{{- end }}
