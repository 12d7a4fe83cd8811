//! Where do the parts of a `multipart/form-data` body begin and end?
//!
//! ```text
//!  Preamble ─▶ Delimiter ─▶ Head ─▶ FirstData ─▶ Data ─▶ Delimiter …
//!                  └─ `--` ─▶ Epilogue
//! ```
//!
//! It is fed with bytes and keeps none: the caller holds what was not consumed and comes back with more
//! behind it. That is never more than the limit for a head and a boundary's length.

use std::ops::Range;

use memchr::{memmem, memrchr};

use super::head::PartHead;

/// What a [`Parser`] found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A part begins.
    Head(PartHead),
    /// More of the part's content: where it stands in the input.
    Data(Range<usize>),
    /// The part is complete.
    PartEnd,
    /// The last part is complete; what follows means nothing.
    End,
}

/// How far a [`Parser`] came with an input.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// How many bytes of the input are done with.
    pub(crate) consumed: usize,
    /// What was found; `None` where more bytes are needed.
    pub(crate) event: Option<Event>,
}

/// The rule that a body breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ParserError {
    Malformed {
        /// Where, in bytes from the start of the body.
        at: u64,
        reason: &'static str,
    },
    HeadTooLarge {
        at: u64,
        limit: usize,
    },
    TooManyParts {
        limit: usize,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Before the first boundary: at the very start of the body, or behind it.
    Preamble {
        first: bool,
    },
    /// Behind a boundary, in its line.
    Delimiter {
        padded: bool,
    },
    /// At the line break behind a boundary; this many bytes of the head are known to hold no end.
    Head {
        searched: usize,
    },
    /// Behind the blank line.
    FirstData,
    Data,
    Epilogue,
}

/// The most header bytes and parts that a [`Parser`] goes along with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ParserLimits {
    pub(crate) parts: usize,
    pub(crate) part_head: usize,
}

/// Finds the parts of one body.
#[derive(Debug)]
pub(crate) struct Parser {
    /// Finds a boundary with the line break and dashes before it (RFC 2046 section 5.1.1).
    delimiter: memmem::Finder<'static>,
    limits: ParserLimits,
    state: State,
    /// How many bytes were consumed.
    offset: u64,
    parts: usize,
}

impl Parser {
    /// A parser for a body whose Content-Type names this boundary.
    pub(crate) fn new(boundary: &str, limits: ParserLimits) -> Parser {
        let delimiter = format!("\r\n--{boundary}");
        Parser {
            delimiter: memmem::Finder::new(delimiter.as_bytes()).into_owned(),
            limits,
            state: State::Preamble { first: true },
            offset: 0,
            parts: 0,
        }
    }

    /// Looks for the next event in `input`, which begins where the last step stopped.
    pub(crate) fn step(&mut self, input: &[u8]) -> Result<Step, ParserError> {
        let mut consumed = 0;
        loop {
            let (count, event, state) = self.look(&input[consumed..], consumed)?;
            let stays = self.state == state;
            self.state = state;
            self.offset += count as u64;
            consumed += count;
            if event.is_some() || stays {
                return Ok(Step { consumed, event });
            }
        }
    }

    /// Says whether the body may end here.
    pub(crate) fn finish(&self, left: &[u8]) -> Result<(), ParserError> {
        let reason = match self.state {
            State::Epilogue => return Ok(()),
            State::Preamble { .. } => {
                "the end of the body without the boundary that its Content-Type names"
            }
            State::Delimiter { .. } => "the end of the body in the line of a boundary",
            State::Head { .. } => "the end of the body in the head of a part",
            State::FirstData | State::Data => {
                "the end of the body in a part: the last boundary, with -- behind it, is missing"
            }
        };
        Err(ParserError::Malformed {
            at: self.offset + left.len() as u64,
            reason,
        })
    }

