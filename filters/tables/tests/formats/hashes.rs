// SPDX-License-Identifier: Apache-2.0
//! The vectors of FORMAT.md.

use weir_policy::{HostId, KeyHash, shard_of, user_priority};

#[test]
fn keys_and_hosts_are_hashed_by_xxh64_with_seed_0() {
    let vectors = [
        ("", 0xef46_db37_51d8_e999),
        ("a", 0xd24e_c4f1_a98c_6e5b),
        ("abc", 0x44bc_2cf5_ad77_0999),
        ("project-1", 0x1584_e5a6_70ca_e325),
        ("10.0.0.1:9000", 0x23b5_4805_1e71_493e),
        ("[2001:db8::1]:9000", 0x1b22_b61c_1460_c26e),
    ];
    for (text, hash) in vectors {
        assert_eq!(KeyHash::of(text.as_bytes()).0, hash, "{text:?}");
        assert_eq!(HostId::of(text).0, hash, "{text:?}");
    }
}

#[test]
fn the_top_bits_of_a_key_select_its_shard() {
    let key = KeyHash::of(b"project-1");
    let shards = [1, 2, 16, 1024].map(|shards| shard_of(key, shards));
    assert_eq!(shards, [0, 0, 1, 86]);
}

#[test]
fn a_user_has_another_priority_each_hour() {
    let vectors = [
        ("", 0, 58),
        ("alice", 0, 98),
        ("alice", 472_222, 104),
        ("alice", 472_223, 120),
    ];
    for (user, hour, priority) in vectors {
        assert_eq!(
            user_priority(user.as_bytes(), hour),
            priority,
            "{user:?} in hour {hour}"
        );
    }
}
