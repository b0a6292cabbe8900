# SPDX-License-Identifier: Apache-2.0
# What Weir needs of the Consul servers beside your own settings.

connect {
  enabled = true
  ca_config {
    # Names of clusters hold the trust domain, which is this id and `.consul`. Without it a rebuilt
    # datacenter has another one, and the filter and the cluster override name clusters that are gone.
    # Take an id of your own, before the first start: it is never changed.
    cluster_id = "11111111-2222-3333-4444-555555555555"
  }
}

# Nobody reaches anybody unless an intention says so. `weirctl consul apply` writes the two that Weir needs.
default_intention_policy = "deny"
