//! Where do connections wait that have nothing to do?
//!
//! A coroutine costs at least two pages and two memory mappings. A parked connection costs an entry
//! in a table: its descriptor is watched by one thread for all, and its owner gets it back when bytes
//! come. The watch is level-triggered, so what arrived on the way here is seen at once, and an entry
//! leaves the table under its lock, so it comes back exactly once.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::net::{RecvFlags, recv};

use super::deadline::Clock;
use crate::message::Deadline;

/// The key of the bell that ends the watching thread's wait.
const BELL: u64 = u64::MAX;

/// How many events are taken from the system at once.
const EVENTS: usize = 256;

/// How long items that nobody could take wait until they are offered again.
const AGAIN: Duration = Duration::from_millis(2);

/// How many slots are allocated together.
const BLOCK: usize = 256;

/// How many deadlines of entries that have left may stay, whatever the number of entries.
const SPARE_DUES: usize = 1024;

/// What can be parked.
pub(crate) trait Parked: AsFd + Send + 'static {
    /// Whether its owner gets it back at its end too, when it is late, and when the lot closes; else it is dropped.
    fn minds_its_end(&self) -> bool {
        false
    }
}

/// Which entry of a lot is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket(u64);

/// A table of idle descriptors, each with what its owner needs to go on.
pub(crate) struct Lot<T> {
    epoll: OwnedFd,
    bell: OwnedFd,
    clock: Arc<Clock>,
    state: Mutex<State<T>>,
}

// No allocation for each entry: a small one, made while many connections are busy, would keep a page
// of their buffers from going back to the system.
struct State<T> {
    /// In blocks, for a table that grows by copying leaves holes as large as itself.
    blocks: Vec<Box<[Slot<T>]>>,
    free: Vec<u32>,
    /// Every entry with its deadline, the next one first, among entries that have left since.
    dues: BinaryHeap<Reverse<Due>>,
    /// What is to be given back, having left the table.
    called: Vec<T>,
    stopped: bool,
}

/// When which entry of which slot is late.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    at: u64,
    index: u32,
    generation: u32,
}

struct Slot<T> {
    /// Counts the entries that were here, so that an event for an earlier one is known as such.
    generation: u32,
    item: Option<T>,
}

