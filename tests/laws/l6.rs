//! L6: ids are data.

use offcut::backend::Location;
use offcut::format::{Message, Plain};
use offcut::{Part, ToolCall};
use proptest::prelude::{Just, prop_oneof};

use super::generate::ids;
use super::subject::OffcutSubject;
use super::text::{Kind, Text, texts};
use super::world::{Setup, World, files, setups};
use super::{STORE, block_on, hold, require};

#[test]
fn l6_a_session_or_a_call_never_names_a_path() {
    let cases = || (setups(files), ids(), ids(), texts());
    hold(10, cases, |(setup, session, id, text)| {
        block_on(async {
            let world = World::new(setup);
            let reduction = world.reduction().session(&session.0);
            let call = ToolCall::new(&*id.0, "grep", "{}");
            reduction
                .truncate(&call, text.render().repeat(3))
                .await
                .unwrap();
            let mut messages = vec![
                Message::calls(vec![call.clone()]),
                Message::tool(&call, vec![Part::Text(text.render())], false),
                Message::assistant("done"),
            ];
            reduction.clear(Plain, &mut messages).await.unwrap();
            let inside = |path: &str| {
                let names: Vec<&str> = path.split('/').collect();
                let safe =
                    |name: &&str| *name == ".staging" || !name.starts_with('.') && name.is_ascii();
                names.len() <= 7 && matches!(names[0], "one" | "two") && names.iter().all(safe)
            };
            for path in world.paths() {
                require(inside(&path), "L6", || {
                    format!("{path:?} should not be there")
                })?;
            }
            let mut entries = std::fs::read_dir(world.home.path().unwrap()).unwrap();
            let are_stores = entries.all(|entry| {
                ["one", "two"]
                    .iter()
                    .any(|name| entry.as_ref().unwrap().file_name() == *name)
            });
            require(are_stores, "L6", || {
                "something was made beside the stores".into()
            })
        })
    });
}

#[test]
fn l6_a_location_that_a_model_wrote_reads_nothing_else() {
    let cases = || {
        let tails = prop_oneof![
            Just("/../../../etc/passwd".to_owned()),
            Just("/./trunc/call_0".to_owned()),
            Just("\0".to_owned()),
            "[./a-z\\\\%]{0,12}",
        ];
        (setups(files), tails, 0_usize..60)
    };
    hold(40, cases, |(setup, tail, keep)| {
        block_on(async {
            let subject = OffcutSubject::new(World::new(setup));
            let call = ToolCall::new("call_0", "grep", "{}");
            let text = Text::new(Kind::Lines, 90_000, 0).render();
            let shown = subject
                .reduction
                .truncate(&call, text.clone())
                .await
                .unwrap();
            let location = shown.report.decisions[0]
                .locations
                .first()
                .unwrap()
                .as_str()
                .to_owned();
            let written = format!("{}{tail}", &location[..keep.min(location.len())]);
            let read = subject
                .reduction
                .read_original(&Location::new(&*written))
                .await;
            let is_ours = matches!(&read, None | Some(Err(_)))
                || matches!(&read, Some(Ok(bytes)) if *bytes == text);
            require(is_ours, "L6", || {
                format!("{written:?} reads something else")
            })
        })
    });
}

#[test]
fn l6_a_session_reads_nothing_of_another() {
    hold(
        5,
        || setups(STORE),
        |setup| {
            block_on(async {
                let world = World::new(Setup {
                    session: false,
                    ..setup
                });
                let (one, other) = (
                    world.reduction().session("one"),
                    world.reduction().session("one/trunc"),
                );
                let call = ToolCall::new("call_0", "grep", "{}");
                let shown = one
                    .truncate(&call, Text::new(Kind::Lines, 90_000, 0).render())
                    .await
                    .unwrap();
                let location = &shown.report.decisions[0].locations[0];
                require(
                    one.read_original(location)
                        .await
                        .is_some_and(|read| read.is_ok()),
                    "L1",
                    || "lost".into(),
                )?;
                let is_refused = other.read_original(location).await.is_none()
                    && world.reduction().read_original(location).await.is_none();
                require(is_refused, "L6", || {
                    format!("{location} is read by another session")
                })
            })
        },
    );
}
