//! The ends of threads, as race checks know them.

/// The end of a thread. What a thread does after its last event happens before everything that follows a
/// wait for its end, but the clocks of events cannot tell.
#[derive(Clone, Copy, Debug)]
pub struct ThreadEnd {
    /// The number of the thread's events.
    events: u32,
    /// The thread that waited.
    by: u32,
    /// The index of that event.
    at: u32,
}

impl ThreadEnd {
    /// The end of a thread that no other one has waited for.
    pub const NOT_AWAITED: ThreadEnd = ThreadEnd::awaited(u32::MAX, 0, 0);

    /// The end of a thread with this many events, for which thread `by` has waited in its event `at`.
    pub const fn awaited(events: u32, by: u32, at: u32) -> ThreadEnd {
        ThreadEnd { events, by, at }
    }

    /// Whether another thread has waited for it.
    pub fn is_awaited(&self) -> bool {
        self.events != ThreadEnd::NOT_AWAITED.events
    }

    /// Whether the wait is among the events that `clock` counts.
    #[inline(always)]
    pub fn is_known(&self, clock: &[u32]) -> bool {
        let counted = clock.get(self.by as usize);
        self.is_awaited() && counted.is_some_and(|&counted| counted > self.at)
    }

    /// Whether what the thread did after `epoch` of its events happens before the point with this clock,
    /// because the thread has ended.
    #[inline(always)]
    pub fn orders(&self, epoch: u32, clock: &[u32]) -> bool {
        self.events == epoch && self.is_known(clock)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_orders_what_follows_the_last_event() {
        let end = ThreadEnd::awaited(3, 1, 4);
        assert!(end.orders(3, &[0, 5]) && end.is_known(&[0, 5]));
        // Not all of the thread, the wait is not counted, or there is no such thread yet.
        assert!(!end.orders(2, &[0, 5]) && !end.orders(3, &[9, 4]) && !end.orders(3, &[9]));
        let not = ThreadEnd::NOT_AWAITED;
        assert!(!not.is_awaited() && !not.orders(u32::MAX, &[9]) && !not.is_known(&[9]));
    }
}
