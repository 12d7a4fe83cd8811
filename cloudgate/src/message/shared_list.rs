//! How is a list kept that is often copied and seldom changed?

use std::ops::Deref;
use std::sync::Arc;

/// A list that is part of the program, one's own, or shared by its clones until one of them is changed.
#[derive(Clone, Debug)]
pub(crate) enum List<T: 'static> {
    Static(&'static [T]),
    Owned(Vec<T>),
    Shared(Arc<[T]>),
}

impl<T> Default for List<T> {
    fn default() -> List<T> {
        List::Static(&[])
    }
}

impl<T> Deref for List<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match self {
            List::Static(list) => list,
            List::Owned(list) => list,
            List::Shared(list) => list,
        }
    }
}

impl<T: Clone> List<T> {
    pub(crate) fn is_owned(&self) -> bool {
        matches!(self, List::Owned(_))
    }

    /// The list, to change it.
    pub(crate) fn to_mut(&mut self) -> &mut Vec<T> {
        self.own(0)
    }

    /// Makes room for `more` elements, and copies what is not one's own but once for both.
    pub(crate) fn reserve(&mut self, more: usize) {
        self.own(more).reserve(more);
    }

    fn own(&mut self, more: usize) -> &mut Vec<T> {
        if !self.is_owned() {
            let mut owned = Vec::with_capacity(self.len() + more);
            owned.extend_from_slice(self);
            *self = List::Owned(owned);
        }
        match self {
            List::Owned(list) => list,
            List::Static(_) | List::Shared(_) => unreachable!("it was made one's own above"),
        }
    }

    /// Makes clones cheap.
    pub(crate) fn share(&mut self) {
        if let List::Owned(list) = self {
            *self = List::Shared(std::mem::take(list).into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_share_until_one_is_changed() {
        let mut list = List::Static(&[1, 2]);
        list.to_mut().push(3);
        list.share();
        let mut other = list.clone();
        assert!(std::ptr::eq(&list[0], &other[0]));
        other.reserve(1);
        other.to_mut().push(4);
        assert_eq!((&list[..], &other[..]), (&[1, 2, 3][..], &[1, 2, 3, 4][..]));
        assert!(other.is_owned() && !list.is_owned());
    }

    #[test]
    fn it_takes_no_more_room_than_a_vector() {
        assert_eq!(size_of::<List<u8>>(), size_of::<Vec<u8>>());
    }
}
