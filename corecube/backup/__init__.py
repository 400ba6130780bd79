"""Backups: the database at one moment, the uploads and the secret key, in a folder or an S3 bucket.

A place holds the backups of one installation:

    corecube-backup.json         the format, the installation, and how the passphrase was used
    parts/ab/ab12...             pieces of at most 16 MiB, named by their content and shared by all backups
    backups/20261126T193000Z     a manifest: what the backup consists of; written last, so that one that exists is whole

Pieces that exist are not written again. So a later backup writes what has changed, and an interrupted one is resumed.
`sealing` names and encrypts pieces, `places` stores them, `parts` cuts and checks them; `tables` and `uploads` read
and write the installation; `create`, `restore` and `retention` put these together.
"""
