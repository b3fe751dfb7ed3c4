//! Directories of a dump: `{dump_path}/step{n}/rank{r}`, and the rules for their paths.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use crate::names::{Rank, Step};

/// The mode of every directory that is created, whatever the umask.
const DIR_MODE: u32 = 0o750;
/// Directories that may be missing above the last one.
const MAX_MISSING: usize = 16;
const MAX_PATH_CHARS: usize = 4096;
const MAX_NAME_CHARS: usize = 255;
const TENSOR_DIR: &str = "dump_tensor_data";
const JSON_FILES: [&str; 4] = ["dump.json", "stack.json", "construct.json", "debug.json"];

/// Why a directory of a dump cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// There is something else under this name.
    #[error("{} is not a directory; hint: remove it, or choose another dump_path", .0.display())]
    NotADirectory(PathBuf),
    /// The directory may not be written.
    #[error("no permission to write {}; hint: choose a dump_path that this user may write to", .0.display())]
    Permission(PathBuf),
    /// A link could lead anywhere.
    #[error("The file path {} is a soft link; hint: give the path it leads to", .0.display())]
    SoftLink(PathBuf),
    /// The path or its last name is too long.
    #[error("The file path length exceeds limit: {} (at most {MAX_PATH_CHARS} characters, {MAX_NAME_CHARS} for a name)", .0.display())]
    TooLong(PathBuf),
    /// The real path has characters that are not allowed.
    #[error("The file path {} contains special characters; hint: use letters, digits and _ . / - only", .0.display())]
    SpecialCharacters(PathBuf),
    /// Too many directories are missing.
    #[error("{} would need more than {MAX_MISSING} new directories; hint: create its parent first", .0.display())]
    TooDeep(PathBuf),
    /// The system refused.
    #[error("Failed to create {}. Please check the path permission or disk space. {reason}", path.display())]
    Create {
        /// What could not be created.
        path: PathBuf,
        /// What kind of error the system reported.
        kind: io::ErrorKind,
        /// What the system said.
        reason: String,
    },
}

impl LayoutError {
    /// Whether the system refused, rather than a rule of ours.
    pub const fn is_of_system(&self) -> bool {
        matches!(
            self,
            LayoutError::NotADirectory(_) | LayoutError::Permission(_) | LayoutError::Create { .. }
        )
    }

    /// The number of the `FileCheckException` that scripts catch; `None` for the limit of recursion, which is a
    /// `MsprobeException` of code 2.
    pub const fn file_check_code(&self) -> Option<u8> {
        match self {
            LayoutError::NotADirectory(_) => Some(0),
            LayoutError::Permission(_) => Some(1),
            LayoutError::SoftLink(_) => Some(2),
            LayoutError::TooLong(_) | LayoutError::SpecialCharacters(_) | LayoutError::Create { .. } => {
                Some(3)
            }
            LayoutError::TooDeep(_) => None,
        }
    }
}

/// What an earlier run left in a step's directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Earlier {
    /// `dump.json` and its like, which will be replaced.
    pub json_files: usize,
    /// Tensor files, which stay unless one of the same name is written.
    pub tensor_files: usize,
}

/// The directory of one rank in one step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepDir {
    path: PathBuf,
    /// What was there before; `None` if nothing was.
    pub earlier: Option<Earlier>,
}

impl StepDir {
    /// Creates the directory and what is missing above it.
    pub fn create(dump_path: &Path, step: Step, rank: Rank) -> Result<StepDir, LayoutError> {
        create_dir(dump_path)?;
        let mut path = dump_path.join(step.to_string());
        create_dir(&path)?;
        path.push(rank.to_string());
        create_dir(&path)?;
        let earlier = find_earlier(&path);
        Ok(StepDir { path, earlier })
    }

    /// The directory, as joined from the dump path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where tensor files belong, as joined from the dump path, whether it is there or not.
    pub fn tensor_path(&self) -> PathBuf {
        self.path.join(TENSOR_DIR)
    }

