-- Under which the cursors of one tenant's feed are sealed: a place in the feed counts the records of all tenants.
alter table meta add column cursor_key text;
update meta set cursor_key = lower(hex(randomblob(32)));
-- One tenant's audit goes by its own numbers.
drop index audit_tenant;
