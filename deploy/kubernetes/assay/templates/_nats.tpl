{{/*
The configuration of the bundled NATS, without its passwords: that in deploy/nats, in which the account of
the subscriber `billing` stands for that of any subscriber.
*/}}
{{- define "assay.natsConfig" -}}
{{- $values := .Values.nats }}
{{- $config := .Files.Get "files/nats-server.conf" | replace "max_file_store: 8GB" (printf "max_file_store: %s" $values.maxStore) }}
{{- $account := regexFind "(?s)  billing \\{.*\n  \\}\n" $config }}
{{- $accounts := "" }}
{{- range $values.subscribers }}
{{- $accounts = printf "%s%s" $accounts ($account | replace "billing" .name | replace "$ASSAY_NATS_BILLING_PASSWORD" (printf "$%s" (include "assay.natsPassword" .name))) }}
{{- end }}
# The health of the server, for probes.
http_port: 8222
{{- if $values.tls.secretName }}
tls {
  cert_file: /run/certificates/nats/tls.crt
  key_file: /run/certificates/nats/tls.key
}
{{- end }}

{{ $config | replace $account $accounts }}
{{- end }}

{{/* The variable in this configuration with the password of a user */}}
{{- define "assay.natsPassword" -}}
ASSAY_NATS_{{ . | replace "-" "_" | upper }}_PASSWORD
{{- end }}
