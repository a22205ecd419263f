// SPDX-License-Identifier: MIT-0

//go:build tools

// Package tools pins etcd, whose own replace directives keep it out of the other modules.
package tools

import _ "go.etcd.io/etcd/server/v3"
