{{/*
The metadata and the spec of a pod:

root, component
kind         program, task, or server. Values add variables, volumes and containers to programs, the same
             except containers to tasks, which would not end, and nothing to servers.
own          values of these pods, such as podLabels
container    YAML of the main container, without the fields that all containers have
files        the secret files of the main container, see _secrets.tpl
volumes      YAML of a list of further volumes
spec         YAML of further fields of the spec
annotations  further annotations
next         containers that run once the main container has ended
account      component whose service account is used; the pod's own by default
user         user and group, unless the cluster assigns them; pods.user by default
*/}}
{{- define "assay.pod" -}}
{{- $values := .root.Values }}
{{- $own := .own | default dict }}
{{- $extra := include "assay.extras" . | fromYaml }}
{{- $certificates := include "assay.trusted" . | fromYaml }}
{{- $secrets := include "assay.secretVolume" (.files | default dict) | fromYaml }}
{{- $main := include "assay.mainContainer" (dict "pod" . "extra" $extra "certificates" $certificates "secrets" $secrets) | fromYaml }}
{{- $first := concat $extra.initContainers (ternary (list $main) list (not (empty .next))) }}
{{- $containers := concat (.next | default (list $main)) $extra.extraContainers }}
{{- $volumes := concat (fromYamlArray (.volumes | default "[]")) $extra.extraVolumes (compact (list $secrets $certificates)) }}
metadata:
  labels:
    {{- include "assay.selector" . | nindent 4 }}
    {{- with merge (deepCopy ($own.podLabels | default dict)) $values.pods.labels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with merge (deepCopy ($own.podAnnotations | default dict)) $values.pods.annotations (.annotations | default dict) }}
  annotations: {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  serviceAccountName: {{ include "assay.fullname" .root }}-{{ .account | default .component }}
  {{- include "assay.placement" . | trim | nindent 2 }}
  {{- with .spec }}
  {{- . | nindent 2 }}
  {{- end }}
  {{- with $first }}
  initContainers: {{- toYaml . | nindent 4 }}
  {{- end }}
  containers: {{- toYaml $containers | nindent 4 }}
  {{- with $volumes }}
  volumes: {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}

{{/* The variables, volumes and containers that values add to a pod, by their names */}}
{{- define "assay.extras" -}}
{{- $extras := dict }}
{{- range $name := list "extraEnv" "extraVolumes" "extraVolumeMounts" "initContainers" "extraContainers" }}
{{- $isAdded := or (eq $.kind "program") (and (eq $.kind "task") (ne $name "extraContainers")) }}
{{- $both := concat (index $.root.Values.pods $name) (index ($.own | default dict) $name | default list) }}
{{- $_ := set $extras $name (ternary $both list $isAdded | default list) }}
{{- end }}
{{- toYaml $extras }}
{{- end }}

{{/* The main container of a pod, completed */}}
{{- define "assay.mainContainer" -}}
{{- $given := .pod.container | fromYaml }}
{{- $main := omit $given "env" "volumeMounts" }}
{{- $env := concat ($given.env | default list) .extra.extraEnv }}
{{- $mounts := concat ($given.volumeMounts | default list) .extra.extraVolumeMounts }}
{{- if .secrets }}
{{- $mounts = append $mounts (dict "name" "secrets" "mountPath" "/run/secrets/assay" "readOnly" true) }}
{{- end }}
{{- if .certificates }}
{{- $mounts = append $mounts (dict "name" "certificates" "mountPath" "/run/certificates" "readOnly" true) }}
{{- $env = prepend $env (dict "name" "SSL_CERT_DIR" "value" "/etc/ssl/certs:/run/certificates") }}
{{- end }}
{{- $_ := set $main "imagePullPolicy" .pod.root.Values.image.pullPolicy }}
{{- $_ := set $main "securityContext" (include "assay.containerSecurity" . | fromYaml) }}
{{- with include "assay.lastOfEachName" $env | fromYamlArray }}
{{- $_ := set $main "env" . }}
{{- end }}
{{- with $mounts }}
{{- $_ := set $main "volumeMounts" . }}
{{- end }}
{{- toYaml $main }}
{{- end }}

{{/* Variables without those that a later one of the same name replaces */}}
{{- define "assay.lastOfEachName" -}}
{{- $last := dict }}
{{- range . }}
{{- $_ := set $last .name . }}
{{- end }}
{{- $found := list }}
{{- range . }}
{{- if hasKey $last .name }}
{{- $found = append $found (index $last .name) }}
{{- $_ := unset $last .name }}
{{- end }}
{{- end }}
{{- toYaml $found }}
{{- end }}

{{/* The volume with certificates of authorities that a program trusts, if there are any */}}
{{- define "assay.trusted" -}}
{{- with .root.Values.trustedCertificates }}
{{- if and (eq $.kind "program") (or .configMapName .secretName) }}
name: certificates
{{- if .configMapName }}
configMap:
  name: {{ .configMapName }}
{{- else }}
secret:
  secretName: {{ .secretName }}
{{- end }}
  items:
    - {key: {{ .key | quote }}, path: ca.crt}
{{- end }}
{{- end }}
{{- end }}

{{- define "assay.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{/* Security and placement of a pod, without any privileges */}}
{{- define "assay.placement" -}}
{{- $pods := .root.Values.pods }}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  {{- if $pods.user }}
  {{- $user := int64 (.user | default $pods.user) }}
  runAsUser: {{ $user }}
  runAsGroup: {{ $user }}
  fsGroup: {{ $user }}
  {{- end }}
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets: {{ toJson . }}
{{- end }}
{{- with $pods.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with $pods.runtimeClassName }}
runtimeClassName: {{ . }}
{{- end }}
{{- with $pods.nodeSelector }}
nodeSelector: {{ toJson . }}
{{- end }}
{{- with $pods.tolerations }}
tolerations: {{ toJson . }}
{{- end }}
{{- with $pods.dnsConfig }}
dnsConfig: {{ toJson . }}
{{- end }}
{{- with (.own | default dict).affinity }}
affinity: {{ toJson . }}
{{- end }}
{{- end }}

{{/* Spreads the pods of a program over zones and nodes, if there are several */}}
{{- define "assay.spread" -}}
{{- $spread := .root.Values.pods.spread }}
topologySpreadConstraints:
  {{- range $key, $rule := dict "topology.kubernetes.io/zone" $spread.zones "kubernetes.io/hostname" $spread.nodes }}
  - maxSkew: 1
    topologyKey: {{ $key }}
    whenUnsatisfiable: {{ $rule }}
    labelSelector:
      matchLabels: {{- include "assay.selector" $ | nindent 8 }}
    matchLabelKeys: [pod-template-hash]
  {{- end }}
{{- end }}
