//! The share of conversations that is left alone, so that what providers bill can be compared.

use sha2::{Digest, Sha256};

/// The group of a conversation, where a share of all conversations is left alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    /// Its requests are reduced.
    Reduced,
    /// Its requests pass unchanged.
    HeldOut,
}

impl Group {
    /// The group's name in metrics.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Reduced => "reduced",
            Self::HeldOut => "held-out",
        }
    }
}

/// Returns the group of a conversation, if a `share` of all conversations, from 0 to 1, is left
/// alone; `None` if that is 0. The group depends on the name alone, so that all replicas agree.
pub(crate) fn group(share: f64, conversation: &str) -> Option<Group> {
    if share <= 0.0 {
        return None;
    }
    let mut digest = Sha256::new_with_prefix("offcut holdout\n");
    digest.update(conversation);
    // 32 bits are exact as a float.
    let [one, two, three, four, ..] = <[u8; 32]>::from(digest.finalize());
    let number = u32::from_be_bytes([one, two, three, four]);
    let place = f64::from(number) / (f64::from(u32::MAX) + 1.0);
    Some(if place < share {
        Group::HeldOut
    } else {
        Group::Reduced
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_the_names_is_held_out() {
        let held_out = |share| {
            let all = (0..10_000).map(|n| group(share, &format!("tenant/c-{n}/")));
            all.filter(|group| *group == Some(Group::HeldOut)).count()
        };
        assert_eq!((held_out(0.0), held_out(1.0)), (0, 10_000));
        let tenth = held_out(0.1);
        assert!((900..1_100).contains(&tenth), "{tenth}");
        assert_eq!(group(0.0, "a"), None);
    }

    #[test]
    fn a_larger_share_holds_out_the_same_and_more() {
        for n in 0..1_000 {
            let name = n.to_string();
            if group(0.1, &name) == Some(Group::HeldOut) {
                assert_eq!(group(0.2, &name), Some(Group::HeldOut), "{name}");
            }
        }
    }
}
