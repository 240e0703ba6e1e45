//! The contract of [`Backend`] as a test suite for any store.

mod check;
mod content;
mod names;
mod races;
mod removal;
mod writers;

use offcut::backend::Backend;

/// Checks a store against every clause of [`Backend`]'s contract that can be tested from outside.
///
/// `make` must return another, empty store each time, for example a new directory or a prefix of
/// its own.
///
/// ```
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// use offcut::backend::Memory;
///
/// // In `#[tokio::test(flavor = "multi_thread")]`, so that racing calls really run in parallel:
/// offcut_testkit::backend::conformance(async || Memory::new()).await;
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// Clauses about removing are skipped for a store that has no [`remove`](Backend::remove).
///
/// Needs a tokio runtime, writes about 50 MiB in all, and calls the store some thousand times.
/// Crashes, two processes and calls that never return can't be tested; give the test a timeout.
///
/// # Panics
///
/// Panics if the store breaks the contract. The message names the clause.
pub async fn conformance<B: Backend>(make: impl AsyncFn() -> B) {
    names::names_are_inverse(make().await);
    names::what_was_not_named_resolves_to_none(make().await);
    content::stored_content_is_read(make().await).await;
    content::any_key_can_be_stored(make().await).await;
    content::ranges_are_cut_at_the_end(make().await).await;
    content::nothing_is_not_found(make().await).await;
    content::stores_are_told_apart(make().await, make().await).await;
    content::stored_content_never_changes(make().await).await;
    content::keys_that_differ_in_case_lose_nothing(make().await).await;
    content::keys_within_keys_lose_nothing(make().await).await;
    races::one_of_many_puts_is_stored(make().await).await;
    writers::a_writer_stores_its_chunks(make().await).await;
    writers::a_writer_is_unseen_until_it_finishes(make().await).await;
    writers::a_writer_finds_a_second_name(make().await).await;
    writers::a_writer_reads_what_it_has(make().await).await;
    writers::a_finished_writer_changes_nothing(make().await).await;
    writers::a_dropped_writer_leaves_nothing(make().await).await;
    writers::a_dropped_write_is_the_last(make().await).await;
    races::a_dropped_put_is_all_or_nothing(make().await).await;
    races::a_dropped_finish_is_all_or_nothing(make().await).await;
    content::the_list_is_what_is_stored(make().await).await;
    content::the_time_of_storing_is_told(make().await).await;
    if removal::can_remove(make().await).await {
        removal::what_is_removed_is_gone(make().await).await;
        removal::what_is_newer_stays(make().await).await;
        removal::tidying_keeps_what_is_stored(make().await).await;
        removal::a_dropped_removal_is_all_or_nothing(make().await).await;
        removal::storing_where_something_is_removed_is_safe(make().await).await;
    }
}
