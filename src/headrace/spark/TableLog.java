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

/** Delta's log of a table on a local disk, which looks only at the files that it was asked for. */
public class TableLog extends LocalLogStore {
    public TableLog(Configuration settings) {
        super(settings);
    }

    /** The files whose names are not less than the path's, in their order. */
    @Override
    public Iterator<FileStatus> listFrom(Path path, Configuration settings) throws IOException {
        Path directory = path.getParent();
        String[] names = new File(directory.toUri().getPath()).list();
        if (names == null) {
            throw new FileNotFoundException("No such file or directory: " + directory);
        }
        Arrays.sort(names);
        FileSystem files = path.getFileSystem(settings);
        List<FileStatus> found = new ArrayList<FileStatus>();
        for (int i = 0; i < names.length; i++) {
            if (names[i].compareTo(path.getName()) >= 0) {
                try {
                    found.add(files.getFileStatus(new Path(directory, names[i])));
                } catch (FileNotFoundException error) {
                    continue; // deleted since, as an old version is
                }
            }
        }
        return found.iterator();
    }
}