    /// Creates the directory of tensor files, and sweeps what killed processes left half-written in it.
    pub fn create_tensor_dir(&self) -> Result<PathBuf, LayoutError> {
        let path = self.tensor_path();
        create_dir(&path)?;
        for name in names_in(&path) {
            let owner = name.to_str().and_then(super::partial::owner_of_partial);
            if owner.is_some_and(|pid| !Path::new("/proc").join(pid.to_string()).exists()) {
                // It is in nobody's way if it stays.
                let _ = fs::remove_file(path.join(name));
            }
        }
        Ok(path)
    }
}

fn find_earlier(dir: &Path) -> Option<Earlier> {
    let json_files = JSON_FILES.iter().filter(|name| dir.join(name).exists()).count();
    let tensor_files = names_in(&dir.join(TENSOR_DIR))
        .filter(|name| {
            let name = Path::new(name);
            name.extension().is_some_and(|ext| ext == "pt" || ext == "npy")
        })
        .count();
    (json_files + tensor_files > 0).then_some(Earlier { json_files, tensor_files })
}

/// Names in a directory; none if it cannot be read.
fn names_in(dir: &Path) -> impl Iterator<Item = std::ffi::OsString> {
    fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.file_name())
}

/// Checks a path by the rules for files that are about to be created.
pub fn check_path(path: &Path) -> Result<(), LayoutError> {
    if fs::symlink_metadata(path).is_ok_and(|meta| meta.is_symlink()) {
        return Err(LayoutError::SoftLink(path.to_owned()));
    }
    let real = real_path(path).map_err(|error| failed(path, &error))?;
    let name_chars = path.file_name().map_or(0, |name| name.to_string_lossy().chars().count());
    if real.to_string_lossy().chars().count() > MAX_PATH_CHARS || name_chars > MAX_NAME_CHARS {
        return Err(LayoutError::TooLong(path.to_owned()));
    }
    if !real.as_os_str().as_encoded_bytes().iter().all(|&byte| is_allowed(byte)) {
        return Err(LayoutError::SpecialCharacters(path.to_owned()));
    }
    Ok(())
}

/// Whether a file of this name may be created in a directory that was checked.
pub(crate) fn is_plain_name(name: &str) -> bool {
    name.len() <= MAX_NAME_CHARS && name.bytes().all(|byte| is_allowed(byte) && byte != b'/')
}

fn is_allowed(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_./-".contains(&byte)
}

/// Creates a directory and what is missing above it, all by the rules for paths.
pub fn create_dir(path: &Path) -> Result<(), LayoutError> {
    check_path(path)?;
    let real = real_path(path).map_err(|error| failed(path, &error))?;
    let missing: Vec<&Path> = real.ancestors().take_while(|dir| !dir.is_dir()).collect();
    if missing.len() > MAX_MISSING {
        return Err(LayoutError::TooDeep(path.to_owned()));
    }
    for dir in missing.into_iter().rev() {
        check_path(dir)?;
        make_dir(dir)?;
    }
    Ok(())
}

fn make_dir(path: &Path) -> Result<(), LayoutError> {
    match DirBuilder::new().mode(DIR_MODE).create(path) {
        Ok(()) => fs::set_permissions(path, Permissions::from_mode(DIR_MODE)),
        // Another rank was faster.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        Err(error) => Err(error),
    }
    .map_err(|error| failed(path, &error))
}

fn failed(path: &Path, error: &io::Error) -> LayoutError {
    let path = path.to_owned();
    match error.kind() {
        io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory => LayoutError::NotADirectory(path),
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => LayoutError::Permission(path),
        kind => LayoutError::Create { path, kind, reason: error.to_string() },
    }
}

