// SPDX-License-Identifier: Apache-2.0
use prost::Message;
use weir_tables::{Meta, NoVersion};

use crate::samples;

const OLD: Meta = Meta {
    epoch: 0xabc,
    version: 9,
};
const NEW: Meta = Meta {
    epoch: 0xabc,
    version: 10,
};

#[test]
fn of_one_epoch_the_smaller_version_is_older() {
    assert!(OLD.is_older_than(NEW));
    assert!(!NEW.is_older_than(OLD));
    assert!(!NEW.is_older_than(NEW), "the same again is not older");
}

#[test]
fn between_epochs_nothing_is_older() {
    let restarted = Meta {
        epoch: 1,
        version: 1,
    };
    assert!(!restarted.is_older_than(NEW));
    assert!(!NEW.is_older_than(restarted));
}

#[test]
fn a_version_is_written_as_epoch_in_hex_and_version() {
    assert_eq!(NEW.to_string(), "abc.10");
    assert_eq!("abc.10".parse(), Ok(NEW));
    for other in ["", "10", "abc.", ".10", "xyz.1", "abc.-1"] {
        assert_eq!(other.parse::<Meta>(), Err(NoVersion), "{other}");
    }
    assert_eq!(
        Meta {
            epoch: u64::MAX,
            version: 0
        }
        .to_string(),
        "ffffffffffffffff.0"
    );
}

#[test]
fn of_two_leaders_the_one_with_the_lower_index_is_older_and_nobody_else_is() {
    let drawn = |index, random| Meta {
        epoch: Meta::draw_epoch(index, random),
        version: 7,
    };
    for random in [0, 1, u64::MAX, 0x8000_0000_8000_0000] {
        for index in [1, 2, 1000, (1 << 31) - 2] {
            let (old, new) = (drawn(index, random), drawn(index + 1, !random));
            assert_eq!((old.fence(), new.fence()), (Some(index), Some(index + 1)));
            assert!(old.is_of_older_leader_than(new) && !new.is_of_older_leader_than(old));
            let again = drawn(index, !random);
            assert!(!old.is_of_older_leader_than(again) && !again.is_of_older_leader_than(old));
            for nobodys in [drawn(0, random), drawn(1 << 31, random)] {
                assert_eq!(nobodys.fence(), None);
                assert!(!nobodys.is_of_older_leader_than(old));
                assert!(!old.is_of_older_leader_than(nobodys));
            }
        }
    }
}

#[test]
fn an_encoded_resource_tells_which_build_it_is() {
    let table = samples::host_table();
    let meta = Meta::of_host_table(&table.encode_to_vec()).unwrap();
    assert_eq!((meta.epoch, meta.version), (table.epoch, table.version));
    let shard = samples::cache_shard();
    let meta = Meta::of_cache_shard(&shard.encode_to_vec()).unwrap();
    assert_eq!((meta.epoch, meta.version), (shard.epoch, shard.version));
    assert_eq!(Meta::of_host_table(b"no message"), None);
}
