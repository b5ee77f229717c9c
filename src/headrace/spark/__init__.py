"""Sessions and the JVM: Java, jars, JVM options, and small helpers on Spark's own objects."""
