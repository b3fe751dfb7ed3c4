//! `.safetensors`: the length of a JSON header, the header, then one buffer with all data.
//!
//! The format forbids both overlaps and holes between tensors. Holes lose nothing, so they are read and counted; tensors
//! that overlap would let a small file pretend to be a huge one, so they spoil the file. A tensor whose own
//! entry makes no sense, or whose dtype is unknown, spoils only itself.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::{FormatError, Index, TensorEntry, TensorLayout};
use crate::DType;
use crate::view::{Endian, ViewError, checked_numel, contiguous_strides};

/// The limit the format sets to its header.
const MAX_HEADER_BYTES: u64 = 100_000_000;

/// As many as any framework allows.
const MAX_DIMENSIONS: usize = 64;

const LENGTH_BYTES: usize = 8;

/// Indexes the tensors of a file, in order of their data, then of their names.
pub fn parse(file: &[u8]) -> Result<Index, FormatError> {
    let (header, buffer_start) = split_header(file)?;
    let mut entries = parse_header(header)?;
    refuse_duplicates(&entries)?;
    let buffer_len = (file.len() - buffer_start) as u64;
    entries.sort_by(|a, b| (a.begin, &a.name).cmp(&(b.begin, &b.name)));
    refuse_overlaps(&entries, buffer_len)?;
    let unclaimed_bytes = unclaimed_bytes(&entries, buffer_len);
    let entries = entries
        .into_iter()
        .map(|entry| {
            let layout = entry.layout(buffer_start, buffer_len);
            TensorEntry { name: entry.name, layout }
        })
        .collect();
    Ok(Index { entries, unclaimed_bytes })
}

/// Whether a file that starts like this may be meant as safetensors.
pub(crate) fn looks_like(file: &[u8]) -> bool {
    match file.split_first_chunk() {
        Some((length, rest)) => {
            u64::from_le_bytes(*length) <= MAX_HEADER_BYTES && rest.first() == Some(&b'{')
        }
        None => false,
    }
}

fn split_header(file: &[u8]) -> Result<(&[u8], usize), FormatError> {
    let Some((length, rest)) = file.split_first_chunk::<LENGTH_BYTES>() else {
        return Err(truncated("safetensors header length", LENGTH_BYTES as u64, file.len() as u64));
    };
    let length = u64::from_le_bytes(*length);
    if length > MAX_HEADER_BYTES {
        return Err(FormatError::Refused(format!(
            "a safetensors header of {length} bytes, the format allows {MAX_HEADER_BYTES}"
        )));
    }
    let header = usize::try_from(length)
        .ok()
        .and_then(|length| rest.get(..length))
        .ok_or_else(|| truncated("safetensors header", length, rest.len() as u64))?;
    if header.first() != Some(&b'{') {
        return Err(FormatError::Malformed("the safetensors header does not start with '{'".into()));
    }
    Ok((header, LENGTH_BYTES + header.len()))
}

fn parse_header(header: &[u8]) -> Result<Vec<RawEntry>, FormatError> {
    let mut json = serde_json::Deserializer::from_slice(header);
    json.deserialize_map(HeaderVisitor)
        .and_then(|entries| json.end().map(|()| entries))
        .map_err(|error| FormatError::Malformed(format!("safetensors header: {error}")))
}

fn refuse_duplicates(entries: &[RawEntry]) -> Result<(), FormatError> {
    let mut names: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
    names.sort_unstable();
    match names.array_windows().find(|[a, b]| a == b) {
        Some([name, _]) => {
            Err(FormatError::Malformed(format!("tensor {:?} appears twice in the header", Shortened(name))))
        }
        None => Ok(()),
    }
}

/// `entries` are sorted by where they begin. Ranges that lie outside the buffer are left to their entry.
fn refuse_overlaps(entries: &[RawEntry], buffer_len: u64) -> Result<(), FormatError> {
    let mut previous: Option<&RawEntry> = None;
    for entry in entries.iter().filter(|entry| entry.begin < entry.end && entry.end <= buffer_len) {
        if let Some(previous) = previous
            && entry.begin < previous.end
        {
            return Err(FormatError::Malformed(format!(
                "tensors {:?} and {:?} overlap",
                Shortened(&previous.name),
                Shortened(&entry.name)
            )));
        }
        previous = Some(entry);
    }
    Ok(())
}

/// What is left of the buffer without the tensors in it, of which no two overlap.
fn unclaimed_bytes(entries: &[RawEntry], buffer_len: u64) -> u64 {
    let inside = entries.iter().filter(|entry| entry.begin < entry.end && entry.end <= buffer_len);
    inside.fold(buffer_len, |left, entry| left.saturating_sub(entry.end - entry.begin))
}

fn truncated(what: &'static str, needed: u64, available: u64) -> FormatError {
    FormatError::Truncated { what, needed, available }
}

