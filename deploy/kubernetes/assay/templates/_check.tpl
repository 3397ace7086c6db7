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
{{- $given := include "assay.isGiven" (index $database $name) }}
{{- if and $values.postgresql.bundled $given }}
{{- $problems = append $problems (printf "databases.%s.%s is for an external PostgreSQL server: set postgresql.bundled to false" $program $name) }}
{{- else if not (or $values.postgresql.bundled $given) }}
{{- $problems = append $problems (printf "databases.%s.%s must name the Secret or the file with the URL of the database if postgresql.bundled is false" $program $name) }}
{{- end }}
{{- end }}
{{- end }}
{{- range $program, $_ := include "assay.programs" . | fromYaml }}
{{- $own := index $values $program }}
{{- $given := or $values.nats.url (include "assay.isGiven" (index $values.nats.urls $program)) }}
{{- if and $values.nats.bundled $given }}
{{- $problems = append $problems "nats.url and nats.urls are for external NATS servers: set nats.bundled to false" }}
{{- else if not (or $values.nats.bundled $given) }}
{{- $problems = append $problems (printf "nats.urls.%s or nats.url must be set if nats.bundled is false" $program) }}
{{- end }}
{{- if lt (int $own.terminationGracePeriodSeconds) (add (int $own.preStopSeconds) 30 | int) }}
{{- $problems = append $problems (printf "%s.terminationGracePeriodSeconds must exceed preStopSeconds by at least 30: the program takes up to 25 seconds to stop" $program) }}
{{- end }}
{{- if not (or $own.autoscaling.targetCPU $own.autoscaling.metrics) }}
{{- $problems = append $problems (printf "%s.autoscaling needs metrics if targetCPU is 0" $program) }}
{{- end }}
{{- if gt (int $own.autoscaling.minReplicas) (int $own.autoscaling.maxReplicas) }}
{{- $problems = append $problems (printf "%s.autoscaling.minReplicas must not exceed maxReplicas" $program) }}
{{- end }}
{{- end }}
{{- if eq $values.artifacts.store "s3" }}
{{- if not $values.artifacts.s3.bucket }}
{{- $problems = append $problems "artifacts.s3.bucket must be set if artifacts.store is s3" }}
{{- end }}
{{- if ne (include "assay.isGiven" $values.artifacts.s3.accessKeyId) (include "assay.isGiven" $values.artifacts.s3.secretAccessKey) }}
{{- $problems = append $problems "artifacts.s3.accessKeyId and secretAccessKey must be set together" }}
{{- end }}
{{- else if eq $values.artifacts.volume.accessMode "ReadWriteOnce" }}
{{- range $program := list "catalog" "execution" }}
{{- $own := index $values $program }}
{{- if or (gt (int $own.replicas) 1) $own.autoscaling.enabled }}
{{- $problems = append $problems (printf "several replicas of %s need artifacts.store: s3, or artifacts.volume.accessMode: ReadWriteMany" $program) }}
{{- end }}
{{- end }}
{{- end }}
{{- if and (include "assay.isGiven" $values.mail.smtpUrl) (not $values.mail.from) }}
{{- $problems = append $problems "mail.from must be set if mail.smtpUrl is" }}
{{- end }}
{{- if and $values.ingress.enabled (not $values.ingress.hosts) }}
{{- $problems = append $problems "ingress.hosts must name the hosts of the Ingress" }}
{{- end }}
{{- if and $values.httpRoute.enabled (not $values.httpRoute.parentRefs) }}
{{- $problems = append $problems "httpRoute.parentRefs must name the Gateways of the HTTPRoute" }}
{{- end }}
{{- if and $values.trustedCertificates.configMapName $values.trustedCertificates.secretName }}
{{- $problems = append $problems "trustedCertificates must name a ConfigMap or a Secret, not both" }}
{{- end }}
{{- if and $values.nats.subscribers (not $values.nats.bundled) }}
{{- $problems = append $problems "nats.subscribers are those of the bundled NATS: configure yours, see deploy/nats/nats-server.conf" }}
{{- end }}
{{- if and $values.nats.external.enabled (not (and $values.nats.bundled $values.nats.tls.secretName)) }}
{{- $problems = append $problems "nats.external needs the bundled NATS with nats.tls.secretName, since subscribers send passwords" }}
{{- end }}
{{- if and $values.backup.enabled (not (or $values.backup.volume.enabled $values.backup.upload)) }}
{{- $problems = append $problems "backup needs a volume, or containers in backup.upload that copy the dumps" }}
{{- end }}
{{- $problems = concat $problems (include "assay.checkRelease" . | fromYamlArray) }}
{{- with uniq $problems }}
{{- fail (printf "invalid values:\n- %s" (join "\n- " .)) }}
{{- end }}
{{- end }}

{{/*
Rejects an upgrade or a rollback that skips a release, since migrations add before the next release removes.
A release is a minor version, or the first of a major one. Without access to a cluster, nothing is checked.
*/}}
{{- define "assay.checkRelease" -}}
{{- $installed := lookup "apps/v1" "Deployment" .Release.Namespace (printf "%s-identity" (include "assay.fullname" .)) }}
{{- with dig "metadata" "labels" "app.kubernetes.io/version" "" $installed }}
{{- $from := semver . }}
{{- $to := semver $.Chart.AppVersion }}
{{- $majors := sub $to.Major $from.Major }}
{{- $distance := sub $to.Minor $from.Minor }}
{{- if $majors }}
{{- $first := ternary $to $from (gt $majors 0) }}
{{- $distance = ternary $majors 2 (eq (int $first.Minor) 0) }}
{{- end }}
{{- if gt (mul $distance $distance) 1 }}
- {{ printf "Assay %s is installed, and %s is not the next or the previous release: install the releases between them first, one after the other" . $.Chart.AppVersion | quote }}
{{- end }}
{{- end }}
{{- end }}
