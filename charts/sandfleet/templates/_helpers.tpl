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

{{- define "sandfleet.agentdName" -}}
{{- include "sandfleet.fullname" . }}-agentd
{{- end -}}

{{/* Values of agentd, all of them, as above. A release of before there was one gets it where it can work; who asks for it
where it cannot is told why. */}}
{{- define "sandfleet.agentd" -}}
{{- $given := default (dict) .Values.agentd -}}
{{- $wanted := dig "enabled" true $given -}}
{{- $trouble := "" -}}
{{- if $wanted -}}
{{- $trouble = include "sandfleet.agentdTrouble" . -}}
{{- end -}}
{{- if and $trouble (hasKey $given "enabled") -}}
{{- fail $trouble -}}
{{- end -}}
enabled: {{ and $wanted (empty $trouble) }}
socket:
  folder: {{ dig "socket" "folder" "/run/sandfleet" $given }}
  mode: {{ dig "socket" "mode" "0660" $given | quote }}
  group: {{ dig "socket" "group" 65532 $given | int64 }}
executorCA:
  configMapName: {{ dig "executorCA" "configMapName" "" $given | quote }}
  key: {{ dig "executorCA" "key" "ca.crt" $given }}
drainSeconds: {{ dig "drainSeconds" 5 $given }}
maxUnavailable: {{ dig "maxUnavailable" "10%" $given | toJson }}
log:
  level: {{ dig "log" "level" "info" $given }}
  format: {{ dig "log" "format" "json" $given }}
extraArgs: {{ dig "extraArgs" (list) $given | toJson }}
extraEnv: {{ dig "extraEnv" (list) $given | toJson }}
resources:
  requests: {{ dig "resources" "requests" (dict "cpu" "50m" "memory" "64Mi") $given | toJson }}
  limits: {{ dig "resources" "limits" (dict "memory" "512Mi") $given | toJson }}
securityContext: {{ dig "securityContext" (dict) $given | toJson }}
serviceAccount:
  create: {{ dig "serviceAccount" "create" true $given }}
  name: {{ dig "serviceAccount" "name" "" $given | quote }}
  annotations: {{ dig "serviceAccount" "annotations" (dict) $given | toJson }}
nodeSelector: {{ dig "nodeSelector" (dict) $given | toJson }}
tolerations: {{ dig "tolerations" (list) $given | toJson }}
affinity: {{ dig "affinity" (dict) $given | toJson }}
priorityClassName: {{ dig "priorityClassName" "" $given | quote }}
podLabels: {{ dig "podLabels" (dict) $given | toJson }}
podAnnotations: {{ dig "podAnnotations" (dict) $given | toJson }}
{{- end -}}

{{/* Why agentd cannot work here; empty where it can. Of an install by `helm template` nobody knows the namespace. */}}
{{- define "sandfleet.agentdTrouble" -}}
{{- $space := lookup "v1" "Namespace" "" .Release.Namespace -}}
{{- $level := dig "metadata" "labels" "pod-security.kubernetes.io/enforce" "privileged" $space -}}
{{- if not (include "sandfleet.attach" . | fromYaml).enabled -}}
agentd asks the attach service for ways into sandboxes, and attach.enabled is false: set agentd.enabled=false too, or attach.enabled=true
{{- else if ne $level "privileged" -}}
{{- printf "namespace %s enforces the Pod Security level %s, and agentd has its socket in a folder of the node: label the namespace pod-security.kubernetes.io/enforce=privileged, or set agentd.enabled=false" .Release.Namespace $level -}}
{{- end -}}
{{- end -}}

{{- define "sandfleet.agentdAccount" -}}
{{- default (include "sandfleet.agentdName" .) (include "sandfleet.agentd" . | fromYaml).serviceAccount.name -}}
{{- end -}}

{{- define "sandfleet.serviceAccountName" -}}
{{- default (include "sandfleet.controllerName" .) .Values.serviceAccount.name -}}
{{- end -}}

{{- define "sandfleet.selector" -}}
app.kubernetes.io/name: {{ include "sandfleet.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: controller
{{- end -}}

{{- define "sandfleet.agentdSelector" -}}
app.kubernetes.io/name: {{ include "sandfleet.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: agentd
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
