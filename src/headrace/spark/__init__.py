"""Spark sessions and the JVM: Java, jars, JVM options, and helpers for columns, schemas and errors of Spark."""
