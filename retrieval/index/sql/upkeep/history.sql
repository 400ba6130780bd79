-- Which database this is, and which of its pasts: a restored copy has another system, a promoted one another timeline.
SELECT concat_ws('/', system.system_identifier, checkpoint.timeline_id, database.oid)
FROM pg_control_system() AS system, pg_control_checkpoint() AS checkpoint, pg_database AS database
WHERE database.datname = current_database()
