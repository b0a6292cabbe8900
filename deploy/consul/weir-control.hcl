# SPDX-License-Identifier: Apache-2.0
# weir-control in the mesh: sidecars reach it by mTLS, if an intention lets them.

Kind     = "service-defaults"
Name     = "weir-control"
Protocol = "grpc"
