//! Pictures, which anybody may have uploaded.

use std::fmt;

use bytes::Bytes;
use thiserror::Error;

/// Maximum size of a picture, in bytes.
pub const LARGEST_PICTURE: usize = 2 << 20;

/// Maximum size of the pixels of a picture, in bytes: 6 million with four bytes each.
const LARGEST_PIXELS: u64 = 24 << 20;

/// A PNG or JPEG picture, whose size in pixels is known before it is decoded.
#[derive(Clone)]
pub struct Picture {
    pub(crate) format: Format,
    /// Width and height, in pixels.
    pub(crate) size: (u32, u32),
    /// Size of the pixels once they are decoded, in bytes.
    pub(crate) decoded: u64,
    pub(crate) bytes: Bytes,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Format {
    Png,
    Jpeg,
}

/// Why a picture is left out of a document.
#[derive(Clone, Copy, Debug, Error, PartialEq)]
pub enum Unusable {
    #[error("it is not a PNG or JPEG picture")]
    Format,
    #[error("it is larger than 2 MiB")]
    Bytes,
    #[error("it has too many pixels")]
    Pixels,
}

impl fmt::Debug for Picture {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?} of {:?} pixels", self.format, self.size)
    }
}

impl Picture {
    /// Recognizes a picture by its first bytes. The media type of its upload does not count.
    pub fn read(bytes: Bytes) -> Result<Self, Unusable> {
        if bytes.len() > LARGEST_PICTURE {
            return Err(Unusable::Bytes);
        }
        let (format, size, depth) = png(&bytes).or_else(|| jpeg(&bytes)).ok_or(Unusable::Format)?;
        let pixels = u64::from(size.0) * u64::from(size.1);
        if pixels == 0 {
            return Err(Unusable::Format);
        }
        match pixels.checked_mul(depth) {
            Some(decoded @ 1..=LARGEST_PIXELS) => Ok(Self { format, size, decoded, bytes }),
            _ => Err(Unusable::Pixels),
        }
    }

    /// Returns the size of the file, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the size of the pixels that a PDF compresses again, in bytes. JPEG pictures stay as they are.
    pub(crate) fn compressed_again(&self) -> u64 {
        match self.format {
            Format::Png => self.decoded,
            Format::Jpeg => 0,
        }
    }

    pub(crate) fn media_type(&self) -> &'static str {
        match self.format {
            Format::Png => "image/png",
            Format::Jpeg => "image/jpeg",
        }
    }
}

/// Format, size in pixels, and bytes of a decoded pixel.
type Head = (Format, (u32, u32), u64);

/// Reads the head of a PNG picture.
fn png(bytes: &[u8]) -> Option<Head> {
    let rest = bytes.strip_prefix(b"\x89PNG\r\n\x1a\n")?;
    let header = rest.get(4..)?.strip_prefix(b"IHDR")?;
    let number = |start| Some(u32::from_be_bytes(header.get(start..start + 4)?.try_into().ok()?));
    let depth = if *header.get(8)? == 16 { 8 } else { 4 };
    Some((Format::Png, (number(0)?, number(4)?), depth))
}

/// Reads the head of a JPEG picture: the segments up to the one with its size. Pictures with four colors, which
/// are made for print, are not recognized.
fn jpeg(bytes: &[u8]) -> Option<Head> {
    let mut rest = bytes.strip_prefix(b"\xff\xd8")?;
    loop {
        let (marker, after) = match rest {
            [0xff, 0xff, ..] => {
                rest = &rest[1..];
                continue;
            }
            [0xff, marker, after @ ..] => (*marker, after),
            _ => return None,
        };
        let length = usize::from(u16::from_be_bytes(after.get(..2)?.try_into().ok()?));
        let segment = after.get(2..length)?;
        match marker {
            0xc0..=0xc2 => {
                let number = |start| {
                    Some(u32::from(u16::from_be_bytes(
                        segment.get(start..start + 2)?.try_into().ok()?,
                    )))
                };
                let colors = matches!(segment.get(5)?, 1 | 3);
                return colors.then_some((Format::Jpeg, (number(3)?, number(1)?), 4));
            }
            // The data begin without a size.
            0xda | 0xd9 => return None,
            _ => rest = after.get(length..)?,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A PNG picture of one pixel.
    pub(crate) const PIXEL: &[u8] =
        b"\x89\x50\x4e\x47\x0d\x0a\x1a\x0a\x00\x00\x00\x0d\x49\x48\x44\x52\x00\x00\x00\x01\x00\x00\
        \x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89\x00\x00\x00\x0d\x49\x44\x41\x54\x78\x9c\x63\
        \xd8\xa2\xac\xf5\x1f\x00\x04\x91\x02\x01\x8b\xd1\xfb\x17\x00\x00\x00\x00\x49\x45\x4e\x44\
        \xae\x42\x60\x82";

    fn png_of(width: u32, height: u32, depth: u8) -> Bytes {
        let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
        bytes.extend(width.to_be_bytes());
        bytes.extend(height.to_be_bytes());
        bytes.extend([depth, 6, 0, 0, 0]);
        bytes.into()
    }

    fn jpeg_of(width: u16, height: u16, colors: u8) -> Bytes {
        let mut bytes = b"\xff\xd8\xff\xe0\0\x04ab\xff\xff\xc0\0\x08\x08".to_vec();
        bytes.extend(height.to_be_bytes());
        bytes.extend(width.to_be_bytes());
        bytes.push(colors);
        bytes.into()
    }

    #[test]
    fn pictures_are_recognized_by_their_contents() {
        assert_eq!(Picture::read(Bytes::from_static(PIXEL)).unwrap().size, (1, 1));
        assert_eq!(Picture::read(png_of(1920, 1080, 8)).unwrap().size, (1920, 1080));
        assert_eq!(Picture::read(jpeg_of(800, 600, 3)).unwrap().size, (800, 600));
    }

    #[test]
    fn hostile_pictures_are_left_out() {
        for (bytes, expected) in [
            (Bytes::from_static(b"<svg onload=alert(1)>"), Unusable::Format),
            (Bytes::from_static(b"\xff\xd8\xff"), Unusable::Format),
            (Bytes::from_static(b"\xff\xd8\xff\xe0\0\0"), Unusable::Format),
            (Bytes::from_static(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0"), Unusable::Format),
            (png_of(0, 5, 8), Unusable::Format),
            (png_of(u32::MAX, u32::MAX, 8), Unusable::Pixels),
            (png_of(2500, 2500, 16), Unusable::Pixels),
            (jpeg_of(u16::MAX, u16::MAX, 3), Unusable::Pixels),
            (jpeg_of(10, 10, 4), Unusable::Format),
            (vec![0; LARGEST_PICTURE + 1].into(), Unusable::Bytes),
        ] {
            assert_eq!(
                Picture::read(bytes.clone()).unwrap_err(),
                expected,
                "{:?}",
                &bytes[..bytes.len().min(30)]
            );
        }
    }
}
