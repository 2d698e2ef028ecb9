//! Room for streams: so many of each caller, and so many in all.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::caller::Identity;
use crate::config::Config;
use crate::error::ApiError;
use crate::peer::Peer;
use crate::shares::{Share, Shares};

/// Who has a stream. Callers that are not told apart by what they send are by where they are.
type Holder = (Cow<'static, str>, Option<IpAddr>);

/// The streams that are open.
pub(crate) struct StreamPlaces {
    by_caller: Arc<Shares<Holder>>,
    total: Arc<Semaphore>,
}

/// The place of one stream, until it is dropped.
pub(crate) struct StreamPlace {
    _share: Share<Holder>,
    _total: OwnedSemaphorePermit,
}

impl StreamPlaces {
    /// Streams leave room for requests: they take half of the connections at the most.
    pub(crate) fn new(config: &Config) -> Self {
        let total = Arc::new(Semaphore::new(config.connections.div_ceil(2)));
        Self { by_caller: Shares::new(config.limits.streams_per_caller), total }
    }

    /// A place for one more stream of a caller.
    pub(crate) fn take(
        &self,
        identity: &Identity,
        peer: Option<Peer>,
    ) -> Result<StreamPlace, ApiError> {
        let peer = peer.filter(|_| *identity == Identity::Anonymous);
        let holder = (identity.actor(), peer.map(Peer::network));
        let share = self.by_caller.take(holder).ok_or_else(|| {
            ApiError::too_many_streams("this caller has as many open streams as the server allows")
        })?;
        let total = Arc::clone(&self.total).try_acquire_owned().map_err(|_| {
            ApiError::too_many_streams("the server has as many open streams as it allows")
        })?;
        Ok(StreamPlace { _share: share, _total: total })
    }
}
