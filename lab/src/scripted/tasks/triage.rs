//! Find whose request failed in a log.

use offcut_cli::trials::Random;

use crate::scripted::step::{Step, answer, bash, lost};
use crate::scripted::task::{Set, Task, Work, filler};
use crate::scripted::view::{RequestView, Search};

pub(super) const TASK: Task = Task {
    name: "log triage",
    sizes: [30, 300, 3_000, 6_000],
    work: Work::Own { set_up, agent },
};

fn set_up(count: usize) -> Set {
    let mut random = Random::new(count as u64);
    let failed = count * 2 / 3;
    let mut log = String::new();
    let mut answer = String::new();
    for line in 0..count {
        let request = |random: &mut Random| format!("rq-{:08x}", random.next_u64() as u32);
        if line == failed {
            let (request, user) = (
                request(&mut random),
                format!("user-{}", random.below(100_000)),
            );
            log += &format!(
                "{line:06} INFO accepted request={request} from={user} {}\n",
                filler(&mut random)
            );
            log += &format!("{line:06} INFO {}\n", filler(&mut random));
            log += &format!(
                "{line:06} ERROR request={request} failed: upstream closed the connection\n"
            );
            answer = user;
        } else {
            let (request, user) = (request(&mut random), random.below(100_000));
            log += &format!(
                "{line:06} INFO accepted request={request} from=user-{user} {}\n",
                filler(&mut random)
            );
        }
    }
    Set {
        prompt: "A request failed. Whose was it? The log is in `server.log`.".into(),
        files: vec![("server.log".into(), log)],
        answer,
        expected: Vec::new(),
    }
}

fn agent(view: &RequestView) -> Step {
    const LOG: &str = "cat server.log";
    if !view.has_run(LOG) {
        return bash(LOG);
    }
    let request = match view.search(LOG, r"ERROR request=(\S+) failed") {
        Search::Found(found) => found[1].clone(),
        Search::Read(step) => return step,
        Search::Absent => return lost(),
    };
    match view.search(LOG, &format!(r"accepted request={request} from=(\S+)")) {
        Search::Found(found) => answer(&found[1]),
        Search::Read(step) => step,
        Search::Absent => lost(),
    }
}
