//! Maps for many short keys that come from one dump: hashing them must not cost more than reading them. Not for keys an
//! adversary chooses one by one: a dump made to collide would only be slow.

pub use rustc_hash::{
    FxBuildHasher as FastBuildHasher, FxHashMap as FastMap, FxHashSet as FastSet, FxHasher as FastHasher,
};
