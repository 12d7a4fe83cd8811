//! How do handlers share values?

use std::any::{Any, TypeId, type_name};
use std::collections::HashMap;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use super::Core;
use super::extract::FromRequest;
use super::rejection::Rejection;
use crate::message::Request;

/// A value that all requests share, registered once by [`App::state`](crate::App::state).
///
/// ```
/// use cloudgate::{App, State};
/// use std::sync::atomic::{AtomicU64, Ordering};
///
/// #[derive(Default)]
/// struct Visits(AtomicU64);
///
/// #[cloudgate::route("/visits")]
/// fn visits(State(visits): State<Visits>) -> String {
///     format!("{} visits", visits.0.fetch_add(1, Ordering::Relaxed) + 1)
/// }
///
/// let app = App::gather().state(Visits::default());
/// # use cloudgate::Request;
/// # assert_eq!(app.call(&mut Request::get("/visits")).text(), "1 visits");
/// # assert_eq!(app.call(&mut Request::get("/visits")).text(), "2 visits");
/// ```
///
/// A lock inside of it must not be held while the handler waits for something else, such as a
/// body or another server: every other handler on the same worker would wait for that lock.
pub struct State<T>(pub Arc<T>);

impl<T> Deref for State<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> Clone for State<T> {
    fn clone(&self) -> State<T> {
        State(Arc::clone(&self.0))
    }
}

impl<T: fmt::Debug> fmt::Debug for State<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("State").field(&self.0).finish()
    }
}

impl<T: Send + Sync + 'static> FromRequest for State<T> {
    type Rejection = Rejection;

    fn from_request(request: &mut Request<'_>) -> Result<State<T>, Rejection> {
        Core::all_of(request)
            .find_map(|core| core.states.get::<T>())
            .map(State)
            .ok_or(Rejection::MissingState {
                type_name: type_name::<T>(),
            })
    }

    fn needs(needs: &mut Needs) {
        needs.state::<T>();
    }
}

/// What a handler's arguments need at start, so that a lack is noticed before the first request.
#[derive(Debug, Default)]
pub struct Needs {
    states: Vec<Need>,
}

#[derive(Debug)]
struct Need {
    id: TypeId,
    type_name: &'static str,
    /// What to add to the App, where that is always the same.
    line: Option<&'static str>,
}

impl Needs {
    /// Asks for a registered [`State`] of this type.
    pub fn state<T: 'static>(&mut self) {
        self.add::<T>(None);
    }

    /// As [`Needs::state`], and the error says to add this line.
    pub(crate) fn state_by_line<T: 'static>(&mut self, line: &'static str) {
        self.add::<T>(Some(line));
    }

    fn add<T: 'static>(&mut self, line: Option<&'static str>) {
        self.states.push(Need {
            id: TypeId::of::<T>(),
            type_name: type_name::<T>(),
            line,
        });
    }
}

/// One value of each type.
#[derive(Clone, Default)]
pub(crate) struct States(HashMap<TypeId, Arc<dyn Any + Send + Sync>>);

impl States {
    pub(super) fn insert<T: Send + Sync + 'static>(&mut self, value: T) {
        if self.0.insert(TypeId::of::<T>(), Arc::new(value)).is_some() {
            log::warn!(
                "State<{}> was registered twice; the later value counts",
                type_name::<T>()
            );
        }
    }

    pub(super) fn get<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        Arc::clone(self.0.get(&TypeId::of::<T>())?).downcast().ok()
    }

    /// The first type that `list` asks for and that is in none of these: its name, and the line that
    /// registers it, if that is always the same.
    pub(super) fn first_missing(
        all: &[&States],
        list: fn(&mut Needs),
    ) -> Option<(&'static str, Option<&'static str>)> {
        let mut needs = Needs::default();
        list(&mut needs);
        let known = |id: &TypeId| all.iter().any(|states| states.0.contains_key(id));
        needs
            .states
            .iter()
            .find(|need| !known(&need.id))
            .map(|need| (need.type_name, need.line))
    }
}
