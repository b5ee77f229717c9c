"""databricks.yml and its jobs: the part of Databricks' bundle syntax that Headrace supports."""