    /// One move: how much of `rest` it takes, what it found, and the state behind it.
    fn look(
        &mut self,
        rest: &[u8],
        before: usize,
    ) -> Result<(usize, Option<Event>, State), ParserError> {
        let delimiter = self.delimiter.needle();
        let dash_boundary = &delimiter[2..];
        let behind = State::Delimiter { padded: false };
        let stay = (0, None, self.state);
        match self.state {
            State::Preamble { first } => {
                // The first boundary may stand at the very start, without its line break.
                if first {
                    if rest.starts_with(dash_boundary) {
                        return Ok((dash_boundary.len(), None, behind));
                    }
                    if dash_boundary.starts_with(rest) {
                        return Ok(stay);
                    }
                }
                Ok(match self.delimiter.find(rest) {
                    Some(at) => (at + delimiter.len(), None, behind),
                    None => (
                        settled(rest, delimiter),
                        None,
                        State::Preamble { first: false },
                    ),
                })
            }
            State::Delimiter { padded } => {
                let padding = rest
                    .iter()
                    .take_while(|byte| matches!(byte, b' ' | b'\t'))
                    .count();
                match &rest[padding..] {
                    [] if padding == 0 => Ok(stay),
                    [] => Ok((padding, None, State::Delimiter { padded: true })),
                    [b'\r', b'\n', ..] if self.parts == self.limits.parts => {
                        Err(ParserError::TooManyParts {
                            limit: self.limits.parts,
                        })
                    }
                    // The line break stays, for a part may begin with the blank line that ends its fields.
                    [b'\r', b'\n', ..] => {
                        self.parts += 1;
                        Ok((padding, None, State::Head { searched: 0 }))
                    }
                    [b'-', b'-', ..] if !padded && padding == 0 => {
                        Ok((2, Some(Event::End), State::Epilogue))
                    }
                    [b'\r'] => Ok((padding, None, State::Delimiter { padded: padded || padding > 0 })),
                    [b'-'] if !padded && padding == 0 => Ok(stay),
                    [b'\n', ..] => Err(self.malformed(
                        padding,
                        "a line that ends in LF alone: lines end in CR LF",
                    )),
                    _ => Err(self.malformed(
                        padding,
                        "a boundary with more than spaces behind it: a line break or -- belongs there",
                    )),
                }
            }
            State::Head { searched } => {
                let window = &rest[..rest.len().min(self.limits.part_head + 4)];
                let from = searched.saturating_sub(3).min(window.len());
                let Some(at) = memmem::find(&window[from..], b"\r\n\r\n") else {
                    if window.len() == self.limits.part_head + 4 {
                        return Err(ParserError::HeadTooLarge {
                            at: self.offset,
                            limit: self.limits.part_head,
                        });
                    }
                    // Nothing is consumed, so the caller sees that more is needed.
                    self.state = State::Head {
                        searched: window.len(),
                    };
                    return Ok((0, None, self.state));
                };
                let length = from + at;
                let head = PartHead::parse(&rest[..length], dash_boundary)
                    .map_err(|fault| self.malformed(fault.at, fault.reason))?;
                Ok((length + 4, Some(Event::Head(head)), State::FirstData))
            }
            State::FirstData => {
                // Some would read it as an empty part, others as its content.
                if rest.starts_with(dash_boundary) {
                    Err(self.malformed(0, "a boundary right behind the empty line of a part"))
                } else if dash_boundary.starts_with(rest) {
                    Ok(stay)
                } else {
                    Ok((0, None, State::Data))
                }
            }
            State::Data => {
                let data = match self.delimiter.find(rest) {
                    Some(0) => return Ok((delimiter.len(), Some(Event::PartEnd), behind)),
                    Some(at) => at,
                    None => settled(rest, delimiter),
                };
                let found = (data > 0).then(|| Event::Data(before..before + data));
                Ok((data, found, State::Data))
            }
            State::Epilogue => Ok((rest.len(), None, State::Epilogue)),
        }
    }

    fn malformed(&self, ahead: usize, reason: &'static str) -> ParserError {
        ParserError::Malformed {
            at: self.offset + ahead as u64,
            reason,
        }
    }
}

/// How many bytes cannot be the beginning of a delimiter whose rest is still to come.
// A boundary holds no CR, so only the last one can begin a delimiter.
fn settled(input: &[u8], delimiter: &[u8]) -> usize {
    let from = input.len().saturating_sub(delimiter.len() - 1);
    match memrchr(b'\r', &input[from..]) {
        Some(at) if delimiter.starts_with(&input[from + at..]) => from + at,
        _ => input.len(),
    }
}

#[cfg(test)]
mod tests;
