package headrace;

import java.io.File;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.net.URI;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.attribute.BasicFileAttributes;
import java.nio.file.attribute.PosixFileAttributes;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileUtil;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.PathFilter;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/**
 * Hadoop's local file system, but without starting a child process to read or set each file's permissions. Listings are
 * sorted by name. A name with glob characters refers to the file or directory of exactly that name if it exists.
 */
public class LocalFiles extends LocalFileSystem {
    private static final String GLOB = "{}[]*?\\"; // the characters that make a path a glob pattern for Spark

    public LocalFiles() {
        super(new Disk());
    }

    /** Qualify the path. For an existing file, the text of the result has no glob characters: see FilePath. */
    @Override
    public Path makeQualified(Path path) {
        Path qualified = super.makeQualified(path);
        return hasGlobCharacter(path) && pathToFile(path).isFile() ? new FilePath(qualified.toUri()) : qualified;
    }

    @Override
    public FileStatus[] globStatus(Path pattern) throws IOException {
        return super.globStatus(escapeExisting(pattern));
    }

    @Override
    public FileStatus[] globStatus(Path pattern, PathFilter filter) throws IOException {
        return super.globStatus(escapeExisting(pattern), filter);
    }

    /**
     * Escape the glob characters in the names at the start of a pattern, as far as files of exactly these names exist.
     * The first name that does not exist, and all names after it, keep their glob characters.
     */
    private Path escapeExisting(Path pattern) {
        if (!hasGlobCharacter(pattern)) {
            return pattern;
        }
        Path qualified = super.makeQualified(pattern);
        StringBuilder text = new StringBuilder();
        String literal = "";
        boolean exists = true;
        String[] names = qualified.toUri().getPath().split("/");
        for (int i = 1; i < names.length; i++) {
            literal = literal + "/" + names[i];
            exists = exists && new File(literal).exists();
            text.append("/").append(exists ? escape(names[i]) : names[i]);
        }
        return new Path(qualified.toUri().getScheme(), qualified.toUri().getAuthority(), text.toString());
    }

    private static String escape(String name) {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < name.length(); i++) {
            text.append(GLOB.indexOf(name.charAt(i)) < 0 ? "" : "\\").append(name.charAt(i));
        }
        return text.toString();
    }

    private static boolean hasGlobCharacter(Path path) {
        String text = path.toUri().getPath();
        for (int i = 0; i < text.length(); i++) {
            if (GLOB.indexOf(text.charAt(i)) >= 0) {
                return true;
            }
        }
        return false;
    }

    /**
     * The path of one file. Its text has percent-encoded glob characters. Otherwise Spark would take the path for a
     * pattern, and would read all files of the batch again for each such path (Spark 4.1, 4.2:
     * DataSource.checkAndGlobPathIfNecessary).
     */
    private static class FilePath extends Path {
        FilePath(URI uri) {
            super(uri);
        }

        @Override
        public String toString() {
            StringBuilder text = new StringBuilder();
            String name = super.toString();
            for (int i = 0; i < name.length(); i++) {
                char character = name.charAt(i);
                boolean isGlob = GLOB.indexOf(character) >= 0;
                text.append(isGlob ? String.format("%%%02X", (int) character) : String.valueOf(character));
            }
            return text.toString();
        }
    }

    /** The underlying file system, without checksums. */
    private static class Disk extends RawLocalFileSystem {
        private long blockSize;

        @Override
        public void initialize(URI uri, Configuration settings) throws IOException {
            super.initialize(uri, settings);
            blockSize = getDefaultBlockSize(new Path(uri));
        }

        /** Return the status of a path's target, following symbolic links, with one system call. */
        @Override
        public FileStatus getFileStatus(Path path) throws IOException {
            File file = pathToFile(path);
            try {
                BasicFileAttributes attributes = Files.readAttributes(file.toPath(), BasicFileAttributes.class);
                Path qualified = new Path(file.getPath()).makeQualified(getUri(), getWorkingDirectory());
                return new Status(attributes, blockSize, qualified);
            } catch (AccessDeniedException error) {
                throw error;
            } catch (FileSystemException error) { // a dangling link, a link to itself, or a parent that is a file
                throw (IOException) new FileNotFoundException("File " + path + " does not exist").initCause(error);
            }
        }

        /** List a directory, sorted by name, without dangling links and links to a parent directory. */
        @Override
        public FileStatus[] listStatus(Path path) throws IOException {
            FileStatus status = getFileStatus(path);
            if (!status.isDirectory()) {
                return new FileStatus[] {status};
            }
            File directory = pathToFile(path);
            String[] names = FileUtil.list(directory);
            Arrays.sort(names);
            List<FileStatus> statuses = new ArrayList<FileStatus>(names.length);
            for (int i = 0; i < names.length; i++) {
                File file = new File(directory, names[i]);
                try { // new Path(name) would parse the `a` of `a:b` as a scheme
                    FileStatus child = getFileStatus(new Path(path, new Path(null, null, names[i])));
                    if (!child.isDirectory() || !isLinkToParent(file, directory)) {
                        statuses.add(child);
                    }
                } catch (FileNotFoundException error) { // skip dangling links and files that were just deleted
                    if (!(error.getCause() instanceof NoSuchFileException) && !Files.isSymbolicLink(file.toPath())) {
                        throw error;
                    }
                }
            }
            return (FileStatus[]) statuses.toArray(new FileStatus[0]);
        }

        private static boolean isLinkToParent(File link, File directory) throws IOException {
            try {
                return Files.isSymbolicLink(link.toPath())
                        && directory.toPath().toRealPath().startsWith(link.toPath().toRealPath());
            } catch (NoSuchFileException error) {
                return false;
            }
        }

        @Override
        public void setPermission(Path path, FsPermission permission) throws IOException {
            String text = permission.getUserAction().SYMBOL + permission.getGroupAction().SYMBOL
                    + permission.getOtherAction().SYMBOL;
            try {
                Files.setPosixFilePermissions(pathToFile(path).toPath(), PosixFilePermissions.fromString(text));
            } catch (NoSuchFileException error) {
                throw (IOException) new FileNotFoundException("File " + path + " does not exist").initCause(error);
            }
        }
    }

    /** A file's status. Reads owner, group and permissions only on demand, because looking up names is slow. */
    private static class Status extends FileStatus {
        private boolean hasOwnership; // owner, group and permissions have been read

        Status(BasicFileAttributes attributes, long blockSize, Path path) {
            super(attributes.size(), attributes.isDirectory(), 1, blockSize, attributes.lastModifiedTime().toMillis(),
                    attributes.lastAccessTime().toMillis(), null, null, null, path);
        }

        @Override
        public FsPermission getPermission() {
            readOwnership();
            return super.getPermission();
        }

        @Override
        public String getOwner() {
            readOwnership();
            return super.getOwner();
        }

        @Override
        public String getGroup() {
            readOwnership();
            return super.getGroup();
        }

        private synchronized void readOwnership() {
            if (hasOwnership) {
                return;
            }
            hasOwnership = true;
            File file = new File(getPath().toUri().getPath());
            try {
                PosixFileAttributes attributes =
                        (PosixFileAttributes) Files.readAttributes(file.toPath(), PosixFileAttributes.class);
                setPermission(FsPermission.valueOf("-" + PosixFilePermissions.toString(attributes.permissions())));
                setOwner(attributes.owner().getName());
                setGroup(attributes.group().getName());
            } catch (IOException error) {
                return; // the file was just deleted: keep the defaults
            }
        }
    }
}
