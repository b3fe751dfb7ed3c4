//! Dumps of a training run: what to collect ([`config`]), what records are called ([`names`]), which of them
//! are kept ([`filter`]), how they get to disk ([`write`]) and back ([`model`], on top of [`read`]); named key data of a run ([`key_data`]) and its
//! gradients ([`grad_probe`]). Knows nothing of Python but how it writes values ([`python_text`]), and of
//! frameworks what a [`framework::Framework`] tells.

pub mod config;
pub mod filter;
pub mod framework;
pub mod grad_probe;
pub mod hash;
pub mod key_data;
pub mod model;
pub mod names;
mod nearness;
pub mod python_text;
pub mod read;
mod words;
pub mod write;
