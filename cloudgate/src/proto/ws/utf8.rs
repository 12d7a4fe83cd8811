//! Is a text that comes in pieces UTF-8?

use super::violation::Violation;

/// A text as far as it has come. What can become no UTF-8 is refused with the byte that makes it so
/// (RFC 6455 section 8.1), not at the end of the message.
#[derive(Debug, Default)]
pub struct Text {
    text: String,
    /// The begin of a character that the last piece ended in.
    cut: [u8; 4],
    cut_length: usize,
}

impl Text {
    /// Adds a piece.
    ///
    /// # Errors
    /// [`Violation::InvalidUtf8`]
    pub fn push(&mut self, mut piece: &[u8]) -> Result<(), Violation> {
        while self.cut_length > 0 {
            let Some((&byte, rest)) = piece.split_first() else {
                return Ok(());
            };
            piece = rest;
            self.cut[self.cut_length] = byte;
            self.cut_length += 1;
            match std::str::from_utf8(&self.cut[..self.cut_length]) {
                Ok(character) => {
                    self.text.push_str(character);
                    self.cut_length = 0;
                }
                // Of four bytes none is still wanting, so there is room for the next.
                Err(error) if error.error_len().is_none() => {}
                Err(_) => return Err(Violation::InvalidUtf8),
            }
        }
        match std::str::from_utf8(piece) {
            Ok(text) => self.text.push_str(text),
            Err(error) if error.error_len().is_some() => return Err(Violation::InvalidUtf8),
            Err(error) => {
                let (whole, cut) = piece.split_at(error.valid_up_to());
                let whole = std::str::from_utf8(whole).map_err(|_| Violation::InvalidUtf8)?;
                self.text.push_str(whole);
                self.cut[..cut.len()].copy_from_slice(cut);
                self.cut_length = cut.len();
            }
        }
        Ok(())
    }

    /// Bytes that have come.
    pub fn len(&self) -> usize {
        self.text.len() + self.cut_length
    }

    /// Bytes of memory that are held.
    pub fn capacity(&self) -> usize {
        self.text.capacity()
    }

    /// The text, now that it is whole.
    ///
    /// # Errors
    /// [`Violation::InvalidUtf8`] where the last character is not.
    pub fn finish(self) -> Result<String, Violation> {
        if self.cut_length > 0 {
            return Err(Violation::InvalidUtf8);
        }
        Ok(self.text)
    }
}
