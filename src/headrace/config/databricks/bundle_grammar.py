"""The keys of databricks.yml: those that Headrace supports, and those that only the Databricks CLI supports."""

from __future__ import annotations

from headrace.config.databricks.job_grammar import Grammar

BUNDLE_FILE = "databricks.yml"
# The names of two kinds in BUNDLE_GRAMMAR: the content of databricks.yml, and of a file that databricks.yml includes.
TOP_LEVEL = "top level"
INCLUDED_FILE = "included file"
# Keys that are allowed at the top level, where they apply to all targets, and in each target.
KEYS_SHARED_BY_TARGETS = {"workspace": "workspace", "run_as": "run_as", "permissions": "[permission]"}

# `Grammar` describes the notation of kinds.
BUNDLE_GRAMMAR = Grammar(
    kinds={
        TOP_LEVEL: {
            "bundle": "bundle!",
            "include": "[string]",
            "variables": "{any}",  # checked by bundle_targets, because a plain value is allowed too
            "artifacts": "{any}",  # accepted and ignored: a release builds the wheels
            "targets": "{target}",
            "resources": "resources",
            **KEYS_SHARED_BY_TARGETS,
        },
        INCLUDED_FILE: {"resources": "resources"},
        "bundle": {"name": "string!"},
        "variable": {"default": "any", "description": "string", "type": "variable type"},
        "variable type": ["complex"],
        "target": {"mode": "mode", "default": "boolean", "variables": "{any}", **KEYS_SHARED_BY_TARGETS},
        "mode": ["development", "production"],
        "workspace": {"host": "string", "root_path": "string", "profile": "string"},
        "run_as": {"service_principal_name": "string", "user_name": "string"},
        "permission": {
            "level": "level!",
            "group_name": "string",
            "service_principal_name": "string",
            "user_name": "string",
        },
        "level": ["CAN_MANAGE", "CAN_RUN", "CAN_VIEW"],
        "resources": {"jobs": "{{any}}"},  # each job is checked with `job_grammar` after its references are resolved
    },
    unsupported={
        TOP_LEVEL: ("environments", "experimental", "presets", "python", "scripts", "sync"),
        INCLUDED_FILE: ("environments", "experimental", "presets", "python", "scripts", "sync"),
        "bundle": ("cluster_id", "compute_id", "databricks_cli_version", "deployment", "engine", "git", "uuid"),
        "variable": ("lookup",),
        "target": (
            *("artifacts", "bundle", "cluster_id", "compute_id", "git", "presets", "resources", "sync"),
            *("experimental", "scripts"),
        ),
        "workspace": (
            *("artifact_path", "auth_type", "azure_client_id", "azure_environment", "azure_login_app_id"),
            *("azure_tenant_id", "azure_use_msi", "azure_workspace_resource_id", "client_id", "file_path"),
            *("google_service_account", "resource_path", "state_path", "workspace_id", "account_id"),
        ),
        "run_as": ("group_name",),
        "resources": (
            *("alerts", "apps", "catalogs", "clusters", "dashboards", "database_catalogs", "database_instances"),
            *("experiments", "external_locations", "genie_spaces", "model_serving_endpoints", "models", "pipelines"),
            *("postgres_branches", "postgres_endpoints", "postgres_projects", "quality_monitors"),
            *("registered_models", "schemas", "secret_scopes", "sql_warehouses", "synced_database_tables"),
            *("vector_search_endpoints", "volumes"),
        ),
    },
)
