//! Messages between the command and its worker: length-prefixed JSON over a socket.

use std::io::{self, Read, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// No message is anywhere near this large; a length beyond it is garbage.
const LONGEST: u32 = 1 << 30;

/// Writes one message.
pub(crate) fn send(to: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let body = serde_json::to_vec(message)?;
    let length = u32::try_from(body.len()).map_err(io::Error::other)?;
    to.write_all(&length.to_le_bytes())?;
    to.write_all(&body)?;
    to.flush()
}

/// Reads one message; `None` at the end of the stream.
pub(crate) fn receive<T: DeserializeOwned>(from: &mut impl Read) -> io::Result<Option<T>> {
    let mut length = [0; 4];
    match from.read_exact(&mut length) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let length = u32::from_le_bytes(length);
    if length > LONGEST {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "a message of absurd length",
        ));
    }
    // Memory is taken as the bytes arrive: the length alone proves nothing.
    let mut body = Vec::new();
    from.take(length.into()).read_to_end(&mut body)?;
    if body.len() != length as usize {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(Some(serde_json::from_slice(&body)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::protocol::{Replayed, Reply};

    #[test]
    fn messages_survive_the_way() {
        let mut wire = Vec::new();
        send(&mut wire, &Reply::Loaded).unwrap();
        send(
            &mut wire,
            &Reply::Replayed(Replayed::Diverged("elsewhere".to_owned())),
        )
        .unwrap();
        let mut wire = wire.as_slice();
        assert!(matches!(receive(&mut wire).unwrap(), Some(Reply::Loaded)));
        let second = receive(&mut wire).unwrap();
        let Some(Reply::Replayed(Replayed::Diverged(what))) = second else {
            panic!("{second:?}")
        };
        assert_eq!(what, "elsewhere");
        assert!(receive::<Reply>(&mut wire).unwrap().is_none());
    }

    #[test]
    fn garbage_is_an_error() {
        assert!(receive::<Reply>(&mut [0xff, 0xff, 0xff, 0xff, 0].as_slice()).is_err());
        assert!(receive::<Reply>(&mut [2, 0, 0, 0, b'{', b'x'].as_slice()).is_err());
    }
}
