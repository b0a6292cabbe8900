// SPDX-License-Identifier: Apache-2.0
use weir_tables::Meta;

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
    assert_eq!(
        Meta {
            epoch: u64::MAX,
            version: 0
        }
        .to_string(),
        "ffffffffffffffff.0"
    );
}
