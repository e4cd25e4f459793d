use object_store::memory::InMemory;
use tempfile::TempDir;
use tokio::io::AsyncWriteExt as _;

use super::*;

fn locations(home: &TempDir) -> [BackupLocation; 2] {
    let bucket = Backend::Bucket(Arc::new(InMemory::new()), Key::from("a/part"));
    [
        BackupLocation::in_folder(home.path().join("new")),
        BackupLocation { files: bucket, display_name: String::new() },
    ]
}

async fn read(location: &BackupLocation, path: &str) -> Option<Vec<u8>> {
    location.read(path).await.unwrap()
}

#[tokio::test]
async fn a_folder_and_a_bucket_store_files_alike() {
    let home = tempfile::tempdir().unwrap();
    for location in locations(&home) {
        assert!(location.is_empty().await.unwrap());
        assert!(location.list("a/").await.unwrap().is_empty());
        assert_eq!(read(&location, "a/b").await, None);
        location.remove("a/b").await.unwrap();
        location.remove_folder("a/").await.unwrap();

        location.write("a/b", b"1".to_vec()).await.unwrap();
        location.write("a/b", b"23".to_vec()).await.unwrap();
        assert!(!location.write_new("a/b", b"4".to_vec()).await.unwrap());
        assert!(location.write_new("a/c/d", Vec::new()).await.unwrap());
        assert_eq!(read(&location, "a/b").await.unwrap(), b"23");
        let mut entries = location.list("a/").await.unwrap();
        entries.sort_by(|one, other| one.path.cmp(&other.path));
        let entry = |path: &str, bytes| FileEntry { path: path.to_owned(), bytes };
        assert_eq!(entries, [entry("a/b", 2), entry("a/c/d", 0)]);
        assert_eq!(location.list("a/c/").await.unwrap(), [entry("a/c/d", 0)]);
        assert!(!location.is_empty().await.unwrap());

        for path in ["a/b", "a/c/d"] {
            location.remove(path).await.unwrap();
        }
        location.remove_folder("a/c/").await.unwrap();
        assert!(location.list("a/").await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn a_file_gets_its_name_once_it_is_complete() {
    let home = tempfile::tempdir().unwrap();
    for location in locations(&home) {
        let large = vec![7; PART + 1];
        let mut broken_off = location.create("a/b").await.unwrap();
        broken_off.to.write_all(&large).await.unwrap();
        drop(broken_off);
        assert_eq!(read(&location, "a/b").await, None);

        let mut whole = location.create("a/b").await.unwrap();
        whole.to.write_all(&large).await.unwrap();
        whole.to.shutdown().await.unwrap();
        whole.finish().await.unwrap();
        assert_eq!(read(&location, "a/b").await.unwrap(), large);
    }
    let left = std::fs::read_dir(home.path().join("new").join(TEMPORARY)).unwrap();
    assert_eq!(left.count(), 0);
}

#[tokio::test]
async fn no_path_leads_out_of_a_folder() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("secret"), "of somebody").unwrap();
    let [location, _] = locations(&home);
    location.write("a", Vec::new()).await.unwrap();
    for path in ["../secret", "a/../../secret", "/etc/passwd"] {
        assert!(location.read(path).await.is_err(), "{path}");
        assert!(location.write(path, Vec::new()).await.is_err(), "{path}");
        assert!(location.remove(path).await.is_err(), "{path}");
    }
}

#[test]
fn the_display_name_of_a_bucket_has_no_credentials() {
    let location = bucket("s3://b/a/part?access_key_id=a&secret_access_key=hidden").unwrap();
    assert_eq!(location.display_name(), "s3://b/a/part");
}