/// One entry of the header as it stands there.
#[derive(Debug)]
struct RawEntry {
    name: String,
    /// `Err`: a tag that names no dtype we decode.
    dtype: Result<DType, String>,
    shape: Vec<u64>,
    begin: u64,
    end: u64,
}

impl RawEntry {
    fn layout(&self, buffer_start: usize, buffer_len: u64) -> Result<TensorLayout, FormatError> {
        let (begin, end) = (self.begin, self.end);
        if begin > end {
            return Err(FormatError::Malformed(format!("data_offsets [{begin}, {end}] run backwards")));
        }
        if end > buffer_len {
            return Err(truncated("tensor data", end - begin, buffer_len.saturating_sub(begin)));
        }
        let dtype = match &self.dtype {
            Ok(dtype) => *dtype,
            Err(tag) => return Err(FormatError::Unsupported(format!("safetensors dtype {tag:?}"))),
        };
        // A size that does not fit into usize is too large on its own; saturating keeps it so.
        let shape: Vec<usize> =
            self.shape.iter().map(|&size| usize::try_from(size).unwrap_or(usize::MAX)).collect();
        let too_large = || FormatError::View(ViewError::TooLarge { shape: shape.clone() });
        let strides = contiguous_strides(&shape).ok_or_else(too_large)?;
        let size_bytes = checked_numel(&shape)
            .and_then(|numel| numel.checked_mul(dtype.size_bytes()))
            .ok_or_else(too_large)?;
        if size_bytes as u64 != end - begin {
            return Err(FormatError::Malformed(format!(
                "shape {shape:?} of {} takes {size_bytes} bytes, data_offsets [{begin}, {end}] span {}",
                dtype.safetensors_name(),
                end - begin
            )));
        }
        Ok(TensorLayout {
            dtype,
            shape,
            strides,
            // Inside the file, so inside usize.
            storage_start: buffer_start + begin as usize,
            storage_len: size_bytes,
            decoded: None,
            offset: 0,
            endian: Endian::Little,
        })
    }
}

/// The whole header: a map from names to entries, and `__metadata__`.
struct HeaderVisitor;

impl<'de> Visitor<'de> for HeaderVisitor {
    type Value = Vec<RawEntry>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with one entry per tensor")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut entries = Vec::new();
        let mut metadata = None;
        while let Some(name) = map.next_key::<String>()? {
            if name == "__metadata__" {
                once::<_, A::Error>(&mut metadata, "__metadata__", map.next_value::<IgnoredAny>()?)?;
            } else {
                entries.push(map.next_value_seed(EntrySeed { name })?);
            }
        }
        Ok(entries)
    }
}

/// One entry, whose name is already read.
struct EntrySeed {
    name: String,
}

impl<'de> DeserializeSeed<'de> for EntrySeed {
    type Value = RawEntry;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<RawEntry, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for EntrySeed {
    type Value = RawEntry;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object with dtype, shape and data_offsets for tensor {:?}", Shortened(&self.name))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawEntry, A::Error> {
        let (mut dtype, mut shape, mut offsets) = (None, None, None);
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "dtype" => once(&mut dtype, "dtype", map.next_value::<String>()?)?,
                "shape" => {
                    once(&mut shape, "shape", map.next_value_seed(SizesSeed { most: MAX_DIMENSIONS })?)?;
                }
                "data_offsets" => {
                    once(&mut offsets, "data_offsets", map.next_value_seed(SizesSeed { most: 2 })?)?;
                }
                // The format may grow fields; they cannot change where the data lies.
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        let missing = |key| A::Error::custom(format!("tensor {:?} has no {key}", Shortened(&self.name)));
        let dtype = dtype.ok_or_else(|| missing("dtype"))?;
        let shape = shape.ok_or_else(|| missing("shape"))?;
        let &[begin, end] = offsets.ok_or_else(|| missing("data_offsets"))?.as_slice() else {
            return Err(A::Error::custom(format!(
                "data_offsets of tensor {:?} are not two numbers",
                Shortened(&self.name)
            )));
        };
        let dtype = DType::from_safetensors_name(&dtype)
            // The format has no 128-bit complex numbers; our name for them is not a tag.
            .filter(|&dtype| dtype != DType::C128)
            .ok_or_else(|| Shortened(&dtype).to_string());
        Ok(RawEntry { name: self.name, dtype, shape, begin, end })
    }
}

fn once<T, E: serde::de::Error>(slot: &mut Option<T>, key: &'static str, value: T) -> Result<(), E> {
    match slot.replace(value) {
        Some(_) => Err(E::duplicate_field(key)),
        None => Ok(()),
    }
}

/// A list of at most `most` non-negative whole numbers.
struct SizesSeed {
    most: usize,
}

