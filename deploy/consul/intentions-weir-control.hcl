# SPDX-License-Identifier: Apache-2.0
# The callers' sidecars may ask weir-control for tables. Without it Envoy's fallback policy serves.
# Placeholders: see README.md.

Kind = "service-intentions"
Name = "weir-control"

Sources = [
  {
    Name   = "@CALLER@"
    Action = "allow"
  }
]
