{{/* Pods of components of the release, as peers: (dict "root" $ "components" …) */}}
{{- define "assay.peers" -}}
- podSelector:
    matchLabels:
      app.kubernetes.io/name: {{ .root.Chart.Name }}
      app.kubernetes.io/instance: {{ .root.Release.Name }}
    matchExpressions:
      - {key: app.kubernetes.io/component, operator: In, values: {{ toJson .components }}}
{{- end }}

{{/*
The network policy of a component: (dict "root" $ "component" … "ingress" YAML of its rules "egress" YAML of
its rules "isHook" whether it exists before the release)
*/}}
{{- define "assay.policy" -}}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  {{- include "assay.metadata" . | nindent 2 }}
  {{- if .isHook }}
  annotations: {{- include "assay.hook" -10 | nindent 4 }}
  {{- end }}
spec:
  podSelector:
    matchLabels: {{- include "assay.selector" . | nindent 6 }}
  policyTypes: [Ingress, Egress]
  {{- with .ingress }}
  ingress: {{- . | trim | nindent 4 }}
  {{- end }}
  {{- with .egress }}
  egress: {{- . | trim | nindent 4 }}
  {{- end }}
{{- end }}

{{/* The network policy of a task, which uses PostgreSQL only: (dict "root" $ "component" … "own" its values) */}}
{{- define "assay.taskPolicy" -}}
{{- $egress := list (include "assay.toDns" .root) (include "assay.toServer" (dict "root" .root "server" "postgresql" "port" 5432)) (include "assay.toMore" .) }}
{{- include "assay.policy" (merge (dict "egress" (join "\n" $egress)) .) }}
{{- end }}

{{/* Egress that values allow in addition: (dict "root" $ "own" values of the pods) */}}
{{- define "assay.toMore" -}}
{{- with concat .root.Values.pods.extraEgress .own.extraEgress }}
{{- toYaml . }}
{{- end }}
{{- end }}

{{- define "assay.toDns" -}}
{{- $ports := list }}
{{- range .Values.networkPolicy.dnsPorts }}
{{- $ports = concat $ports (list (dict "protocol" "UDP" "port" .) (dict "protocol" "TCP" "port" .)) }}
{{- end }}
{{- include "assay.to" (dict "to" .Values.networkPolicy.to.dns "ports" $ports) }}
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
{{- include "assay.to" (dict "to" .to "ports" (list (dict "protocol" "TCP" "port" (int .port)))) }}
{{- end }}

{{/* A rule of egress: (dict "to" peers, empty for anywhere, "ports" …) */}}
{{- define "assay.to" -}}
- ports: {{ toJson .ports }}
  {{- with .to }}
  to: {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}

{{/*
Egress to the receivers of webhooks: the Internet, without the networks that the programs refuse too, and
the networks that are listed
*/}}
{{- define "assay.toWebhooks" -}}
- to:
    - ipBlock:
        cidr: 0.0.0.0/0
        except:
          - 0.0.0.0/8
          - 10.0.0.0/8
          - 100.64.0.0/10
          - 127.0.0.0/8
          - 169.254.0.0/16
          - 172.16.0.0/12
          - 192.168.0.0/16
          - 198.18.0.0/15
          - 224.0.0.0/3
    - ipBlock:
        cidr: 2000::/3
    {{- range .Values.notification.webhookNetworks }}
    - ipBlock: {cidr: {{ contains "/" . | ternary . (printf "%s/%s" . (contains ":" . | ternary "128" "32")) | quote }}}
    {{- end }}
  ports:
    {{- range .Values.notification.webhookPorts }}
    - {protocol: TCP, port: {{ . }}}
    {{- else }}
    - {protocol: TCP}
    {{- end }}
{{- end }}
