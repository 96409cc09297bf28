#![allow(clippy::unwrap_used, clippy::panic, reason = "tests stop at the first surprise")]

use super::*;

fn cache(folder: &Path) -> Cache {
    let key = CacheKey::new(&[7; 32]).unwrap();
    Cache::new(&CacheOptions { folder: folder.to_owned(), key }, [1; 32])
}

fn code() -> TrustedCode {
    TrustedCode::of_compiler((0..3_000_u32).map(|at| at as u8).collect())
}

fn entry(folder: &Path) -> PathBuf {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).next().unwrap()
}

fn overwrite(path: &Path, bytes: &[u8]) {
    fs::remove_file(path).unwrap();
    fs::write(path, bytes).unwrap();
}

#[test]
fn what_was_written_is_found_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let cache = cache(&folder.path().join("made/by/us"));
    assert!(matches!(cache.read(&[2; 32]), Found::Missing));
    cache.write(&[2; 32], &code());
    let Found::Code(found) = cache.read(&[2; 32]) else { panic!("it is there") };
    assert_eq!(found.bytes(), code().bytes());
    assert!(matches!(cache.read(&[3; 32]), Found::Missing));
}

#[test]
fn a_flipped_bit_anywhere_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let cache = cache(folder.path());
    cache.write(&[2; 32], &code());
    let path = entry(folder.path());
    let whole = fs::read(&path).unwrap();
    for at in (0..HEADER + 8).chain((HEADER..whole.len()).step_by(97)).chain([whole.len() - 1]) {
        let mut changed = whole.clone();
        changed[at] ^= 1;
        overwrite(&path, &changed);
        assert!(matches!(cache.read(&[2; 32]), Found::Changed), "byte {at}");
    }
    for length in [0, 1, HEADER - 1, HEADER, whole.len() - 1] {
        overwrite(&path, &whole[..length]);
        assert!(matches!(cache.read(&[2; 32]), Found::Changed), "{length} bytes");
    }
    overwrite(&path, &[whole.as_slice(), b"x"].concat());
    assert!(matches!(cache.read(&[2; 32]), Found::Changed));
    overwrite(&path, &whole);
    assert!(matches!(cache.read(&[2; 32]), Found::Code(_)));
}

#[test]
fn an_entry_moved_to_another_component_engine_or_key_is_not_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let cache = cache(folder.path());
    cache.write(&[2; 32], &code());
    let whole = fs::read(entry(folder.path())).unwrap();
    fs::write(cache.path(Kind::Code, &[3; 32]), &whole).unwrap();
    assert!(matches!(cache.read(&[3; 32]), Found::Changed), "another component");
    let other = Cache { compatibility: [9; 32], ..self::cache(folder.path()) };
    assert!(matches!(other.read(&[2; 32]), Found::Missing), "another engine has its own entries");
    fs::write(other.path(Kind::Code, &[2; 32]), &whole).unwrap();
    assert!(matches!(other.read(&[2; 32]), Found::Changed), "another engine");
    let other = Cache { key: CacheKey::new(&[8; 40]).unwrap(), ..self::cache(folder.path()) };
    assert!(matches!(other.read(&[2; 32]), Found::Changed), "another key");
}

#[test]
fn what_was_said_is_found_as_it_was_written_and_is_no_code() {
    let folder = tempfile::tempdir().unwrap();
    let cache = cache(folder.path());
    assert_eq!(cache.said(&[2; 32]), None);
    cache.keep_said(&[2; 32], "{}");
    assert_eq!(cache.said(&[2; 32]).as_deref(), Some("{}"));
    assert_eq!(cache.said(&[3; 32]), None);
    assert!(matches!(cache.read(&[2; 32]), Found::Missing));
    let path = cache.path(Kind::Said, &[2; 32]);
    let whole = fs::read(&path).unwrap();
    fs::write(cache.path(Kind::Code, &[2; 32]), &whole).unwrap();
    assert!(matches!(cache.read(&[2; 32]), Found::Changed), "words are never run");
    for at in 0..whole.len() {
        let mut changed = whole.clone();
        changed[at] ^= 1;
        overwrite(&path, &changed);
        assert_eq!(cache.said(&[2; 32]), None, "byte {at}");
    }
}

#[test]
fn a_folder_that_cannot_be_written_or_read_only_costs_time() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let cache = cache(&file.path().join("below-a-file"));
    cache.write(&[2; 32], &code());
    assert!(matches!(cache.read(&[2; 32]), Found::Missing));
    if Path::new("/dev/full").exists() {
        let folder = tempfile::tempdir().unwrap();
        let full = write_whole(&folder.path().join("a"), &[b"x"]).and_then(|()| {
            let mut full = fs::OpenOptions::new().write(true).open("/dev/full")?;
            full.write_all(&[0; 100])
        });
        assert!(full.is_err());
    }
}

#[test]
fn the_oldest_entries_go_when_there_is_no_room() {
    let folder = tempfile::tempdir().unwrap();
    let small = Cache { most_bytes: 10_000, ..cache(folder.path()) };
    for component in 0..6_u8 {
        small.write(&[component; 32], &code());
        // Times of files have a resolution of a few milliseconds.
        std::thread::sleep(std::time::Duration::from_millis(15));
    }
    assert!(matches!(small.read(&[0; 32]), Found::Missing));
    assert!(matches!(small.read(&[5; 32]), Found::Code(_)));
    let used: u64 =
        fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).sum();
    assert!(used <= 10_000, "{used}");
}

#[cfg(unix)]
#[test]
fn entries_and_their_folder_are_ours_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("code");
    cache(&path).write(&[2; 32], &code());
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(fs::metadata(entry(&path)).unwrap().permissions().mode() & 0o777, 0o400);
}

#[test]
fn a_short_key_is_refused_and_no_key_is_printed() {
    assert_eq!(CacheKey::new(&[1; 31]).unwrap_err(), ShortKey(31));
    assert_eq!(format!("{:?}", CacheKey::new(b"0123456789abcdef0123456789abcdef").unwrap()), "CacheKey(..)");
}
