-- Sets what holds for one read: the settings end with the transaction.
SELECT set_config(name, value, true)
FROM unnest(%(setting_names)s::text[], %(setting_values)s::text[]) AS given (name, value)