/// The absolute path with links resolved as far as it exists, like Python's `os.path.realpath`.
fn real_path(path: &Path) -> io::Result<PathBuf> {
    let absolute = std::path::absolute(path)?;
    let mut missing: Vec<&OsStr> = Vec::new();
    let mut existing = absolute.as_path();
    loop {
        if let Ok(mut real) = existing.canonicalize() {
            for name in missing.into_iter().rev() {
                if name == ".." {
                    real.pop();
                } else {
                    real.push(name);
                }
            }
            return Ok(real);
        }
        match (existing.components().next_back(), existing.parent()) {
            (Some(Component::Normal(name)), Some(parent)) => {
                missing.push(name);
                existing = parent;
            }
            (Some(Component::ParentDir), Some(parent)) => {
                missing.push(OsStr::new(".."));
                existing = parent;
            }
            _ => return Ok(absolute),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn directories_have_their_names_and_modes() {
        let temp = tempfile::Builder::new().prefix("layout").tempdir().unwrap();
        let dump_path = temp.path().join("a/b");
        let dir = StepDir::create(&dump_path, Step(3), Rank(Some(1))).unwrap();
        assert_eq!((dir.path(), dir.earlier), (dump_path.join("step3/rank1").as_path(), None));
        for path in ["a", "a/b", "a/b/step3", "a/b/step3/rank1"] {
            assert_eq!(mode(&temp.path().join(path)), 0o750, "{path}");
        }
        let rankless = StepDir::create(&dump_path, Step(3), Rank(None)).unwrap();
        assert!(rankless.path().ends_with("step3/rank"));
        assert!(!rankless.tensor_path().exists());
        assert_eq!(mode(&rankless.create_tensor_dir().unwrap()), 0o750);
    }

    #[test]
    fn what_an_earlier_run_left_is_counted() {
        let temp = tempfile::Builder::new().prefix("layout").tempdir().unwrap();
        let dir = StepDir::create(temp.path(), Step(0), Rank(None)).unwrap();
        let tensors = dir.create_tensor_dir().unwrap();
        fs::write(dir.path().join("dump.json"), "{}").unwrap();
        fs::write(dir.path().join("stack.json"), "{}").unwrap();
        fs::write(tensors.join("a.pt"), "").unwrap();
        let mine = tensors.join(format!(".part-{}-1", std::process::id()));
        let dead = tensors.join(".part-4294967295-1");
        fs::write(&mine, "").unwrap();
        fs::write(&dead, "").unwrap();
        let dir = StepDir::create(temp.path(), Step(0), Rank(None)).unwrap();
        assert_eq!(dir.earlier, Some(Earlier { json_files: 2, tensor_files: 1 }));
        dir.create_tensor_dir().unwrap();
        assert!(mine.exists() && !dead.exists());
    }

    #[test]
    fn paths_against_the_rules_are_refused() {
        let temp = tempfile::Builder::new().prefix("layout").tempdir().unwrap();
        let create = |path: &Path| StepDir::create(path, Step(0), Rank(None)).unwrap_err();
        let at = |name: &str| temp.path().join(name);
        fs::create_dir(at("real")).unwrap();
        symlink(at("real"), at("link")).unwrap();
        symlink(at("nowhere"), at("dangling")).unwrap();
        fs::write(at("file"), "").unwrap();
        for (path, code) in [
            (at("with blank"), Some(3)),
            (at("col:on"), Some(3)),
            (at("é"), Some(3)),
            (at(&"x".repeat(256)), Some(3)),
            (at(&"x/".repeat(2100)), Some(3)),
            (at("link"), Some(2)),
            (at("dangling"), Some(2)),
            (at("file"), Some(0)),
            (at("file/below"), Some(0)),
            (at(&"x/".repeat(17)), None),
        ] {
            let error = create(&path);
            assert_eq!(error.file_check_code(), code, "{error}");
        }
        assert_eq!(LayoutError::Permission(at("x")).file_check_code(), Some(1));
        assert!(StepDir::create(&at("link/below"), Step(0), Rank(None)).is_ok(), "links above are followed");
        assert!(at("real/below").is_dir());
        assert!(StepDir::create(&at(&"y/".repeat(16)), Step(0), Rank(None)).is_ok());
        assert!(StepDir::create(&at("z/../w"), Step(0), Rank(None)).is_ok());
        assert!(at("w/step0/rank").is_dir());
    }
}
