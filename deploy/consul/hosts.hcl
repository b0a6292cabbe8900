# SPDX-License-Identifier: Apache-2.0
# The service whose hosts are chosen. Placeholders: see README.md.

Kind     = "service-defaults"
Name     = "@SERVICE@"
Protocol = "http"
