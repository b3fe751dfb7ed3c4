//! The rules of the three searches, one by one.
