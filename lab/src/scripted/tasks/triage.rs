//! Find whose request failed in a log.

use offcut_cli::trials::Random;

use crate::scripted::step::{Thought, answer};
use crate::scripted::task::{Set, filler};
use crate::scripted::view::RequestView;

pub(super) fn set_up(count: usize) -> Set {
    let mut random = Random::new(count as u64);
    let failed = count * 2 / 3;
    let mut log = String::new();
    let mut answer = String::new();
    for line in 0..count {
        let request = format!("rq-{:08x}", random.next_u64() as u32);
        let user = format!("user-{}", random.below(100_000));
        log += &format!(
            "{line:06} INFO accepted request={request} from={user} {}\n",
            filler(&mut random)
        );
        if line == failed {
            log += &format!("{line:06} INFO {}\n", filler(&mut random));
            log += &format!(
                "{line:06} ERROR request={request} failed: upstream closed the connection\n"
            );
            answer = user;
        }
    }
    Set {
        prompt: "A request failed. Whose was it? The log is in `server.log`.".into(),
        files: vec![("server.log".into(), log)],
        answer,
        expected: Vec::new(),
    }
}

pub(super) fn agent(view: &RequestView) -> Thought {
    const LOG: &str = "cat server.log";
    view.run(LOG)?;
    let request = &view.search(LOG, r"ERROR request=(\S+) failed")?[1];
    let user = view.search(LOG, &format!(r"accepted request={request} from=(\S+)"))?;
    Ok(answer(&user[1]))
}
