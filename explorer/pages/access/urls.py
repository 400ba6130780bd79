"""URLs of the access pages."""

from django.urls import path

from explorer.pages.access import audit, clearances, compartments, groups, keys, people

urlpatterns = [
    # access/compartments/
    path("access/compartments/", compartments.compartments, name="compartments"),
    path("access/compartments/new/", compartments.new_compartment, name="new_compartment"),
    path("access/compartments/<slug:slug>/", compartments.compartment, name="compartment"),
    path("access/compartments/<slug:slug>/delete/", compartments.delete, name="delete_compartment"),
    # access/clearances/
    path("access/clearances/", clearances.clearances, name="clearances"),
    path("access/clearances/change/", clearances.change, name="change_clearance"),
    # access/users/
    path("access/users/", people.users, name="users"),
    path("access/users/new/", people.new_user, name="new_user"),
    path("access/users/<int:user_id>/", people.user, name="user"),
    path("access/users/<int:user_id>/groups/", people.change_groups, name="change_groups"),
    path("access/users/<int:user_id>/active/", people.change_active, name="change_active"),
    path("access/users/<int:user_id>/admin/", people.change_admin, name="change_admin"),
    path("access/users/<int:user_id>/link/", people.new_link, name="new_link"),
    # access/groups/
    path("access/groups/", groups.groups, name="groups"),
    path("access/groups/new/", groups.new_group, name="new_group"),
    path("access/groups/<int:group_id>/", groups.group, name="group"),
    path("access/groups/<int:group_id>/member/", groups.change_member, name="change_member"),
    path("access/groups/<int:group_id>/delete/", groups.delete, name="delete_group"),
    path("access/groups/<int:group_id>/claims/", groups.add_claim, name="add_claim"),
    path("access/groups/<int:group_id>/claims/<int:claim_id>/delete/", groups.remove_claim, name="remove_claim"),
    # access/keys/, keys/
    path("access/keys/", keys.keys, name="keys"),
    path("access/keys/<uuid:key_id>/forwarding/", keys.forwarding, name="key_forwarding"),
    path("keys/", keys.own_keys, name="own_keys"),
    path("keys/new/", keys.new_key, name="new_key"),
    path("keys/<uuid:key_id>/revoke/", keys.revoke, name="revoke_key"),
    # access/audit/
    path("access/audit/", audit.audit, name="audit"),
    path("access/audit/export/", audit.export, name="audit_export"),
]
