{{/*
Tasks run in Jobs: migrations, comparisons, and backups if they are enabled. A task is a component with its
own values, as JSON by component.
*/}}
{{- define "assay.tasks" -}}
{{- $values := .Values }}
{{- $tasks := dict "verify" $values.comparison "rebuild" $values.comparison }}
{{- range $program, $_ := omit (include "assay.programs" . | fromYaml) "gateway" }}
{{- $_ := set $tasks (printf "%s-migrate" $program) (merge (deepCopy (index $values $program).migration) $values.migration) }}
{{- end }}
{{- if $values.backup.enabled }}
{{- $_ := set $tasks "backup" $values.backup }}
{{- $_ := set $tasks "restore" $values.backup }}
{{- end }}
{{- toJson $tasks }}
{{- end }}

{{/* A CronJob that is suspended without a schedule, and started by `kubectl create job --from`: the values
of its pod, see _pods.tpl, and "schedule" */}}
{{- define "assay.cronJob" -}}
apiVersion: batch/v1
kind: CronJob
metadata: {{- include "assay.metadata" . | nindent 2 }}
spec:
  schedule: {{ .schedule | default "0 3 * * *" | quote }}
  suspend: {{ empty .schedule }}
  concurrencyPolicy: Forbid
  jobTemplate:
    spec:
      backoffLimit: 0
      activeDeadlineSeconds: {{ int .own.activeDeadlineSeconds }}
      template: {{- include "assay.pod" (merge (dict "kind" "task" "spec" "restartPolicy: Never") .) | nindent 8 }}
{{- end }}
