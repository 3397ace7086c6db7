{{/* Checks that the schema cannot express. Reports all problems at once. */}}
{{- define "assay.check" -}}
{{- $values := .Values }}
{{- $problems := list }}
{{- if not (regexMatch "^[a-z]([-a-z0-9]*[a-z0-9])?$" (include "assay.fullname" .)) }}
{{- $problems = append $problems (printf "%s-… is not a valid name of a Service: choose another release name, or set fullnameOverride" (include "assay.fullname" .)) }}
{{- end }}
{{- range $program, $_ := omit (include "assay.programs" . | fromYaml) "gateway" }}
{{- $database := index $values.databases $program }}
{{- range $name := list "url" "ownerUrl" }}
{{- $given := (index $database $name).secretName }}
{{- if and $values.postgresql.bundled $given }}
{{- $problems = append $problems (printf "databases.%s.%s is for an external PostgreSQL server: set postgresql.bundled to false" $program $name) }}
{{- else if not (or $values.postgresql.bundled $given) }}
{{- $problems = append $problems (printf "databases.%s.%s must name the Secret with the URL of the database if postgresql.bundled is false" $program $name) }}
{{- end }}
{{- end }}
{{- end }}
{{- range $program, $_ := include "assay.programs" . | fromYaml }}
{{- $own := index $values $program }}
{{- $given := or $values.nats.url (index $values.nats.urls $program).secretName }}
{{- if and $values.nats.bundled $given }}
{{- $problems = append $problems "nats.url and nats.urls are for external NATS servers: set nats.bundled to false" }}
{{- else if not (or $values.nats.bundled $given) }}
{{- $problems = append $problems (printf "nats.urls.%s or nats.url must be set if nats.bundled is false" $program) }}
{{- end }}
{{- if lt (int $own.terminationGracePeriodSeconds) (add (int $own.preStopSeconds) 30 | int) }}
{{- $problems = append $problems (printf "%s.terminationGracePeriodSeconds must exceed preStopSeconds by at least 30: the program takes up to 25 seconds to stop" $program) }}
{{- end }}
{{- if gt (int $own.autoscaling.minReplicas) (int $own.autoscaling.maxReplicas) }}
{{- $problems = append $problems (printf "%s.autoscaling.minReplicas must not exceed maxReplicas" $program) }}
{{- end }}
{{- end }}
{{- if eq $values.artifacts.store "s3" }}
{{- if not $values.artifacts.s3.bucket }}
{{- $problems = append $problems "artifacts.s3.bucket must be set if artifacts.store is s3" }}
{{- end }}
{{- if ne (empty $values.artifacts.s3.accessKeyId.secretName) (empty $values.artifacts.s3.secretAccessKey.secretName) }}
{{- $problems = append $problems "artifacts.s3.accessKeyId and secretAccessKey must be set together" }}
{{- end }}
{{- else if and (eq $values.artifacts.volume.accessMode "ReadWriteOnce") (or (gt (int $values.execution.replicas) 1) $values.execution.autoscaling.enabled) }}
{{- $problems = append $problems "several replicas of execution need artifacts.store: s3, or artifacts.volume.accessMode: ReadWriteMany" }}
{{- end }}
{{- if and $values.mail.smtpUrl.secretName (not $values.mail.from) }}
{{- $problems = append $problems "mail.from must be set if mail.smtpUrl is" }}
{{- end }}
{{- if and $values.ingress.enabled (not $values.ingress.hosts) }}
{{- $problems = append $problems "ingress.hosts must name the hosts of the Ingress" }}
{{- end }}
{{- if and $values.httpRoute.enabled (not $values.httpRoute.parentRefs) }}
{{- $problems = append $problems "httpRoute.parentRefs must name the Gateways of the HTTPRoute" }}
{{- end }}
{{- with uniq $problems }}
{{- fail (printf "invalid values:\n- %s" (join "\n- " .)) }}
{{- end }}
{{- end }}
