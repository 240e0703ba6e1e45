//! The exact test of two arms over the same tasks.

use super::ln_binomial;

/// The two-sided p-value of the exact conditional test, stratified by task.
///
/// Under the hypothesis that in each task both arms solve equally often, the number that the first solves follows a
/// hypergeometric distribution, given how many both have solved; the sum over all tasks follows their convolution.
/// The p-value is the probability of all sums that are at most as likely as the one that was seen. With one
/// task it is Fisher's test, with one repetition McNemar's, and in R `mantelhaen.test(exact = TRUE)`. The
/// probability of an error is never above alpha, whatever the numbers.
///
/// Each of `tasks` has the runs that solved it, and all runs, of the first arm and of the second.
pub(crate) fn exact_p(tasks: impl IntoIterator<Item = [(u64, u64); 2]>) -> f64 {
    let mut sums = vec![1.0];
    let mut seen = 0;
    for [(solved, runs), (other_solved, other_runs)] in tasks {
        let both = solved + other_solved;
        let least = both.saturating_sub(other_runs);
        let most = runs.min(both);
        let all = ln_binomial(runs + other_runs, both);
        let of_task: Vec<f64> = (least..=most)
            .map(|k| (ln_binomial(runs, k) + ln_binomial(other_runs, both - k) - all).exp())
            .collect();
        seen += (solved - least) as usize;
        sums = convolved(&sums, &of_task);
    }
    // As in R: sums are equally likely if they differ by rounding alone.
    let limit = sums[seen] * (1.0 + 1e-7);
    sums.iter().filter(|p| **p <= limit).sum::<f64>().min(1.0)
}

fn convolved(one: &[f64], other: &[f64]) -> Vec<f64> {
    let mut sums = vec![0.0; one.len() + other.len() - 1];
    // Most sums are less likely than 1e-30, and can't change a p-value that anybody reads.
    for (at, p) in one.iter().enumerate().filter(|(_, p)| **p > 1e-30) {
        for (offset, q) in other.iter().enumerate() {
            sums[at + offset] += p * q;
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A task by its numbers of runs, with those that solved it.
    fn outcomes(first: (u64, u64), second: (u64, u64)) -> [(u64, u64); 2] {
        [first, second].map(|(runs, solved)| (solved, runs))
    }

    #[track_caller]
    fn is_near(value: f64, published: f64, digits: i32) {
        assert!(
            (value - published).abs() < 0.5 * 10_f64.powi(-digits),
            "{value} is not {published}"
        );
    }

    #[test]
    fn one_task_is_fishers_test() {
        // The lady tasting tea, and Fisher's twins, as in R's `?fisher.test`.
        is_near(exact_p([outcomes((4, 3), (4, 1))]), 0.485_7, 4);
        is_near(exact_p([outcomes((17, 2), (13, 10))]), 0.000_536_7, 7);
    }

    #[test]
    fn one_repetition_of_each_task_is_mcnemars_test() {
        // 1 against 9 of ten tasks on which the arms differ: 2 · 11 / 1024.
        let mut tasks = vec![outcomes((1, 1), (1, 0))];
        tasks.extend([outcomes((1, 0), (1, 1)); 9]);
        tasks.extend([outcomes((1, 1), (1, 1)); 30]);
        is_near(exact_p(tasks), 22.0 / 1024.0, 12);
    }

    #[test]
    fn several_tasks_are_rs_exact_test() {
        // Rabbits, from R's `?mantelhaen.test`: penicillin now and later, by dose. S = 16, p = 0.03994.
        let doses = [
            ((6, 0), (5, 0)),
            ((6, 3), (6, 0)),
            ((6, 6), (6, 2)),
            ((6, 5), (6, 6)),
            ((2, 2), (5, 5)),
        ];
        let tasks = doses.map(|(first, second)| outcomes(first, second));
        is_near(exact_p(tasks), 0.039_94, 5);
    }

    #[test]
    fn equal_arms_and_no_run_at_all_differ_in_nothing() {
        is_near(exact_p([outcomes((10, 5), (10, 5))]), 1.0, 12);
        is_near(exact_p([]), 1.0, 12);
        is_near(
            exact_p([outcomes((0, 0), (0, 0)), outcomes((3, 0), (0, 0))]),
            1.0,
            12,
        );
    }
}