impl<T: Parked> Lot<T> {
    /// An empty lot and its thread. `awake` gets each item whose descriptor has bytes; it gives back
    /// what it cannot take now, and is asked again soon. What has ended or is late is dropped, unless it minds.
    ///
    /// # Errors
    /// When there is no descriptor or thread for it.
    pub(crate) fn start(
        clock: Arc<Clock>,
        awake: impl Fn(T) -> Result<(), T> + Send + 'static,
    ) -> io::Result<Arc<Lot<T>>> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let bell = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        epoll::add(&epoll, &bell, EventData::new_u64(BELL), EventFlags::IN)?;
        let state = State {
            blocks: Vec::new(),
            free: Vec::new(),
            dues: BinaryHeap::new(),
            called: Vec::new(),
            stopped: false,
        };
        let lot = Arc::new(Lot {
            epoll,
            bell,
            clock,
            state: Mutex::new(state),
        });
        let watched = Arc::clone(&lot);
        std::thread::Builder::new()
            .name("cloudgate-parking".to_owned())
            .spawn(move || watched.watch(&awake))?;
        Ok(lot)
    }

    /// Takes an item in until its descriptor has bytes, has ended, or `until` has passed.
    ///
    /// # Errors
    /// Gives the item back when the lot is closed, or the system does not watch its descriptor.
    pub(crate) fn park(&self, item: T, until: Deadline) -> Result<Ticket, T> {
        let mut state = self.lock();
        if state.stopped {
            return Err(item);
        }
        let index = state.free.pop().unwrap_or_else(|| state.grow());
        let slot = state.slot_mut(index);
        let due = Due {
            at: until.as_millis(),
            index,
            generation: slot.generation,
        };
        let ticket = Ticket(u64::from(due.generation) << 32 | u64::from(index));
        let key = EventData::new_u64(ticket.0);
        if let Err(error) = epoll::add(&self.epoll, &item, key, EventFlags::IN | EventFlags::RDHUP)
        {
            log::error!("an idle connection cannot be parked: {error}");
            state.free.push(index);
            return Err(item);
        }
        slot.item = Some(item);
        if state.note(due) {
            self.ring();
        }
        Ok(ticket)
    }

    /// Lets the owner have an item back as soon as its descriptor, `socket`, can be read or written. An item that is
    /// on its way back already goes its way.
    pub(crate) fn rouse(&self, ticket: Ticket, socket: &impl AsFd) {
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP;
        match epoll::modify(&self.epoll, socket, EventData::new_u64(ticket.0), flags) {
            Ok(()) | Err(rustix::io::Errno::NOENT) => {}
            Err(error) => log::error!("an idle connection cannot be roused: {error}"),
        }
    }

    /// How many items are parked.
    pub(crate) fn len(&self) -> usize {
        self.lock().occupied()
    }

    /// Lets the owner have an item back now.
    pub(crate) fn call(&self, ticket: Ticket) {
        if let Some(item) = self.take(ticket) {
            self.lock().called.push(item);
            self.ring();
        }
    }

    /// Drops every item, or gives back those that mind, and ends the thread.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.stopped = true;
        let mut blocks = std::mem::take(&mut state.blocks);
        for slot in blocks.iter_mut().flatten() {
            if slot.item.as_ref().is_some_and(Parked::minds_its_end) {
                state.called.extend(slot.item.take());
            }
        }
        state.free.clear();
        state.dues.clear();
        drop(state);
        // Dropping closes descriptors, which nobody has to wait for under the lock.
        drop(blocks);
        self.ring();
    }

    fn watch(&self, awake: &dyn Fn(T) -> Result<(), T>) {
        let mut events: Vec<Event> = Vec::with_capacity(EVENTS);
        let mut ready = VecDeque::new();
        loop {
            let wait = match self.take_late(&mut ready) {
                Next::Stopped => return see_off(ready, awake),
                Next::Due(_) if !ready.is_empty() => Some(AGAIN),
                Next::Due(wait) => wait,
            };
            let wait = wait.and_then(|wait| Timespec::try_from(wait).ok());
            events.clear();
            if let Err(error) = epoll::wait(&self.epoll, spare_capacity(&mut events), wait.as_ref())
                && error != rustix::io::Errno::INTR
            {
                log::error!("idle connections cannot be watched: {error}");
                std::thread::sleep(AGAIN);
            }
            for event in &events {
                let key = event.data.u64();
                if key == BELL {
                    let _ = rustix::io::read(&self.bell, &mut [0; 8]);
                    continue;
                }
                let Some(item) = self.take(Ticket(key)) else {
                    continue;
                };
                let flags = event.flags;
                let ended = flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR);
                // A peer that has ended may have sent something first.
                if !ended || item.minds_its_end() || has_bytes(&item) {
                    ready.push_back(item);
                }
            }
            offer(&mut ready, awake);
        }
    }

    /// Takes an entry out, if it is the one that the ticket means.
    fn take(&self, ticket: Ticket) -> Option<T> {
        let (index, generation) = (ticket.0 as u32, (ticket.0 >> 32) as u32);
        let mut state = self.lock();
        let block = state.blocks.get_mut(index as usize / BLOCK)?;
        let slot = &mut block[index as usize % BLOCK];
        if slot.generation != generation {
            return None;
        }
        let item = slot.item.take()?;
        state.vacate(index);
        // Another thread may close the descriptor next, so it must be off the list by then.
        let _ = epoll::delete(&self.epoll, &item);
        Some(item)
    }

    /// Drops what is late, or puts it to what is `ready` if it minds, and says how long nothing more is late.
    fn take_late(&self, ready: &mut VecDeque<T>) -> Next {
        let now = self.clock.tick();
        let mut late = Vec::new();
        let mut state = self.lock();
        if state.stopped {
            late.append(&mut state.called);
            drop(state);
            for item in &late {
                let _ = epoll::delete(&self.epoll, item);
            }
            ready.extend(late);
            return Next::Stopped;
        }
        ready.extend(state.called.drain(..));
        let next = loop {
            match state.dues.peek().map(|Reverse(due)| *due) {
                Some(due) if !state.is_current(due) => {
                    state.dues.pop();
                }
                Some(due) if due.at <= now => {
                    state.dues.pop();
                    late.extend(state.slot_mut(due.index).item.take());
                    state.vacate(due.index);
                }
                next => break next.map(|due| due.at),
            }
        };
        drop(state);
        for item in late.into_iter().filter(Parked::minds_its_end) {
            // As in `take`.
            let _ = epoll::delete(&self.epoll, &item);
            ready.push_back(item);
        }
        Next::Due(
            next.filter(|due| *due != Deadline::NEVER.as_millis())
                .map(|due| Duration::from_millis(due - now)),
        )
    }

    fn ring(&self) {
        // Can only fail with a full counter, and then the bell rings anyway.
        let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> State<T> {
    /// Makes another block of slots and gives the first of them.
    fn grow(&mut self) -> u32 {
        let first = (self.blocks.len() * BLOCK) as u32;
        let empty = || Slot {
            generation: 0,
            item: None,
        };
        self.blocks.push((0..BLOCK).map(|_| empty()).collect());
        self.free.extend((first + 1..first + BLOCK as u32).rev());
        first
    }

    fn slot_mut(&mut self, index: u32) -> &mut Slot<T> {
        &mut self.blocks[index as usize / BLOCK][index as usize % BLOCK]
    }

    fn occupied(&self) -> usize {
        self.blocks.len() * BLOCK - self.free.len()
    }

    /// Notes a deadline; true if it is the next one.
    fn note(&mut self, due: Due) -> bool {
        // Entries that came back to life leave their deadlines here. Once these are the greater part
        // they are swept out, which is one step for each that was noted.
        if self.dues.len() > 2 * self.occupied() + SPARE_DUES {
            let mut dues = std::mem::take(&mut self.dues);
            dues.retain(|Reverse(due)| self.is_current(*due));
            self.dues = dues;
        }
        let next = self
            .dues
            .peek()
            .is_none_or(|Reverse(next)| due.at < next.at);
        self.dues.push(Reverse(due));
        next
    }

    fn is_current(&self, due: Due) -> bool {
        let slot = &self.blocks[due.index as usize / BLOCK][due.index as usize % BLOCK];
        slot.generation == due.generation && slot.item.is_some()
    }

    fn vacate(&mut self, index: u32) {
        let slot = self.slot_mut(index);
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(index);
    }
}

/// What the watching thread does next.
enum Next {
    /// Wait for no longer than this.
    Due(Option<Duration>),
    /// End.
    Stopped,
}

/// Offers the last items until all are taken.
fn see_off<T>(mut items: VecDeque<T>, awake: &dyn Fn(T) -> Result<(), T>) {
    loop {
        offer(&mut items, awake);
        if items.is_empty() {
            return;
        }
        std::thread::sleep(AGAIN);
    }
}

/// Offers the items in their turn, until one is not taken: those behind it would not be either.
fn offer<T>(items: &mut VecDeque<T>, awake: &dyn Fn(T) -> Result<(), T>) {
    while let Some(item) = items.pop_front() {
        if let Err(item) = awake(item) {
            items.push_front(item);
            return;
        }
    }
}

/// Whether something can be read from the socket before its end.
fn has_bytes(socket: &impl AsFd) -> bool {
    match recv(
        socket,
        &mut [0_u8; 1],
        RecvFlags::PEEK | RecvFlags::DONTWAIT,
    ) {
        Ok((_, count)) => count > 0,
        Err(error) => error == rustix::io::Errno::WOULDBLOCK,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;
    use std::sync::mpsc::{self, Receiver};

    impl Parked for UnixStream {}

    const LONG: Duration = Duration::from_secs(30);

    fn lot() -> (Arc<Lot<UnixStream>>, Receiver<UnixStream>) {
        let (send, receive) = mpsc::channel();
        let lot = Lot::start(Arc::new(Clock::new()), move |item| {
            send.send(item).map_err(|error| error.0)
        });
        (lot.unwrap(), receive)
    }

    fn ended(mut stream: &UnixStream) {
        stream.set_read_timeout(Some(LONG)).unwrap();
        assert_eq!(stream.read(&mut [0; 1]).unwrap(), 0);
    }

    #[test]
    fn bytes_bring_an_item_back_whether_they_come_before_or_after() {
        let (lot, back) = lot();
        for before in [true, false] {
            let (mut ours, theirs) = UnixStream::pair().unwrap();
            if before {
                ours.write_all(b"x").unwrap();
            }
            assert!(lot.park(theirs, Deadline::NEVER).is_ok());
            if !before {
                ours.write_all(b"x").unwrap();
            }
            let mut theirs = back.recv_timeout(LONG).unwrap();
            theirs.read_exact(&mut [0; 1]).unwrap();
            assert_eq!(lot.len(), 0);
        }
    }

    #[test]
    fn an_ended_item_is_dropped_but_not_before_its_last_bytes_were_seen() {
        let (lot, back) = lot();
        let (ours, theirs) = UnixStream::pair().unwrap();
        assert!(lot.park(theirs, Deadline::NEVER).is_ok());
        ours.shutdown(std::net::Shutdown::Write).unwrap();
        ended(&ours);

        let (mut ours, theirs) = UnixStream::pair().unwrap();
        ours.write_all(b"last").unwrap();
        ours.shutdown(std::net::Shutdown::Write).unwrap();
        assert!(lot.park(theirs, Deadline::NEVER).is_ok());
        let mut text = String::new();
        back.recv_timeout(LONG)
            .unwrap()
            .read_to_string(&mut text)
            .unwrap();
        assert_eq!(text, "last");
    }

    #[test]
    fn late_items_are_dropped_in_their_order() {
        let (lot, _back) = lot();
        let (first, parked_first) = UnixStream::pair().unwrap();
        let (never, parked_never) = UnixStream::pair().unwrap();
        let (second, parked_second) = UnixStream::pair().unwrap();
        assert!(lot.park(parked_never, Deadline::NEVER).is_ok());
        assert!(lot.park(parked_second, Deadline::at(60)).is_ok());
        assert!(lot.park(parked_first, Deadline::at(20)).is_ok());
        ended(&first);
        ended(&second);
        assert_eq!(lot.len(), 1);
        lot.close();
        ended(&never);
    }

    #[test]
    fn deadlines_of_entries_that_left_do_not_pile_up() {
        let (lot, back) = lot();
        let (mut ours, mut theirs) = UnixStream::pair().unwrap();
        for _ in 0..3 * SPARE_DUES {
            assert!(lot.park(theirs, Deadline::NEVER).is_ok());
            assert!(lot.lock().dues.len() <= SPARE_DUES + 3);
            ours.write_all(b"x").unwrap();
            theirs = back.recv_timeout(LONG).unwrap();
            theirs.read_exact(&mut [0; 1]).unwrap();
        }
        // One that is there keeps its own.
        let (waiting, parked) = UnixStream::pair().unwrap();
        assert!(
            lot.park(parked, Deadline::at(lot.clock.tick() + 200))
                .is_ok()
        );
        for _ in 0..2 * SPARE_DUES {
            assert!(lot.park(theirs, Deadline::NEVER).is_ok());
            ours.write_all(b"x").unwrap();
            theirs = back.recv_timeout(LONG).unwrap();
            theirs.read_exact(&mut [0; 1]).unwrap();
        }
        ended(&waiting);
    }

    #[test]
    fn a_closed_lot_drops_what_it_has_and_takes_nothing() {
        let (lot, _back) = lot();
        let (before, parked) = UnixStream::pair().unwrap();
        assert!(lot.park(parked, Deadline::NEVER).is_ok());
        lot.close();
        ended(&before);
        let (_after, parked) = UnixStream::pair().unwrap();
        assert!(lot.park(parked, Deadline::NEVER).is_err());
    }

    #[test]
    fn what_cannot_be_taken_is_offered_again() {
        let (send, receive) = mpsc::channel();
        let refusals = std::sync::atomic::AtomicU32::new(0);
        let lot = Lot::start(Arc::new(Clock::new()), move |item: UnixStream| {
            if refusals.fetch_add(1, std::sync::atomic::Ordering::SeqCst) < 3 {
                return Err(item);
            }
            send.send(item).map_err(|error| error.0)
        })
        .unwrap();
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        ours.write_all(b"x").unwrap();
        assert!(lot.park(theirs, Deadline::NEVER).is_ok());
        receive.recv_timeout(LONG).unwrap();
    }

    /// An item that minds its end, and whose descriptor others have too.
    #[derive(Clone)]
    struct Minding(Arc<UnixStream>);

    impl AsFd for Minding {
        fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
            self.0.as_fd()
        }
    }

    impl Parked for Minding {
        fn minds_its_end(&self) -> bool {
            true
        }
    }

    #[test]
    fn who_minds_its_end_comes_back_ended_late_roused_called_and_at_the_close() {
        let (send, back) = mpsc::channel();
        let lot = Lot::start(Arc::new(Clock::new()), move |item: Minding| {
            send.send(item).map_err(|error| error.0)
        })
        .unwrap();
        let park = |item: &Minding, until| lot.park(item.clone(), until).map_err(drop).unwrap();
        let comes = |wait| back.recv_timeout(wait).is_ok();
        let short = Duration::from_millis(50);

        let (ours, theirs) = UnixStream::pair().unwrap();
        let item = Minding(Arc::new(theirs));
        park(&item, Deadline::at(20));
        assert!(comes(LONG));
        // Roused it comes back although nothing came, for it can be written to.
        let ticket = park(&item, Deadline::NEVER);
        lot.rouse(ticket, &item);
        assert!(comes(LONG));
        let ticket = park(&item, Deadline::NEVER);
        assert!(!comes(short));
        lot.call(ticket);
        assert!(comes(LONG));
        lot.call(ticket);
        lot.rouse(ticket, &item);
        assert!(!comes(short), "it is not there any more");
        park(&item, Deadline::NEVER);
        drop(ours);
        assert!(comes(LONG));

        let (_ours, theirs) = UnixStream::pair().unwrap();
        park(&Minding(Arc::new(theirs)), Deadline::NEVER);
        lot.close();
        assert!(comes(LONG));
        assert_eq!(lot.len(), 0);
    }

    #[test]
    fn nothing_is_lost_or_doubled_when_everything_happens_at_once() {
        const ITEMS: usize = 200;
        const ROUNDS: usize = 50;
        let (lot, back) = lot();
        let mut ours = Vec::new();
        for _ in 0..ITEMS {
            let (mine, theirs) = UnixStream::pair().unwrap();
            assert!(lot.park(theirs, Deadline::NEVER).is_ok());
            ours.push(mine);
        }
        for _ in 0..ROUNDS {
            std::thread::scope(|scope| {
                for part in ours.chunks_mut(ITEMS / 4) {
                    scope.spawn(|| {
                        part.iter_mut()
                            .for_each(|stream| stream.write_all(b"x").unwrap());
                    });
                }
                for _ in 0..ITEMS {
                    let mut item = back.recv_timeout(LONG).unwrap();
                    let mut byte = [0; 2];
                    assert_eq!(item.read(&mut byte).unwrap(), 1);
                    assert!(lot.park(item, Deadline::NEVER).is_ok());
                }
            });
        }
        assert!(back.try_recv().is_err());
        assert_eq!(lot.len(), ITEMS);
    }
}
