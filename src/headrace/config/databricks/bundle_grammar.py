"""What databricks.yml may hold: the keys that are carried out here, and those that only the official tool does."""

from __future__ import annotations

from headrace.config.databricks.job_grammar import Grammar

SHARED = {"workspace": "workspace", "run_as": "run_as", "permissions": "[permission]"}


BUNDLE_GRAMMAR = Grammar(
    kinds={
        "databricks.yml": {
            "bundle": "bundle!",
            "include": "[text]",
            "variables": "{anything}",
            "artifacts": "{anything}",  # understood and not needed: a release builds the wheels
            "targets": "{target}",
            "resources": "resources",
            **SHARED,
        },
        "included": {"resources": "resources"},
        "bundle": {"name": "text!"},
        "variable": {"default": "anything", "description": "text", "type": "variable type"},
        "variable type": ["complex"],
        "target": {"mode": "mode", "default": "truth", "variables": "{anything}", **SHARED},
        "mode": ["development", "production"],
        "workspace": {"host": "text", "root_path": "text", "profile": "text"},
        "run_as": {"service_principal_name": "text", "user_name": "text"},
        "permission": {
            "level": "level!",
            "group_name": "text",
            "service_principal_name": "text",
            "user_name": "text",
        },
        "level": ["CAN_MANAGE", "CAN_RUN", "CAN_VIEW"],
        "resources": {"jobs": "{{anything}}"},  # a job itself is read by the SDK's grammar, once its variables are in
    },
    left={
        "databricks.yml": ("environments", "experimental", "presets", "python", "scripts", "sync"),
        "included": ("environments", "experimental", "presets", "python", "scripts", "sync"),
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
