{{- define "packhouse.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "packhouse.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "packhouse.labels" -}}
{{ include "packhouse.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "packhouse.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "packhouse.name" .) -}}
{{- else -}}
{{- .Values.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end -}}

{{- define "packhouse.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) -}}
{{- end -}}
{{- end -}}

{{- /* The URL of a host of the ingress. */ -}}
{{- define "packhouse.url" -}}
{{- printf "%s://%s" (ternary "https" "http" (ne .tlsSecret "")) .host -}}
{{- end -}}

{{- /* Refuses combinations of values that cannot work. */ -}}
{{- define "packhouse.check" -}}
{{- if eq .Values.storage "volume" -}}
{{- if gt (int .Values.replicas) 1 -}}
{{- fail "replicas: several servers need PostgreSQL and S3; set storage to external, or replicas to 1" -}}
{{- end -}}
{{- range $value, $secret := dict "database.urlSecret.name" .Values.database.urlSecret "blobs.urlSecret.name" .Values.blobs.urlSecret -}}
{{- if $secret.name -}}
{{- fail (printf "%s: storage volume does not use this secret; set storage to external, or remove it" $value) -}}
{{- end -}}
{{- end -}}
{{- else -}}
{{- range $value, $secret := dict "database.urlSecret.name" .Values.database.urlSecret "blobs.urlSecret.name" .Values.blobs.urlSecret "sealingKey.secret.name" .Values.sealingKey.secret -}}
{{- if not $secret.name -}}
{{- fail (printf "%s: storage external needs the name of a secret" $value) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
