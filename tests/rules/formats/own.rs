//! A format for messages of another crate, as users write one.

use offcut::backend::Memory;
use offcut::format::{Call, Format, JsonRef, NewPiece, PartRef, Piece, ResultHead, Role};
use offcut::{Part, ToolReduction};

/// A message of another crate.
#[derive(Clone, PartialEq)]
enum Utterance {
    Person(String),
    Model {
        says: String,
        asks: Vec<(String, String)>,
    },
    Tool {
        name: String,
        output: String,
        mood: u8,
    },
}

/// The format of [`Utterance`].
struct Dialog;

impl Format for Dialog {
    type Message = Utterance;

    fn visit<'m>(&self, turn: &'m Utterance, see: &mut dyn FnMut(Piece<'m>)) {
        match turn {
            Utterance::Person(text) => {
                see(Piece::Role(Role::User));
                see(Piece::Content(PartRef::Text(text)));
            }
            Utterance::Model { says, asks } => {
                see(Piece::Role(Role::Assistant));
                see(Piece::Content(PartRef::Text(says)));
                for (name, arguments) in asks {
                    let arguments = JsonRef::Spelled(arguments);
                    see(Piece::Call(Call {
                        id: "",
                        name,
                        arguments,
                        is_signed: false,
                        is_for_program: false,
                        is_fixed: false,
                    }));
                }
            }
            Utterance::Tool { name, output, .. } => {
                see(Piece::Role(Role::Tool));
                see(Piece::Result(ResultHead {
                    id: "",
                    name: Some(name),
                    is_error: false,
                    is_for_program: false,
                    is_fixed: false,
                }));
                see(Piece::Content(PartRef::Text(output)));
            }
        }
    }

    fn replace(&self, turn: &mut Utterance, index: usize, new: NewPiece) {
        match (turn, new) {
            (Utterance::Tool { output, .. }, NewPiece::Result(parts)) => {
                // A `Tool` has one slot. What it can't hold, such as several parts, leaves it as it was.
                if let (0, [Part::Text(text)]) = (index, &parts[..]) {
                    output.clone_from(text);
                }
            }
            (Utterance::Model { asks, .. }, NewPiece::Arguments(arguments)) => {
                if let Some(ask) = asks.get_mut(index) {
                    ask.1 = arguments;
                }
            }
            _ => {}
        }
    }
}

#[tokio::test]
async fn a_format_of_two_methods_keeps_the_contract() {
    let reduction = ToolReduction::recommended(Memory::new())
        .max_tokens_for_clear(1_000)
        .build()
        .unwrap();
    let ask = || Utterance::Model {
        says: String::new(),
        asks: vec![("grep".into(), "{}".into())],
    };
    let answer = |output: String| Utterance::Tool {
        name: "grep".into(),
        output,
        mood: 7,
    };
    let mut turns = vec![
        Utterance::Person("What is in there?".into()),
        ask(),
        answer("long ".repeat(2_000)),
        ask(),
        answer("short".into()),
    ];
    offcut_testkit::format::conformance(&Dialog, &turns); // the contract, clause by clause
    let report = reduction.clear(Dialog, &mut turns).await.unwrap();
    assert_eq!(report.cleared_tool_uses(), 1);
    assert!(
        matches!(&turns[2], Utterance::Tool { output, mood: 7, .. } if output.contains("Old result of grep"))
    );
}
