//! Bodies: read whole within a limit, or passed on as they arrive.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use http_body_util::{BodyExt, BodyStream, StreamBody};
use hyper::body::{Body as _, Frame, Incoming};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};

use crate::gateway::settings::ServeSettings;
pub(crate) use offcut_mcp::http::{Body, BoxError, full};

/// Number of the longest bodies that are in memory at once.
const BODIES: usize = 16;
/// Bytes of bodies that one permit stands for.
const UNIT: usize = 16 * 1024;

fn units(bytes: usize) -> usize {
    // More are as good as no limit.
    bytes.div_ceil(UNIT).min(u32::MAX as usize / BODIES)
}

/// Bytes for which a client may take a second, besides the pause that it may make.
const RATE: u64 = 8 * 1024;

/// A body that was read as far as the limit allows.
pub(crate) enum Read {
    /// All of it, and its room in memory, to be held as long as it is.
    Whole(Bytes, Room),
    /// It is longer than the limit, or there is no room for it: all of it, to be passed on.
    TooLong(Body),
}

/// The room of a body in memory.
pub(crate) type Room = Option<OwnedSemaphorePermit>;

/// A client's body can't be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    #[error("the request's body arrives too slowly")]
    TooSlow,
    #[error("the request's body broke off, or is not framed as HTTP asks")]
    BrokeOff(#[source] hyper::Error),
    #[error("too many requests are arriving at once")]
    TooMany,
}

/// No body.
pub(crate) fn empty() -> Body {
    full(Bytes::new())
}

/// A body of which the beginning has been read, and maybe a frame after it.
pub(crate) fn begun(read: Bytes, next: Option<Result<Frame<Bytes>, BoxError>>, rest: Body) -> Body {
    let begun = stream::iter([Ok(Frame::data(read))].into_iter().chain(next));
    let whole = StreamBody::new(begun.chain(BodyStream::new(rest)));
    offcut_mcp::http::flushed(whole).boxed_unsync()
}

/// A client's body on its way in. All of it has to arrive within the pause that its client may make,
/// and a second for each [`RATE`] bytes. Only time spent waiting for the client counts.
struct Arriving {
    body: Incoming,
    /// Time left to wait.
    left: Duration,
    pause: Duration,
    /// Held until the body has arrived.
    _place: Option<OwnedSemaphorePermit>,
}

impl Arriving {
    async fn next(&mut self) -> Result<Option<Frame<Bytes>>, ReadError> {
        let begun = Instant::now();
        let frame = timeout(self.left.min(self.pause), self.body.frame())
            .await
            .map_err(|_| ReadError::TooSlow)?;
        let frame = frame.transpose().map_err(ReadError::BrokeOff)?;
        let data = frame.as_ref().and_then(Frame::data_ref);
        let bytes = data.map_or(0, |data| data.len() as u64);
        self.left = self.left.saturating_sub(begun.elapsed());
        // Bytes that arrive at once earn no longer silence later.
        let earned = Duration::from_millis(bytes * 1000 / RATE);
        self.left = (self.left + earned).min(self.pause);
        Ok(frame)
    }

    /// The rest, as it arrives.
    fn passed(self) -> Body {
        let frames = stream::unfold(Some(self), move |arriving| async move {
            let mut arriving = arriving?;
            match arriving.next().await {
                Ok(frame) => Some((Ok(frame?), Some(arriving))),
                Err(error) => Some((Err(error.into()), None)),
            }
        });
        BodyExt::boxed_unsync(StreamBody::new(frames))
    }
}

/// The bodies that are on their way in.
pub(crate) struct Uploads {
    /// Places for them: some connections are left for others.
    places: Arc<Semaphore>,
    /// Permits for the bodies in memory, one for each [`UNIT`].
    room: Arc<Semaphore>,
    pause: Duration,
}

impl Uploads {
    pub(crate) fn new(settings: &ServeSettings) -> Self {
        let places = settings.places() - settings.places() / 4;
        Self {
            places: Arc::new(Semaphore::new(places)),
            room: Arc::new(Semaphore::new(units(settings.max_body_bytes()) * BODIES)),
            pause: Duration::from_secs(settings.body_seconds),
        }
    }

    fn begin(&self, body: Incoming) -> Result<Arriving, ReadError> {
        let place = if body.is_end_stream() {
            None
        } else {
            let place = self.places.clone().try_acquire_owned();
            Some(place.map_err(|_| ReadError::TooMany)?)
        };
        Ok(Arriving {
            body,
            left: self.pause,
            pause: self.pause,
            _place: place,
        })
    }

    /// Adds to the `room` of a body what is missing for `bytes`; false if there is no more.
    fn has_room(&self, room: &mut Room, bytes: usize) -> bool {
        let held = room.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let missing = u32::try_from(units(bytes).saturating_sub(held)).unwrap_or(u32::MAX);
        let Ok(more) = self.room.clone().try_acquire_many_owned(missing) else {
            return false;
        };
        match room {
            Some(room) => room.merge(more),
            None => *room = Some(more),
        }
        true
    }

    /// A client's body as it arrives; it fails if it arrives too slowly.
    pub(crate) fn passed(&self, body: Incoming) -> Result<Body, ReadError> {
        if body.is_end_stream() {
            return Ok(empty());
        }
        Ok(self.begin(body)?.passed())
    }

    /// Reads a client's body of up to `max` bytes.
    pub(crate) async fn read(&self, body: Incoming, max: usize) -> Result<Read, ReadError> {
        // Nothing is read of a body that is announced as too long.
        let announced = body.size_hint().exact();
        let mut arriving = self.begin(body)?;
        let is_known_too_long = announced.is_some_and(|length| length > max as u64);
        let (mut whole, mut room) = (Vec::new(), None);
        while !is_known_too_long && whole.len() <= max && self.has_room(&mut room, whole.len()) {
            let Some(frame) = arriving.next().await? else {
                return Ok(Read::Whole(whole.into(), room));
            };
            if let Some(data) = frame.data_ref() {
                whole.extend_from_slice(data);
            }
        }
        Ok(Read::TooLong(begun(whole.into(), None, arriving.passed())))
    }
}
