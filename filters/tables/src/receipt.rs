// SPDX-License-Identifier: Apache-2.0
use weir_policy::{Account, Has, Terms};

use crate::v1;

/// The message for a host that was looked at.
pub fn encode_look(terms: &Terms, address: String, load_age_ms: Option<u32>) -> v1::Look {
    let (has, lacks) = match terms.has {
        Has::Known => (v1::LookHas::Known, 0),
        Has::Assumed => (v1::LookHas::Assumed, 0),
        Has::Lacks(keys) => (v1::LookHas::Lacks, keys),
    };
    v1::Look {
        index: terms.host,
        address,
        has: has.into(),
        lacks,
        wait_ns: terms.wait,
        fetch_ns: terms.fetch,
        run_ns: terms.run,
        speed: terms.speed,
        fullness: terms.fullness,
        avoided: terms.avoided,
        load_age_ms,
        crossing_ns: terms.crossing,
    }
}

/// What a host that was looked at was judged by; none where the message does not say what it has.
fn decode_look(look: &v1::Look) -> Option<Terms> {
    let has = match v1::LookHas::try_from(look.has) {
        Ok(v1::LookHas::Known) => Has::Known,
        Ok(v1::LookHas::Assumed) => Has::Assumed,
        Ok(v1::LookHas::Lacks) => Has::Lacks(look.lacks),
        Ok(v1::LookHas::Unspecified) | Err(_) => return None,
    };
    Some(Terms {
        host: look.index,
        has,
        wait: look.wait_ns,
        fetch: look.fetch_ns,
        run: look.run_ns,
        crossing: look.crossing_ns,
        speed: look.speed,
        fullness: look.fullness,
        avoided: look.avoided,
    })
}

/// The account that a receipt carries; none where a look of it says nothing.
pub fn decode_account(receipt: &v1::Receipt) -> Option<Account> {
    Some(Account {
        salt: receipt.salt,
        keys: receipt.key_count,
        limit: receipt.limit as usize,
        terms: receipt
            .looks
            .iter()
            .map(decode_look)
            .collect::<Option<_>>()?,
        suspects: receipt.suspects.clone(),
        instead: receipt.instead,
        panics: receipt.panics,
    })
}
