// SPDX-License-Identifier: MIT-0

//go:build tools

// Package tools pins Kubernetes and the programs that share its libraries, so that client-go is compiled once for all.
package tools

import (
	_ "github.com/ray-project/kuberay/ray-operator"
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager"
	_ "k8s.io/kubernetes/cmd/kube-proxy"
	_ "k8s.io/kubernetes/cmd/kube-scheduler"
	_ "k8s.io/kubernetes/cmd/kubelet"
)
