// SPDX-License-Identifier: MIT-0

//go:build tools

// Package tools pins Kueue, which needs newer Kubernetes libraries than the cluster that it runs in.
package tools

import _ "sigs.k8s.io/kueue/cmd/kueue"
