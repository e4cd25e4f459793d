{{- /* The pod template of the StatefulSet or the Deployment, for both kinds of storage. */ -}}
{{- define "packhouse.pod" -}}
{{- $scheme := ternary "HTTPS" "HTTP" (ne .Values.tls.secretName "") -}}
metadata:
  labels:
    {{- include "packhouse.labels" . | nindent 4 }}
    {{- with .Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    # Restarts the pods after a change of the settings.
    checksum/settings: {{ .Values.settings | sha256sum }}
    {{- with .Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ include "packhouse.serviceAccount" . }}
  automountServiceAccountToken: false
  # A service named packhouse would add PACKHOUSE_… variables to the pod.
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ add .Values.drainSeconds .Values.shutdownSeconds 15 }}
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 10001
    runAsGroup: 10001
    fsGroup: 10001
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile:
      type: RuntimeDefault
  containers:
    - name: packhouse
      image: {{ include "packhouse.image" . | quote }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args: [serve, --config, /etc/packhouse/packhouse.toml]
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities:
          drop: [ALL]
      env:
        # A folder that the server creates, because the root folder of the volume belongs to root.
        - name: PACKHOUSE_DATA
          value: /var/lib/packhouse/data
        - name: PACKHOUSE_PACKAGES_LISTEN
          value: "0.0.0.0:8080"
        - name: PACKHOUSE_API_LISTEN
          value: "0.0.0.0:8081"
        {{- if .Values.metrics.enabled }}
        - name: PACKHOUSE_METRICS_LISTEN
          value: "0.0.0.0:{{ .Values.metrics.port }}"
        {{- end }}
        - name: PACKHOUSE_LIMITS_DRAIN_MS
          value: {{ mul .Values.drainSeconds 1000 | quote }}
        - name: PACKHOUSE_LIMITS_SHUTDOWN_MS
          value: {{ mul .Values.shutdownSeconds 1000 | quote }}
        - name: PACKHOUSE_OWNER_EMAIL
          value: {{ .Values.owner.email | quote }}
        {{- $base := .Values.baseUrl }}{{- $api := .Values.apiUrl }}
        {{- if .Values.ingress.enabled }}
        {{- $base = $base | default (include "packhouse.url" .Values.ingress.packages) }}
        {{- $api = $api | default (include "packhouse.url" .Values.ingress.api) }}
        {{- end }}
        {{- range $name, $value := dict "BASE_URL" $base "API_URL" $api "TRUSTED_PROXIES" .Values.trustedProxies }}
        {{- if $value }}
        - name: PACKHOUSE_{{ $name }}
          value: {{ $value | quote }}
        {{- end }}
        {{- end }}
        {{- if .Values.tls.secretName }}
        - name: PACKHOUSE_TLS_CERT
          value: /etc/packhouse/tls/tls.crt
        - name: PACKHOUSE_TLS_KEY
          value: /etc/packhouse/tls/tls.key
        {{- end }}
        {{- $secrets := dict "SEALING_KEY" .Values.sealingKey.secret "OWNER_PASSWORD" .Values.owner.passwordSecret "SMTP_URL" .Values.smtp.urlSecret }}
        {{- if eq .Values.storage "external" }}
        {{- $secrets = merge $secrets (dict "DATABASE_URL" .Values.database.urlSecret "BLOBS" .Values.blobs.urlSecret) }}
        {{- end }}
        {{- range $name, $secret := $secrets }}
        {{- if $secret.name }}
        - name: PACKHOUSE_{{ $name }}
          valueFrom:
            secretKeyRef: {name: {{ $secret.name }}, key: {{ $secret.key }}}
        {{- end }}
        {{- end }}
        {{- with .Values.extraEnv }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      ports:
        - {name: packages, containerPort: 8080, protocol: TCP}
        - {name: api, containerPort: 8081, protocol: TCP}
        {{- if .Values.metrics.enabled }}
        - {name: metrics, containerPort: {{ .Values.metrics.port }}, protocol: TCP}
        {{- end }}
      # The first start compiles the plugins. The first start after an upgrade may migrate the
      # database.
      startupProbe:
        httpGet: {path: /livez, port: api, scheme: {{ $scheme }}}
        periodSeconds: 2
        failureThreshold: 300
      livenessProbe:
        httpGet: {path: /livez, port: api, scheme: {{ $scheme }}}
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      readinessProbe:
        httpGet: {path: /readyz, port: api, scheme: {{ $scheme }}}
        periodSeconds: 2
        timeoutSeconds: 2
        failureThreshold: 2
      resources:
        {{- toYaml .Values.resources | nindent 8 }}
      volumeMounts:
        - {name: data, mountPath: /var/lib/packhouse}
        - {name: tmp, mountPath: /tmp}
        - {name: settings, mountPath: /etc/packhouse/packhouse.toml, subPath: packhouse.toml, readOnly: true}
        {{- if .Values.tls.secretName }}
        # A folder instead of single files, because mounted single files would not follow a renewed
        # certificate.
        - {name: tls, mountPath: /etc/packhouse/tls, readOnly: true}
        {{- end }}
  volumes:
    - name: tmp
      emptyDir: {}
    - name: settings
      configMap:
        name: {{ include "packhouse.name" . }}
    {{- if .Values.tls.secretName }}
    - name: tls
      secret:
        secretName: {{ .Values.tls.secretName }}
        # 0440 in decimal, which every YAML parser reads in the same way.
        defaultMode: 288
    {{- end }}
    {{- if eq .Values.storage "external" }}
    - name: data
      emptyDir:
        sizeLimit: {{ .Values.scratch.sizeLimit }}
    {{- else if .Values.persistence.existingClaim }}
    - name: data
      persistentVolumeClaim:
        claimName: {{ .Values.persistence.existingClaim }}
    {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.topologySpreadConstraints }}
  topologySpreadConstraints:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}
