package headrace;

import io.delta.storage.LocalLogStore;
import java.io.File;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/** A Delta log store for local disks. A listing that starts at some version reads no status of older files. */
public class TableLog extends LocalLogStore {
    public TableLog(Configuration settings) {
        super(settings);
    }

    /** Return the files whose names are equal to or greater than the path's, sorted by name. */
    @Override
    public Iterator<FileStatus> listFrom(Path path, Configuration settings) throws IOException {
        Path directory = path.getParent();
        String[] names = new File(directory.toUri().getPath()).list();
        if (names == null) {
            throw new FileNotFoundException("No such file or directory: " + directory);
        }
        Arrays.sort(names);
        FileSystem files = path.getFileSystem(settings);
        List<FileStatus> statuses = new ArrayList<FileStatus>();
        for (int i = 0; i < names.length; i++) {
            if (names[i].compareTo(path.getName()) >= 0) {
                try {
                    statuses.add(files.getFileStatus(new Path(directory, names[i])));
                } catch (FileNotFoundException error) {
                    continue; // the file was just deleted: Delta deletes old log files
                }
            }
        }
        return statuses.iterator();
    }
}
