//! Something that a turn needs from what came before it.

/// Kinds of needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// A distinctive string of a result.
    Name,
    /// A line of a result.
    Quote,
    /// A number of three digits and more.
    Number,
    /// An option such as `--flag`.
    Flag,
    /// Two capitalised words in a row.
    Noun,
    /// A date, a time, an amount of money or a percentage.
    Date,
    /// The verdict of a command that tests, builds, lints, checks or installs.
    Verdict,
    /// A line of such a command that reports a failure.
    Failing,
    /// A name or a line from arguments of the agent's own earlier calls.
    Own,
    /// An edit's old text.
    Edit,
}

impl Kind {
    /// All kinds in their order, with their names in tables.
    pub(crate) const ALL: [(Self, &str); 10] = [
        (Self::Name, "named"),
        (Self::Quote, "quoted"),
        (Self::Number, "numbers"),
        (Self::Flag, "flags"),
        (Self::Noun, "nouns"),
        (Self::Date, "dates"),
        (Self::Verdict, "verdicts"),
        (Self::Failing, "failing"),
        (Self::Own, "own"),
        (Self::Edit, "edits"),
    ];

    /// Its name in tables.
    pub(crate) fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    /// Returns true if an agent that lacks it would have to read it back.
    pub(crate) fn is_read_back(self) -> bool {
        !matches!(self, Self::Verdict | Self::Failing | Self::Edit)
    }
}

/// Something that a turn needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Need {
    pub(crate) kind: Kind,
    pub(crate) text: String,
    /// Indexes of the messages that hold it, in order.
    pub(crate) holders: Vec<usize>,
}
