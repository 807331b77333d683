//! The workspace as a tar, for an engine that takes no single files.

use std::io::{self, Read as _, Write};

use crate::sandbox::Workspace;

/// Writes the files and symbolic links, their permissions kept, as nobody's in particular.
pub(super) fn pack(workspace: &Workspace, into: impl Write) -> io::Result<()> {
    let mut tar = tar::Builder::new(into);
    for path in workspace.files.iter() {
        let from = workspace.root.join(path);
        let metadata = fs_err::symlink_metadata(&from)?;
        let mut header = tar::Header::new_gnu();
        header.set_metadata(&metadata);
        header.set_uid(0);
        header.set_gid(0);
        if metadata.is_symlink() {
            header.set_size(0);
            tar.append_link(&mut header, path, fs_err::read_link(&from)?)?;
        } else {
            // Exactly as many bytes as the header says, whatever becomes of the file meanwhile.
            let size = metadata.len();
            header.set_size(size);
            let file = fs_err::File::open(&from)?;
            let padded = file.take(size).chain(io::repeat(0)).take(size);
            tar.append_data(&mut header, path, padded)?;
        }
    }
    tar.into_inner()?.flush()
}
