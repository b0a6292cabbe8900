# SPDX-License-Identifier: Apache-2.0
# Callers may send requests to the hosts. Placeholders: see README.md.

Kind = "service-intentions"
Name = "@SERVICE@"

Sources = [
  {
    Name   = "@CALLER@"
    Action = "allow"
  }
]
