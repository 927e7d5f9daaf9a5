//! As much of HTTP/1.1 (RFC 9112) as the benchmark's own client and service need.

use std::io::{BufRead, Read};

use anyhow::{Context, Result, bail};

/// Longest line of a head, longest head: ours are far shorter, so is what a proxy adds.
const MAX_LINE_BYTES: u64 = 8 * 1024;
const MAX_FIELDS: usize = 64;

/// Start line and fields of a message.
pub(super) struct Head {
    pub(super) start_line: String,
    fields: Vec<(String, String)>,
}

impl Head {
    /// Reads a head; none where the connection ends before it.
    pub(super) fn read(from: &mut impl BufRead) -> Result<Option<Self>> {
        let Some(start_line) = line(from)? else { return Ok(None) };
        let mut fields = Vec::new();
        loop {
            let line = line(from)?.context("the connection ends within a head")?;
            if line.is_empty() {
                return Ok(Some(Self { start_line, fields }));
            }
            let (name, value) = line.split_once(':').context("a field without a colon")?;
            fields.push((name.to_ascii_lowercase(), value.trim().to_string()));
            if fields.len() > MAX_FIELDS {
                bail!("over {MAX_FIELDS} fields in a head");
            }
        }
    }

    /// The body that follows, by RFC 9112 §6.3; without a length there is none.
    pub(super) fn body<R: BufRead>(&self, from: R) -> Result<Body<R>> {
        let field = |name: &str| self.fields.iter().find(|(known, _)| known == name);
        let left = if field("transfer-encoding").is_some() {
            Left::Chunked(0)
        } else if let Some((_, value)) = field("content-length") {
            Left::Bytes(value.parse().with_context(|| format!("content-length {value}"))?)
        } else {
            Left::Bytes(0)
        };
        Ok(Body { from, left })
    }
}

fn line(from: &mut impl BufRead) -> Result<Option<String>> {
    let mut bytes = Vec::new();
    from.take(MAX_LINE_BYTES).read_until(b'\n', &mut bytes)?;
    if bytes.is_empty() {
        return Ok(None);
    }
    let text = bytes.strip_suffix(b"\r\n").context("a line that does not end, or is too long")?;
    Ok(Some(String::from_utf8(text.to_vec())?))
}

/// A body being read.
pub(super) struct Body<R> {
    from: R,
    left: Left,
}

enum Left {
    Bytes(u64),
    /// Bytes left of the chunk.
    Chunked(u64),
    Nothing,
}

impl<R: BufRead> Body<R> {
    /// The next chunk's length; at the end the trailer is read.
    fn next_chunk(&mut self) -> Result<u64> {
        let size = line(&mut self.from)?.context("the connection ends before a chunk")?;
        let size = u64::from_str_radix(size.split(';').next().unwrap_or_default().trim(), 16)?;
        if size == 0 {
            while !line(&mut self.from)?.context("the connection ends in a trailer")?.is_empty() {}
        }
        Ok(size)
    }

    fn read_some(&mut self, buffer: &mut [u8], left: u64) -> std::io::Result<usize> {
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        match self.from.read(&mut buffer[..most])? {
            0 if most > 0 => Err(std::io::ErrorKind::UnexpectedEof.into()),
            length => Ok(length),
        }
    }
}

impl<R: BufRead> Read for Body<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match self.left {
            Left::Nothing | Left::Bytes(0) => Ok(0),
            Left::Bytes(left) => {
                let length = self.read_some(buffer, left)?;
                self.left = Left::Bytes(left - length as u64);
                Ok(length)
            }
            Left::Chunked(0) => match self.next_chunk().map_err(std::io::Error::other)? {
                0 => {
                    self.left = Left::Nothing;
                    Ok(0)
                }
                size => {
                    self.left = Left::Chunked(size);
                    self.read(buffer)
                }
            },
            Left::Chunked(left) => {
                let length = self.read_some(buffer, left)?;
                let left = left - length as u64;
                if left == 0 {
                    // The line end after each chunk's data.
                    line(&mut self.from).map_err(std::io::Error::other)?;
                }
                self.left = Left::Chunked(left);
                Ok(length)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(message: &str) -> Result<(String, String)> {
        let mut from = message.as_bytes();
        let head = Head::read(&mut from)?.context("nothing")?;
        let mut body = String::new();
        head.body(&mut from)?.read_to_string(&mut body)?;
        Ok((body, String::from_utf8(from.to_vec())?))
    }

    #[test]
    fn bodies_end_where_they_say() {
        let (body, rest) = read("x\r\nContent-Length: 3\r\n\r\nabcd").unwrap();
        assert_eq!((body.as_str(), rest.as_str()), ("abc", "d"));
        let chunked =
            "x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1;e=1\r\nc\r\n0\r\nT: 1\r\n\r\nd";
        let (body, rest) = read(chunked).unwrap();
        assert_eq!((body.as_str(), rest.as_str()), ("abc", "d"));
    }

    #[test]
    fn what_is_cut_short_is_an_error() {
        for message in [
            "x\r\nContent-Length: 3\r\n\r\nab",
            "x\r\nContent-Length: 3\r\n",
            "x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n",
            "x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\na",
        ] {
            assert!(read(message).is_err(), "{message}");
        }
    }
}
