"""Models of users, access, connections and sign-in."""

from corecube.models.access import ApiKey, AuditEvent, Compartment, ForwardedToken, Grant, User
from corecube.models.backup import Backup
from corecube.models.connection import Connection, PushedItem
from corecube.models.key_use import KeyUse
from corecube.models.sign_in import OidcGroup, OidcIdentity, OidcMembership, SignInPace
