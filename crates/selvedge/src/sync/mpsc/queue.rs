//! The queue that the two halves of a channel share.

use std::collections::VecDeque;
use std::sync::mpsc::SendError;
use std::sync::{Mutex, MutexGuard, PoisonError};

use selvedge_core::objects::{FREE, ObjectFunction};
use selvedge_core::op::Rmw;
use selvedge_core::{Function, MemoryOrder, Outcome, Value, Width};

use crate::rt::{Object, Site};

/// Added to a count when there is no receiver any more.
const CLOSED: Value = 1 << 40;
const WIDTH: Width = Width(8);

/// A channel.
pub(super) struct Queue<T> {
    /// How often something can be received: the messages, and the end.
    items: Object,
    /// How many messages there is room for.
    room: Option<Object>,
    /// Whether each message is waited for.
    rendezvous: Option<Object>,
    senders: Object,
    /// Accessed only right after a step on `items`, whose order it so follows.
    messages: Mutex<VecDeque<T>>,
}

/// The result of sending a message.
pub(super) enum Sent<T> {
    Yes,
    Full(T),
    Disconnected(T),
}

/// The result of an attempt to receive.
pub(super) enum Received<T> {
    Message(T),
    Nothing,
    Disconnected,
}

impl<T> Queue<T> {
    pub(super) fn new(bound: Option<usize>, site: Site) -> Queue<T> {
        let object = |what, value| Object::new(what, value, site);
        Queue {
            items: object("channel", FREE),
            // Without any room of its own, a channel has room for the message that is handed over.
            room: bound.map(|bound| object("room of a channel", bound.max(1) as Value)),
            rendezvous: (bound == Some(0)).then(|| object("hand-over of a channel", FREE)),
            senders: object("senders of a channel", 1),
            messages: Mutex::new(VecDeque::new()),
        }
    }

    fn messages(&self) -> MutexGuard<'_, VecDeque<T>> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn send(&self, message: T, site: Site) -> Result<(), SendError<T>> {
        if let Some(room) = &self.room {
            let before = step(
                room,
                ObjectFunction::SemaphoreWait,
                MemoryOrder::Acquire,
                site,
            );
            if before.read >= CLOSED {
                return Err(SendError(message));
            }
        }
        match self.deliver(message, site) {
            Ok(()) => {
                let Some(taken) = &self.rendezvous else {
                    return Ok(());
                };
                let wait = ObjectFunction::SemaphoreWait;
                let before = step(taken, wait, MemoryOrder::Acquire, site);
                match self.messages().pop_front() {
                    Some(message) if before.read >= CLOSED => Err(SendError(message)),
                    _ => Ok(()),
                }
            }
            Err(message) => Err(SendError(message)),
        }
    }

    pub(super) fn try_send(&self, message: T, site: Site) -> Sent<T> {
        if let Some(room) = &self.room {
            let step = step(
                room,
                ObjectFunction::SemaphoreTryWait,
                MemoryOrder::Acquire,
                site,
            );
            if step.read >= CLOSED {
                return Sent::Disconnected(message);
            }
            // No receiver is known to wait for a hand-over.
            if step.wrote.is_none() || self.rendezvous.is_some() {
                if step.wrote.is_some() {
                    post(room, site);
                }
                return Sent::Full(message);
            }
        }
        match self.deliver(message, site) {
            Ok(()) => Sent::Yes,
            Err(message) => Sent::Disconnected(message),
        }
    }

    fn deliver(&self, message: T, site: Site) -> Result<(), T> {
        if post(&self.items, site).read >= CLOSED {
            return Err(message);
        }
        self.messages().push_back(message);
        Ok(())
    }

    pub(super) fn receive(&self, waits: bool, site: Site) -> Received<T> {
        let function = match waits {
            true => ObjectFunction::SemaphoreWait,
            false => ObjectFunction::SemaphoreTryWait,
        };
        let taken = step(&self.items, function, MemoryOrder::Acquire, site);
        if taken.wrote.is_none() {
            return Received::Nothing;
        }
        let message = self.messages().pop_front();
        match message {
            Some(message) => {
                let others = [self.room.as_ref(), self.rendezvous.as_ref()];
                for object in others.into_iter().flatten() {
                    post(object, site);
                }
                Received::Message(message)
            }
            None => {
                post(&self.items, site);
                Received::Disconnected
            }
        }
    }

    pub(super) fn add_sender(&self, site: Site) {
        update(&self.senders, Rmw::Add(1), MemoryOrder::Relaxed, site);
    }

    pub(super) fn drop_sender(&self, site: Site) {
        let before = update(&self.senders, Rmw::Sub(1), MemoryOrder::AcqRel, site);
        if before.read == 1 {
            post(&self.items, site);
        }
    }

    /// There is no receiver any more. What was not received is dropped.
    pub(super) fn close(&self, site: Site) {
        update(&self.items, Rmw::Add(CLOSED), MemoryOrder::AcqRel, site);
        for object in [self.room.as_ref(), self.rendezvous.as_ref()]
            .into_iter()
            .flatten()
        {
            update(object, Rmw::Add(CLOSED), MemoryOrder::AcqRel, site);
        }
        // A message that is to be handed over goes back to its sender.
        if self.rendezvous.is_none() {
            let left = std::mem::take(&mut *self.messages());
            drop(left);
        }
    }
}

fn step(object: &Object, function: ObjectFunction, order: MemoryOrder, site: Site) -> Outcome {
    object.update(
        Function::Object(function),
        order,
        MemoryOrder::Relaxed,
        site,
    )
}

fn post(object: &Object, site: Site) -> Outcome {
    step(
        object,
        ObjectFunction::SemaphorePost,
        MemoryOrder::Release,
        site,
    )
}

fn update(object: &Object, rmw: Rmw, order: MemoryOrder, site: Site) -> Outcome {
    object.update(Function::memory(WIDTH, rmw), order, order, site)
}
