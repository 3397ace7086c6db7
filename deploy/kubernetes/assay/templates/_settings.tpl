{{/*
The variables of a program with their values, as JSON; empty ones are omitted.
(dict "root" $ "program" … "files" …)
*/}}
{{- define "assay.settings" -}}
{{- $values := .root.Values }}
{{- $full := include "assay.fullname" .root }}
{{- $programs := include "assay.programs" .root | fromYaml }}
{{- $this := index $programs .program }}
{{- $own := index $values .program }}
{{- $scheme := ternary "https" "http" $values.tls.enabled }}
{{- $env := dict
      "ASSAY_LOG" $values.log.level
      "ASSAY_LOG_FORMAT" $values.log.format
      "ASSAY_ADMIN_LISTEN" (printf "%s:9090" $values.listenAddress)
      "OTEL_EXPORTER_OTLP_ENDPOINT" $values.tracing.otlpEndpoint
      "ASSAY_TLS_FORWARDERS" (ternary (printf "%s-gateway,%s-execution" $full $full) "" $values.tls.enabled)
      "ASSAY_NATS_URL" (ternary "" $values.nats.url (hasKey .files "nats-url")) }}
{{- range $this.calls }}
{{- $_ := set $env (printf "ASSAY_%s_URL" (upper .)) (printf "%s://%s-%s:%v" $scheme $full . (index $programs .).port) }}
{{- end }}
{{- range $file, $variable := dict
      "tls.crt" "ASSAY_TLS_CERTIFICATE_FILE"
      "tls.key" "ASSAY_TLS_KEY_FILE"
      "ca.crt" "ASSAY_TLS_CA_FILE"
      "nats-url" "ASSAY_NATS_URL_FILE"
      "nats-credentials" "ASSAY_NATS_CREDENTIALS_FILE"
      "nats-ca.crt" "ASSAY_NATS_CA_FILE"
      "database-url" "ASSAY_DATABASE_URL_FILE"
      "encryption-keys" "ASSAY_ENCRYPTION_KEYS_FILE"
      "smtp-url" "ASSAY_SMTP_URL_FILE"
      "admin-password" "ASSAY_ADMIN_PASSWORD_FILE"
      "s3-access-key-id" "ASSAY_S3_ACCESS_KEY_ID_FILE"
      "s3-secret-access-key" "ASSAY_S3_SECRET_ACCESS_KEY_FILE" }}
{{- if hasKey $.files $file }}
{{- $_ := set $env $variable (include "assay.path" (dict "name" $file "files" $.files)) }}
{{- end }}
{{- end }}
{{- $listen := printf "%s:%v" $values.listenAddress $this.port }}
{{- if eq .program "gateway" }}
{{- $_ := set $env "ASSAY_HTTP_LISTEN" $listen }}
{{- $_ := set $env "ASSAY_CONSOLE" (toString $values.console) }}
{{- $_ := set $env "ASSAY_TRUSTED_PROXIES" (join "," $own.trustedProxies) }}
{{- $_ := set $env "ASSAY_CORS_ORIGINS" (join "," $own.corsOrigins) }}
{{- $_ := set $env "ASSAY_REQUESTS_PER_ADDRESS" (int $own.requestsPerAddress) }}
{{- $_ := set $env "ASSAY_REQUESTS_PER_CUSTOMER" (int $own.requestsPerCustomer) }}
{{- $_ := set $env "ASSAY_REQUESTS_AT_ONCE" (int $own.requestsAtOnce) }}
{{- $_ := set $env "ASSAY_CALLS_AT_ONCE" (int $own.callsAtOnce) }}
{{- $_ := set $env "ASSAY_CONNECTIONS" (int $own.connections) }}
{{- else }}
{{- $_ := set $env "ASSAY_GRPC_LISTEN" $listen }}
{{- $_ := set $env "ASSAY_DATABASE_MIGRATE" "false" }}
{{- $_ := set $env "ASSAY_DATABASE_CONNECTIONS" (int (index $values.databases .program).connections) }}
{{- $_ := set $env "ASSAY_NATS_REPLICAS" (int $values.nats.replicas) }}
{{- $_ := set $env "ASSAY_EVENT_RETENTION_DAYS" (int $values.nats.eventRetentionDays) }}
{{- end }}
{{- if eq .program "identity" }}
{{- $_ := set $env "ASSAY_PUBLIC_URL" $values.publicUrl }}
{{- $_ := set $env "ASSAY_CONSOLE" (toString $values.console) }}
{{- $_ := set $env "ASSAY_BASE_DOMAIN" $values.baseDomain }}
{{- $_ := set $env "ASSAY_ADMIN_EMAIL" $values.admin.email }}
{{- $_ := set $env "ASSAY_OPERATOR_NAME" $values.admin.operatorName }}
{{- $_ := set $env "ASSAY_MAIL_FROM" $values.mail.from }}
{{- $_ := set $env "ASSAY_MAIL_DIR" (ternary "" "/tmp/mail" (hasKey .files "smtp-url")) }}
{{- $_ := set $env "ASSAY_MAIL_TIMEOUT_SECONDS" (int $values.mail.timeoutSeconds) }}
{{- $_ := set $env "ASSAY_MAIL_CONNECTIONS" (int $values.mail.connections) }}
{{- $_ := set $env "ASSAY_INVITATIONS_PER_CUSTOMER" (int $own.invitationsPerCustomer) }}
{{- $_ := set $env "ASSAY_TOKEN_LIFETIME_IN_H" (int $own.tokenLifetimeInHours) }}
{{- $_ := set $env "ASSAY_SESSION_LIFETIME_IN_H" (int $own.sessionLifetimeInHours) }}
{{- $_ := set $env "ASSAY_AUDIT_RETENTION_DAYS" (int $own.auditRetentionDays) }}
{{- $_ := set $env "ASSAY_LOGIN_FAILURES_PER_ACCOUNT" (int $own.loginFailuresPerAccount) }}
{{- $_ := set $env "ASSAY_LOGIN_FAILURES_PER_ADDRESS" (int $own.loginFailuresPerAddress) }}
{{- else if eq .program "execution" }}
{{- $_ := set $env "ASSAY_PUBLIC_URL" $values.publicUrl }}
{{- $_ := set $env "ASSAY_CONSOLE" (toString $values.console) }}
{{- $_ := set $env "ASSAY_LEASE_SECONDS" (int $own.leaseSeconds) }}
{{- $_ := set $env "ASSAY_LEASE_LOSSES" (int $own.leaseLosses) }}
{{- $_ := set $env "ASSAY_TEST_MINUTES" (int $own.testMinutes) }}
{{- if $own.queueMetrics }}
{{- $_ := set $env "ASSAY_QUEUE_METRICS" (join "," $own.queueMetrics) }}
{{- end }}
{{- else if eq .program "notification" }}
{{- $_ := set $env "ASSAY_PUBLIC_URL" $values.publicUrl }}
{{- $_ := set $env "ASSAY_CONSOLE" (toString $values.console) }}
{{- $_ := set $env "ASSAY_NOTIFICATION_RETENTION_DAYS" (int $own.retentionDays) }}
{{- $_ := set $env "ASSAY_WEBHOOK_NETWORKS" (join "," $own.webhookNetworks) }}
{{- end }}
{{- if has .program (list "catalog" "execution") }}
{{- if eq $values.artifacts.store "s3" }}
{{- $s3 := $values.artifacts.s3 }}
{{- $_ := set $env "ASSAY_ARTIFACTS" (printf "s3://%s/%s" $s3.bucket $s3.folder | trimSuffix "/") }}
{{- $_ := set $env "ASSAY_S3_ENDPOINT" $s3.endpoint }}
{{- $_ := set $env "ASSAY_S3_REGION" $s3.region }}
{{- if $s3.proxyUrl }}
{{- /* Requests for credentials of the machine are http, and must not use it. */}}
{{- $_ := set $env (hasPrefix "http://" $s3.endpoint | ternary "HTTP_PROXY" "HTTPS_PROXY") $s3.proxyUrl }}
{{- end }}
{{- else }}
{{- $_ := set $env "ASSAY_ARTIFACTS" "/var/lib/assay/artifacts" }}
{{- end }}
{{- end }}
{{- range $name, $value := $env }}
{{- if eq (toString $value) "" }}
{{- $_ := unset $env $name }}
{{- end }}
{{- end }}
{{- toJson $env }}
{{- end }}
