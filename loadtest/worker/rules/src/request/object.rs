// SPDX-License-Identifier: Apache-2.0
//! Objects are objects: what serde derives for a struct would also take a list of its fields.

/// Implements `Deserialize`, from objects only, for structs that derive it with
/// `#[serde(remote = "Self")]`.
macro_rules! objects {
    ($($object:ty),+ $(,)?) => {$(
        impl<'de> serde::Deserialize<'de> for $object {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                struct Object;

                impl<'de> serde::de::Visitor<'de> for Object {
                    type Value = $object;

                    fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        out.write_str("an object")
                    }

                    fn visit_map<A: serde::de::MapAccess<'de>>(self, fields: A) -> Result<$object, A::Error> {
                        // What was derived: an inherent function, so it comes before the trait's.
                        <$object>::deserialize(serde::de::value::MapAccessDeserializer::new(fields))
                    }
                }

                from.deserialize_map(Object)
            }
        }
    )+};
}

pub(crate) use objects;
