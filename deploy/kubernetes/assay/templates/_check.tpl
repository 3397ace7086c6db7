{{/* What the schema cannot tell. All problems at once. */}}
{{- define "assay.check" -}}
{{- $values := .Values }}
{{- $problems := list }}
{{- if not (regexMatch "^[a-z]([-a-z0-9]*[a-z0-9])?$" (include "assay.fullname" .)) }}
{{- $problems = append $problems (printf "Services cannot be called %s-…: choose another name for the release, or set fullnameOverride" (include "assay.fullname" .)) }}
{{- end }}
{{- range $program, $_ := omit (include "assay.programs" . | fromYaml) "gateway" }}
{{- $database := index $values.databases $program }}
{{- range $name := list "url" "ownerUrl" }}
{{- $given := (index $database $name).secretName }}
{{- if and $values.postgresql.bundled $given }}
{{- $problems = append $problems (printf "databases.%s.%s is for a PostgreSQL of your own: set postgresql.bundled to false" $program $name) }}
{{- else if not (or $values.postgresql.bundled $given) }}
{{- $problems = append $problems (printf "databases.%s.%s has to name the Secret with the database's URL, as postgresql.bundled is false" $program $name) }}
{{- end }}
{{- end }}
{{- end }}
{{- range $program, $_ := include "assay.programs" . | fromYaml }}
{{- $own := index $values $program }}
{{- $given := or $values.nats.url (index $values.nats.urls $program).secretName }}
{{- if and $values.nats.bundled $given }}
{{- $problems = append $problems "nats.url and nats.urls are for NATS servers of your own: set nats.bundled to false" }}
{{- else if not (or $values.nats.bundled $given) }}
{{- $problems = append $problems (printf "nats.urls.%s, or nats.url, has to say where NATS is, as nats.bundled is false" $program) }}
{{- end }}
{{- if lt (int $own.terminationGracePeriodSeconds) (add (int $own.preStopSeconds) 30 | int) }}
{{- $problems = append $problems (printf "%s.terminationGracePeriodSeconds has to be 30 more than preStopSeconds at least: the program takes up to 25 seconds to stop" $program) }}
{{- end }}
{{- if gt (int $own.autoscaling.minReplicas) (int $own.autoscaling.maxReplicas) }}
{{- $problems = append $problems (printf "%s.autoscaling.minReplicas is greater than maxReplicas" $program) }}
{{- end }}
{{- end }}
{{- if eq $values.artifacts.store "s3" }}
{{- if not $values.artifacts.s3.bucket }}
{{- $problems = append $problems "artifacts.s3.bucket has to be set, as artifacts.store is s3" }}
{{- end }}
{{- if ne (empty $values.artifacts.s3.accessKeyId.secretName) (empty $values.artifacts.s3.secretAccessKey.secretName) }}
{{- $problems = append $problems "artifacts.s3.accessKeyId and secretAccessKey have to be set both, or neither" }}
{{- end }}
{{- else if and (eq $values.artifacts.volume.accessMode "ReadWriteOnce") (or (gt (int $values.execution.replicas) 1) $values.execution.autoscaling.enabled) }}
{{- $problems = append $problems "several replicas of execution need artifacts.store: s3, or artifacts.volume.accessMode: ReadWriteMany" }}
{{- end }}
{{- if and $values.mail.smtpUrl.secretName (not $values.mail.from) }}
{{- $problems = append $problems "mail.from has to say who mails are from, as there is mail.smtpUrl" }}
{{- end }}
{{- if and $values.ingress.enabled (not $values.ingress.hosts) }}
{{- $problems = append $problems "ingress.hosts has to name the hosts of the Ingress" }}
{{- end }}
{{- if and $values.httpRoute.enabled (not $values.httpRoute.parentRefs) }}
{{- $problems = append $problems "httpRoute.parentRefs has to name the Gateways of the HTTPRoute" }}
{{- end }}
{{- with uniq $problems }}
{{- fail (printf "these values cannot be:\n- %s" (join "\n- " .)) }}
{{- end }}
{{- end }}
