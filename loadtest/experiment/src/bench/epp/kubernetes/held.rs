// SPDX-License-Identifier: Apache-2.0
//! A body that says something and then stays open.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Bytes, HttpBody};
use hyper::body::Frame;

pub(super) struct Held(Option<Bytes>);

impl Held {
    pub(super) fn after(text: String) -> Self {
        Self(Some(text.into()).filter(|text: &Bytes| !text.is_empty()))
    }
}

impl HttpBody for Held {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.0.take() {
            Some(text) => Poll::Ready(Some(Ok(Frame::data(text)))),
            // Nobody wakes the task: the connection's end does.
            None => Poll::Pending,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_never_finished() {
        let mut context = Context::from_waker(std::task::Waker::noop());
        let mut held = Held::after("x".to_owned());
        let said = Pin::new(&mut held).poll_frame(&mut context);
        let Poll::Ready(Some(Ok(frame))) = said else {
            panic!("nothing was said")
        };
        assert_eq!(frame.into_data().unwrap(), "x");
        assert!(Pin::new(&mut held).poll_frame(&mut context).is_pending());
    }
}
