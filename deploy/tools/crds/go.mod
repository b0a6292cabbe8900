module weir/deploy/tools/crds

go 1.26.7

require (
	github.com/envoyproxy/gateway v1.9.1
	github.com/prometheus-operator/prometheus-operator v0.85.0
	istio.io/api v1.31.1
	sigs.k8s.io/gateway-api-inference-extension v1.3.0
)
