//! Processes that are killed at any write: between content, record and change.

use std::time::Duration;

use offcut::format::Plain;
use offcut_testkit::{Fault, Faulty};

use super::{history, memory, reduce, small};

/// Hands in a growing history. At the `n`-th write the process is killed, before or after that has
/// taken effect, and a new one goes on with the same call. Returns what each call sent, and whether
/// there was such a write.
async fn sent(n: u64, fault: Fault) -> (Vec<Vec<offcut::format::Message>>, bool) {
    let store = Faulty::new(memory());
    store.fault_on_write(n, fault);
    let mut sent = Vec::new();
    let mut reduction = small(store.clone()).build().unwrap();
    for rounds in 1..20 {
        let messages = history(rounds);
        let mut tried = messages.clone();
        let call = reduction.reduce(Plain, &mut tried);
        if tokio::time::timeout(Duration::from_secs(1), call)
            .await
            .is_err()
        {
            // Nothing was changed, and nothing was sent.
            assert_eq!(tried, messages);
            reduction = small(store.clone()).build().unwrap();
        }
        sent.push(reduce(&reduction, &messages).await.0);
    }
    (sent, store.writes() >= n)
}

// Time is paused, so hanging takes none.
#[tokio::test(start_paused = true)]
async fn l4_a_killed_process_leaves_the_whole_pass_or_nothing_of_it() {
    let (expected, _) = sent(u64::MAX, Fault::Hang).await;
    for fault in [Fault::Hang, Fault::ApplyThenHang] {
        for n in 1.. {
            let (sent, happened) = sent(n, fault).await;
            if !happened {
                assert!(n > 8, "{n} writes");
                break;
            }
            assert_eq!(sent, expected, "killed at write {n} ({fault:?})");
        }
    }
}
