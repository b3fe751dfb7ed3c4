//! Opening files that somebody else may have prepared: ordinary files only, and never through a link that the user did not
//! name.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;

/// What to do with a path that is a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// The user named the path: it may lead elsewhere.
    Follow,
    /// The path was found in a dump: a link is refused.
    Refuse,
}

/// Opens an ordinary file. Pipes, sockets and devices are refused without waiting for them.
pub fn open_regular(path: &Path, links: Links) -> io::Result<File> {
    // Looked at first: opening a device can do something.
    let metadata = match links {
        Links::Follow => fs::metadata(path)?,
        Links::Refuse => fs::symlink_metadata(path)?,
    };
    refuse_special(&metadata)?;
    let follow = if links == Links::Refuse { OFlags::NOFOLLOW } else { OFlags::empty() };
    checked(openat(CWD, path, READ | follow, Mode::empty()))
}

/// Opens an ordinary file that lies in a directory. A name with slashes, a link, and a directory that is a link itself are
/// refused: they lead out of it.
pub fn open_inside(directory: &Path, name: &str) -> io::Result<File> {
    if name.is_empty() || name == "." || name == ".." || name.contains(['/', '\0']) {
        let what = format!("{name:?} is no name of a file in the directory of the dump");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    }
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
    let opened = openat(CWD, directory, flags, Mode::empty()).map_err(|error| {
        if fs::symlink_metadata(directory).is_ok_and(|metadata| metadata.is_symlink()) {
            link_refused("its directory is a link")
        } else {
            error.into()
        }
    })?;
    let metadata = rustix::fs::statat(&opened, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW)?;
    match rustix::fs::FileType::from_raw_mode(metadata.st_mode) {
        rustix::fs::FileType::RegularFile => {}
        rustix::fs::FileType::Symlink => return Err(link_refused("it is a link")),
        rustix::fs::FileType::Directory => return Err(is_directory()),
        _ => return Err(is_special()),
    }
    checked(openat(&opened, name, READ | OFlags::NOFOLLOW, Mode::empty()))
}

/// Without waiting for the writer of a pipe that came in between.
const READ: OFlags = OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

fn checked(opened: Result<std::os::fd::OwnedFd, Errno>) -> io::Result<File> {
    let file = File::from(opened.map_err(|error| match error {
        Errno::LOOP => link_refused("it is a link"),
        other => other.into(),
    })?);
    refuse_special(&file.metadata()?)?;
    Ok(file)
}

fn refuse_special(metadata: &fs::Metadata) -> io::Result<()> {
    if metadata.is_symlink() {
        return Err(link_refused("it is a link"));
    }
    if metadata.is_dir() {
        return Err(is_directory());
    }
    if metadata.is_file() { Ok(()) } else { Err(is_special()) }
}

fn link_refused(what: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidInput,
        format!("{what}: only ordinary files inside the dump are read"),
    )
}

fn is_directory() -> io::Error {
    io::Error::new(io::ErrorKind::IsADirectory, "it is a directory")
}

fn is_special() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "it is not an ordinary file but a pipe, socket or device")
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::fs::symlink;

    use super::*;

    fn refused(result: io::Result<File>) -> String {
        result.unwrap_err().to_string()
    }

    #[test]
    fn only_ordinary_files_inside() {
        let (dir, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let secret = outside.path().join("secret");
        fs::write(&secret, "secret").unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir(at("data")).unwrap();
        fs::write(at("data/a"), "a").unwrap();
        let mut text = String::new();
        open_inside(&at("data"), "a").unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "a");

        symlink(&secret, at("data/link")).unwrap();
        symlink("a", at("data/near")).unwrap();
        for name in ["link", "near"] {
            assert!(refused(open_inside(&at("data"), name)).starts_with("it is a link"), "{name}");
            assert!(refused(open_regular(&at("data").join(name), Links::Refuse)).starts_with("it is a link"));
            open_regular(&at("data").join(name), Links::Follow).unwrap();
        }
        symlink(outside.path(), at("elsewhere")).unwrap();
        assert!(refused(open_inside(&at("elsewhere"), "secret")).starts_with("its directory is a link"));
        symlink(at("data"), at("here")).unwrap();
        assert!(refused(open_inside(&at("here"), "a")).starts_with("its directory is a link"));

        let up = format!("../../{}/secret", outside.path().file_name().unwrap().to_string_lossy());
        for name in ["", ".", "..", "../x", "a/", "./a", "a\0", secret.to_str().unwrap(), up.as_str()] {
            assert!(refused(open_inside(&at("data"), name)).contains("is no name of a file"), "{name:?}");
        }
        assert_eq!(open_inside(&at("data"), "none").unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(open_inside(&at("none"), "a").unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn pipes_and_devices_do_not_hang() {
        let dir = tempfile::tempdir().unwrap();
        assert!(
            std::process::Command::new("mkfifo").arg(dir.path().join("pipe")).status().unwrap().success()
        );
        assert!(refused(open_inside(dir.path(), "pipe")).contains("not an ordinary file"));
        assert!(
            refused(open_regular(&dir.path().join("pipe"), Links::Follow)).contains("not an ordinary file")
        );
        assert!(
            refused(open_regular(Path::new("/dev/zero"), Links::Refuse)).contains("not an ordinary file")
        );
        assert!(refused(open_inside(Path::new("/dev"), "zero")).contains("not an ordinary file"));
        fs::create_dir(dir.path().join("sub")).unwrap();
        assert!(refused(open_inside(dir.path(), "sub")).contains("it is a directory"));
    }
}
