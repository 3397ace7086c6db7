{{/* A bundled server: (dict "root" $ "component" … "container" … and the other values of a pod) */}}
{{- define "assay.server" -}}
{{- $values := index .root.Values .component }}
{{- $pod := merge (dict "kind" "server" "spec" "terminationGracePeriodSeconds: 60") . }}
apiVersion: apps/v1
kind: StatefulSet
metadata: {{- include "assay.metadata" . | nindent 2 }}
spec:
  serviceName: {{ include "assay.fullname" .root }}-{{ .component }}
  replicas: 1
  selector:
    matchLabels: {{- include "assay.selector" . | nindent 6 }}
  template: {{- include "assay.pod" $pod | nindent 4 }}
  volumeClaimTemplates:
    - apiVersion: v1
      kind: PersistentVolumeClaim
      metadata:
        name: data
        labels: {{- include "assay.selector" . | nindent 10 }}
      spec:
        accessModes: [ReadWriteOnce]
        {{- with $values.storageClassName }}
        storageClassName: {{ . }}
        {{- end }}
        resources:
          requests: {storage: {{ $values.size }}}
{{- end }}

{{/* The Service of a bundled server: (dict "root" $ "component" … "port" …) */}}
{{- define "assay.serverService" -}}
apiVersion: v1
kind: Service
metadata: {{- include "assay.metadata" . | nindent 2 }}
spec:
  clusterIP: None
  ports:
    - {name: {{ .component }}, port: {{ .port }}, targetPort: {{ .component }}}
  selector: {{- include "assay.selector" . | nindent 4 }}
{{- end }}
