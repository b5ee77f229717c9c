"""Grants on jobs and directories."""

from __future__ import annotations

import pytest
from databricks.sdk import WorkspaceClient
from databricks.sdk.errors import InvalidParameterValue, NotFound
from databricks.sdk.service.jobs import JobAccessControlRequest as Grant
from databricks.sdk.service.jobs import JobPermissionLevel as Level
from databricks.sdk.service.jobs import JobPermissions
from databricks.sdk.service.workspace import WorkspaceObjectAccessControlRequest as FileGrant
from databricks.sdk.service.workspace import WorkspaceObjectPermissionLevel as FileLevel

from workspaces import create, job


def direct_grants(permissions: JobPermissions) -> set[tuple[str, str]]:
    return {
        (entry.user_name or entry.group_name or entry.service_principal_name or "", permission.permission_level.value)
        for entry in permissions.access_control_list or []
        for permission in entry.all_permissions or []
        if permission.permission_level and not permission.inherited
    }


def test_job_has_one_owner_while_other_grants_change(client: WorkspaceClient) -> None:
    number = str(create(client, job()))
    assert direct_grants(client.jobs.get_permissions(number)) == {("alice@example.com", "IS_OWNER")}
    owner = Grant(user_name="alice@example.com", permission_level=Level.IS_OWNER)
    viewer = Grant(group_name="users", permission_level=Level.CAN_VIEW)
    for without_owner in ([viewer], []):
        with pytest.raises(InvalidParameterValue, match="one owner"):
            client.jobs.set_permissions(number, access_control_list=without_owner)
    client.jobs.set_permissions(number, access_control_list=[owner, viewer])
    client.jobs.update_permissions(
        number, access_control_list=[Grant(service_principal_name="robot", permission_level=Level.CAN_MANAGE)]
    )
    assert direct_grants(client.jobs.get_permissions(number)) == {
        ("alice@example.com", "IS_OWNER"),
        ("users", "CAN_VIEW"),
        ("robot", "CAN_MANAGE"),
    }
    client.jobs.set_permissions(number, access_control_list=[Grant(user_name="bob", permission_level=Level.IS_OWNER)])
    assert direct_grants(client.jobs.get_permissions(number)) == {("bob", "IS_OWNER")}


def test_two_owners_are_an_error(client: WorkspaceClient) -> None:
    number = str(create(client, job()))
    two_owners = [Grant(user_name=name, permission_level=Level.IS_OWNER) for name in ("bob", "eve")]
    with pytest.raises(InvalidParameterValue, match="one owner"):
        client.jobs.set_permissions(number, access_control_list=two_owners)
    client.jobs.update_permissions(number, access_control_list=two_owners[:1])
    assert direct_grants(client.jobs.get_permissions(number)) == {("bob", "IS_OWNER")}


def test_directory_has_grants_until_it_is_deleted(client: WorkspaceClient) -> None:
    client.workspace.mkdirs("/Shared/release")
    number = str(client.workspace.get_status("/Shared/release").object_id)
    grant = FileGrant(service_principal_name="robot", permission_level=FileLevel.CAN_READ)
    client.workspace.set_permissions("directories", number, access_control_list=[grant])
    (entry, admins) = client.workspace.get_permissions("directories", number).access_control_list or []
    assert entry.service_principal_name == "robot" and admins.group_name == "admins"
    client.workspace.delete("/Shared/release")
    with pytest.raises(NotFound):
        client.workspace.get_permissions("directories", number)
    client.workspace.mkdirs("/Shared/release")
    assert len(client.workspace.get_permissions("directories", number).access_control_list or []) == 1


def test_unknown_job_and_invalid_grants_are_errors(client: WorkspaceClient) -> None:
    with pytest.raises(NotFound):
        client.jobs.get_permissions("1")
    number = create(client, job())
    for entry in ({"user_name": "bob", "permission_level": "CAN_EAT"}, {"permission_level": "CAN_VIEW"}):
        with pytest.raises(InvalidParameterValue):
            client.api_client.do("PUT", f"/api/2.0/permissions/jobs/{number}", body={"access_control_list": [entry]})
