{{/* The main container of a program: (dict "root" $ "program" … "files" … "settings" …) */}}
{{- define "assay.programContainer" -}}
{{- $own := index .root.Values .program }}
{{- $this := index (include "assay.programs" .root | fromYaml) .program }}
name: {{ .program }}
image: {{ include "assay.image" . }}
ports:
  - {name: {{ eq .program "gateway" | ternary "http" "grpc" }}, containerPort: {{ $this.port }}}
  - {name: admin, containerPort: 9090}
env:
  {{- range $name, $value := .settings }}
  - {name: {{ $name }}, value: {{ $value | quote }}}
  {{- end }}
# Any response counts as alive; without its database a program is alive but not ready.
startupProbe:
  httpGet: {path: /livez, port: admin}
  periodSeconds: 1
  failureThreshold: 30
livenessProbe:
  httpGet: {path: /livez, port: admin}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 3
readinessProbe:
  httpGet: {path: /readyz, port: admin}
  periodSeconds: 2
  timeoutSeconds: 2
  failureThreshold: 2
lifecycle:
  preStop:
    sleep: {seconds: {{ $own.preStopSeconds }}}
resources: {{- toYaml $own.resources | nindent 2 }}
volumeMounts:
  {{- if eq (include "assay.keepsFiles" .) "true" }}
  - {name: artifacts, mountPath: /var/lib/assay/artifacts}
  {{- end }}
  {{- if hasKey .settings "ASSAY_MAIL_DIR" }}
  - {name: tmp, mountPath: /tmp}
  {{- end }}
{{- end }}

{{/* Its volumes, except for secrets and certificates */}}
{{- define "assay.programVolumes" -}}
{{- if eq (include "assay.keepsFiles" .) "true" }}
- name: artifacts
  persistentVolumeClaim:
    {{- $volume := .root.Values.artifacts.volume }}
    {{- if eq .program "catalog" }}
    claimName: {{ $volume.existingFilesClaim | default (printf "%s-files" (include "assay.fullname" .root)) }}
    {{- else }}
    claimName: {{ $volume.existingClaim | default (printf "%s-artifacts" (include "assay.fullname" .root)) }}
    {{- end }}
{{- end }}
{{- if hasKey .settings "ASSAY_MAIL_DIR" }}
- name: tmp
  emptyDir: {sizeLimit: 64Mi}
{{- end }}
{{- end }}

{{/* Whether a program keeps files or artifacts in a volume: "true" or "false" */}}
{{- define "assay.keepsFiles" -}}
{{- and (has .program (list "catalog" "execution")) (eq .root.Values.artifacts.store "volume") }}
{{- end }}
