//! The answer in words.
