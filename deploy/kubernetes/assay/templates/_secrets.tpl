{{/*
The files of a program that hold secrets: from their names in /run/secrets/assay to where they are, as
JSON. What no value refers to is in a Secret that the chart makes (secrets.yaml).
(dict "root" $ "program" …)
*/}}
{{- define "assay.secretFiles" -}}
{{- $values := .root.Values }}
{{- $own := printf "%s-%s" (include "assay.fullname" .root) .program }}
{{- $files := dict }}
{{- $made := dict }}
{{- $nats := index $values.nats.urls .program }}
{{- if $values.nats.bundled }}
{{- $_ := set $made "nats-url" true }}
{{- else if $nats.secretName }}
{{- $_ := set $files "nats-url" $nats }}
{{- end }}
{{- $_ := set $files "nats-credentials" (index $values.nats.credentials .program) }}
{{- $_ := set $files "nats-ca.crt" $values.nats.ca }}
{{- if $values.tls.enabled }}
{{- $certificate := include "assay.certificate" . }}
{{- range $file := list "tls.crt" "tls.key" "ca.crt" }}
{{- $_ := set $files $file (dict "secretName" $certificate "secretKey" $file) }}
{{- end }}
{{- end }}
{{- if ne .program "gateway" }}
{{- if $values.postgresql.bundled }}
{{- $_ := set $made "database-url" true }}
{{- else }}
{{- $_ := set $files "database-url" (index $values.databases .program).url }}
{{- $_ := set $files "database-ca.crt" $values.databases.ca }}
{{- end }}
{{- $keys := index $values.encryptionKeys .program }}
{{- if $keys.secretName }}
{{- $_ := set $files "encryption-keys" $keys }}
{{- else }}
{{- $_ := set $made "encryption-keys" true }}
{{- end }}
{{- end }}
{{- if eq .program "identity" }}
{{- $_ := set $files "smtp-url" $values.mail.smtpUrl }}
{{- if $values.admin.password.secretName }}
{{- $_ := set $files "admin-password" $values.admin.password }}
{{- else }}
{{- $_ := set $made "admin-password" true }}
{{- end }}
{{- end }}
{{- if and (eq .program "execution") (eq $values.artifacts.store "s3") }}
{{- $_ := set $files "s3-access-key-id" $values.artifacts.s3.accessKeyId }}
{{- $_ := set $files "s3-secret-access-key" $values.artifacts.s3.secretAccessKey }}
{{- end }}
{{- range $file, $_ := $made }}
{{- $_ := set $files $file (dict "secretName" $own "secretKey" $file) }}
{{- end }}
{{- range $file, $reference := $files }}
{{- if not $reference.secretName }}
{{- $_ := unset $files $file }}
{{- end }}
{{- end }}
{{- toJson $files }}
{{- end }}

{{/* The Secret with the certificate of a program: (dict "root" $ "program" …) */}}
{{- define "assay.certificate" -}}
{{- index .root.Values.tls.secrets .program | default (printf "%s-%s-tls" (include "assay.fullname" .root) .program) }}
{{- end }}

{{/* The volume with these files */}}
{{- define "assay.secretVolume" -}}
- name: secrets
  projected:
    defaultMode: 0440
    sources:
      {{- range $file, $reference := . }}
      - secret:
          name: {{ $reference.secretName }}
          items:
            - {key: {{ $reference.secretKey | quote }}, path: {{ $file | quote }}}
      {{- end }}
{{- end }}

{{/* Where the owner's URL of a database is: (dict "root" $ "program" …) */}}
{{- define "assay.ownerFiles" -}}
{{- $values := .root.Values }}
{{- $files := dict }}
{{- if $values.postgresql.bundled }}
{{- $owners := printf "%s-database-owners" (include "assay.fullname" .root) }}
{{- $_ := set $files "database-url" (dict "secretName" $owners "secretKey" .program) }}
{{- else }}
{{- $_ := set $files "database-url" (index $values.databases .program).ownerUrl }}
{{- if $values.databases.ca.secretName }}
{{- $_ := set $files "database-ca.crt" $values.databases.ca }}
{{- end }}
{{- end }}
{{- toJson $files }}
{{- end }}

{{/*
An annotation that changes with the Secrets that values refer to, so that an upgrade restarts the pods
which read them: (dict "root" $ "program" …). Without a cluster to look at, there is none. Certificates
are read again without a restart.
*/}}
{{- define "assay.checksum" -}}
{{- $own := printf "%s-%s" (include "assay.fullname" .root) .program }}
{{- $found := dict }}
{{- range $file, $reference := include "assay.secretFiles" . | fromJson }}
{{- $secret := lookup "v1" "Secret" $.root.Release.Namespace $reference.secretName }}
{{- $isRead := or (eq $reference.secretName $own) (eq $reference.secretName (include "assay.certificate" $)) }}
{{- if and (not $isRead) $secret.data }}
{{- $_ := set $found $file (index $secret.data $reference.secretKey | default "") }}
{{- end }}
{{- end }}
{{- $found | empty | ternary dict (dict "checksum/secrets" (toJson $found | sha256sum)) | toJson }}
{{- end }}
