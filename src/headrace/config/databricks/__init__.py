"""databricks.yml and its jobs: the part of Databricks' grammar that Headrace carries out."""
