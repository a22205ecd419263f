// SPDX-License-Identifier: MIT-0

//go:build tools

// Package tools pins kwok, which does not compile with the Kubernetes libraries of the cluster.
package tools

import _ "sigs.k8s.io/kwok/cmd/kwok"
