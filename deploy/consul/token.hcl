# SPDX-License-Identifier: Apache-2.0
# Rules of a token with which `weirctl consul apply`, `check` and `remove` do all their work, for the names of the
# README. For `check` and `apply --dry-run` alone write "read" everywhere.

service "rules" {
  policy     = "write"
  intentions = "write"
}

service "weir-control" {
  policy     = "write"
  intentions = "write"
}

service "caller" {
  policy = "write"
}

# Instances and their checks, for `check`: sidecars are services of their own.
service "rules-sidecar-proxy" {
  policy = "read"
}

service "weir-control-sidecar-proxy" {
  policy = "read"
}

service "caller-sidecar-proxy" {
  policy = "read"
}

node_prefix "" {
  policy = "read"
}
