// SPDX-License-Identifier: Apache-2.0
//! The weir-control to ask. Of several replicas the leader alone polls hosts and gets reports: of load, levels and
//! receipts the others know nothing.

use anyhow::{Result, bail};

use crate::answers::{Replica, Tables};
use crate::control;
use crate::page::Address;

/// One of those that are named, and what it says.
#[derive(Debug)]
pub struct Chosen<'a> {
    /// Of its admin pages.
    pub address: &'a Address,
    /// Its state.
    pub tables: Tables,
    /// Why its answers do not count; absent where it leads or has nobody beside it.
    pub doubt: Option<String>,
}

/// The first that leads, else the first that answers.
///
/// # Errors
/// None is named, or none can be read.
pub async fn choose(controls: &[Address]) -> Result<Chosen<'_>> {
    let (mut answering, mut unread, mut said) = (None, None, Vec::new());
    for address in controls {
        match control::tables(address).await {
            Ok(tables) if tables.leads() => {
                return Ok(Chosen {
                    address,
                    tables,
                    doubt: None,
                });
            }
            Ok(tables) => {
                let replica = tables.replica.as_ref();
                said.push(format!(
                    "{address} {}",
                    replica.map_or_else(String::new, role)
                ));
                answering.get_or_insert((address, tables));
            }
            Err(error) => {
                said.push(format!("{error:#}"));
                unread.get_or_insert(error);
            }
        }
    }
    match (answering, unread) {
        (Some((address, tables)), _) => Ok(Chosen {
            address,
            tables,
            doubt: Some(format!(
                "none that was asked leads, and only a leader knows load, levels and receipts: {}; name the \
                 leader's admin address: --control",
                said.join("; ")
            )),
        }),
        (None, Some(error)) => Err(error),
        (None, None) => bail!("name one: --control ip:port"),
    }
}

/// One that leads.
///
/// # Errors
/// None that is named does, or none can be read.
pub async fn leading(controls: &[Address]) -> Result<Chosen<'_>> {
    let chosen = choose(controls).await?;
    match &chosen.doubt {
        Some(doubt) => bail!("{doubt}"),
        None => Ok(chosen),
    }
}

fn role(replica: &Replica) -> String {
    match &replica.leader {
        Some(leader) => format!(
            "follows {:?}, whose tables come from {}",
            leader.name, leader.address
        ),
        None => format!("is {} and knows no leader", replica.role),
    }
}
