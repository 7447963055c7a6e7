{{- define "sandfleet.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{/* The release's name where it says "sandfleet" already; short enough for what is added to it. */}}
{{- define "sandfleet.fullname" -}}
{{- $name := include "sandfleet.name" . -}}
{{- $full := contains $name .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name $name) -}}
{{- default $full .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{/* For what has no namespace, since a release of the same name may be in another one. */}}
{{- define "sandfleet.clusterName" -}}
{{- printf "%s-%s" .Release.Namespace (include "sandfleet.fullname" .) -}}
{{- end -}}

{{- define "sandfleet.controllerName" -}}
{{- include "sandfleet.fullname" . }}-controller
{{- end -}}

{{/* Where clients dial the attach service. */}}
{{- define "sandfleet.attachName" -}}
{{- include "sandfleet.fullname" . }}-attach
{{- end -}}

{{/* Values of the attach service, all of them: `helm upgrade --reuse-values` brings a release's values of before there was one. */}}
{{- define "sandfleet.attach" -}}
{{- $given := default (dict) .Values.attach -}}
enabled: {{ dig "enabled" true $given }}
port: {{ dig "port" 8443 $given }}
extraNames: {{ dig "extraNames" (list) $given | toJson }}
secretName: {{ dig "secretName" "" $given | quote }}
service:
  type: {{ dig "service" "type" "ClusterIP" $given }}
  annotations: {{ dig "service" "annotations" (dict) $given | toJson }}
{{- end -}}

{{- define "sandfleet.serviceAccountName" -}}
{{- default (include "sandfleet.controllerName" .) .Values.serviceAccount.name -}}
{{- end -}}

{{- define "sandfleet.selector" -}}
app.kubernetes.io/name: {{ include "sandfleet.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: controller
{{- end -}}

{{- define "sandfleet.labels" -}}
app.kubernetes.io/name: {{ include "sandfleet.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: sandfleet
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "sandfleet.image" -}}
{{- with .Values.image -}}
{{- if not .repository -}}
{{- fail "image.repository is empty: name the place to which you pushed the controller's image (docs/design/installation.md)" -}}
{{- end -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ default $.Chart.AppVersion .tag }}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "sandfleet.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "sandfleet.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{/* What may be done with Sandboxes: in one namespace or in all. */}}
{{- define "sandfleet.sandboxRules" -}}
- apiGroups: [sandfleet.dev]
  resources: [sandboxes]
  verbs: [get, list, watch, patch, delete]
- apiGroups: [sandfleet.dev]
  resources: [sandboxes/status]
  verbs: [patch]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create, patch]
{{- end -}}
