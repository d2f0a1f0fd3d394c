-- Under which the cursors of one tenant's feed are sealed: a place in the feed counts the records of all tenants.
alter table tape.meta add column cursor_key text;
update tape.meta set cursor_key = encode(sha256(convert_to(gen_random_uuid()::text || gen_random_uuid()::text || gen_random_uuid()::text, 'UTF8')), 'hex');
-- One tenant's audit goes by its own numbers.
drop index tape.audit_tenant;
