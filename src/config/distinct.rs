//! Maps without repeated keys, in any spelling. Otherwise the last value would win and the others
//! be lost silently.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{DeserializeSeed, Error, IntoDeserializer, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

pub(super) fn map<'de, D: Deserializer<'de>, K: Deserialize<'de> + Ord, V: Deserialize<'de>>(
    from: D,
) -> Result<BTreeMap<K, V>, D::Error> {
    Distinct::deserialize(from).map(|distinct| distinct.0)
}

pub(super) fn map_of_maps<'de, D, K, L, V>(from: D) -> Result<BTreeMap<K, BTreeMap<L, V>>, D::Error>
where
    D: Deserializer<'de>,
    K: Deserialize<'de> + Ord,
    L: Deserialize<'de> + Ord,
    V: Deserialize<'de>,
{
    let outer: BTreeMap<K, Distinct<L, V>> = map(from)?;
    Ok(outer
        .into_iter()
        .map(|(key, inner)| (key, inner.0))
        .collect())
}

struct Distinct<K, V>(BTreeMap<K, V>);

impl<'de, K: Deserialize<'de> + Ord, V: Deserialize<'de>> Deserialize<'de> for Distinct<K, V> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(DistinctVisitor(PhantomData))
    }
}

struct DistinctVisitor<K, V>(PhantomData<(K, V)>);

impl<'de, K: Deserialize<'de> + Ord, V: Deserialize<'de>> Visitor<'de> for DistinctVisitor<K, V> {
    type Value = Distinct<K, V>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self::Value, A::Error> {
        let mut map = BTreeMap::new();
        // Reads the name as text and interprets it with its value, so that an error gives its
        // place.
        while let Some(name) = fields.next_key::<String>()? {
            let (key, value) = fields.next_value_seed(NamedField(name, PhantomData))?;
            if map.insert(key, value).is_some() {
                return Err(A::Error::custom("duplicate key: remove one of the two"));
            }
        }
        Ok(Distinct(map))
    }
}

/// Reads a field's value, and interprets its name.
struct NamedField<K, V>(String, PhantomData<(K, V)>);

impl<'de, K: Deserialize<'de>, V: Deserialize<'de>> DeserializeSeed<'de> for NamedField<K, V> {
    type Value = (K, V);

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(K, V), D::Error> {
        let key = K::deserialize(self.0.into_deserializer())?;
        Ok((key, V::deserialize(from)?))
    }
}