impl<'de> DeserializeSeed<'de> for SizesSeed {
    type Value = Vec<u64>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<u64>, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for SizesSeed {
    type Value = Vec<u64>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of at most {} sizes", self.most)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<u64>, A::Error> {
        let mut sizes = Vec::new();
        while let Some(size) = seq.next_element::<u64>()? {
            if sizes.len() == self.most {
                return Err(A::Error::invalid_length(sizes.len() + 1, &self));
            }
            sizes.push(size);
        }
        Ok(sizes)
    }
}

/// Text from the file, cut to a length fit for a message.
struct Shortened<'a>(&'a str);

impl fmt::Display for Shortened<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MOST: usize = 200;
        match self.0.char_indices().nth(MOST) {
            Some((cut, _)) => write!(f, "{}…", &self.0[..cut]),
            None => f.write_str(self.0),
        }
    }
}

impl fmt::Debug for Shortened<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(header: &str, buffer_len: usize) -> Vec<u8> {
        let mut file = (header.len() as u64).to_le_bytes().to_vec();
        file.extend(header.as_bytes());
        file.resize(file.len() + buffer_len, 0x5a);
        file
    }

    fn names_of(file: &[u8]) -> Vec<String> {
        parse(file).unwrap().entries.into_iter().map(|entry| entry.name).collect()
    }

    #[test]
    fn entries_come_in_order_of_data_then_name() {
        let file = file(
            r#"{"__metadata__":{"format":"pt"},
                "z":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},
                "b":{"dtype":"F32","shape":[0],"data_offsets":[1,1]},
                "a":{"data_offsets":[1,3],"dtype":"I16","shape":[]}}   "#,
            3,
        );
        assert_eq!(names_of(&file), ["z", "a", "b"]);
        let index = parse(&file).unwrap();
        let a = index.entries[1].layout.as_ref().unwrap();
        assert_eq!((a.dtype, a.storage_len, a.storage_start), (DType::I16, 2, file.len() - 2));
        assert_eq!(a.view(&file).unwrap().as_bytes().unwrap(), [0x5a; 2]);
    }

    #[test]
    fn a_tensor_that_makes_no_sense_spoils_only_itself() {
        let file = file(
            r#"{"good":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},
                "short":{"dtype":"F32","shape":[2],"data_offsets":[2,6]},
                "backwards":{"dtype":"U8","shape":[2],"data_offsets":[4,2]},
                "beyond":{"dtype":"U8","shape":[9],"data_offsets":[6,15]},
                "four_bits":{"dtype":"F4","shape":[4],"data_offsets":[6,8]},
                "huge":{"dtype":"U8","shape":[4294967296,4294967296,16],"data_offsets":[8,8]}}"#,
            8,
        );
        let index = parse(&file).unwrap();
        let problem = |name: &str| {
            let entry = index.entries.iter().find(|entry| entry.name == name).unwrap();
            entry.layout.as_ref().map(|_| ()).map_err(ToString::to_string)
        };
        assert_eq!(problem("good"), Ok(()));
        assert!(problem("short").unwrap_err().contains("takes 8 bytes, data_offsets [2, 6] span 4"));
        assert!(problem("backwards").unwrap_err().contains("run backwards"));
        assert_eq!(problem("beyond").unwrap_err(), "truncated: tensor data needs 9 bytes, 2 are left");
        assert_eq!(problem("four_bits").unwrap_err(), "unsupported: safetensors dtype \"F4\"");
        assert!(problem("huge").unwrap_err().contains("too large to address"));
    }

    #[test]
    fn holes_are_read_and_overlaps_are_not() {
        let two = |first: &str, second: &str| {
            parse(&file(
                &format!(
                    r#"{{"a":{{"dtype":"U8","shape":[2],"data_offsets":{first}}},
                        "b":{{"dtype":"U8","shape":[2],"data_offsets":{second}}}}}"#
                ),
                8,
            ))
        };
        let holes = two("[1,3]", "[5,7]").unwrap();
        assert_eq!((holes.entries.len(), holes.unclaimed_bytes), (2, 4));
        assert_eq!(two("[0,2]", "[2,4]").unwrap().unclaimed_bytes, 4);
        let error = two("[1,3]", "[2,4]").unwrap_err();
        assert_eq!(error, FormatError::Malformed("tensors \"a\" and \"b\" overlap".into()));
    }

    #[test]
    fn duplicates_are_malformed() {
        let entry = r#"{"dtype":"U8","shape":[],"data_offsets":[0,1]}"#;
        for header in [
            format!(r#"{{"a":{entry},"a":{entry}}}"#),
            r#"{"a":{"dtype":"U8","dtype":"I8","shape":[],"data_offsets":[0,1]}}"#.to_owned(),
            r#"{"__metadata__":{},"__metadata__":{}}"#.to_owned(),
        ] {
            let error = parse(&file(&header, 1)).unwrap_err();
            assert!(matches!(error, FormatError::Malformed(_)), "{header}: {error}");
        }
    }
}
